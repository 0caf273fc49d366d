"""What is remembered between events: our own tables, seen as records.

Every method is one transaction. Writers that race are decided by the database: a method that says "if" returns
False, or None, when somebody else was first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bot.domain.analysis import AnalysisRun
from bot.domain.auto_promotion import Hold
from bot.domain.freight import Freight, FreightName, FreightOrigin, FreightStatus
from bot.domain.github import PullNumber
from bot.domain.history import FreightCollection
from bot.domain.promotion import Promotion, PromotionId, State, StepRun, Target
from bot.domain.retention import Horizon
from bot.domain.review import Preview
from bot.domain.terraform import Output
from bot.domain.values import Json
from bot.ports.answers import AnswerStore
from bot.ports.drifts import DriftStore
from bot.ports.peoples_pulls import PeoplesPullStore
from bot.ports.timeline import AuditStore, Event


@dataclass(frozen=True, slots=True)
class Delivery:
    """A webhook delivery as it was received and authenticated; `source` is `github` or a receiver's vendor."""

    id: str
    source: str
    event: str
    body: bytes
    received_at: datetime
    receiver: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """A wish to look at something: `key` names which thing of the kind.

    Kinds: `stage`, `verification` (of one), `warehouse`, `config`, `command`, `pull`, `head`, `group`, `branch`,
    `follow-ups` and `drift` (of a Stage).
    """

    kind: str
    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class DueLook:
    """A look that was asked for and not yet done; `number` grows with every wish."""

    kind: str
    key: str
    number: int


@dataclass(frozen=True, slots=True)
class AppliedState:
    """The last apply of one Terraform state that we know of. `succeeded` False: its inputs count as never applied.

    `outputs` are those that the state held after it, None if they were not read; of sensitive ones only the name is
    kept, their value is None.
    """

    state: str
    inputs: str
    commit: str
    promotion: PromotionId
    succeeded: bool
    at: datetime
    outputs: Mapping[str, Output] | None = None


@dataclass(frozen=True, slots=True)
class StageRecord:
    """What is remembered of a Stage: its Freight history (newest first), holds and freeze."""

    project: str
    stage: str
    history: tuple[FreightCollection, ...] = ()
    """What it had, newest first, at most ten."""
    holds: Mapping[FreightOrigin, Hold] = field(default_factory=dict)
    """Origins whose auto-promotion waits for a person."""
    frozen: str = ""
    """Why the Stage is frozen, empty if it is not."""
    quarantine: tuple[FreightName, ...] = ()
    differs: str = ""
    """Why the Stage differs from its Freight, empty if it does not."""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    since: datetime | None = None
    """Since when it has its present Freight."""

    @property
    def items(self) -> Mapping[FreightOrigin, FreightName]:
        """The Freight that it has now, of each origin."""
        return self.history[0].items if self.history else {}


@dataclass(frozen=True, slots=True)
class FreightLine:
    """Freight by its names alone."""

    name: FreightName
    alias: str


@dataclass(frozen=True, slots=True)
class PromotionLine:
    """What a list shows of a Promotion; the fields are those of the row, read without its steps and vars."""

    id: PromotionId
    project: str
    stage: str
    freight: FreightLine
    created_at: datetime
    state: State = State.QUEUED
    reason: str = ""
    running: str = ""
    target: Target | None = None
    pull: PullNumber | None = None
    blocked: bool = False
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Post:
    """Something that GitHub shall show: `key` names the place, the newest wish for a place wins.

    `kind` is check, comment, pull, reaction, labels or deployment, or message for a channel of people; `payload` what
    the outbox needs to post it.
    Posts of one `lane` (an installation) go out one after the other, lower `rank` first: checks before comments.
    """

    key: str
    kind: str
    lane: str
    rank: int
    payload: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class DuePost:
    """A post that is not out yet; `number` grows with every new wish for its key."""

    post: Post
    number: int
    attempts: int


class NewDeliveries(Protocol):
    """Webhooks before the 202."""

    async def store_delivery(self, delivery: Delivery) -> bool:
        """Remember it durably; False if this id is known already. Concurrent calls share one commit."""


class Deliveries(NewDeliveries, Protocol):
    """Webhooks between the 202 and their work."""

    async def get_delivery(self, delivery_id: str) -> Delivery | None:
        """A delivery that is kept, done or not."""

    async def list_pending_deliveries(self, limit: int = 200) -> Sequence[Delivery]:
        """Deliveries that are not done, oldest first."""

    async def finish_delivery(self, delivery_id: str, looks: Sequence[Look], note: str) -> None:
        """Record what a delivery asks to look at, and that it is done, in one transaction."""

    async def request_looks(self, looks: Sequence[Look], *, at: datetime | None = None) -> None:
        """Ask for looks outside a delivery, now or at a time (an earlier time wins)."""

    async def list_due_looks(self, now: datetime) -> Sequence[DueLook]:
        """Looks whose time has come and that are not done."""

    async def finish_look(self, look: DueLook) -> None:
        """The look is done, unless it was asked for again meanwhile."""


class FreightStore(Protocol):
    """Freight and where it is."""

    async def add_freight(self, freight: Freight) -> Freight | None:
        """Remember it under a free alias; None if it is known already."""

    async def list_freight(self, project: str) -> Sequence[tuple[Freight, FreightStatus]]: ...

    async def get_freight(self, project: str, name_or_alias: str) -> tuple[Freight, FreightStatus] | None:
        """By name, by a unique prefix of at least seven digits, or by alias."""

    async def rename_freight(self, project: str, name: FreightName, alias: str) -> bool:
        """Give Freight another alias; False if other Freight of the project has it, or there is no such Freight."""

    async def change_freight_status(
        self, project: str, name: FreightName, change: Callable[[FreightStatus], FreightStatus]
    ) -> None:
        """Change what is remembered of Freight, if it is known, with nobody else's change in between."""


class StageStore(Protocol):
    """What is remembered of Stages."""

    async def get_stage(self, project: str, stage: str) -> StageRecord: ...

    async def list_stages(self, project: str) -> Sequence[StageRecord]:
        """All that is remembered of a project's Stages; a Stage of which nothing is remembered is not in it."""

    async def save_stage(self, record: StageRecord) -> None: ...

    async def change_stage(
        self, project: str, stage: str, change: Callable[[StageRecord], StageRecord]
    ) -> None:
        """Change what is remembered of a Stage, with nobody else's change in between."""


class PromotionStore(Protocol):
    """Promotions, their previews and their journal."""

    async def create_promotion(self, promotion: Promotion) -> bool:
        """Insert it; False if the Stage has an unfinished one (the row is the lock) or the id is known."""

    async def get_promotion(self, promotion: PromotionId) -> Promotion | None: ...

    async def find_current_promotion(self, project: str, stage: str) -> Promotion | None:
        """The unfinished one."""

    async def list_promotions(self, project: str, stage: str, *, limit: int = 50) -> Sequence[Promotion]:
        """Newest first."""

    async def list_newest_promotions(self, project: str, count: int) -> Sequence[PromotionLine]:
        """Of each Stage of a project the newest so many, newest first."""

    async def find_promotion_by_pull(self, url: str, pull: int) -> Promotion | None:
        """The newest promotion of that pull request in the repository at that address."""

    async def find_merge_of_pull(self, url: str, pull: int) -> str | None:
        """The commit that a pull request of ours became, empty: not known, None: not ours; remembered for good."""

    async def note_own_pull(self, url: str, pull: int, merge: str) -> None:
        """Remember that a pull request is ours although it is no promotion's, and what it became (empty: not yet)."""

    async def list_unfinished_promotions(self) -> Sequence[Promotion]:
        """Of every Stage the Promotion that has not ended."""

    async def save_promotion(
        self,
        promotion: Promotion,
        *,
        expected: Promotion,
        event: Event | None = None,
        looks: Sequence[Look] = (),
    ) -> bool:
        """Replace the row if it is still as expected, and with it save what is told of it and the looks that follow."""

    async def save_preview(self, promotion: PromotionId, number: int, preview: Preview) -> None: ...

    async def get_preview(self, promotion: PromotionId, number: int) -> Preview | None: ...

    async def begin_step(self, promotion: PromotionId, run: StepRun) -> None:
        """The journal's word that a step begins; durable before the step touches the world."""

    async def finish_step(self, promotion: PromotionId, run: StepRun) -> None: ...

    async def list_steps(self, promotion: PromotionId) -> Mapping[str, StepRun]:
        """The newest run of each alias."""

    async def add_event(self, event: Event) -> None: ...

    async def list_events(
        self, *, project: str = "", promotion: str = "", after: int = 0, limit: int = 200
    ) -> Sequence[Event]:
        """The newest events with a greater number than `after`, newest first."""


class AnalysisStore(Protocol):
    """Verifications: every measurement is in the run's row before the next one is taken."""

    async def add_run(self, run: AnalysisRun) -> bool:
        """Remember a run; False if its id is known. Of a Stage's settled runs the newest twenty are kept."""

    async def save_run(self, run: AnalysisRun, *, expected: AnalysisRun) -> bool:
        """Replace the row if it is still as expected."""

    async def get_run(self, run: str) -> AnalysisRun | None: ...

    async def list_runs(self, project: str, stage: str, *, limit: int = 20) -> Sequence[AnalysisRun]:
        """A Stage's runs, newest first."""

    async def list_newest_runs(
        self, project: str, stages: Sequence[str] | None = None
    ) -> Sequence[AnalysisRun]:
        """Of each Stage of a project, or of each of some, the newest run."""

    async def list_open_runs(self) -> Sequence[AnalysisRun]:
        """The runs of every Stage that are not settled."""


class PlanStore(Protocol):
    """Saved plans and what was applied last."""

    async def keep_bundle(self, promotion: PromotionId, name: str, sealed: bytes) -> None: ...

    async def get_bundle(self, promotion: PromotionId, name: str) -> bytes | None: ...

    async def drop_bundles(self, promotion: PromotionId) -> None: ...

    async def find_applied(self, state: str) -> AppliedState | None: ...

    async def record_applied(self, applied: AppliedState) -> None: ...

    async def record_outputs(self, state: str, outputs: Mapping[str, Output]) -> None:
        """Keep the outputs with the last apply of a state; nothing happens if none is known."""


class PipelineStore(Protocol):
    """The configuration that was in force last: its files by path, and the revision."""

    async def save_pipeline(self, revision: str, files: Mapping[str, str]) -> None: ...

    async def get_pipeline(self) -> tuple[str, Mapping[str, str]] | None: ...

    async def get_pipeline_revision(self) -> str:
        """The revision of that pipeline alone, empty if there is none."""
        ...


class OutboxStore(Protocol):
    """What GitHub shall show and does not show yet."""

    async def queue_post(self, post: Post) -> bool:
        """Wish for it; False if the same payload was posted or is queued already for that key."""

    async def list_due_posts(self, now: datetime, limit: int = 100) -> Sequence[DuePost]: ...

    async def finish_post(self, due: DuePost) -> None:
        """It is out, unless another payload was wished for meanwhile."""

    async def postpone_post(self, due: DuePost, until: datetime, error: str) -> None: ...


class CommandStore(Protocol):
    """Commands run once per comment, or per press of a button, which has a name instead of a number."""

    async def is_command_done(self, repository: str, comment: int | str) -> bool:
        """Whether the command of that comment was carried out or refused already."""

    async def finish_command(self, repository: str, comment: int | str) -> None: ...

    async def add_discovery(self, project: str, warehouse: str, found: Json, at: datetime) -> None: ...

    async def get_discovery(self, project: str, warehouse: str) -> tuple[Json, datetime] | None: ...

    async def list_discoveries(self, project: str) -> Mapping[str, tuple[Json, datetime]]:
        """The last look at each Warehouse of a project that was ever looked at, by its name."""


class RetentionStore(Protocol):
    """Forgetting. Each method forgets one batch in a small transaction, and answers how many rows it was about."""

    async def forget_promotions(self, horizon: Horizon) -> int:
        """Ended Promotions with their steps, previews, bundles and events, unless something still names them."""

    async def forget_freight(self, horizon: Horizon) -> int:
        """Freight that no Stage has or had lately, and no Promotion, hold, quarantine or approval needs."""

    async def forget_deliveries(self, horizon: Horizon) -> int:
        """Deliveries whose work is done."""

    async def forget_events(self, horizon: Horizon) -> int:
        """Events of Promotions that are not remembered; the newest thousand of all stay."""

    async def forget_posts(self, horizon: Horizon) -> int:
        """Posts that are out, unless they are of a Stage's present or last Promotion."""


class Store(
    Deliveries,
    FreightStore,
    StageStore,
    PromotionStore,
    AnalysisStore,
    DriftStore,
    AnswerStore,
    PlanStore,
    PipelineStore,
    OutboxStore,
    CommandStore,
    PeoplesPullStore,
    RetentionStore,
    AuditStore,
    Protocol,
):
    """The whole database."""
