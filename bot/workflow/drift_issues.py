"""The one issue that shows a Stage's drift, and the corrective promotion that undoes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from bot.domain.drift import (
    DriftRecord,
    Finding,
    IssueAction,
    IssuePlan,
    StageLook,
    plan_issue,
    why_not_corrected,
)
from bot.domain.github import Issue, IssueNumber, PullNumber, Repository
from bot.domain.keeping import kept_paths
from bot.domain.model import Stage
from bot.domain.promotion import Promotion, State
from bot.domain.review_policy import ReviewPolicy
from bot.ports import Clock, Event, GitHub, Look, StageRecord, Store, TerminalError, Vault
from bot.ports.issues import IssueChange, Issues, NewIssue
from bot.reports.drift import render_change, render_gone, render_issue
from bot.workflow.reporting import Reporter
from bot.workflow.stages import Asking, StageLooker

LABEL = "drift"
_CLOCKS_DIFFER = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class DriftIssues:
    """Shows drift on GitHub and opens what corrects it."""

    issues: Issues
    github: GitHub
    store: Store
    vault: Vault
    clock: Clock
    reporter: Reporter
    looker: StageLooker

    async def show(self, record: DriftRecord, look: StageLook) -> DriftRecord:
        """Bring the Stage's issue to what a look found; doing it twice changes nothing.

        What GitHub refuses is told in the timeline and the answer, and the look counts all the same. Raises
        TransientError.
        """
        repository = await self.home(record.project, record.stage)
        if repository is None:
            return await self._save(record, lambda r: replace(r, problem="", shown=_shown(r, look)))
        try:
            return await self._show(record, look, repository)
        except TerminalError as error:
            said = f"the issue of its drift cannot be written: {error}"
            if said != record.problem:
                told = Event(self.clock.now(), record.project, record.stage, "", "error", said)
                await self.store.add_event(told)
            return await self._save(record, lambda r: replace(r, problem=said, shown=_shown(r, look)))

    async def _show(self, record: DriftRecord, look: StageLook, repository: Repository) -> DriftRecord:
        issue = await self._find(record, look, repository)
        open_now = issue.state == "open" if issue is not None else None
        plan = plan_issue(record, look, open_now=open_now)
        if plan.action is IssueAction.EDIT and _shown(record, look) is None:
            # Opened again by a person, and this look tells nothing that could be shown.
            return await self._save(record, lambda r: replace(r, problem=""))
        text = render_issue(record, _shown(record, look) or look)
        number = issue.number if issue is not None else None
        match plan.action:
            case IssueAction.OPEN:
                wanted = NewIssue(text.title, text.body, self._marker(record), (LABEL,))
                since = look.at - _CLOCKS_DIFFER
                number = (await self.issues.create_issue(repository, wanted, since=since)).number
            case IssueAction.REOPEN | IssueAction.EDIT if number is not None:
                change = IssueChange(text.title, text.body, state="open")
                await self.issues.update_issue(repository, number, change)
            case IssueAction.CLOSE if number is not None:
                await self._comment(repository, number, look, render_gone(record, look))
                await self.issues.update_issue(repository, number, IssueChange(state="closed"))
            case _:
                pass
        if plan.comment and number is not None and plan.action is not IssueAction.CLOSE:
            await self._comment(repository, number, look, render_change(record.shown, look))
        return await self._save(record, lambda r: _after(r, plan, look, repository, number))

    async def _comment(self, repository: Repository, number: IssueNumber, look: StageLook, body: str) -> None:
        """Comment once on what a look found: done again, it has the same key."""
        place = self.vault.digest(f"{repository} {number} {look.at.isoformat()}".encode())[:24]
        await self.reporter.reply(repository, PullNumber(number), f"lockstep:drift-said:{place}", body)

    async def _find(self, record: DriftRecord, look: StageLook, repository: Repository) -> Issue | None:
        """The Stage's issue; without a number that is known it is looked for where there is drift to show."""
        if record.issue and record.repository == str(repository):
            found = await self.issues.get_issue(repository, IssueNumber(record.issue))
            if found is not None:
                return found
        if look.finding is not Finding.DRIFT:
            return None
        return await self.issues.find_own_issue(repository, self._marker(record), label=LABEL)

    def _marker(self, record: DriftRecord) -> str:
        """The hidden mark of a Stage's issue; its last part cannot be made without our key."""
        name = f"{record.project}/{record.stage}"
        # Two hyphens would end an HTML comment, and the key tells names apart.
        return (
            f"lockstep:drift {name.replace('-', '_')} {self.vault.digest(f'drift of {name}'.encode())[:32]}"
        )

    async def home(self, project: str, name: str) -> Repository | None:
        """The repository that a Stage's promotions go to, None before the first and where GitHub has none of them."""
        for promotion in await self.store.list_promotions(project, name):
            if promotion.target is not None:
                return self.github.repository_of(promotion.target.url)
        return None

    # -- correcting ------------------------------------------------------------------------------------------------

    async def correct(
        self, record: DriftRecord, look: StageLook, stage: Stage, policy: ReviewPolicy
    ) -> DriftRecord:
        """Open a corrective promotion where the policy lets the bot, once for the same drift."""
        if why_not_corrected(look, policy.drift_correct) or record.corrected == look.digest:
            gone = look.finding is Finding.NONE
            return await self._save(record, lambda r: replace(r, corrected="")) if gone else record
        why = f"the ReviewPolicy {policy.metadata.name} corrects this drift"
        started = await self.start(stage, Asking("lockstep", corrects=True, why=why))
        if isinstance(started, str):
            return record
        return await self._save(record, lambda r: replace(r, corrected=look.digest))

    async def start(self, stage: Stage, asking: Asking) -> Promotion | str:
        """A promotion of the Freight that the Stage has, whose plan undoes the drift; the answer may be why not."""
        project, name = stage.metadata.namespace, stage.metadata.name
        record = await self.store.get_stage(project, name)
        recent = await self.store.list_promotions(project, name)
        blocked = next((p for p in recent if p.blocked), None)
        if blocked is not None:
            return f"the last promotion of {name} failed: {blocked.reason}. `/retry` or `/rollback` first"
        if record.frozen and asking.actor == "lockstep":
            return f"frozen: {record.frozen}"
        present = find_present(record, recent)
        if present is None:
            return f"{name} has no Freight yet"
        preview = await self.store.get_preview(present.id, present.preview)
        if preview is not None and kept_paths(preview.steps):
            return (
                f"the last rollback of {name} kept the infrastructure of later Freight, so promoting "
                f"{present.freight.alias} once more would change more than the drift; promote other Freight"
            )
        started = await self.looker.begin(stage, present.freight, asking)
        if not isinstance(started, str):
            await self.store.request_looks([Look("stage", f"{project}/{name}", "its drift is corrected")])
        return started

    async def _save(self, record: DriftRecord, change: Callable[[DriftRecord], DriftRecord]) -> DriftRecord:
        return await self.store.change_drift(record.project, record.stage, change)


def find_present(record: StageRecord, recent: Iterable[Promotion]) -> Promotion | None:
    """The Promotion whose steps brought about what the Stage has now; `recent` are its own, the newest first."""
    items = set(record.items.values())
    return next((p for p in recent if p.state is State.SUCCEEDED and p.freight.name in items), None)


def _shown(record: DriftRecord, look: StageLook) -> StageLook | None:
    """The look whose drift is shown from now on; one that proved nothing leaves the one before."""
    if look.finding is Finding.NONE:
        return None
    return look if look.finding is Finding.DRIFT else record.shown


def _after(
    record: DriftRecord, plan: IssuePlan, look: StageLook, repository: Repository, number: IssueNumber | None
) -> DriftRecord:
    is_open = plan.action in (IssueAction.OPEN, IssueAction.REOPEN, IssueAction.EDIT)
    return replace(
        record,
        repository=str(repository) if number is not None else record.repository,
        issue=int(number) if number is not None else record.issue,
        open=is_open,
        dismissed=plan.dismissed,
        problem="",
        shown=_shown(record, look),
    )
