"""Looks for drift on a real database: when they are made, what follows from them, and what a crash leaves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from bot.adapters.config import DirectorySource
from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.app import load
from bot.domain.availability import verify_in_stage
from bot.domain.commands import Drift
from bot.domain.drift import DriftRecord, Finding, Question, StageLook, StateLook
from bot.domain.files import CommitId
from bot.domain.freight import Freight, FreightName, FreightOrigin
from bot.domain.github import CommentId, Issue, IssueNumber, PullNumber, Repository, User
from bot.domain.history import FreightCollection
from bot.domain.promotion import Promotion, PromotionId, State, Target
from bot.domain.review import ApplyKind
from bot.domain.review_policy import ReviewPolicy
from bot.domain.terraform import Action, AttributeChange, ResourceChange
from bot.ports import StageRecord, TerminalError, TransientError
from bot.ports.issues import IssueChange, NewIssue
from bot.workflow.buttons import Asked, Refusal
from bot.workflow.configuration import Configuration
from bot.workflow.drift import DriftWatch, Surveyor
from bot.workflow.drift_commands import DriftCommands
from bot.workflow.drift_issues import DriftIssues
from bot.workflow.reporting import Reporter
from bot.workflow.snapshots import Gatherer
from bot.workflow.stages import Asking, StageLooker
from tests.pipeline.test_analysis import BASE, DEV
from tests.reports.views import apply
from tests.reports.views import preview as any_preview
from tests.web.site import Hands

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
OPERATIONS = Repository("acme", "operations")
URL = "https://git.example/acme/operations.git"
POLICY = """\
apiVersion: lockstep.dev/v1alpha1
kind: ReviewPolicy
metadata: {name: watched, namespace: shop}
spec:
  stageSelector: {name: dev}
  drift: {schedule: "0 * * * *", correct: ["glob:aws_tag.*"]}
"""
TFVARS = frozenset({"src/env/dev/terraform/env.auto.tfvars"})
APP = Freight(FreightName("a" * 40), "shop", "", FreightOrigin("apps"), NOW)


def promotion(number: int = 1, **changes: object) -> Promotion:
    made = Promotion(
        id=PromotionId(f"dev.{number:02}.aaaaaaa"),
        project="shop",
        stage="dev",
        freight=APP,
        collection=(APP,),
        steps=(),
        variables=(),
        actor="uma",
        actor_id=3,
        created_at=NOW + timedelta(seconds=number),
        state=State.SUCCEEDED,
        effects_begun=True,
        target=Target(URL, "main"),
        finished_at=NOW + timedelta(seconds=number),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def drifted(digest: str = "d1", address: str = "aws_sg.a") -> StateLook:
    change = ResourceChange(address, "aws_sg", Action.UPDATE, (AttributeChange("ports", 22, 443),))
    return StateLook("s", "env/dev", Finding.DRIFT, changes=(change,), count=1, digest=digest)


CLEAN = StateLook("s", "env/dev", Finding.NONE)
UNSEEN = StateLook("s", "env/dev", Finding.UNSEEN, "the plan failed: 403")


@dataclass
class Cloud:
    """Stands for the plans: what they find, and how often they were made; `meanwhile` happens during one."""

    clock: Hands
    found: StateLook = CLEAN
    looked: int = 0
    meanwhile: Callable[[], Any] | None = None

    async def survey(self, made: Promotion, policy: ReviewPolicy) -> StageLook:
        assert policy.metadata.name == "watched"
        self.looked += 1
        at = self.clock.now()
        if self.meanwhile is not None:
            await self.meanwhile()
        return StageLook(at, made.freight.alias, made.id, (self.found,))


@dataclass
class FakeIssues:
    """The issues of one repository; `fail` is raised by the next write, after it was done if `late`."""

    made: list[Issue] = field(default_factory=list)
    markers: list[str] = field(default_factory=list)
    writes: int = 0
    fail: Exception | None = None
    late: bool = False

    async def get_issue(self, repository: Repository, number: IssueNumber) -> Issue | None:
        assert repository == OPERATIONS
        return next((issue for issue in self.made if issue.number == number), None)

    async def find_own_issue(self, repository: Repository, marker: str, *, label: str) -> Issue | None:
        found = [i for i, known in zip(self.made, self.markers, strict=True) if known == marker]
        return next((issue for issue in found if label in issue.labels), None)

    async def create_issue(self, repository: Repository, issue: NewIssue, *, since: datetime) -> Issue:
        self._before()
        number = IssueNumber(len(self.made) + 1)
        self.made.append(Issue(number, issue.title, issue.body, "open", issue.labels, (), ""))
        self.markers.append(issue.marker)
        self._after()
        return self.made[-1]

    async def update_issue(self, repository: Repository, number: IssueNumber, change: IssueChange) -> None:
        self._before()
        old = self.made[number - 1]
        title, body, state = change.title or old.title, change.body or old.body, change.state or old.state
        self.made[number - 1] = replace(old, title=title, body=body, state=state)
        self._after()

    def _before(self) -> None:
        self.writes += 1
        if self.fail is not None and not self.late:
            raise self.fail

    def _after(self) -> None:
        if self.fail is not None:
            failure, self.fail = self.fail, None
            raise failure


@dataclass
class Addresses:
    """The part of GitHub that knows which repository an address is."""

    def repository_of(self, url: str) -> Repository | None:
        return OPERATIONS if url == URL else None


@dataclass
class Bed:
    """A watch over one Stage that has Freight."""

    store: DatabaseStore
    clock: Hands
    cloud: Cloud
    issues: FakeIssues
    watch: DriftWatch

    async def look(self, *, after: float = 0) -> DriftRecord:
        self.clock.turn(seconds=after)
        due = await self.store.list_due_looks(self.clock.now())
        await self.watch.look("shop", "dev")
        for done in due:
            await self.store.finish_look(done)
        return await self.record()

    async def record(self) -> DriftRecord:
        found = await self.store.get_drift("shop", "dev")
        assert found is not None
        return found

    async def ask(self, comment: int = 1) -> DriftRecord:
        stage = self.watch.configuration.stage("shop", "dev")
        assert stage is not None
        self.clock.turn(seconds=1)
        await self.watch.ask(stage, Question(str(OPERATIONS), 5, f"lockstep:reply:{comment}"))
        return await self.look()

    async def said(self, kind: str) -> list[str]:
        """What is to be posted, by the beginning of its key."""
        due = await self.store.list_due_posts(datetime.now(UTC) + timedelta(days=1))
        return [str(p.post.payload["body"]) for p in due if p.post.key.startswith(f"reply/lockstep:{kind}")]

    async def due(self, *, after: float = 0) -> list[str]:
        looks: Sequence[Any] = await self.store.list_due_looks(self.clock.now() + timedelta(seconds=after))
        return [look.key for look in looks if look.kind == "drift"]

    async def told(self, kind: str = "drift") -> list[str]:
        events = await self.store.list_events(project="shop")
        return [event.message for event in reversed(events) if event.kind == kind]


@pytest.fixture
async def bed(tmp_path: Path) -> AsyncIterator[Bed]:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "all.yaml").write_text(f"{BASE}---\n{DEV}---\n{POLICY}")
    clock, vault = Hands(NOW), KeyFileVault(tmp_path / "vault.key")
    store = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", vault)
    configuration = Configuration(DirectorySource(tmp_path / "config"), store, load)
    await configuration.start()
    assert not configuration.problems
    github, nothing = cast(Any, Addresses()), cast(Any, None)
    reporter = Reporter(store, github, vault, clock, configuration, "")
    gatherer = Gatherer(store, nothing, github, clock, configuration)
    looker = StageLooker(gatherer, reporter, nothing, store, github, nothing)
    cloud, made = Cloud(clock), FakeIssues()
    issues = DriftIssues(cast(Any, made), github, store, vault, clock, reporter, looker)
    watch = DriftWatch(cast(Surveyor, cloud), issues, reporter, store, clock, configuration)
    await store.add_freight(APP)
    await store.change_freight_status("shop", APP.name, lambda status: verify_in_stage(status, "dev", NOW))
    await store.save_stage(StageRecord("shop", "dev", (FreightCollection({APP.origin: APP.name}),)))
    await store.create_promotion(promotion())
    yield Bed(store, clock, cloud, made, watch)
    store.close()


HOUR, LATE = 3600.0, 360.0
"""Seconds; a Stage of an hourly schedule is late by at most six minutes."""


# -- when ------------------------------------------------------------------------------------------------------


async def test_a_schedule_is_kept_and_missed_runs_are_made_up_once(bed: Bed) -> None:
    await bed.watch.remind()
    assert await bed.due() == []
    assert await bed.due(after=HOUR + LATE) == ["shop/dev"]
    await bed.look()
    assert bed.cloud.looked == 0
    record = await bed.look(after=HOUR + LATE)
    assert (bed.cloud.looked, record.last is not None) == (1, True)
    await bed.look()
    assert bed.cloud.looked == 1
    await bed.look(after=5 * HOUR + LATE)
    await bed.look()
    assert bed.cloud.looked == 2
    # The timer of the look that follows is there already.
    assert await bed.due(after=HOUR + LATE) == ["shop/dev"]


async def test_a_lost_timer_is_set_again_by_the_sweep(bed: Bed) -> None:
    await bed.watch.remind()
    bed.clock.turn(seconds=3 * HOUR)
    await bed.watch.remind()
    assert await bed.due() == ["shop/dev"]


async def test_a_sweep_leaves_timers_alone_and_a_changed_schedule_sets_them_anew(bed: Bed) -> None:
    await bed.watch.remind()
    for done in await bed.store.list_due_looks(NOW + timedelta(days=1)):
        await bed.store.finish_look(done)
    await bed.watch.remind()
    assert await bed.due(after=2 * HOUR) == []
    await bed.watch.remind(schedules_changed=True)
    assert await bed.due(after=2 * HOUR) == ["shop/dev"]


async def test_while_a_promotion_is_carried_out_a_scheduled_look_waits(bed: Bed) -> None:
    await bed.watch.remind()
    running = promotion(2, state=State.FULFILLING, finished_at=None)
    await bed.store.create_promotion(running)
    await bed.look(after=HOUR + LATE)
    assert bed.cloud.looked == 0
    assert await bed.due(after=299) == []
    assert await bed.due(after=301) == ["shop/dev"]
    await bed.store.save_promotion(replace(running, state=State.ABORTED), expected=running)
    await bed.look(after=301)
    assert bed.cloud.looked == 1


async def test_a_stage_without_freight_is_not_looked_at(bed: Bed) -> None:
    await bed.store.save_stage(StageRecord("shop", "dev"))
    await bed.ask()
    assert bed.cloud.looked == 0
    assert "has no Freight yet" in (await bed.said("reply"))[0]
    await bed.look(after=HOUR + LATE)
    assert await bed.due(after=1) == []


# -- what is asked ---------------------------------------------------------------------------------------------


async def test_a_question_is_answered_once_by_a_look_of_now(bed: Bed) -> None:
    bed.cloud.found = drifted()
    record = await bed.ask(comment=41)
    await bed.look()
    assert (bed.cloud.looked, record.asked) == (1, ())
    (answer,) = await bed.said("reply:41")
    assert "drifted: 1 resource" in answer
    assert "#1 keeps track" in answer


async def test_who_asks_during_a_promotion_is_told_that_nothing_can_be_seen(bed: Bed) -> None:
    await bed.store.create_promotion(promotion(2, state=State.FULFILLING, finished_at=None))
    record = await bed.ask()
    assert bed.cloud.looked == 0
    assert record.last is not None
    assert record.last.finding is Finding.UNSEEN
    assert "is being carried out" in (await bed.said("reply"))[0]


async def test_a_promotion_that_went_on_during_the_look_makes_it_worthless(bed: Bed) -> None:
    bed.cloud.found = drifted()
    bed.cloud.meanwhile = lambda: bed.store.create_promotion(promotion(2))
    record = await bed.ask()
    assert record.last is not None
    assert record.last.finding is Finding.UNSEEN
    assert bed.issues.made == []


# -- the issue -------------------------------------------------------------------------------------------------


async def test_the_issue_lives_as_long_as_the_drift(bed: Bed) -> None:
    bed.cloud.found = drifted()
    await bed.ask(1)
    await bed.ask(2)
    assert [issue.state for issue in bed.issues.made] == ["open"]
    assert await bed.said("drift-said") == []
    bed.cloud.found = UNSEEN
    await bed.ask(3)
    assert "What is shown below may still be there" in bed.issues.made[0].body
    bed.cloud.found = drifted("d2", "aws_sg.b")
    await bed.ask(4)
    assert "aws_sg.b" in bed.issues.made[0].body
    assert len(await bed.said("drift-said")) == 1
    bed.cloud.found = CLEAN
    record = await bed.ask(5)
    assert [issue.state for issue in bed.issues.made] == ["closed"]
    assert len(await bed.said("drift-said")) == 2
    assert (record.open, record.shown, record.drifted_since) == (False, None, None)
    bed.cloud.found = drifted()
    await bed.ask(6)
    assert [issue.state for issue in bed.issues.made] == ["open"]
    assert len(await bed.said("drift-said")) == 3
    assert [word.partition(":")[0] for word in await bed.told()] == [
        "drift", "could not look", "drift", "no drift", "drift"
    ]  # fmt: skip


async def test_a_github_that_is_down_costs_no_second_plan(bed: Bed) -> None:
    bed.cloud.found = drifted()
    bed.issues.fail = TransientError("502 Bad Gateway")
    with pytest.raises(TransientError):
        await bed.ask()
    assert not (await bed.record()).settled
    bed.issues.fail = None
    record = await bed.look()
    assert (bed.cloud.looked, record.settled, len(bed.issues.made)) == (1, True, 1)
    assert len(await bed.said("reply")) == 1


async def test_an_issue_whose_making_was_not_remembered_is_found_again(bed: Bed) -> None:
    bed.cloud.found = drifted()
    bed.issues.fail, bed.issues.late = TransientError("the answer was lost"), True
    with pytest.raises(TransientError):
        await bed.ask()
    record = await bed.look()
    assert (len(bed.issues.made), record.issue) == (1, 1)


async def test_the_mark_of_an_issue_cannot_be_guessed_from_its_stage(bed: Bed) -> None:
    bed.cloud.found = drifted()
    await bed.ask()
    (mark,) = bed.issues.markers
    assert mark.startswith("lockstep:drift shop/dev ")
    assert len(mark.split()[-1]) == 32


async def test_an_issue_that_may_not_be_written_is_told_once_and_the_look_counts(bed: Bed) -> None:
    bed.cloud.found = drifted()
    for comment in (1, 2):
        bed.issues.fail = TerminalError("403 Resource not accessible by integration")
        await bed.ask(comment)
    assert len(await bed.told("error")) == 1
    assert all("could not be written" in answer for answer in await bed.said("reply"))
    bed.issues.fail = None
    record = await bed.ask(3)
    assert (record.problem, len(bed.issues.made)) == ("", 1)


# -- what undoes it --------------------------------------------------------------------------------------------


async def test_what_the_policy_lists_is_corrected_once_for_the_same_drift(bed: Bed) -> None:
    bed.cloud.found = drifted(address="aws_tag.a")
    record = await bed.ask(1)
    current = await bed.store.find_current_promotion("shop", "dev")
    assert current is not None
    assert (current.actor, current.corrects, current.freight.name) == ("lockstep", True, APP.name)
    assert "watched corrects this drift" in current.why
    assert record.corrected == (record.last.digest if record.last else "")
    # Somebody closes it: the same drift is not corrected unasked again.
    await bed.store.save_promotion(replace(current, state=State.ABORTED), expected=current)
    await bed.ask(2)
    assert await bed.store.find_current_promotion("shop", "dev") is None
    bed.cloud.found = drifted("d2", "aws_tag.b")
    await bed.ask(3)
    assert await bed.store.find_current_promotion("shop", "dev") is not None


async def test_what_is_not_listed_is_left_to_people(bed: Bed) -> None:
    bed.cloud.found = drifted(address="aws_db.a")
    await bed.ask()
    assert await bed.store.find_current_promotion("shop", "dev") is None


async def test_a_freeze_keeps_the_bot_from_correcting_and_is_no_end_of_it(bed: Bed) -> None:
    bed.cloud.found = drifted(address="aws_tag.a")
    await bed.store.change_stage("shop", "dev", lambda record: replace(record, frozen="incident"))
    await bed.ask(1)
    assert await bed.store.find_current_promotion("shop", "dev") is None
    await bed.store.change_stage("shop", "dev", lambda record: replace(record, frozen=""))
    await bed.ask(2)
    assert await bed.store.find_current_promotion("shop", "dev") is not None


async def test_a_stage_whose_last_promotion_failed_is_mended_first(bed: Bed) -> None:
    await bed.store.create_promotion(promotion(2, state=State.FAILED, blocked=True, reason="quota"))
    stage = bed.watch.configuration.stage("shop", "dev")
    assert stage is not None
    answer = await bed.watch.issues.start(stage, Asking("uma", corrects=True))
    assert isinstance(answer, str)
    assert "quota" in answer


async def test_where_a_rollback_kept_the_infrastructure_its_freight_is_no_correction(bed: Bed) -> None:
    back = promotion(2, rollback=True, preview=1)
    await bed.store.create_promotion(back)
    await bed.store.save_preview(back.id, 1, any_preview(apply(None, ApplyKind.KEPT, input_paths=TFVARS)))
    stage = bed.watch.configuration.stage("shop", "dev")
    assert stage is not None
    answer = await bed.watch.issues.start(stage, Asking("uma", corrects=True))
    assert isinstance(answer, str)
    assert "kept the infrastructure" in answer


async def test_after_a_correction_the_stage_is_looked_at_without_being_asked(bed: Bed) -> None:
    bed.cloud.found = drifted()
    await bed.ask()
    looked = bed.cloud.looked
    await bed.look(after=60)
    assert bed.cloud.looked == looked
    ended = bed.clock.now()
    merged = CommitId("f" * 40)
    await bed.store.create_promotion(promotion(90, corrects=True, finished_at=ended, merge_commit=merged))
    bed.cloud.found = CLEAN
    await bed.look(after=1)
    assert bed.cloud.looked == looked + 1
    assert [issue.state for issue in bed.issues.made] == ["closed"]


# -- commands --------------------------------------------------------------------------------------------------


@dataclass
class Allowed:
    """Rights that remember what was asked for."""

    asked: list[str] = field(default_factory=list)

    async def check(self, asked: Asked, command: str, stage: object) -> None:
        self.asked.append(command)


def asking(command: Drift, *, number: int = 1, repository: Repository = OPERATIONS) -> Asked:
    return Asked(command, User("uma", 3), repository, None, PullNumber(number), CommentId(77))


def commands(bed: Bed) -> tuple[DriftCommands, list[str]]:
    rights = Allowed()
    return DriftCommands(bed.watch, bed.watch.issues, cast(Any, rights)), rights.asked


async def test_on_the_issue_the_stage_need_not_be_named(bed: Bed) -> None:
    bed.cloud.found = drifted()
    await bed.ask()
    made, rights = commands(bed)
    assert await made.obey(asking(Drift()), Drift()) == ""
    await bed.look()
    assert len(await bed.said("reply:77")) == 1
    assert rights == ["drift"]
    with pytest.raises(Refusal, match="name it"):
        await made.obey(asking(Drift(), number=9), Drift())
    with pytest.raises(Refusal, match="there is no Stage prod; the Stages are: shop/dev"):
        await made.obey(asking(Drift(stage="prod"), number=9), Drift(stage="prod"))


async def test_what_is_found_is_told_in_the_stages_own_repository_alone(bed: Bed) -> None:
    made, _ = commands(bed)
    elsewhere = asking(Drift(stage="dev"), repository=Repository("acme", "public"))
    with pytest.raises(Refusal, match="ask in acme/operations"):
        await made.obey(elsewhere, Drift(stage="dev"))
    assert (await bed.store.list_drifts()) == []


async def test_a_fix_is_a_promotion_of_what_the_stage_has_and_needs_the_right_to_promote(bed: Bed) -> None:
    made, rights = commands(bed)
    fix = Drift(fix=True, stage="dev")
    assert "once more" in await made.obey(asking(fix), fix)
    current = await bed.store.find_current_promotion("shop", "dev")
    assert current is not None
    assert (current.actor, current.actor_id, current.corrects, current.why) == ("uma", 3, True, "")
    assert rights == ["drift", "promote"]
    assert "undoes the drift of dev already" in await made.obey(asking(fix), fix)
    other = replace(current, corrects=False, reason="0 of 1 approvals")
    await bed.store.save_promotion(other, expected=current)
    with pytest.raises(Refusal, match="unfinished promotion"):
        await made.obey(asking(fix), fix)
