"""What GitHub shall show of people's own pull requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.files import CommitId
from bot.domain.follow_up import needs_follow_up
from bot.domain.github import CheckRun, PullRequest
from bot.domain.model import Stage
from bot.domain.peoples_pulls import PeoplesPull, PlannedStage
from bot.domain.review import Preview
from bot.domain.review_policy import ReviewPolicy
from bot.reports.bystanders import render_touching_check, render_untouched_check
from bot.reports.peoples_pulls import (
    PlannedLine,
    PullView,
    render_own_check,
    render_own_comment,
    render_own_plan_check,
)
from bot.workflow.bystanders import Bystanders, Touching
from bot.workflow.reporting import Reporter


@dataclass(frozen=True, slots=True)
class PullReports:
    """Renders people's pull requests and queues what is to be shown."""

    bystanders: Bystanders
    reporter: Reporter

    async def plain_check(self, pull: PullRequest, touching: Touching, head: CommitId) -> CheckRun:
        """The required check of a pull request that changes nothing of Terraform's, shown on `head`."""
        if not touching.stages:
            return render_untouched_check(pull.number, head)
        wanted = [self.bystanders.wish(stage) for stage, _ in touching.stages]
        tallies = await self.bystanders.count(pull, wanted)
        return render_touching_check(pull.number, head, _named(touching), tallies)

    async def post(
        self, pull: PullRequest, touching: Touching, row: PeoplesPull, why: str, due: Sequence[Stage]
    ) -> None:
        """Wish for checks and, once no preview is `due`, for the comment; `why` says why nothing may be run."""
        view = await self._view(pull, touching, row, why, due)
        await self.reporter.post_check(pull.repository, render_own_check(view))
        await self.reporter.post_check(pull.repository, render_own_plan_check(view))
        if not due:
            await self.reporter.post_comment(
                pull.repository, pull.number, "lockstep:plan:pull", render_own_comment(view)
            )

    async def check(self, pull: PullRequest, touching: Touching, row: PeoplesPull, why: str) -> CheckRun:
        """The required check as it is now."""
        return render_own_check(await self._view(pull, touching, row, why, []))

    async def _view(
        self, pull: PullRequest, touching: Touching, row: PeoplesPull, why: str, due: Sequence[Stage]
    ) -> PullView:
        making = {_key(stage) for stage in due}
        lines, wanted, planned = [], [], set()
        for plan in row.plans:
            stage = self.bystanders.gatherer.configuration.stage(*plan.key)
            current = plan.promotion.head == pull.head and plan.key not in making
            preview = (
                await self.bystanders.gatherer.store.get_preview(plan.promotion.id, plan.promotion.preview)
                if current
                else None
            )
            policy = (
                self.bystanders.gatherer.configuration.policy(stage) if stage is not None else ReviewPolicy()
            )
            lines.append(_line(plan, preview, why, policy))
            if stage is not None and preview is not None:
                planned.add(plan.key)
                destroys = preview.destroys and not (plan.differs or plan.idle)
                wanted.append(self.bystanders.wish(stage, destroys=destroys, shown_at=plan.shown_at))
        known = {plan.key for plan in row.plans}
        for stage in due:
            if _key(stage) not in known:
                lines.append(PlannedLine(*_key(stage), ""))
        for name, said in row.waits.items():
            project, _, short = name.partition("/")
            lines.append(PlannedLine(project, short, "", waits=said))
        if why and not lines:
            lines = [PlannedLine(*_key(stage), "", waits=why) for stage, _ in touching.stages]
        wanted += [self.bystanders.wish(s) for s, _ in touching.stages if _key(s) not in planned]
        return PullView(
            number=pull.number,
            head=pull.head,
            touched=tuple(_named(touching)),
            tallies=tuple(await self.bystanders.count(pull, wanted, row.pushers)),
            lines=tuple(lines),
            waits=why,
            button=bool(why),
        )


def _line(plan: PlannedStage, preview: Preview | None, why: str, policy: ReviewPolicy) -> PlannedLine:
    freight = plan.promotion.freight
    return PlannedLine(
        project=plan.promotion.project,
        stage=plan.promotion.stage,
        freight=freight.label,
        preview=preview,
        differs=plan.differs if preview is not None else "",
        idle=plan.idle and preview is not None,
        waits=why,
        promotion=plan.promotion,
        follow_up=needs_follow_up(policy, preview),
    )


def _named(touching: Touching) -> list[tuple[str, str]]:
    return [(stage.metadata.name, path) for stage, path in touching.stages]


def _key(stage: Stage) -> tuple[str, str]:
    return stage.metadata.namespace, stage.metadata.name
