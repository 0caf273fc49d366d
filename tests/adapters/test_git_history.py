"""What discovery reads of repositories: mainline, tags and changed paths, against a real `git http-backend`."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.adapters.git import GitMirror, RepositoriesOfProjects
from bot.domain.files import CommitId
from bot.ports import TerminalError
from tests.adapters.certificates import make_certificate
from tests.adapters.git_server import ENVIRONMENT, GitServer, behind_tls, commit_files, git, serve_git

ADA = "Ada <ada@example.com>"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[GitServer]:
    async with serve_git(tmp_path / "server") as running:
        yield running


async def anonymous(url: str) -> None:
    """Nobody asks for a login here."""


def advice(project: str, url: str) -> str:
    """What a person does where access is refused."""
    return f"give {project} a login"


@pytest.fixture
def mirror(tmp_path: Path) -> GitMirror:
    return GitMirror(tmp_path / "mirrors", anonymous, network_timeout=20)


def merge(repository: Path, branch: str, other: str) -> str:
    """Merge a commit into a branch of a bare repository; gives the merge commit."""
    tip = git(repository, "rev-parse", f"refs/heads/{branch}")
    tree = git(repository, "merge-tree", "--write-tree", tip, other)
    made = git(repository, "commit-tree", tree, "-p", tip, "-p", other, stdin="merge")
    git(repository, "update-ref", f"refs/heads/{branch}", made)
    return made


async def test_the_mainline_passes_over_what_a_merge_brought(server: GitServer, mirror: GitMirror) -> None:
    repository = server.repository()
    first = commit_files(repository, "main", {"a": "1"})
    git(repository, "update-ref", "refs/heads/topic", first)
    topic = commit_files(repository, "topic", {"dir/b": "1"})
    second = commit_files(repository, "main", {"c": "1"})
    merged = merge(repository, "main", topic)
    url = server.address()
    await mirror.fetch(url)
    mainline = await mirror.list_mainline(url, CommitId(merged))
    assert [commit.id for commit in mainline] == [merged, second, first]
    assert [c.id for c in await mirror.list_mainline(url, CommitId(merged), skip=1, limit=1)] == [second]
    changed = await mirror.list_changed_paths(url, mainline)
    assert changed == {merged: ("dir/b",), second: ("c",), first: ("a",)}


async def test_a_rename_changes_both_paths_and_an_empty_commit_none(
    server: GitServer, mirror: GitMirror
) -> None:
    repository = server.repository()
    first = commit_files(repository, "main", {"old ü": "same text"})
    blob = git(repository, "rev-parse", f"{first}:old ü")
    tree = git(repository, "mktree", stdin=f"100644 blob {blob}\tnew\n")
    moved = git(repository, "commit-tree", tree, "-p", first, stdin="move")
    empty = git(repository, "commit-tree", tree, "-p", moved, stdin="nothing")
    git(repository, "update-ref", "refs/heads/main", empty)
    url = server.address()
    mainline = await mirror.list_mainline(url, CommitId(empty))
    changed = await mirror.list_changed_paths(url, mainline)
    assert {key: sorted(paths) for key, paths in changed.items()} == {
        empty: [],
        moved: ["new", "old ü"],
        first: ["old ü"],
    }


async def test_tags_come_newest_first_with_what_their_commits_say(
    server: GitServer, mirror: GitMirror
) -> None:
    repository = server.repository()
    commit = commit_files(repository, "main", {"a": "1"}, "the subject\n\nand more")
    git(repository, "tag", "light", commit)
    later = {**ENVIRONMENT, "GIT_COMMITTER_NAME": "Bob", "GIT_COMMITTER_DATE": "@1700000100 +0000"}
    subprocess.run(
        ["git", "tag", "-a", "v1.0.0", "-m", "first release\n\nnotes", commit],
        cwd=repository,
        env=later,
        check=True,
    )
    git(repository, "tag", "of-a-tree", f"{commit}^{{tree}}")
    git(repository, "tag", "of-a-tag", "v1.0.0")
    annotated, light = [tag for tag in await mirror.list_tags(server.address()) if tag.tag != "of-a-tag"]
    assert (annotated.tag, annotated.id, annotated.subject) == ("v1.0.0", commit, "the subject")
    assert (annotated.author, annotated.tagger) == (ADA, "Bob <ada@example.com>")
    assert (annotated.annotation, annotated.created_at) == (
        "first release",
        datetime.fromtimestamp(1700000100, UTC),
    )
    assert (light.tag, light.id, light.tagger, light.annotation) == ("light", commit, "", "")


async def test_a_repository_without_tags_has_none(server: GitServer, mirror: GitMirror) -> None:
    commit_files(server.repository(), "main", {"a": "1"})
    assert await mirror.list_tags(server.address()) == []


async def test_a_blobless_mirror_tells_paths_but_holds_no_contents(server: GitServer, tmp_path: Path) -> None:
    repository = server.repository()
    git(repository, "config", "uploadpack.allowFilter", "true")
    first = commit_files(repository, "main", {"a": "1"})
    mirror = GitMirror(tmp_path / "mirrors", anonymous, blobless=True)
    url = server.address()
    await mirror.fetch(url)
    second = commit_files(repository, "main", {"b/c": "2"})
    await mirror.fetch(url)
    mainline = await mirror.list_mainline(url, CommitId(second))
    assert await mirror.list_changed_paths(url, mainline) == {second: ("b/c",), first: ("a",)}
    (path,) = (tmp_path / "mirrors").glob("*.git")
    kinds = git(path, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)").split()
    assert set(kinds) == {"commit", "tree"}


async def test_each_project_reads_what_its_own_login_opens(server: GitServer, tmp_path: Path) -> None:
    head = commit_files(server.repository(), "main", {"a": "1"})
    server.token = "s3cret"

    async def login(project: str, url: str, *, write: bool) -> tuple[str, str] | None:
        return ("x-access-token", "s3cret") if project == "acme" else None

    shared = GitMirror(tmp_path / "shared", anonymous)
    watched = RepositoriesOfProjects(shared, tmp_path / "watched", anonymous, login, advice)
    url = server.address()
    mine = await watched.open("acme", url)
    await mine.fetch(url)
    assert await mine.resolve(url, "main") == head
    theirs = await watched.open("other", url)
    with pytest.raises(TerminalError, match="give other a login"):
        await theirs.fetch(url)
    with pytest.raises(TerminalError, match="access"):
        await theirs.resolve(url, "main")


async def test_where_the_app_is_installed_its_mirrors_are_read(tmp_path: Path) -> None:
    async def token(url: str) -> str | None:
        return "token" if "ours" in url else None

    async def login(project: str, url: str, *, write: bool) -> None:
        raise AssertionError("nobody is to be asked")

    shared = GitMirror(tmp_path / "shared", token)
    watched = RepositoriesOfProjects(shared, tmp_path / "watched", token, login, advice)
    assert await watched.open("acme", "https://github.example/acme/ours.git") is shared
    own = await watched.open("acme", "https://github.example/acme/else.git")
    assert own is not shared
    assert await watched.open("acme", "https://git.example/x.git") is own
    assert await watched.open("acme", "https://git.example/x.git", insecure=True) is not own


async def test_a_certificate_nobody_vouches_for_is_accepted_only_where_that_is_said(
    server: GitServer, tmp_path: Path
) -> None:
    head = commit_files(server.repository(), "main", {"a": "1"})
    async with behind_tls(server, make_certificate(tmp_path)) as url:
        with pytest.raises(TerminalError, match="certificate"):
            await GitMirror(tmp_path / "strict", anonymous).fetch(url)
        mirror = GitMirror(tmp_path / "loose", anonymous, insecure=True)
        await mirror.fetch(url)
        assert await mirror.resolve(url, "main") == head
