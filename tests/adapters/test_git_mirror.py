"""The git adapter against a real `git http-backend`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import sys
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from bot.adapters.git import GitMirror
from bot.domain.files import BlobId, CommitId, Entry, File, Mode, TreeId, blob_id
from bot.ports import Conflicted, Merged, Moved, Pushed, Refused, Signature, TerminalError, TransientError
from tests.adapters.git_server import GitServer, commit_files, git, serve_git

SIGNATURE = Signature("Lockstep", "bot@example.com", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC))


class Credentials:
    """Gives the current token, and remembers which addresses it was asked for."""

    def __init__(self) -> None:
        self.token: str | None = None
        self.asked: list[str] = []

    async def __call__(self, url: str) -> str | None:
        self.asked.append(url)
        return self.token


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[GitServer]:
    async with serve_git(tmp_path / "server") as running:
        yield running


@pytest.fixture
def credentials() -> Credentials:
    return Credentials()


@pytest.fixture
def mirror(tmp_path: Path, credentials: Credentials) -> GitMirror:
    return GitMirror(tmp_path / "mirrors", credentials, network_timeout=20)


def mirror_path(tmp_path: Path) -> Path:
    (path,) = (tmp_path / "mirrors").glob("*.git")
    return path


async def test_reads_a_tree_and_its_files(server: GitServer, mirror: GitMirror) -> None:
    head = commit_files(server.repository(), "main", {"a.txt": "alpha", "dir/ü b.txt": "beta\n"})
    url = server.address()
    assert await mirror.resolve(url, "main") == head
    listing = await mirror.list_files(url, CommitId(head))
    assert set(listing) == {"a.txt", "dir/ü b.txt"}
    assert listing["a.txt"] == Entry(Mode.FILE, blob_id(b"alpha"))
    files = await mirror.read_files(url, listing)
    assert files == {"a.txt": File(b"alpha"), "dir/ü b.txt": File(b"beta\n")}


async def test_resolves_branch_before_tag_then_ref_then_id(server: GitServer, mirror: GitMirror) -> None:
    repository = server.repository()
    first = commit_files(repository, "main", {"a": "1"})
    second = commit_files(repository, "main", {"a": "2"})
    git(repository, "update-ref", "refs/tags/both", first)
    git(repository, "update-ref", "refs/heads/both", second)
    git(repository, "update-ref", "refs/tags/v1", first)
    url = server.address()
    await mirror.fetch(url)
    assert await mirror.resolve(url, "both") == second
    assert await mirror.resolve(url, "v1") == first
    assert await mirror.resolve(url, "refs/tags/both") == first
    assert await mirror.resolve(url, first) == first
    assert await mirror.resolve(url, first[:8]) == first
    assert await mirror.resolve(url, "") == second
    assert await mirror.resolve(url, "nowhere") is None


@pytest.mark.parametrize("revision", ["--upload-pack=x", "a..b", "main^", "a b", "x\ny", "@{-1}", "main:a"])
async def test_a_revision_that_git_would_read_as_an_expression_is_nothing(
    server: GitServer, mirror: GitMirror, revision: str
) -> None:
    commit_files(server.repository(), "main", {"a": "1"})
    assert await mirror.resolve(server.address(), revision) is None


async def test_an_annotated_tag_is_its_commit(server: GitServer, mirror: GitMirror) -> None:
    repository = server.repository()
    head = commit_files(repository, "main", {"a": "1"})
    git(repository, "tag", "-a", "v1", "-m", "one", head)
    assert await mirror.resolve(server.address(), "v1") == head


async def test_fetch_follows_moved_and_deleted_branches(server: GitServer, mirror: GitMirror) -> None:
    repository = server.repository()
    commit_files(repository, "main", {"a": "1"})
    commit_files(repository, "old", {"a": "1"})
    url = server.address()
    await mirror.fetch(url)
    second = commit_files(repository, "main", {"a": "2"})
    git(repository, "update-ref", "-d", "refs/heads/old")
    commit_files(repository, "old/nested", {"b": "1"})
    await mirror.fetch(url)
    assert await mirror.resolve(url, "main") == second
    assert await mirror.resolve(url, "old") is None
    assert await mirror.resolve(url, "old/nested") is not None


async def test_fetch_brings_single_refs_and_forgets_those_that_went(
    server: GitServer, mirror: GitMirror
) -> None:
    repository = server.repository()
    commit_files(repository, "main", {"a": "1"})
    commit_files(repository, "topic", {"a": "2"})
    git(repository, "update-ref", "refs/pull/7/head", "refs/heads/topic")
    head = git(repository, "rev-parse", "refs/heads/topic")
    git(repository, "update-ref", "-d", "refs/heads/topic")
    url = server.address()
    await mirror.fetch(url)
    assert await mirror.resolve(url, "refs/pull/7/head") is None
    await mirror.fetch(url, "refs/pull/7/head")
    assert await mirror.resolve(url, "refs/pull/7/head") == head
    git(repository, "update-ref", "-d", "refs/pull/7/head")
    await mirror.fetch(url, "refs/pull/7/head")
    assert await mirror.resolve(url, "refs/pull/7/head") is None
    with pytest.raises(TerminalError, match="full ref"):
        await mirror.fetch(url, "--upload-pack=evil")


async def test_concurrent_fetches_share_one_that_begins_after_they_were_asked(
    server: GitServer, mirror: GitMirror
) -> None:
    commit_files(server.repository(), "main", {"a": "1"})
    url = server.address()
    await mirror.fetch(url)
    server.requests.clear()
    running = asyncio.create_task(mirror.fetch(url))
    while not server.requests:
        await asyncio.sleep(0.001)
    head = commit_files(server.root / "acme/app.git", "main", {"a": "2"})
    await asyncio.gather(running, *(mirror.fetch(url) for _ in range(20)))
    assert await mirror.resolve(url, "main") == head
    advertised = [r for r in server.requests if r.startswith("GET") and "git-upload-pack" in r]
    assert len(advertised) == 2


async def test_a_cancelled_caller_leaves_the_fetch_to_the_others(
    server: GitServer, mirror: GitMirror
) -> None:
    head = commit_files(server.repository(), "main", {"a": "1"})
    url = server.address()
    first = asyncio.create_task(mirror.fetch(url))
    second = asyncio.create_task(mirror.fetch(url))
    while not server.requests:
        await asyncio.sleep(0.001)
    first.cancel()
    await second
    assert await mirror.resolve(url, "main") == head


async def test_default_branch_is_asked_of_the_server(server: GitServer, mirror: GitMirror) -> None:
    repository = server.repository()
    commit_files(repository, "main", {"a": "1"})
    commit_files(repository, "trunk", {"a": "2"})
    url = server.address()
    assert await mirror.default_branch(url) == "main"
    git(repository, "symbolic-ref", "HEAD", "refs/heads/trunk")
    assert await mirror.default_branch(url) == "trunk"


async def test_an_empty_repository_has_no_default_branch(server: GitServer, mirror: GitMirror) -> None:
    server.repository()
    with pytest.raises(TerminalError, match="first commit"):
        await mirror.default_branch(server.address())


async def test_writes_a_tree_with_additions_removals_and_modes(server: GitServer, mirror: GitMirror) -> None:
    head = commit_files(
        server.repository(), "main", {"keep": "k", "gone": "g", "d/one": "1", "d/two": "2", "f": "x"}
    )
    url = server.address()
    await mirror.fetch(url)
    tree = await mirror.write_tree(
        url,
        CommitId(head),
        {
            "gone": None,
            "never-there": None,
            "new/deep/file": File(b"\x00\xffbinary"),
            "run.sh": File(b"#!/bin/sh\n", Mode.EXECUTABLE),
            "link": File(b"keep", Mode.SYMLINK),
            "f/was-a-file": File(b"now a directory"),
            "d": File(b"was a directory"),
            "d/one": None,
            "d/two": None,
        },
    )
    listing = await mirror.list_files(url, tree)
    assert {p: e.mode for p, e in listing.items()} == {
        "keep": Mode.FILE,
        "new/deep/file": Mode.FILE,
        "run.sh": Mode.EXECUTABLE,
        "link": Mode.SYMLINK,
        "f/was-a-file": Mode.FILE,
        "d": Mode.FILE,
    }
    files = await mirror.read_files(url, listing)
    assert files["new/deep/file"].data == b"\x00\xffbinary"
    assert await mirror.write_tree(url, tree, {}) == tree
    assert await mirror.write_tree(url, None, {}) == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    assert await mirror.list_files(url, TreeId("4b825dc642cb6eb9a060e54bf8d69288fbee4904")) == {}


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "a/../b", "a//b", ".git/config", "a/.GIT/x", "", "a\nb", "./a"]
)
async def test_refuses_paths_that_leave_the_tree(server: GitServer, mirror: GitMirror, path: str) -> None:
    commit_files(server.repository(), "main", {"a": "1"})
    with pytest.raises(TerminalError, match="cannot be written"):
        await mirror.write_tree(server.address(), None, {path: File(b"x")})


async def test_a_commit_is_the_same_for_the_same_arguments(server: GitServer, mirror: GitMirror) -> None:
    head = CommitId(commit_files(server.repository(), "main", {"a": "1"}))
    url = server.address()
    tree = await mirror.write_tree(url, head, {"a": File(b"2")})
    zone = timezone(timedelta(hours=-3, minutes=-30))
    signature = Signature("Grace Höpper", "g@example.com", datetime(2024, 5, 6, 7, 8, 9, tzinfo=zone))
    message = "release: two\n\nBody.\n\nLockstep-Freight: abc\nLockstep-Stage: demo/dev\n"
    made = await mirror.commit(url, tree, [head], message, signature)
    assert made == await mirror.commit(url, tree, [head], message, signature)
    read = await mirror.read_commit(url, made)
    assert (read.tree, read.parents, read.message) == (tree, (head,), message)
    assert read.author == signature == read.committer
    assert read.author.at.utcoffset() == zone.utcoffset(None)
    assert read.trailers == {"Lockstep-Freight": "abc", "Lockstep-Stage": "demo/dev"}


async def test_log_has_what_head_has_and_base_has_not(server: GitServer, mirror: GitMirror) -> None:
    repository = server.repository()
    ids = [commit_files(repository, "main", {"a": str(n)}, f"number {n}") for n in range(5)]
    url = server.address()
    log = await mirror.log(url, CommitId(ids[1]), CommitId(ids[4]))
    assert [c.id for c in log] == [ids[4], ids[3], ids[2]]
    assert [c.message.strip() for c in log] == ["number 4", "number 3", "number 2"]
    assert [c.id for c in await mirror.log(url, None, CommitId(ids[4]), limit=2)] == [ids[4], ids[3]]
    assert await mirror.log(url, CommitId(ids[4]), CommitId(ids[4])) == []


async def test_merges_trees_or_names_the_conflicts(server: GitServer, mirror: GitMirror) -> None:
    repository = server.repository()
    commit_files(repository, "main", {"a": "1\n", "b": "1\n"})
    git(repository, "update-ref", "refs/heads/topic", "refs/heads/main")
    ours = CommitId(commit_files(repository, "main", {"a": "2\n"}))
    theirs = CommitId(commit_files(repository, "topic", {"b": "3\n"}))
    url = server.address()
    merged = await mirror.merge_trees(url, ours, theirs)
    assert isinstance(merged, Merged)
    files = await mirror.read_files(url, await mirror.list_files(url, merged.tree))
    assert {p: f.data for p, f in files.items()} == {"a": b"2\n", "b": b"3\n"}
    clash = CommitId(commit_files(repository, "topic", {"a": "9\n"}))
    assert await mirror.merge_trees(url, ours, clash) == Conflicted(("a",))
    stranger = CommitId(commit_files(repository, "stranger", {"z": "z"}))
    with pytest.raises(TerminalError, match="share no commit"):
        await mirror.merge_trees(url, ours, stranger)


def entry_of(text: bytes) -> Entry:
    return Entry(Mode.FILE, blob_id(text))


async def test_diff_names_what_differs(server: GitServer, mirror: GitMirror) -> None:
    repository = server.repository()
    before = CommitId(commit_files(repository, "main", {"a": "1", "b": "1"}))
    after = CommitId(commit_files(repository, "main", {"a": "2", "c": "3"}))
    url = server.address()
    assert await mirror.diff(url, before, after) == [
        ("a", entry_of(b"1"), entry_of(b"2")),
        ("c", None, entry_of(b"3")),
    ]
    assert [p for p, _, _ in await mirror.diff(url, None, before)] == ["a", "b"]
    assert await mirror.diff(url, after, after) == []


async def test_is_ancestor(server: GitServer, mirror: GitMirror) -> None:
    repository = server.repository()
    first = CommitId(commit_files(repository, "main", {"a": "1"}))
    second = CommitId(commit_files(repository, "main", {"a": "2"}))
    url = server.address()
    assert await mirror.is_ancestor(url, first, second)
    assert await mirror.is_ancestor(url, first, first)
    assert not await mirror.is_ancestor(url, second, first)


async def test_is_related(server: GitServer, mirror: GitMirror) -> None:
    repository = server.repository()
    first = CommitId(commit_files(repository, "main", {"a": "1"}))
    url = server.address()
    left, right = [await new_commit(mirror, url, first, text) for text in (b"2", b"3")]
    empty = await mirror.write_tree(url, None, {})
    alone = await mirror.commit(url, empty, (), "first", SIGNATURE)
    assert await mirror.is_related(url, left, right)
    assert not await mirror.is_related(url, left, alone)


async def new_commit(mirror: GitMirror, url: str, base: str, text: bytes) -> CommitId:
    tree = await mirror.write_tree(url, CommitId(base), {"a": File(text)})
    return await mirror.commit(url, tree, [CommitId(base)], "change", SIGNATURE)


async def test_push_creates_moves_and_deletes_a_branch_with_a_lease(
    server: GitServer, mirror: GitMirror
) -> None:
    repository = server.repository()
    base = CommitId(commit_files(repository, "main", {"a": "1"}))
    url = server.address()
    one = await new_commit(mirror, url, base, b"one")
    other = await new_commit(mirror, url, base, b"other")
    branch = "lockstep/demo/dev"
    assert await mirror.push(url, one, branch, expected=None) == Pushed()
    assert git(repository, "rev-parse", f"refs/heads/{branch}") == one
    assert await mirror.resolve(url, branch) == one
    assert await mirror.push(url, other, branch, expected=None) == Moved(one)
    assert await mirror.push(url, other, branch, expected=base) == Moved(one)
    assert await mirror.push(url, other, branch, expected=one) == Pushed()
    assert await mirror.push(url, other, branch, expected=one) == Pushed(), "a second run finds it done"
    assert await mirror.push(url, None, branch, expected=one) == Moved(other)
    assert await mirror.push(url, None, branch, expected=other) == Pushed()
    assert await mirror.push(url, None, branch, expected=other) == Pushed(), "a second run finds it done"
    assert await mirror.push(url, one, branch, expected=other) == Moved(None)
    assert await mirror.resolve(url, branch) is None


async def test_push_is_refused_by_a_hook_in_its_own_words(server: GitServer, mirror: GitMirror) -> None:
    repository = server.repository()
    base = commit_files(repository, "main", {"a": "1"})
    hook = repository / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'error: GH013: Repository rule violations found' >&2\nexit 1\n")
    hook.chmod(0o755)
    url = server.address()
    made = await new_commit(mirror, url, base, b"two")
    outcome = await mirror.push(url, made, "main", expected=CommitId(base))
    assert isinstance(outcome, Refused)
    assert "GH013: Repository rule violations found" in outcome.message
    assert git(repository, "rev-parse", "refs/heads/main") == base


async def test_push_whose_answer_was_lost_is_found_done(server: GitServer, mirror: GitMirror) -> None:
    base = commit_files(server.repository(), "main", {"a": "1"})
    url = server.address()
    made = await new_commit(mirror, url, base, b"two")
    server.drop_push_answer = True
    assert await mirror.push(url, made, "main", expected=CommitId(base)) == Pushed()


async def test_push_to_a_dead_server_is_transient(server: GitServer, mirror: GitMirror) -> None:
    base = commit_files(server.repository(), "main", {"a": "1"})
    url = server.address()
    made = await new_commit(mirror, url, base, b"two")
    server.status = 503
    with pytest.raises(TransientError, match="network"):
        await mirror.push(url, made, "main", expected=CommitId(base))


@pytest.mark.parametrize("name", ["main", "", "--force", "+refs/heads/x", "12" * 19])
async def test_push_takes_ids_alone(server: GitServer, mirror: GitMirror, name: str) -> None:
    base = CommitId(commit_files(server.repository(), "main", {"a": "1"}))
    for commit, expected in ((CommitId(name), base), (base, CommitId(name))):
        with pytest.raises(TerminalError, match="not the id"):
            await mirror.push(server.address(), commit, "main", expected=expected)


async def test_push_of_a_commit_that_is_nowhere_says_so(server: GitServer, mirror: GitMirror) -> None:
    base = commit_files(server.repository(), "main", {"a": "1"})
    with pytest.raises(TerminalError):
        await mirror.push(server.address(), CommitId("12" * 20), "main", expected=CommitId(base))


@pytest.mark.parametrize("branch", ["a..b", "x/", "a b", "a.lock", "-x", ""])
async def test_push_refuses_names_that_git_does_not_allow(
    server: GitServer, mirror: GitMirror, branch: str
) -> None:
    base = CommitId(commit_files(server.repository(), "main", {"a": "1"}))
    with pytest.raises(TerminalError, match="not a name"):
        await mirror.push(server.address(), base, branch, expected=None)


async def test_tags_are_created_and_moved_only_by_force(server: GitServer, mirror: GitMirror) -> None:
    repository = server.repository()
    first = CommitId(commit_files(repository, "main", {"a": "1"}))
    second = CommitId(commit_files(repository, "main", {"a": "2"}))
    url = server.address()
    assert await mirror.push_tag(url, first, "v1", force=False) == Pushed()
    assert await mirror.push_tag(url, first, "v1", force=False) == Pushed()
    assert await mirror.push_tag(url, second, "v1", force=False) == Moved(first)
    assert await mirror.push_tag(url, second, "v1", force=True) == Pushed()
    assert git(repository, "rev-parse", "refs/tags/v1") == second


async def test_a_token_is_asked_for_each_time_and_kept_nowhere(
    server: GitServer, mirror: GitMirror, credentials: Credentials, tmp_path: Path
) -> None:
    base = commit_files(server.repository(), "main", {"a": "1"})
    server.token = credentials.token = "ghs_firstTokenValue"
    url = server.address()
    await mirror.fetch(url)
    server.token = credentials.token = "ghs_secondTokenValue"
    made = await new_commit(mirror, url, base, b"two")
    assert await mirror.push(url, made, "main", expected=CommitId(base)) == Pushed()
    assert credentials.asked == [url, url]
    stored = b"".join(p.read_bytes() for p in (tmp_path / "mirrors").rglob("*") if p.is_file())
    assert b"TokenValue" not in stored
    assert stat.S_IMODE(mirror_path(tmp_path).stat().st_mode) == 0o700


@pytest.mark.parametrize("token", [None, "ghs_wrong"])
async def test_a_refused_token_is_terminal(
    server: GitServer, mirror: GitMirror, credentials: Credentials, token: str | None
) -> None:
    commit_files(server.repository(), "main", {"a": "1"})
    server.token = "ghs_right"
    credentials.token = token
    with pytest.raises(TerminalError, match="access") as caught:
        await mirror.fetch(server.address())
    assert "ghs_" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (403, TerminalError, "access"),
        (404, TerminalError, "not found"),
        (429, TransientError, "rate limit"),
        (500, TransientError, "network"),
        (503, TransientError, "network"),
    ],
)
async def test_statuses_become_the_ports_errors(
    server: GitServer, mirror: GitMirror, status: int, error: type[Exception], words: str
) -> None:
    server.repository()
    server.status = status
    with pytest.raises(error, match=words):
        await mirror.fetch(server.address())


async def test_an_unreachable_server_is_transient(mirror: GitMirror) -> None:
    with pytest.raises(TransientError):
        await mirror.fetch("http://127.0.0.1:9/acme/app.git")


async def test_a_hanging_server_is_left_after_the_time_limit(server: GitServer, tmp_path: Path) -> None:
    server.repository()
    server.hang = True
    mirror = GitMirror(tmp_path / "mirrors", Credentials(), network_timeout=1)
    begun = time.monotonic()
    with pytest.raises(TransientError, match="did not end within 1 s"):
        await mirror.fetch(server.address())
    assert time.monotonic() - begun < 10
    assert not any(server.address().encode() in command for command in command_lines())


def command_lines() -> list[bytes]:
    """The command lines of all processes of this machine; some end while one looks."""
    lines = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            lines.append(Path(f"/proc/{name}/cmdline").read_bytes() if name.isdigit() else b"")
    return lines


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/a.git",
        "ext::sh -c touch% /tmp/x",
        "file:///etc",
        "ssh://git@example.com/a.git",
        "git@example.com:a/b.git",
        "https://user:secretword@example.com/a.git",
        "/tmp/repository",
        "--upload-pack=x",
        "https://exa mple.com/a",
    ],
)
async def test_other_addresses_are_refused(mirror: GitMirror, url: str) -> None:
    with pytest.raises(TerminalError) as caught:
        await mirror.fetch(url)
    assert "secretword" not in str(caught.value)


async def test_what_is_missing_is_fetched_before_it_is_called_missing(
    server: GitServer, mirror: GitMirror
) -> None:
    repository = server.repository()
    commit_files(repository, "main", {"a": "1"})
    url = server.address()
    await mirror.fetch(url)
    later = CommitId(commit_files(repository, "main", {"a": "2"}))
    assert (await mirror.read_commit(url, later)).id == later
    with pytest.raises(TerminalError, match="missing object"):
        await mirror.read_commit(url, CommitId("12" * 20))
    with pytest.raises(TerminalError, match="missing object"):
        await mirror.list_files(url, CommitId("12" * 20))
    with pytest.raises(TerminalError, match="missing object"):
        await mirror.write_tree(url, CommitId("12" * 20), {"a": None})


def ruin_packs(path: Path) -> None:
    for file in [*path.glob("objects/pack/*.pack"), *(p for p in path.glob("objects/??/*"))]:
        file.chmod(0o600)
        file.write_bytes(b"")


def remove_objects(path: Path) -> None:
    for file in [p for p in path.rglob("objects/*/*") if p.is_file()]:
        file.unlink()


def remove_head(path: Path) -> None:
    (path / "HEAD").unlink()


def ruin_config(path: Path) -> None:
    (path / "config").write_bytes(b"[core\n")


@pytest.mark.parametrize("damage", [ruin_packs, remove_objects, remove_head, ruin_config])
async def test_a_damaged_mirror_is_made_anew_when_read(
    server: GitServer, mirror: GitMirror, tmp_path: Path, damage: object
) -> None:
    head = CommitId(commit_files(server.repository(), "main", {"a": "1"}))
    url = server.address()
    await mirror.fetch(url)
    assert callable(damage)
    damage(mirror_path(tmp_path))
    listing = await mirror.list_files(url, head)
    assert (await mirror.read_files(url, listing))["a"].data == b"1"


async def test_locks_of_a_killed_fetch_do_not_stand_in_the_way(
    server: GitServer, mirror: GitMirror, tmp_path: Path
) -> None:
    repository = server.repository()
    commit_files(repository, "main", {"a": "1"})
    url = server.address()
    await mirror.fetch(url)
    (mirror_path(tmp_path) / "refs/heads").mkdir(parents=True, exist_ok=True)
    (mirror_path(tmp_path) / "refs/heads/main.lock").touch()
    (mirror_path(tmp_path) / "refs/heads/other.lock").touch()
    unpushed = await mirror.write_tree(url, None, {"new": File(b"not pushed yet")})
    head = commit_files(repository, "main", {"a": "2"})
    commit_files(repository, "other", {"a": "3"})
    await mirror.fetch(url)
    assert await mirror.resolve(url, "main") == head
    assert set(await mirror.list_files(url, unpushed)) == {"new"}, "what is only here is not lost"


async def test_what_a_killed_first_fetch_left_is_cleared(
    server: GitServer, mirror: GitMirror, tmp_path: Path
) -> None:
    head = commit_files(server.repository(), "main", {"a": "1"})
    url = server.address()
    await mirror.fetch(url)
    path = mirror_path(tmp_path)
    half = path.with_name(f"{path.stem}.new-abcd")
    path.rename(half)
    await mirror.fetch(url)
    assert await mirror.resolve(url, "main") == head
    assert not half.exists()


async def test_a_second_process_waits_for_the_first(server: GitServer, tmp_path: Path) -> None:
    commit_files(server.repository(), "main", {"a": "1"})
    url = server.address()
    one, two = (GitMirror(tmp_path / "mirrors", Credentials()) for _ in range(2))
    await asyncio.gather(one.fetch(url), two.fetch(url))
    assert await one.resolve(url, "main") == await two.resolve(url, "main")


async def test_the_bots_own_environment_does_not_reach_git(
    server: GitServer, mirror: GitMirror, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    head = commit_files(server.repository(), "main", {"a": "1"})
    trace = tmp_path / "trace"
    monkeypatch.setenv("GIT_TRACE", str(trace))
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'alias.fetch=!touch /tmp/never'")
    monkeypatch.setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", "/nonexistent")
    assert await mirror.resolve(server.address(), "main") == head
    assert not trace.exists()


async def test_submodules_are_listed_but_not_read(server: GitServer, mirror: GitMirror) -> None:
    repository = server.repository()
    blob = git(repository, "hash-object", "-w", "--stdin", stdin="x")
    tree = git(repository, "mktree", stdin=f"100644 blob {blob}\ta\n160000 commit {'12' * 20}\tsub\n")
    commit = git(repository, "commit-tree", tree, stdin="m")
    git(repository, "update-ref", "refs/heads/main", commit)
    listing = await mirror.list_files(server.address(), CommitId(commit))
    assert listing["sub"] == Entry(Mode.SUBMODULE, BlobId("12" * 20))
    assert set(await mirror.read_files(server.address(), listing)) == {"a"}


async def test_maintenance_keeps_what_is_not_pushed_yet(
    server: GitServer, mirror: GitMirror, tmp_path: Path
) -> None:
    base = CommitId(commit_files(server.repository(), "main", {"a": "1"}))
    url = server.address()
    await mirror.maintain(url)
    assert not list((tmp_path / "mirrors").glob("*.git")), "there is nothing to pack before the first fetch"
    made = await new_commit(mirror, url, base, b"two")
    await mirror.maintain(url)
    assert list(mirror_path(tmp_path).glob("objects/pack/*.pack"))
    assert await mirror.push(url, made, "main", expected=base) == Pushed()


FETCHING = """
import asyncio, sys
from pathlib import Path
from bot.adapters.git import GitMirror

async def no_token(url: str) -> None:
    return None

asyncio.run(GitMirror(Path(sys.argv[1]), no_token).fetch(sys.argv[2]))
"""


async def test_a_first_fetch_that_was_killed_is_made_again(
    server: GitServer, mirror: GitMirror, tmp_path: Path
) -> None:
    head = commit_files(server.repository(), "main", {"a": "1"})
    server.hang = True
    url = server.address()
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FETCHING, str(tmp_path / "mirrors"), url, cwd=os.getcwd()
    )
    while not server.requests:
        await asyncio.sleep(0.01)
    other.kill()
    await other.wait()
    server.hang = False
    assert await mirror.resolve(url, "main") == head
    assert not list((tmp_path / "mirrors").glob("*.new-*"))
    for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
        with contextlib.suppress(OSError):
            if url.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize("name", [".git", "..", ".GIT"])
async def test_a_tree_that_could_do_harm_is_not_fetched(
    server: GitServer, mirror: GitMirror, name: str
) -> None:
    repository = server.repository()
    blob = git(repository, "hash-object", "-w", "--stdin", stdin="x")
    inner = git(repository, "mktree", stdin=f"100644 blob {blob}\tconfig\n")
    tree = git(repository, "mktree", stdin=f"040000 tree {inner}\t{name}\n")
    git(repository, "update-ref", "refs/heads/main", git(repository, "commit-tree", tree, stdin="m"))
    with pytest.raises(TerminalError, match="fetching"):
        await mirror.fetch(server.address())


async def test_pushes_and_fetches_at_the_same_time(server: GitServer, mirror: GitMirror) -> None:
    base = CommitId(commit_files(server.repository(), "main", {"a": "1"}))
    url = server.address()
    await mirror.fetch(url)

    async def push(number: int) -> None:
        made = await new_commit(mirror, url, base, b"%d" % number)
        assert await mirror.push(url, made, f"topic/{number}", expected=None) == Pushed()
        assert await mirror.resolve(url, f"topic/{number}") == made

    await asyncio.gather(*(push(number) for number in range(6)), *(mirror.fetch(url) for _ in range(6)))
