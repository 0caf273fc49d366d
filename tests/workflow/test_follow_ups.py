"""Follow-ups beside their walk: events wake it, and a promotion that does not go on has its follow-up closed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from bot.adapters.git import GitMirror
from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.domain.codec import decode
from bot.domain.files import Change, CommitId, File
from bot.domain.github import CheckRun, Conclusion, PullNumber, PullRequest, Repository
from bot.domain.model import Step
from bot.domain.promotion import Promotion, State, StepRun, StepStatus, Target
from bot.domain.review import Lane, Patch, Split
from bot.domain.review_policy import ReviewPolicy
from bot.ports import GitHub
from bot.reports.follow_up import render_follow_up_check
from bot.workflow.follow_ups import OpenFollowUps
from tests.adapters.git_server import GitServer, commit_files, git
from tests.domain import reviews as r
from tests.steps.bench import NOW, promotion
from tests.steps.conftest import mirror as mirror
from tests.steps.conftest import repository as repository
from tests.steps.conftest import server as server
from tests.steps.hub import OPS, Hub

BRANCH = "lockstep/acme/_release/dev.01abc.fffffff/1"
VALUES = "env/dev/values.yaml"
EVER = datetime(2100, 1, 1, tzinfo=UTC)


class StoppedClock:
    def now(self) -> datetime:
        return NOW


@dataclass
class Bed:
    """A promotion whose push waits for its follow-up #12."""

    hub: Hub
    store: DatabaseStore
    path: Path
    promotion: Promotion
    follow_ups: OpenFollowUps

    async def begin(self, **changes: object) -> PullRequest:
        self.promotion = replace(self.promotion, **changes)  # type: ignore[arg-type]
        await self.store.create_promotion(self.promotion)
        run = StepRun("push", "git-push", 1, StepStatus.RUNNING, finished_at=NOW)
        await self.store.finish_step(self.promotion.id, run)
        git(self.path, "branch", BRANCH, "main")
        commit_files(self.path, BRANCH, {VALUES: "image:\n  tag: 1.2.3\n"})
        return await self.hub.open_pull_request(
            OPS, head_branch=BRANCH, base_branch="main", title="t", body="b"
        )

    async def looks(self) -> list[tuple[str, str]]:
        due = await self.store.list_due_looks(EVER)
        return [(look.kind, look.key) for look in due]

    async def shown(self) -> list[CheckRun]:
        return [decode(CheckRun, due.post.payload["check"]) for due in await self.store.list_due_posts(EVER)]

    def branches(self) -> str:
        return git(self.path, "for-each-ref", "--format=%(refname:short)", "refs/heads/lockstep")


@pytest.fixture
def bed(tmp_path: Path, mirror: GitMirror, repository: Path, server: GitServer) -> Iterator[Bed]:
    store = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", KeyFileVault(tmp_path / "vault.key"))
    url = server.address("acme/ops")
    hub = Hub(url, repository)
    made = replace(
        promotion(url),
        steps=(Step(uses="git-push", alias="push"),),
        state=State.FULFILLING,
        effects_begun=True,
        pull=PullNumber(7),
        wake_at=NOW + timedelta(minutes=1),
    )
    follow_ups = OpenFollowUps(store, mirror, cast("GitHub", hub), hub, StoppedClock())
    yield Bed(hub, store, repository, made, follow_ups)
    store.close()


async def test_an_event_about_a_follow_up_wakes_the_walk_that_waits_for_it(bed: Bed) -> None:
    pull = await bed.begin()
    assert await bed.follow_ups.wake(pull)
    row = await bed.store.get_promotion(bed.promotion.id)
    assert row is not None
    assert row.wake_at is not None
    assert row.wake_at < NOW
    assert await bed.looks() == [("stage", "acme/dev")]


async def test_a_segment_that_is_in_flight_is_woken_behind_it(bed: Bed) -> None:
    pull = await bed.begin(running="fulfil")
    assert await bed.follow_ups.wake(pull)
    assert await bed.looks() == [("pull", "acme/ops#12")]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"from_fork": True}, id="of a fork"),
        pytest.param({"head_branch": "lockstep/acme/dev"}, id="a promotion's own"),
        pytest.param({"head_branch": BRANCH.replace("01abc", "01xyz")}, id="of nobody's promotion"),
        pytest.param({"repository": Repository("acme", "elsewhere")}, id="in another repository"),
    ],
)
async def test_other_pull_requests_are_no_follow_ups(bed: Bed, changes: dict[str, object]) -> None:
    pull = await bed.begin()
    assert not await bed.follow_ups.wake(replace(pull, **changes))  # type: ignore[arg-type]
    assert await bed.looks() == []


async def test_one_that_is_opened_again_after_the_end_is_red(bed: Bed) -> None:
    pull = await bed.begin(state=State.ABORTED, reason="cancelled by a person")
    assert await bed.follow_ups.wake(pull)
    (check,) = await bed.shown()
    assert check.conclusion is Conclusion.FAILURE
    assert "its promotion has ended: cancelled by a person" in check.summary
    assert await bed.looks() == []


async def test_a_promotion_that_stopped_has_its_follow_up_red(bed: Bed) -> None:
    # The journal does not know its number yet: it is found by its name.
    pull = await bed.begin()
    await bed.follow_ups.turn_red(bed.promotion, "merge reverted")
    assert await bed.shown() == [render_follow_up_check(bed.promotion, pull.head, "merge reverted")]
    assert bed.hub.pulls[12].open


async def test_nobody_goes_on_so_it_is_closed_and_its_branch_deleted(bed: Bed) -> None:
    await bed.begin()
    await bed.follow_ups.close(bed.promotion)
    assert not bed.hub.pulls[12].open
    assert bed.branches() == ""
    # And again, as after a crash.
    await bed.follow_ups.close(bed.promotion)


@pytest.mark.parametrize(
    ("changes", "is_left"),
    [
        pytest.param({"state": State.FAILED}, True, id="one that failed and was taken over from"),
        pytest.param({"state": State.FAILED, "blocked": True}, False, id="one that may be tried again"),
        pytest.param({}, False, id="one that is under way"),
    ],
)
async def test_what_is_left_when_another_promotion_takes_over_is_closed(
    bed: Bed, changes: dict[str, object], is_left: bool
) -> None:
    await bed.begin(**changes)
    await bed.follow_ups.close_left(bed.promotion.id)
    assert bed.hub.pulls[12].open is not is_left


async def test_a_push_that_is_done_has_nothing_to_close(bed: Bed) -> None:
    await bed.begin()
    run = StepRun("push", "git-push", 1, StepStatus.SUCCEEDED, finished_at=NOW)
    await bed.store.finish_step(bed.promotion.id, run)
    await bed.follow_ups.close(bed.promotion)
    assert bed.hub.pulls[12].open


@pytest.mark.parametrize(
    ("green", "before", "said"),
    [
        pytest.param(True, {}, "", id="exactly what it brings alone"),
        pytest.param(True, {"README.md": "other\n"}, "", id="something else before it"),
        pytest.param(False, {}, "its own check is not green", id="it is not green itself"),
        pytest.param(
            True,
            {VALUES: "image:\n  tag: 9\n"},
            f"the queue changes {VALUES} before it",
            id="its file before it",
        ),
    ],
)
async def test_a_merge_queue_is_told_whether_its_group_is_exact(
    bed: Bed, green: bool, before: dict[str, str], said: str
) -> None:
    pull = await bed.begin()
    if green:
        bed.hub.checks[pull.head] = render_follow_up_check(bed.promotion, pull.head, "")
    git(bed.path, "branch", "gh-readonly-queue/main/pr-12", "main")
    files = {VALUES: "image:\n  tag: 1.2.3\n"} | before
    group = CommitId(commit_files(bed.path, "gh-readonly-queue/main/pr-12", files))
    check = await bed.follow_ups.judge_group(pull, group)
    assert check.head == group
    assert check.title == (said or "The queue brings what was approved")
    assert check.conclusion is (Conclusion.FAILURE if said else Conclusion.SUCCESS)


@pytest.mark.parametrize(
    ("policy", "deferred", "asked"),
    [
        pytest.param("Push", True, True, id="a push behind the merge"),
        pytest.param("Push", False, False, id="nothing behind the merge"),
        pytest.param("PullRequest", True, False, id="a policy that asks for a pull request anyway"),
    ],
)
async def test_rules_are_asked_for_where_a_push_would_meet_them(
    bed: Bed, policy: str, deferred: bool, asked: bool
) -> None:
    target = Target(bed.hub.url, "main")
    bed.hub.refusing = "pull_request"
    changes = (Change("a", None, File(b"x")),) if deferred else ()
    preview = r.preview(target=target, split=Split(0, (), Patch(target, changes)))
    found = await bed.follow_ups.with_obstacle(preview, ReviewPolicy(write_back=policy))
    assert found.write_back == ("pull_request" if asked else "")
    assert replace(found, write_back="") == preview


@pytest.mark.parametrize("policy", ["Push", "PullRequest"])
async def test_a_reviewer_is_warned_where_commits_must_be_signed(bed: Bed, policy: str) -> None:
    bed.hub.refusing = "pull_request, required_signatures"
    preview = r.preview(target=Target(bed.hub.url, "main"))
    found = await bed.follow_ups.with_obstacle(preview, ReviewPolicy(write_back=policy))
    (warning,) = found.warnings
    assert "the rules of main ask for signed commits, and what the App pushes is not signed" in warning
    # Nothing is asked where there is nothing to merge.
    idle = replace(preview, lane=Lane.NO_OP)
    assert await bed.follow_ups.with_obstacle(idle, ReviewPolicy(write_back=policy)) == idle
