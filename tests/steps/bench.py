"""A walk in small: a real git server and mirror, the fakes beside them, and the journal that a walk keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from bot.domain.files import CommitId
from bot.domain.freight import Freight, FreightName, FreightOrigin, Image
from bot.domain.promotion import Promotion, PromotionId, StepRun, StepStatus, Target
from bot.domain.review import Pin, Presence, StepReport
from bot.domain.review_policy import ReviewPolicy
from bot.domain.values import Value
from bot.ports import Git
from bot.steps.contract import Config, MergedBranch, Onto, Step, StepContext, StepResult
from bot.steps.worktree import Sentinels, WorkTree
from tests.steps.fakes import FakeArgoCD, FakePlans, FakeTerraform, FakeVault

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def promotion(url: str = "", **changes: object) -> Promotion:
    """A Promotion to `dev` of one image."""
    freight = Freight(
        name=FreightName("f" * 40),
        project="acme",
        alias="calm-otter",
        origin=FreightOrigin("otel"),
        discovered_at=NOW,
        images=(Image("ghcr.io/acme/app", "1.2.3", "sha256:" + "a" * 64),),
    )
    made = Promotion(
        id=PromotionId("dev.01abc.fffffff"),
        project="acme",
        stage="dev",
        freight=freight,
        collection=(freight,),
        steps=(),
        variables=(),
        actor="ada",
        actor_id=7,
        created_at=NOW,
        target=Target(url, "main") if url else None,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


@dataclass
class Bench:
    """One walk: `preview` and `fulfil` run one step and keep its report; `again` begins a new walk."""

    git: Git
    url: str = ""
    policy: ReviewPolicy = field(default_factory=ReviewPolicy)
    now: datetime = NOW
    merge: CommitId | None = None
    attempt: int = 1
    terraform: FakeTerraform = field(default_factory=FakeTerraform)
    plans: FakePlans = field(default_factory=FakePlans)
    vault: FakeVault = field(default_factory=FakeVault)
    argocd: FakeArgoCD = field(default_factory=lambda: FakeArgoCD(NOW))
    pins: dict[str, Pin] = field(default_factory=dict)
    merged: MergedBranch | None = None
    onto: Onto | None = None
    reports: list[StepReport] = field(default_factory=list)
    approved: dict[str, StepReport] = field(default_factory=dict)
    journal: dict[str, StepRun] = field(default_factory=dict)
    promotion: Promotion = field(default_factory=promotion)

    def __post_init__(self) -> None:
        self.tree = WorkTree(self.git, Sentinels("abcd1234"))
        if self.url:
            self.promotion = promotion(self.url)

    def again(self, **changes: object) -> None:
        """Begin a new walk with an empty work tree; what was previewed so far is approved."""
        for report in self.reports:
            self.approved.setdefault(report.alias, report)
        self.reports = []
        self.tree = WorkTree(self.git, Sentinels("abcd1234"))
        for name, value in changes.items():
            setattr(self, name, value)

    def context(self, alias: str) -> StepContext:
        return StepContext(
            promotion=self.promotion,
            policy=self.policy,
            alias=alias,
            tree=self.tree,
            now=self.now,
            earlier=tuple(self.reports),
            approved=self.approved.get(alias),
            run=self.journal.get(alias),
            attempt=self.attempt,
            merge=self.merge,
            pins=self.pins,
            merged=self.merged,
            onto=self.onto,
            author=("lockstep", "bot@example.com"),
        )

    async def preview(self, step: Step, config: Config, alias: str = "") -> StepResult:
        alias = alias or step.kind.name
        self.tree.begin()
        context = replace(self.context(alias), approved=None, run=None)
        result = await step.preview(config, context)
        await self._report(step, config, alias, result)
        return result

    async def fulfil(self, step: Step, config: Config, alias: str = "") -> StepResult:
        """One pass, journaled before and after as the walk does it."""
        alias = alias or step.kind.name
        before = self.journal.get(alias)
        context = self.context(alias)
        same = before is not None and before.attempt == self.attempt
        begun = before.begun_at if before is not None and same else self.now
        detail: Mapping[str, Value] = before.detail if before is not None and same else {}
        self.journal[alias] = StepRun(
            alias, step.kind.name, self.attempt, StepStatus.RUNNING, begun_at=begun, detail=detail
        )
        self.tree.begin()
        result = await step.fulfil(config, context)
        status = result.status or StepStatus.SUCCEEDED
        ended = replace(self.journal[alias], status=status, output=result.output, detail=result.detail)
        self.journal[alias] = replace(ended, finished_at=self.now)
        if result.stop is None and result.rebase_on is None and status is not StepStatus.RUNNING:
            await self._report(step, config, alias, result)
        return result

    async def _report(self, step: Step, config: Config, alias: str, result: StepResult) -> None:
        access = await self.tree.end()
        approved = self.approved.get(alias)
        record = result.record or (approved.record if approved is not None else None)
        self.reports.append(
            StepReport(
                index=len(self.reports),
                alias=alias,
                kind=step.kind.name,
                step_class=result.step_class or step.kind.step_class,
                presence=Presence.CERTAIN,
                status=result.status,
                output=result.output,
                message=result.message,
                config=dict(config),
                changes=access.changes,
                wrote=access.wrote,
                reads=access.reads,
                record=record,
            )
        )

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += timedelta(seconds=seconds)
        self.argocd.advance(seconds)
