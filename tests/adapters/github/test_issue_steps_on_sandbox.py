"""The steps for issues and workflows with our adapter on the simulated GitHub: each effect once, none in a preview."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from bot.adapters.git import GitMirror
from bot.domain.freight import FreightName, FreightStatus
from bot.domain.github import CommentId, PullNumber
from bot.domain.promotion import StepRun, StepStatus
from bot.domain.review import EffectRecord, FrozenRecord, GateRecord, Presence, StepReport
from bot.domain.step_kinds import StepClass
from bot.domain.values import Unknown
from bot.ports import TerminalError
from bot.ports.issues import Dispatch, IssueChange, NewIssue
from bot.ports.store import FreightStore
from bot.steps.contract import Config, StepResult
from bot.steps.gh_create_issue import GhCreateIssue
from bot.steps.gh_issue_delete_comment import GhIssueDeleteComment
from bot.steps.gh_issue_update_comment import GhIssueUpdateComment
from bot.steps.gh_search_issues import GhSearchIssues
from bot.steps.gh_update_issue import GhUpdateIssue
from bot.steps.gh_wait_for_issue_state import GhWaitForIssueState
from bot.steps.gha_dispatch_workflow import GhaDispatchWorkflow
from bot.steps.gha_wait_for_workflow import GhaWaitForWorkflow
from tests.adapters.github.conftest import SHOP, World
from tests.steps.bench import Bench

ONE = Dispatch("smoke.yml", "main", {"tag": "1"})
WORKFLOW = b"on: {workflow_dispatch: {inputs: {tag: {required: true}, dry: {}}}}\njobs: {}\n"


@dataclass
class Notes:
    """The metadata of one piece of Freight."""

    status: FreightStatus = field(default_factory=FreightStatus)

    async def change_freight_status(
        self, project: str, name: FreightName, change: Callable[[FreightStatus], FreightStatus]
    ) -> None:
        self.status = change(self.status)


async def no_token(url: str) -> str | None:
    return None


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(GitMirror(tmp_path / "mirrors", no_token), now=datetime.now(UTC))
    made.promotion = replace(made.promotion, created_at=made.now)
    return made


def url(world: World) -> str:
    return world.app.clone_url(SHOP)


def creating(world: World, **more: object) -> Config:
    config = {
        "repoURL": url(world),
        "title": "Release 1.2.3",
        "body": "to dev",
        "labels": ["release"],
        **more,
    }
    return cast(Config, config)


def crash(bench: Bench, alias: str) -> None:
    """The step began, and the process died before the journal had its answer."""
    bench.journal[alias] = StepRun(alias, alias, bench.attempt, StepStatus.RUNNING, begun_at=bench.now)


# -- issues ------------------------------------------------------------------------------------------------------


async def test_an_issue_is_opened_once_and_noted_with_the_freight(bench: Bench, world: World) -> None:
    notes = Notes()
    step = GhCreateIssue(world.app, world.app.issues, cast(FreightStore, notes))
    shown = await bench.preview(step, creating(world))
    assert isinstance(shown.record, EffectRecord)
    assert shown.output["number"] == Unknown("known after step: gh-create-issue.number")
    assert world.sent("POST", "/issues") == 0

    bench.again()
    done = await bench.fulfil(step, creating(world))
    again = await bench.fulfil(step, creating(world))
    assert done.output == again.output == {"number": 1, "url": f"{world.stage.base}/acme/shop/issues/1"}
    assert world.sent("POST", "/issues") == 1
    assert notes.status.metadata == {"github-issue-number": 1}
    other = await bench.fulfil(step, creating(world, issueAlias="change"), "second")
    assert other.output["number"] == 2
    assert notes.status.metadata == {"github-issue-number": 1, "change": 2}


async def test_an_issue_whose_answer_was_lost_is_found(bench: Bench, world: World) -> None:
    step = GhCreateIssue(world.app, world.app.issues, cast(FreightStore, Notes()))
    world.fail("5xx-after", "POST", r"/issues$")
    assert (await bench.fulfil(step, creating(world))).output["number"] == 1
    assert world.sent("POST", "/issues") == 1


async def test_a_person_who_copies_the_marker_does_not_have_our_issue(bench: Bench, world: World) -> None:
    marker = f"<!-- lockstep:step:{bench.promotion.id}:gh-create-issue -->\n"
    await asyncio.to_thread(world.stage.github.actions.open_issue, "rafael", "acme/shop", "mine", marker)
    step = GhCreateIssue(world.app, world.app.issues, cast(FreightStore, Notes()))
    assert (await bench.fulfil(step, creating(world))).output["number"] == 2


async def test_an_issue_of_ours_is_found_by_its_marker_whatever_its_state(world: World) -> None:
    issues, since = world.app.issues, datetime.now(UTC)
    mark = "lockstep:drift acme/dev 0123"
    copied = f"<!-- {mark} -->\nmine"
    await asyncio.to_thread(world.stage.github.actions.open_issue, "rafael", "acme/shop", "mine", copied)
    assert await issues.find_own_issue(SHOP, mark, label="drift") is None
    made = await issues.create_issue(SHOP, NewIssue("Drift", "now", mark, ("drift",)), since=since)
    await issues.create_issue(SHOP, NewIssue("Other", "now", f"{mark}4", ("drift",)), since=since)
    await issues.update_issue(SHOP, made.number, IssueChange(body="later", state="closed"))
    found = await issues.find_own_issue(SHOP, mark, label="drift")
    assert found is not None
    assert (found.number, found.body, found.state) == (made.number, "later", "closed")
    assert await issues.find_own_issue(SHOP, mark, label="other") is None


async def test_an_issue_is_set_to_what_is_wanted(bench: Bench, world: World) -> None:
    create = GhCreateIssue(world.app, world.app.issues, cast(FreightStore, Notes()))
    await bench.fulfil(create, creating(world))
    step = GhUpdateIssue(world.app, world.app.issues)
    config: Config = {
        "repoURL": url(world),
        "issueNumber": 1,
        "title": "Released",
        "body": "to prod",
        "state": "closed",
        "addLabels": ["done", "both"],
        "removeLabels": ["release", "both"],
        "assignees": ["olivia"],
    }
    await bench.preview(step, config)
    assert world.sent("PATCH", "/issues/1") == 0
    await bench.fulfil(step, config)
    await bench.fulfil(step, config)
    assert world.sent("PATCH", "/issues/1") == 1
    search = GhSearchIssues(world.app, world.app.issues, bench.vault)
    seen = await bench.preview(search, {"repoURL": url(world), "issueNumber": 1})
    assert isinstance(seen.record, FrozenRecord)
    assert seen.output["issues"] == [
        {
            "number": 1,
            "title": "Released",
            "body": "to prod",
            "state": "closed",
            "labels": ["done"],
            "assignees": ["olivia"],
            "url": f"{world.stage.base}/acme/shop/issues/1",
        }
    ]
    # The marker has stayed, so that the step which opened it finds it again.
    assert (await bench.fulfil(create, creating(world))).output["number"] == 1
    with pytest.raises(TerminalError, match="nothing is to be changed"):
        await bench.preview(step, {"repoURL": url(world), "issueNumber": 1})


async def test_a_search_stays_in_its_repository_and_waits_behind_an_act(bench: Bench, world: World) -> None:
    for title in ("drift in dev", "other"):
        await asyncio.to_thread(world.stage.github.actions.open_issue, "rafael", "acme/shop", title)
    step = GhSearchIssues(world.app, world.app.issues, bench.vault)
    config: Config = {"repoURL": url(world), "query": "is:open drift"}
    found = (await bench.preview(step, config)).output["issues"]
    assert isinstance(found, list)
    assert [item["title"] for item in found if isinstance(item, dict)] == ["drift in dev"]
    missing = await bench.preview(step, {"repoURL": url(world), "issueNumber": 99})
    assert "has no issue #99" in missing.message
    bench.reports.append(StepReport(0, "act", "http", StepClass.ACT, Presence.CERTAIN, None))
    later = await bench.preview(step, config)
    assert (later.status, later.output) == (
        None,
        {"issues": Unknown("known after step: gh-search-issues.issues")},
    )


async def test_comments_are_edited_and_removed(bench: Bench, world: World) -> None:
    await asyncio.to_thread(world.stage.github.actions.open_issue, "rafael", "acme/shop", "talk")
    comment = await world.app.post_comment(SHOP, PullNumber(1), "first", marker="lockstep:step:x")
    edit = GhIssueUpdateComment(world.app, world.app.issues)
    config: Config = {"repoURL": url(world), "commentID": comment, "body": "second"}
    for _ in range(2):
        assert (await bench.fulfil(edit, config)).status is StepStatus.SUCCEEDED
    assert world.sent("PATCH", f"/issues/comments/{comment}") == 1
    found = await world.app.get_comment(SHOP, CommentId(comment))
    assert found is not None
    assert found.body == "<!-- lockstep:step:x -->\nsecond"

    remove = GhIssueDeleteComment(world.app, world.app.issues)
    gone: Config = {"repoURL": url(world), "commentID": comment}
    await bench.preview(remove, gone)
    assert world.sent("DELETE", "/issues/comments/") == 0
    world.fail("5xx-after", "DELETE", r"/issues/comments/")
    assert (await bench.fulfil(remove, gone)).status is StepStatus.SUCCEEDED
    assert (await bench.fulfil(remove, gone)).message == "the comment was gone already"
    assert "has no comment" in (await bench.fulfil(edit, config)).message


async def test_a_wait_for_an_issue_is_a_gate_until_its_expression_holds(bench: Bench, world: World) -> None:
    await asyncio.to_thread(world.stage.github.actions.open_issue, "rafael", "acme/shop", "approve me")
    step = GhWaitForIssueState(world.app, world.app.issues)
    config: Config = {
        "repoURL": url(world),
        "issueNumber": 1,
        "successExpression": '"approved" in issue.labels',
        "failureExpression": 'issue.state == "closed"',
        "pollInterval": "2m",
    }
    shown = await bench.preview(step, config)
    assert isinstance(shown.record, GateRecord)
    assert (shown.status, shown.record.open) == (None, False)
    waiting = await bench.fulfil(step, config)
    assert (waiting.status, waiting.retry_after) == (StepStatus.RUNNING, 120.0)
    await world.stage.bot.ok("POST", "/repos/acme/shop/issues/1/labels", {"labels": ["approved"]})
    held = await bench.preview(step, config)
    assert isinstance(held.record, GateRecord)
    assert held.record.open
    await world.stage.bot.ok("PATCH", "/repos/acme/shop/issues/1", {"state": "closed"})
    assert (await bench.fulfil(step, config)).status is StepStatus.FAILED


# -- workflows ---------------------------------------------------------------------------------------------------


def dispatching(world: World, **more: object) -> Config:
    config = {
        "repoURL": url(world),
        "workflowFile": "smoke.yml",
        "ref": "main",
        "inputs": {"tag": "1.2.3", "dry": True},
        **more,
    }
    return cast(Config, config)


def run_ids(world: World) -> list[int]:
    return [run.id for run in world.stage.github.actions.runs("acme/shop")]


async def test_a_workflow_is_dispatched_once_and_waited_for(bench: Bench, world: World) -> None:
    await world.stage.branch("main", {".github/workflows/smoke.yml": WORKFLOW})
    step = GhaDispatchWorkflow(world.app, world.app.workflows)
    shown = await bench.preview(step, dispatching(world))
    assert isinstance(shown.record, EffectRecord)
    assert run_ids(world) == []
    done = await bench.fulfil(step, dispatching(world))
    assert [done.output["runID"]] == run_ids(world)
    assert world.stage.github.actions.runs("acme/shop")[0].inputs == '{"tag": "1.2.3", "dry": "true"}'

    wait = GhaWaitForWorkflow(world.app, world.app.workflows)
    waiting: Config = {
        "repoURL": url(world),
        "runID": done.output["runID"],
        "expectedConclusion": "success",
    }
    assert (await bench.fulfil(wait, waiting)).status is StepStatus.RUNNING
    world.stage.github.actions.conclude_run(run_ids(world)[0], "failure")
    assert "ended with failure, not with success" in (await bench.fulfil(wait, waiting)).message
    any_end: Config = {"repoURL": url(world), "runID": done.output["runID"]}
    assert (await bench.fulfil(wait, any_end)).output == {"conclusion": "failure"}
    later = await bench.preview(wait, {"repoURL": url(world), "runID": Unknown("known after step: d.runID")})
    assert isinstance(later.record, GateRecord)
    assert later.record.reason == "asked after the merge"


@pytest.mark.parametrize(
    ("lose", "runs", "status"),
    [
        pytest.param("after", 1, StepStatus.SUCCEEDED, id="the answer is lost: the run is found"),
        pytest.param("before", 0, StepStatus.ERRORED, id="GitHub fails before it: a person decides"),
        pytest.param("crash before", 0, StepStatus.ERRORED, id="the bot dies before it is sent"),
        pytest.param("crash after", 1, StepStatus.SUCCEEDED, id="the bot dies after it was sent"),
    ],
)
async def test_a_dispatch_is_never_repeated_by_itself(
    bench: Bench, world: World, lose: str, runs: int, status: StepStatus
) -> None:
    await world.stage.branch("main", {".github/workflows/smoke.yml": WORKFLOW})
    step = GhaDispatchWorkflow(world.app, world.app.workflows)
    if lose in ("after", "before"):
        world.fail(f"5xx-{lose}", "POST", r"/dispatches$")
    else:
        if lose == "crash after":
            await bench.fulfil(step, dispatching(world))
        crash(bench, step.kind.name)
    result = await bench.fulfil(step, dispatching(world))
    passes = 0
    while result.status is StepStatus.RUNNING:
        bench.now += timedelta(seconds=20)
        result = await bench.fulfil(step, dispatching(world))
        passes += 1
    assert (result.status, passes <= 5) == (status, True)
    assert len(run_ids(world)) == runs
    if status is StepStatus.ERRORED:
        assert "outcome unknown" in result.message
        bench.attempt += 1
        assert (await bench.fulfil(step, dispatching(world))).status is StepStatus.SUCCEEDED


@pytest.mark.parametrize(
    ("config", "said"),
    [
        pytest.param({"inputs": {}}, "Required input 'tag' not provided", id="an input is missing"),
        pytest.param(
            {"inputs": {"tag": "1", "x": "2"}}, "Unexpected inputs provided", id="an input too many"
        ),
        pytest.param({"ref": "gone"}, "No ref found for: gone", id="no such branch"),
        pytest.param({"workflowFile": "none.yml"}, "it does not exist", id="no such workflow"),
    ],
)
async def test_what_github_refuses_is_said(
    bench: Bench, world: World, config: dict[str, object], said: str
) -> None:
    await world.stage.branch("main", {".github/workflows/smoke.yml": WORKFLOW})
    step = GhaDispatchWorkflow(world.app, world.app.workflows)
    with pytest.raises(TerminalError, match=said):
        await bench.fulfil(step, dispatching(world, **config))


async def test_a_run_that_github_does_not_name_is_waited_for(bench: Bench, world: World) -> None:
    await world.stage.branch("main", {".github/workflows/smoke.yml": WORKFLOW})
    step = GhaDispatchWorkflow(world.app, world.app.workflows)

    async def pass_of(asked: datetime) -> StepResult:
        bench.journal["old"] = StepRun(
            "old",
            step.kind.name,
            1,
            StepStatus.RUNNING,
            begun_at=asked,
            finished_at=asked,
            detail={"askedAt": asked.isoformat()},
        )
        return await bench.fulfil(step, dispatching(world), "old")

    assert (await pass_of(bench.now)).status is StepStatus.RUNNING
    late = await pass_of(bench.now - timedelta(seconds=61))
    assert "no run of smoke.yml appeared within 60 s" in late.message
    await world.app.workflows.dispatch(SHOP, ONE)
    assert [(await pass_of(bench.now)).output["runID"]] == run_ids(world)
    await world.app.workflows.dispatch(SHOP, ONE)
    assert "nobody can tell which is ours" in (await pass_of(bench.now)).message
