"""Approvals, tags, metadata, and the list of all kinds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from bot.domain.files import CommitId
from bot.domain.freight import Freight, FreightName, FreightStatus
from bot.domain.github import (
    CommentId,
    Permission,
    PullNumber,
    PullRequest,
    Repository,
    Review,
    ReviewState,
    User,
)
from bot.domain.promotion import StepStatus
from bot.domain.review import GateRecord
from bot.domain.values import Sensitive, Unknown, Value
from bot.ports import Event, Git, GitHub, Ports, StageRecord, TerminalError
from bot.steps import KINDS, build_steps
from bot.steps.contract import Config
from bot.steps.gh_issue_add_comment import GhIssueAddComment
from bot.steps.git_clone import GitClone
from bot.steps.git_tag import GitTag
from bot.steps.record_audit_event import EventStore, RecordAuditEvent
from bot.steps.set_freight_alias import SetFreightAlias
from bot.steps.set_metadata import MetadataStore, SetMetadata
from bot.steps.wait_for_approval import WaitForApproval
from tests.adapters.git_server import commit_files, git
from tests.steps.asking import FakeAnswers
from tests.steps.bench import NOW, Bench, promotion

OPS = Repository("acme", "ops")
ADA, BOB, BOT = User("ada", 1), User("bob", 2), User("bot", 3, bot=True)


@dataclass
class FakeGitHub:
    """Pull requests, reviews and teams of one repository."""

    url: str
    pulls: dict[int, PullRequest] = field(default_factory=dict)
    reviews: list[Review] = field(default_factory=list)
    teams: dict[str, set[str]] = field(default_factory=dict)
    permissions: dict[str, Permission] = field(default_factory=dict)
    comments: dict[tuple[int, str], str] = field(default_factory=dict)

    def repository_of(self, url: str) -> Repository | None:
        return OPS if url == self.url else None

    async def get_pull_request(self, repository: Repository, number: PullNumber) -> PullRequest:
        return self.pulls[number]

    def add(self, head_branch: str, base_branch: str, title: str = "t", body: str = "") -> PullRequest:
        number = PullNumber(len(self.pulls) + 1)
        self.pulls[number] = PullRequest(
            repository=OPS,
            number=number,
            title=title,
            body=body,
            open=True,
            merged=False,
            head=CommitId("a" * 40),
            head_branch=head_branch,
            base_branch=base_branch,
            author=BOT,
            url=f"https://github.example/acme/ops/pull/{number}",
            mergeable=True,
        )
        return self.pulls[number]

    async def list_reviews(self, repository: Repository, number: PullNumber) -> Sequence[Review]:
        return self.reviews

    async def get_permission(self, repository: Repository, login: str) -> Permission:
        return self.permissions.get(login, Permission.READ)

    async def is_team_member(self, organisation: str, team: str, login: str) -> bool:
        return login in self.teams.get(f"{organisation}/{team}", set())

    async def post_comment(
        self, repository: Repository, number: PullNumber, body: str, *, marker: str
    ) -> CommentId:
        self.comments[number, marker] = body
        return CommentId(list(self.comments).index((number, marker)) + 1)

    def review(self, user: User, state: ReviewState, commit: str = "a") -> None:
        at = NOW + timedelta(minutes=len(self.reviews))
        self.reviews.append(Review(len(self.reviews), user, state, CommitId(commit * 40), at))


@pytest.fixture
def hub(bench: Bench) -> FakeGitHub:
    return FakeGitHub(bench.url)


def port(hub: FakeGitHub) -> GitHub:
    return cast(GitHub, hub)


# -- approvals ---------------------------------------------------------------------------------------------------


@pytest.fixture
def reviewed(bench: Bench, hub: FakeGitHub) -> Bench:
    hub.add("lockstep/acme/dev", "main")
    hub.teams["acme/sre"] = {"ada"}
    bench.promotion = replace(bench.promotion, pull=PullNumber(1), head=CommitId("a" * 40))
    return bench


SRE: Config = {
    "approvers": [{"claim": "groups", "value": "sre", "required": True}, {"claim": "email", "value": "bob"}]
}


async def test_reviews_of_the_head_open_the_gate(reviewed: Bench, hub: FakeGitHub) -> None:
    step = WaitForApproval(port(hub), FakeAnswers())
    hub.review(BOB, ReviewState.APPROVED)
    gate = (await reviewed.preview(step, SRE)).record
    assert gate == GateRecord(
        "approval by team sre or bob", open=False, reason="waits for approval by team sre"
    )
    hub.review(ADA, ReviewState.APPROVED, commit="b")
    old = (await reviewed.preview(step, SRE)).record
    assert isinstance(old, GateRecord)
    assert not old.open
    hub.review(ADA, ReviewState.APPROVED)
    assert (await reviewed.preview(step, SRE)).record == GateRecord("approval by team sre or bob", open=True)
    done = await reviewed.fulfil(step, SRE)
    responses = done.output["responses"]
    assert isinstance(responses, list)
    assert [item["user"] for item in responses if isinstance(item, dict)] == ["bob", "ada"]


async def test_one_eligible_objection_ends_it(reviewed: Bench, hub: FakeGitHub) -> None:
    hub.review(ADA, ReviewState.CHANGES_REQUESTED)
    result = await reviewed.fulfil(WaitForApproval(port(hub), FakeAnswers()), SRE)
    assert (result.status, result.message) == (
        StepStatus.FAILED,
        "wait-for-approval: ada asks for changes",
    )


async def test_bots_and_strangers_do_not_count(reviewed: Bench, hub: FakeGitHub) -> None:
    hub.permissions["bot"] = Permission.ADMIN
    hub.review(BOT, ReviewState.APPROVED)
    hub.review(BOB, ReviewState.APPROVED)
    step = WaitForApproval(port(hub), FakeAnswers())
    assert (await reviewed.fulfil(step, {})).status is StepStatus.RUNNING
    hub.permissions["bob"] = Permission.WRITE
    assert (await reviewed.fulfil(step, {})).status is StepStatus.SUCCEEDED


# -- tags and notes ----------------------------------------------------------------------------------------------


async def test_a_tag_is_shown_then_pushed_once(bench: Bench, repository: Path) -> None:
    checkout: Value = {"path": "src", "branch": "main"}
    clone: Config = {"repoURL": bench.url, "checkout": [checkout]}
    config: Config = {"path": "src", "tag": "v1", "message": "one"}
    await bench.preview(GitClone(bench.git), clone)
    await bench.preview(GitTag(bench.git), config)
    assert git(repository, "tag") == ""
    bench.again()
    await bench.fulfil(GitClone(bench.git), clone)
    result = await bench.fulfil(GitTag(bench.git), config)
    assert git(repository, "rev-parse", "v1") == result.output["commit"]
    assert (await bench.fulfil(GitTag(bench.git), config)).status is StepStatus.SUCCEEDED
    other = commit_files(repository, "main", {"b.txt": "b"})
    git(repository, "update-ref", "refs/tags/v1", other)
    assert (await bench.fulfil(GitTag(bench.git), config)).status is StepStatus.FAILED
    assert (await bench.fulfil(GitTag(bench.git), {**config, "force": True})).status is StepStatus.SUCCEEDED


class FakeNotes:
    """Stages and Freight with metadata."""

    def __init__(self) -> None:
        self.stages: dict[str, StageRecord] = {}
        self.freight: Freight = promotion().freight
        self.status = FreightStatus(metadata={"old": 1})

    async def get_stage(self, project: str, stage: str) -> StageRecord:
        return self.stages.get(stage, StageRecord(project, stage))

    async def save_stage(self, record: StageRecord) -> None:
        self.stages[record.stage] = record

    async def change_stage(
        self, project: str, stage: str, change: Callable[[StageRecord], StageRecord]
    ) -> None:
        self.stages[stage] = change(await self.get_stage(project, stage))

    async def get_freight(self, project: str, name: str) -> tuple[Freight, FreightStatus] | None:
        return (self.freight, self.status) if name in (self.freight.name, self.freight.alias) else None

    async def change_freight_status(
        self, project: str, name: FreightName, change: Callable[[FreightStatus], FreightStatus]
    ) -> None:
        self.status = change(self.status)

    async def rename_freight(self, project: str, name: FreightName, alias: str) -> bool:
        if alias == "taken":
            return False
        self.freight = replace(self.freight, alias=alias)
        return True


def metadata(kind: str, name: str, **values: Value) -> Config:
    item: Value = {"kind": kind, "name": name, "values": dict(values)}
    return {"updates": [item]}


async def test_metadata_is_written_after_the_merge_alone(bench: Bench) -> None:
    notes = FakeNotes()
    step = SetMetadata(cast(MetadataStore, notes))
    config = metadata("Freight", "calm-otter", ticket="OPS-1")
    await bench.preview(step, config)
    assert notes.status.metadata == {"old": 1}
    await bench.fulfil(step, config)
    assert notes.status.metadata == {"old": 1, "ticket": "OPS-1"}
    await bench.fulfil(step, metadata("Stage", "dev", n=1))
    await bench.fulfil(step, metadata("Stage", "dev", m=2))
    assert notes.stages["dev"].metadata == {"n": 1, "m": 2}
    assert (await bench.fulfil(step, metadata("Freight", "nope", a=1))).status is StepStatus.FAILED


async def test_secrets_are_no_metadata(bench: Bench) -> None:
    step = SetMetadata(cast(MetadataStore, FakeNotes()))
    with pytest.raises(TerminalError, match="token"):
        await bench.preview(step, metadata("Stage", "dev", t=Sensitive("token", "hunter2")))


async def test_freight_is_renamed_unless_the_alias_is_taken(bench: Bench) -> None:
    notes = FakeNotes()
    step = SetFreightAlias(cast(MetadataStore, notes))
    await bench.fulfil(step, {"name": "calm-otter", "alias": "release-7"})
    assert notes.freight.alias == "release-7"
    result = await bench.fulfil(step, {"name": "release-7", "alias": "taken"})
    assert result.status is StepStatus.FAILED


# -- all kinds ---------------------------------------------------------------------------------------------------


def test_every_kind_has_a_step_that_agrees_with_the_list() -> None:
    ports = Ports(**dict.fromkeys(f.name for f in dataclasses.fields(Ports)))  # type: ignore[arg-type]
    steps = build_steps(ports, cast(Git, None))
    assert sorted(steps) == list(KINDS)
    assert {name: step.kind for name, step in steps.items()} == dict(KINDS)


async def test_a_kind_that_is_not_done_says_so(bench: Bench) -> None:
    ports = Ports(**dict.fromkeys(f.name for f in dataclasses.fields(Ports)))  # type: ignore[arg-type]
    steps = build_steps(ports, cast(Git, None))
    result = await bench.preview(steps["jira"], {})
    assert result.status is StepStatus.FAILED
    assert "jira: this kind of step is known but not carried out here" in result.message


async def test_an_audit_event_is_recorded_once(bench: Bench) -> None:
    timeline = FakeTimeline()
    step = RecordAuditEvent(cast(EventStore, timeline))
    config: Config = {"message": "checked", "type": "policy", "actor": "opa", "data": {"rule": 1}}
    await bench.preview(step, config)
    assert timeline.events == []
    await bench.fulfil(step, config)
    await bench.fulfil(step, config)
    assert [event.message for event in timeline.events] == ['[policy] opa: checked {"rule": 1}']


class FakeTimeline:
    """Events in memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def add_event(self, event: Event) -> None:
        self.events.append(event)

    async def list_events(
        self, *, project: str = "", promotion: str = "", limit: int = 200
    ) -> Sequence[Event]:
        return [event for event in self.events if event.promotion == promotion]


async def test_a_comment_is_posted_under_a_marker(bench: Bench, hub: FakeGitHub) -> None:
    step = GhIssueAddComment(port(hub))
    config: Config = {"repoURL": bench.url, "issueNumber": 7, "body": "released"}
    assert (await bench.preview(step, config)).output["commentID"] == Unknown(
        "known after step: gh-issue-add-comment.commentID"
    )
    assert hub.comments == {}
    await bench.fulfil(step, config)
    result = await bench.fulfil(step, {**config, "body": "released again"})
    marker = "lockstep:step:dev.01abc.fffffff:gh-issue-add-comment"
    assert hub.comments == {(7, marker): "released again"}
    assert str(result.output["url"]).endswith("/acme/ops/issues/7#issuecomment-1")
