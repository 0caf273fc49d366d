"""Noticing merges and pushes of people after which a Stage differs from its Freight: GitHub's Revert button, mostly.

Cheap first: only where a branch moved are the files that the Stage's last success wrote compared with what it left, and
only what others than the bot changed since counts. What is left is proven by walking the Stage's steps, with Terraform
standing still: would they write something that they would not have written right after they had run?
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bot.domain.differing import find_unwritten, wishes_of
from bot.domain.files import CommitId
from bot.domain.github import Repository
from bot.domain.model import Stage
from bot.domain.promotion import Promotion, PromotionId, State, StepStatus
from bot.domain.review import ApplyKind, ApplyRecord, Presence, Preview, StepReport
from bot.domain.review_policy import ReviewPolicy
from bot.domain.splitting import Place
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.territory import written_by
from bot.domain.values import Unknown
from bot.ports import Commit, Event, Look, PromotionLine, TerminalError, TransientError
from bot.ports.store import PlanStore
from bot.steps.contract import Config as Given
from bot.steps.contract import Step as StepRunner
from bot.steps.contract import StepContext, StepResult
from bot.steps.terraform_config import find_site, parse_terraform
from bot.steps.terraform_inputs import state_key
from bot.workflow.evaluation import Evaluator
from bot.workflow.own_commits import OwnCommits
from bot.workflow.preview import Previewer
from bot.workflow.snapshots import Gatherer
from bot.workflow.walk import Base

_RECENT = 5
_MOST_COMMITS = 250
_MOST_KNOWN = 5_000
_TERRAFORM = ("tf-plan", "tf-apply", "tf-output")


@dataclass(frozen=True, slots=True)
class _Left:
    """What a Stage's last success left: the place, the commit, and the paths that its steps write."""

    promotion: PromotionId
    stage: str
    place: Place
    commit: CommitId
    paths: frozenset[str]

    @property
    def url(self) -> str:
        """The git address of the repository."""
        return self.place.target.url


@dataclass(slots=True)
class Differences:
    """Marks Stages that differ. `previewer` lets Terraform stand still, `checked` tells how far each was looked at."""

    gatherer: Gatherer
    previewer: Previewer
    own: OwnCommits
    evaluator: Callable[[Promotion], Awaitable[Evaluator]]
    known: dict[PromotionId, _Left] = field(default_factory=dict)
    checked: dict[tuple[str, str], tuple[PromotionId, CommitId]] = field(default_factory=dict)

    async def look(self, repository: Repository, branch: str) -> None:
        """Compare every Stage that lives on this branch; raises TransientError and TerminalError of the world."""
        url, git = self.gatherer.github.clone_url(repository), self.gatherer.git
        stages = [
            (stage, line.id)
            for stage, line in await self._last_successes()
            if line.target is not None
            and line.target.branch == branch
            and self.gatherer.github.repository_of(line.target.url) == repository
        ]
        if not stages:
            return
        await git.fetch(url)
        tip = await git.resolve(url, f"refs/heads/{branch}")
        moved: dict[CommitId, frozenset[str]] = {}
        for stage, last in stages:
            if tip is not None:
                await self._look_at(stage, last, tip, moved)

    async def branches(self) -> list[tuple[Repository, str]]:
        """Every branch that a Stage's last success went to."""
        found = []
        for _, line in await self._last_successes():
            repository = self.gatherer.github.repository_of(line.target.url) if line.target else None
            if repository is not None and line.target is not None:
                found.append((repository, line.target.branch))
        return list(dict.fromkeys(found))

    async def _last_successes(self) -> list[tuple[Stage, PromotionLine]]:
        """The Stages whose files are those of their last success: nothing newer is merged or failed on the way."""
        configuration, found = self.gatherer.configuration, []
        for project in sorted({project for project, _ in configuration.pipeline.stages}):
            lines = await self.gatherer.store.list_newest_promotions(project, _RECENT)
            by_stage: dict[str, list[PromotionLine]] = {}
            for line in lines:
                by_stage.setdefault(line.stage, []).append(line)
            for name, newest in by_stage.items():
                stage = configuration.stage(project, name)
                last = _last_success(newest)
                if stage is not None and last is not None:
                    found.append((stage, last))
        return found

    async def _look_at(
        self, stage: Stage, last: PromotionId, tip: CommitId, moved: dict[CommitId, frozenset[str]]
    ) -> None:
        key = (stage.metadata.namespace, stage.metadata.name)
        left = await self._left(last)
        before = self.checked.get(key)
        if left is None or before == (last, tip):
            return
        if before is not None and before[0] == last:
            if before[1] not in moved:
                changed = await self.gatherer.git.diff(left.url, before[1], tip)
                moved[before[1]] = frozenset(path for path, _, _ in changed)
            if not moved[before[1]] & left.paths:
                self.checked[key] = (last, tip)
                return
        await self._mark(stage, last, await self._difference(left, tip))
        self.checked[key] = (last, tip)

    async def _left(self, promotion_id: PromotionId) -> _Left | None:
        if promotion_id not in self.known:
            store = self.gatherer.store
            promotion = await store.get_promotion(promotion_id)
            preview = await store.get_preview(promotion_id, promotion.preview) if promotion else None
            if promotion is None or preview is None:
                return None
            commit = promotion.release_commit or promotion.merge_commit or preview.base
            if len(self.known) >= _MOST_KNOWN:
                self.known.clear()
            place = Place(preview.target, preview.checkout, preview.source)
            self.known[promotion_id] = _Left(
                promotion_id, promotion.stage, place, commit, written_by(preview)
            )
        return self.known[promotion_id]

    async def _mark(self, stage: Stage, promotion: PromotionId, differs: str) -> None:
        project, name = stage.metadata.namespace, stage.metadata.name
        store = self.gatherer.store
        record = await store.get_stage(project, name)
        if record.differs == differs:
            return
        await store.change_stage(project, name, lambda found: replace(found, differs=differs))
        kind, message = (
            ("differs", differs) if differs else ("agrees", f"{name} is as its Freight asks again")
        )
        await store.add_event(Event(self.gatherer.clock.now(), project, name, promotion, kind, message))
        await store.request_looks([Look("stage", f"{project}/{name}", message)])

    # -- how it differs --------------------------------------------------------------------------------------------

    async def _difference(self, left: _Left, tip: CommitId) -> str:
        """Why the Stage differs, with path, commit and author; empty if it does not."""
        git, url = self.gatherer.git, left.url
        then, now = await git.list_files(url, left.commit), await git.list_files(url, tip)
        paths = {path for path in left.paths if then.get(path) != now.get(path)}
        blame = await self._blame(url, left.commit, tip, paths) if paths else {}
        if not blame:
            return ""
        was, becomes = await self._walk(left, left.commit), await self._walk(left, tip)
        path = next(iter(find_unwritten(wishes_of(was), wishes_of(becomes), blame)), "")
        if not path and becomes.problems and not was.problems:
            path = min(blame)
        if not path:
            return ""
        commit = blame[path]
        subject = commit.message.partition("\n")[0][:80]
        who = f"{commit.id[:7]} by {commit.author.name} ({subject})"
        return f"{left.stage} differs from its Freight: {path} was changed in {who}"

    async def _blame(self, url: str, left: CommitId, tip: CommitId, paths: set[str]) -> Mapping[str, Commit]:
        """The newest commit of somebody else for each of the paths; those that only the bot changed are left out."""
        git = self.gatherer.git
        commits = await self._mainline(url, left, tip)
        changed = await git.list_changed_paths(url, commits)
        found: dict[str, Commit] = {}
        for number, commit in enumerate(commits):
            touched = paths.intersection(changed.get(commit.id, ())) - found.keys()
            newer = tuple(reversed(commits[:number]))
            if touched and not await self.own.is_own(git, url, commit, newer):
                found |= dict.fromkeys(touched, commit)
        return found

    async def _mainline(self, url: str, left: CommitId, tip: CommitId) -> Sequence[Commit]:
        commits = await self.gatherer.git.list_mainline(url, tip, limit=_MOST_COMMITS)
        names = [commit.id for commit in commits]
        return commits[: names.index(left)] if left in names else commits

    async def _walk(self, left: _Left, commit: CommitId) -> Preview:
        """The Stage's own steps on a commit. Raises TransientError if the world may answer later."""
        promotion = await self.gatherer.store.get_promotion(left.promotion)
        if promotion is None:
            raise TransientError(f"{left.promotion} was forgotten just now")
        stage = self.gatherer.configuration.stage(promotion.project, promotion.stage)
        policy = self.gatherer.configuration.policy(stage) if stage is not None else ReviewPolicy()
        made = await self.previewer.preview(
            promotion, policy, await self.evaluator(promotion), Base(left.place, commit, commit)
        )
        passing = next((problem for problem in made.problems if problem.transient), None)
        if passing is not None:
            raise TransientError(passing.message)
        return made


def _last_success(newest: Sequence[PromotionLine]) -> PromotionLine | None:
    """The last success, unless what was merged since is not in the Stage yet; `newest` comes first."""
    for line in newest:
        if line.state is State.SUCCEEDED:
            return line
        merged = line.state in (State.FULFILLING, State.HELD, State.STOPPED)
        if merged or line.blocked:
            return None
    return None


# -- Terraform that stands still -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StillRunners(Mapping[str, StepRunner]):
    """Every step kind, those of Terraform as if nothing were to be applied: outputs are those that were recorded."""

    runners: Mapping[str, StepRunner]
    store: PlanStore

    def __getitem__(self, name: str) -> StepRunner:
        runner = self.runners[name]
        return _Still(runner, self.store) if name in _TERRAFORM else runner

    def __iter__(self) -> Iterator[str]:
        return iter(self.runners)

    def __len__(self) -> int:
        return len(self.runners)


@dataclass(frozen=True, slots=True)
class _Still:
    """A step of Terraform's that runs nothing."""

    runner: StepRunner
    store: PlanStore

    @property
    def kind(self) -> StepKind:
        """That of the step."""
        return self.runner.kind

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """As with inputs that were applied; what was not recorded is not known."""
        name = self.kind.name
        if name == "tf-plan":
            return StepResult(StepStatus.SKIPPED, {"plan": ""})
        record = await self._record(name, config, context)
        if name == "tf-output":
            # Only an apply of the same walk has its outputs read from what was recorded.
            return await self.runner.preview(config, replace(context, earlier=(_report(record),)))
        if record.kind is ApplyKind.UNKNOWABLE:
            return StepResult(None, {"result": Unknown("known after apply: result")}, record=record)
        return StepResult(StepStatus.SKIPPED, {"result": ""}, record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Never asked for."""
        del config
        raise TerminalError(f"{context.alias}: {self.kind.name} stands still here, and is never fulfilled")

    async def _record(self, name: str, config: Given, context: StepContext) -> ApplyRecord:
        wanted = parse_terraform(name, config)
        state = state_key(find_site(name, wanted, context), wanted.workspace)
        applied = await self.store.find_applied(state)
        outputs = applied.outputs if applied is not None and applied.succeeded else None
        secret = any(output.sensitive for output in (outputs or {}).values())
        asked = bool(config.get("sensitive")) or bool(config.get("name"))
        known = applied is not None and outputs is not None and not (secret and asked)
        kind = ApplyKind.UNCHANGED if known else ApplyKind.UNKNOWABLE
        inputs = applied.inputs if applied is not None else ""
        return ApplyRecord(state, wanted.directory, kind, inputs, frozenset())


def _report(record: ApplyRecord) -> StepReport:
    return StepReport(
        index=0,
        alias="",
        kind="tf-apply",
        step_class=StepClass.INFRA,
        presence=Presence.CERTAIN,
        status=StepStatus.SKIPPED,
        record=record,
    )
