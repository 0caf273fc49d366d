"""What an apply before the merge stands on, and what follows from how its walk ended, on a real git server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import pytest

from bot.adapters.git import GitMirror
from bot.adapters.store.store import open_store
from bot.adapters.vault import KeyFileVault
from bot.domain.actions import BeginApply, ContinueFulfil
from bot.domain.files import CommitId
from bot.domain.promotion import EarlyApply, Promotion, State, Stop, Target
from bot.domain.review import Preview
from bot.ports import Signature, Store
from bot.workflow import early
from bot.workflow.early import EarlyApplier
from bot.workflow.outcomes import Finished, Mergeable, Stopped, Waiting
from bot.workflow.own_commits import adds_nothing
from tests.adapters.git_server import GitServer, commit_files, git, serve_git
from tests.reports.views import NOW
from tests.reports.views import preview as any_preview
from tests.reports.views import promotion as any_promotion

BRANCH = "lockstep/acme/staging"


class Clock:
    """A clock that stands."""

    def now(self) -> datetime:
        return NOW


@dataclass
class Scene:
    """A repository with an approved promotion branch, and who applies it."""

    repository: Path
    applier: EarlyApplier
    promotion: Promotion
    preview: Preview

    async def stood(self) -> Promotion:
        return await self.applier.stand(self.promotion, self.preview)

    def commit(self, branch: str, text: str, path: str = "values.yaml", message: str = "change") -> CommitId:
        return CommitId(commit_files(self.repository, branch, {path: text}, message))


async def _no_token(url: str) -> str | None:
    return None


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[GitServer]:
    async with serve_git(tmp_path / "server") as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", KeyFileVault(tmp_path / "vault.key"))
    yield opened
    opened.close()


@pytest.fixture
async def scene(tmp_path: Path, server: GitServer, store: Store) -> Scene:
    repository = server.repository("acme/operations")
    lines = "".join(f"line: {number}\n" for number in range(9))
    base = commit_files(repository, "main", {"values.yaml": lines, "main.tf": "a\n", "README.md": "r\n"})
    git(repository, "branch", BRANCH, "main")
    head = CommitId(commit_files(repository, BRANCH, {"main.tf": "b\n"}, "prepare"))
    mirror = GitMirror(tmp_path / "mirrors", _no_token)
    url = server.address("acme/operations")
    await mirror.fetch(url)
    tree = (await mirror.read_commit(url, head)).tree
    target = Target(url, "main")
    promotion = any_promotion(target=target, head=head, heads=(head,), own_commits=(head,), pull=None)
    asked = early.begun(promotion, BeginApply(head, "dana", "`/apply` by dana"))
    preview = any_preview(
        target=target, base=CommitId(base), tree=tree, touched=frozenset({"main.tf", "values.yaml"})
    )
    applier = EarlyApplier(mirror, store, Clock(), ("lockstep", "lockstep@localhost"))
    return Scene(repository, applier, asked, preview)


async def test_it_stands_on_the_approved_head_where_the_target_has_not_moved(scene: Scene) -> None:
    stood = await scene.stood()
    assert stood.early is not None
    assert (stood.early.commit, stood.effects_begun) == (scene.promotion.head, True)


async def test_a_target_that_moved_elsewhere_is_merged_into_it_the_same_way_every_time(scene: Scene) -> None:
    moved = scene.commit("main", "other\n", "README.md")
    stood = await scene.stood()
    assert stood.early is not None
    assert stood.early.commit not in (None, scene.promotion.head)
    read = await scene.applier.git.read_commit(scene.preview.target.url, stood.early.commit or CommitId(""))
    assert list(read.parents) == [scene.promotion.head, moved]
    scene.promotion = stood
    assert await scene.stood() == stood
    # By this a rebuild tells it from a merge of people's.
    mirror, url = scene.applier.git, scene.preview.target.url
    assert await adds_nothing(mirror, url, read, moved)
    assert not await adds_nothing(mirror, url, read, scene.preview.base)
    theirs = await mirror.commit(
        url, scene.preview.tree, list(read.parents), read.message, Signature("lockstep", "l@localhost", NOW)
    )
    assert not await adds_nothing(mirror, url, await mirror.read_commit(url, theirs), moved)


@pytest.mark.parametrize(
    ("branch", "path", "text", "why"),
    [
        ("main", "values.yaml", "another\n", "main changed values.yaml"),
        ("main", "main.tf", "c\n", "the branch conflicts with main"),
        (BRANCH, "README.md", "theirs\n", "the branch was pushed to"),
    ],
    ids=["the target changed a touched path", "they conflict", "somebody pushed"],
)
async def test_it_does_not_begin_on_what_nobody_approved(
    scene: Scene, branch: str, path: str, text: str, why: str
) -> None:
    scene.commit(branch, text, path)
    stood = await scene.stood()
    assert (stood.state, stood.effects_begun, stood.is_ahead) == (State.REVIEW, False, False)
    assert why in stood.preview_wanted


async def test_a_conflict_after_it_began_stops_it(scene: Scene) -> None:
    scene.promotion = early.continued(await scene.stood(), ContinueFulfil("again", anew=True))
    scene.commit("main", "c\n", "main.tf")
    stood = await scene.stood()
    assert (stood.state, stood.effects_begun) == (State.STOPPED, True)
    assert "the branch conflicts with main" in stood.reason


async def test_only_commits_of_the_walk_carry_the_approval_on(scene: Scene) -> None:
    stood = await scene.stood()
    made = scene.commit(BRANCH, "deferred\n")
    ready = await scene.applier.conclude(stood, scene.preview, Mergeable(made))
    assert ready.early is not None
    assert (ready.early.ready, ready.head) == (made, made)
    assert ready.heads == (scene.promotion.head, made)
    assert made in ready.own_commits
    # What a person puts on top of it counts for nobody.
    theirs = scene.commit(BRANCH, "theirs\n", "README.md")
    stopped = await scene.applier.conclude(stood, scene.preview, Mergeable(made))
    assert stopped.state is State.STOPPED
    assert theirs[:7] in stopped.reason
    assert theirs not in (*stopped.heads, *stopped.own_commits)


@pytest.mark.parametrize(
    ("outcome", "state", "failed"),
    [
        (Waiting("tf-apply", "the state is locked", 30.0), State.FULFILLING, None),
        (Stopped(Stop("another plan", "abc1234")), State.STOPPED, False),
        (Finished(State.FAILED, "tf-apply: no"), State.STOPPED, True),
        (Finished(State.ABORTED, "cancelled by a person"), State.STOPPED, True),
    ],
    ids=["waits", "stops", "fails", "is cancelled"],
)
async def test_nothing_but_people_ends_it_before_the_merge(
    scene: Scene, outcome: Waiting | Stopped | Finished, state: State, *, failed: bool | None
) -> None:
    ended = await scene.applier.conclude(await scene.stood(), scene.preview, outcome)
    assert ended.state is state
    assert (ended.stop.failed if ended.stop is not None else None) is failed
    assert not ended.blocked
    assert ended.finished_at is None


async def test_a_new_preview_forgets_the_journal_of_the_one_before(scene: Scene) -> None:
    stood = await scene.stood()
    again = early.afresh(replace(stood, state=State.STOPPED, attempt=3))
    assert (again.attempt, again.first_attempt, again.early, again.effects_begun) == (4, 4, None, False)
    asked = replace(scene.promotion, state=State.REVIEW, early=EarlyApply("d", "dana"))
    assert early.afresh(asked) == asked
