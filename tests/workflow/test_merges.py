"""Whether a branch still has what a merge brought, and what a merge queue is told: with real git."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.adapters.git import GitMirror
from bot.domain.actions import Gate
from bot.domain.files import Change, CommitId, File, TreeId
from bot.domain.github import Conclusion
from bot.domain.promotion import Target
from bot.domain.review import Patch, PreparedCommit, Preview, Split
from bot.ports import TransientError
from bot.workflow.merge_groups import judge_group
from bot.workflow.merges import find_lost_change, without_review
from tests.adapters.git_server import GitServer, commit_files, serve_git
from tests.domain import reviews as r

BEFORE = "image:\n  tag: 1.0.0\nreplicas: 1\n"
MERGED = BEFORE.replace("1.0.0", "1.1.0")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[GitServer]:
    async with serve_git(tmp_path / "server") as running:
        yield running


async def _no_token(url: str) -> str | None:
    return None


@pytest.fixture
def mirror(tmp_path: Path) -> GitMirror:
    return GitMirror(tmp_path / "mirrors", _no_token, network_timeout=20)


async def merged(mirror: GitMirror, server: GitServer) -> tuple[Path, Preview]:
    """A repository with a merged change of one line, and the preview of that change."""
    path, url = server.repository("acme/ops"), server.address("acme/ops")
    base = CommitId(commit_files(path, "main", {"values.yaml": BEFORE}))
    merge = CommitId(commit_files(path, "main", {"values.yaml": MERGED}))
    await mirror.fetch(url)
    files = await mirror.list_files(url, merge)
    tree: TreeId = (await mirror.read_commit(url, merge)).tree
    return path, r.preview(
        target=Target(url, "main"),
        base=base,
        tree=tree,
        differences={"values.yaml": files["values.yaml"]},
        touched=frozenset(files),
    )


def test_without_a_review_what_would_be_prepared_is_still_to_be_committed() -> None:
    old, new, newer = File(b"1"), File(b"2"), File(b"3")
    prepared = PreparedCommit("one", (Change("a.tfvars", old, new), Change("both.yaml", old, new)))
    later = (Change("both.yaml", old, newer), Change("values.yaml", old, new))
    seen = r.preview(split=Split(3, (prepared,), Patch(r.MAIN, later)), differences={"a.tfvars": new.entry})
    found = without_review(seen)
    assert (found.split.cut, found.split.prepared, found.differences) == (0, (), {})
    wanted = {change.path: change.after for change in found.split.deferred.changes}
    assert wanted == {"a.tfvars": new, "both.yaml": newer, "values.yaml": new}


@pytest.mark.parametrize(
    ("now", "lost"),
    [
        pytest.param(MERGED, False, id="nothing happened since"),
        pytest.param(MERGED.replace("replicas: 1", "replicas: 2"), False, id="another line changed"),
        pytest.param(BEFORE, True, id="it was reverted"),
        pytest.param(
            BEFORE.replace("replicas: 1", "replicas: 2"), True, id="its line went back, another changed"
        ),
        pytest.param(MERGED.replace("1.1.0", "1.2.0"), True, id="its line became a third thing"),
    ],
)
async def test_a_change_is_lost_when_its_lines_are(
    mirror: GitMirror, server: GitServer, now: str, *, lost: bool
) -> None:
    path, preview = await merged(mirror, server)
    tip = CommitId(commit_files(path, "main", {"values.yaml": now, "other.txt": "x\n"}))
    await mirror.fetch(preview.target.url)
    found = await find_lost_change(mirror, preview, tip)
    assert found == ("values.yaml is no longer what was merged" if lost else "")


@pytest.mark.parametrize(
    ("text", "gates", "conclusion"),
    [
        pytest.param(MERGED, (), Conclusion.SUCCESS, id="what was approved"),
        pytest.param(BEFORE, (), Conclusion.FAILURE, id="something else"),
        pytest.param(
            MERGED, (Gate("freeze", False, "frozen: audit"),), Conclusion.FAILURE, id="a gate is closed"
        ),
    ],
)
async def test_a_queue_may_bring_only_what_was_approved(
    mirror: GitMirror, server: GitServer, text: str, gates: tuple[Gate, ...], conclusion: Conclusion
) -> None:
    path, preview = await merged(mirror, server)
    head = CommitId(commit_files(path, "queue", {"values.yaml": text}))
    seen = r.reviewed(preview=preview, gates=gates)
    check = await judge_group(mirror, seen, head)
    assert (check.name, check.head, check.conclusion) == ("lockstep", head, conclusion)


async def test_a_queue_waits_for_a_preview_that_is_being_made(mirror: GitMirror, server: GitServer) -> None:
    _, preview = await merged(mirror, server)
    with pytest.raises(TransientError):
        await judge_group(
            mirror, r.reviewed(preview=preview, promotion=r.in_review(running="preview")), preview.base
        )
