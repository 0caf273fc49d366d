"""`/drift` and `/drift fix`: on the issue of a Stage's drift, on its pull requests, or with the Stage named."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.commands import Drift
from bot.domain.drift import Question
from bot.domain.model import Stage
from bot.domain.promotion import Promotion
from bot.workflow.buttons import Asked, Refusal
from bot.workflow.drift import DriftWatch
from bot.workflow.drift_issues import DriftIssues
from bot.workflow.rights import Rights
from bot.workflow.stages import Asking


@dataclass(frozen=True, slots=True)
class DriftCommands:
    """Answers them; each raises Refusal with the reason."""

    watch: DriftWatch
    issues: DriftIssues
    rights: Rights

    async def obey(self, asked: Asked, command: Drift) -> str:
        """Have a Stage looked at, which is answered when it is done, or begin what undoes its drift."""
        stage = await self._stage(asked, command)
        await self.rights.check(asked, "drift", stage)
        if command.fix:
            return await self._fix(asked, stage)
        if asked.number is None or asked.comment is None:
            raise Refusal("nothing tells where the answer would go")
        home = await self.issues.home(stage.metadata.namespace, stage.metadata.name)
        if home != asked.repository:
            # Who reads the answer there may not be one who reads the Stage's repository.
            where = f"in {home}" if home is not None else "once it has Freight"
            raise Refusal(f"what is found is told to those who read the Stage's repository: ask {where}")
        key = f"lockstep:reply:{asked.comment}"
        await self.watch.ask(stage, Question(str(asked.repository), asked.number, key))
        return ""

    async def _fix(self, asked: Asked, stage: Stage) -> str:
        # It is a promotion like any other, so who may not promote may not have it by another name.
        await self.rights.check(asked, "promote", stage)
        project, name = stage.metadata.namespace, stage.metadata.name
        current = await self.watch.store.find_current_promotion(project, name)
        if current is not None:
            if current.corrects:
                return f"{_where(current)} undoes the drift of {name} already"
            raise Refusal(f"{name} has an unfinished promotion of {current.freight.alias}: {current.reason}")
        started = await self.issues.start(stage, Asking(asked.author.login, asked.author.id, corrects=True))
        if isinstance(started, str):
            raise Refusal(started)
        return f"{started.freight.alias} is promoted to {name} once more, with a plan that undoes its drift"

    async def _stage(self, asked: Asked, command: Drift) -> Stage:
        configuration = self.watch.configuration
        project, name = command.project, command.stage
        if not name and asked.promotion is not None:
            project, name = asked.promotion.project, asked.promotion.stage
        if not name:
            project, name = await self._of_issue(asked)
        owner = project or (asked.promotion.project if asked.promotion is not None else "")
        found = [s for (p, n), s in configuration.pipeline.stages.items() if n == name and owner in ("", p)]
        if len(found) == 1:
            return found[0]
        why = f"there is no Stage {name}" if not found else f"several projects have a Stage {name}"
        names = ", ".join(sorted(f"{p}/{n}" for p, n in configuration.pipeline.stages)) or "none"
        raise Refusal(f"{why}; the Stages are: {names}")

    async def _of_issue(self, asked: Asked) -> tuple[str, str]:
        """The Stage whose drift the issue shows."""
        for record in await self.watch.store.list_drifts():
            if record.issue == asked.number and record.repository == str(asked.repository):
                return record.project, record.stage
        raise Refusal("this is no issue or pull request of a Stage; name it: `/drift STAGE`")


def _where(promotion: Promotion) -> str:
    return f"pull request {promotion.pull}" if promotion.pull is not None else "a promotion"
