"""Gathering what a decision about one Stage rests on, read from the database and from the world just now."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.domain.actions import Gate, Snapshot
from bot.domain.analysis import AnalysisRun
from bot.domain.approvals import Standing, Tally, count_approvals
from bot.domain.auto_promotion import is_auto_promotion_enabled
from bot.domain.availability import FreightIndex, KnownFreight, index_freight
from bot.domain.before_merge import METHOD, describe_done
from bot.domain.files import CommitId
from bot.domain.freight import Freight, FreightStatus
from bot.domain.github import PullRequest, Repository, User
from bot.domain.identity import promotion_name, ulid
from bot.domain.model import Stage, Step
from bot.domain.peoples_pulls import early_reviewers
from bot.domain.planning import merge_method
from bot.domain.promotion import Promotion, PromotionId, State, StepStatus
from bot.domain.review import Preview
from bot.domain.review_policy import ReviewPolicy
from bot.domain.step_kinds import StepClass
from bot.domain.tasks import TaskError, inflate_steps
from bot.domain.windows import stage_windows, window_state
from bot.ports import Clock, Git, GitHub, StageRecord, Store
from bot.workflow.answered import with_answers
from bot.workflow.candidates import choose_candidate, describe_difference, not_by_itself, progress_of
from bot.workflow.configuration import Configuration
from bot.workflow.gates import gates_of, needed_approvals, with_apply
from bot.workflow.going_back import GoingBack
from bot.workflow.merges import find_lost
from bot.workflow.proofs import (
    explain_verifications,
    present_runs,
    upstream_of,
    verification_gates,
    verifying,
)

_RETRY_PREVIEW = timedelta(seconds=30)
_WAITING = (State.HELD, State.STOPPED, State.FULFILLING)


@dataclass(frozen=True, slots=True)
class Gatherer:
    """Reads the world for one Stage at a time."""

    store: Store
    git: Git
    github: GitHub
    clock: Clock
    configuration: Configuration
    indexes: dict[str, tuple[Sequence[tuple[Freight, FreightStatus]], FreightIndex]] = field(
        default_factory=dict, repr=False
    )

    async def gather(self, stage: Stage) -> Snapshot:
        """Everything about a Stage. Raises TransientError and TerminalError of the world."""
        project, name = stage.metadata.namespace, stage.metadata.name
        record = await self.store.get_stage(project, name)
        recent = await self.store.list_promotions(project, name)
        # None is created while one is unfinished, so the unfinished one is among the newest.
        promotion = next((p for p in recent if not p.state.ended), None)
        last = next((p for p in recent if p.state.ended), None)
        runs = await self._runs(stage)
        found = await self._candidate(stage, record, promotion, recent)
        candidate, why, at = explain_verifications(stage, runs, found)
        now, back, back_reason = self.clock.now(), None, ""
        if promotion is None:
            going = GoingBack(self.store, self.configuration)
            back, back_reason = await going.find(stage, record, last, runs.get(name), now)
        seen = Snapshot(
            now=now,
            project=project,
            stage=stage,
            policy=self.configuration.policy(stage),
            promotion=promotion,
            last=last,
            candidate=candidate,
            candidate_reason=why,
            candidate_at=at,
            frozen=record.frozen,
            problem=self.configuration.problem_of(project, name),
            verifying=verifying(runs.get(name)),
            back=back,
            back_reason=back_reason,
        )
        return seen if promotion is None else await self._with_review(seen, promotion)

    async def _with_review(self, seen: Snapshot, promotion: Promotion) -> Snapshot:
        preview = await self.store.get_preview(promotion.id, promotion.preview) if promotion.preview else None
        seen = replace(
            seen, preview=preview, steps_changed=self._steps_changed(seen.stage, promotion, preview)
        )
        if preview is None or promotion.running:
            return seen
        # In this order: a base that moved by the merge of this pull request is then never seen with it still open.
        base_changed = await self._base_changed(promotion, preview)
        pull = await self.find_pull(promotion)
        people = await self.people_commits(promotion, pull) if pull is not None else ()
        tally = await self.tally(seen.policy, promotion, preview, pull)
        # And this last: a freeze or hold that was there before the merge is then never missed after it.
        record = await self.store.get_stage(promotion.project, promotion.stage)
        first = (*self._windows(seen, promotion), *await self._verified(seen, promotion))
        answered = await with_answers(self.store, promotion, preview)
        gates = (*first, *gates_of(promotion, answered, tally, pull, record))
        gates = with_apply(gates, seen.policy, promotion, preview, pull)
        method = METHOD if promotion.is_ahead else merge_method(seen.policy, preview)
        return replace(
            seen,
            pull=pull,
            people_commits=people,
            tally=tally,
            gates=gates,
            base_changed=base_changed,
            lost=await self._lost(promotion, preview),
            applied=await self._applied(promotion, preview),
            done=await self._done(promotion, preview),
            check_green=await self._check_green(promotion, pull, gates, method),
            retry_preview_at=_retry_at(preview),
        )

    def _windows(self, seen: Snapshot, promotion: Promotion) -> tuple[Gate, ...]:
        """The gate of promotion windows, if any is meant for the Stage; a rollback passes them."""
        windows = stage_windows(self.configuration.pipeline, seen.stage)
        if not windows:
            return ()
        state = window_state(windows, seen.now)
        if promotion.rollback:
            return (Gate("window", True, "a rollback passes promotion windows"),)
        return (
            Gate("window", state.is_open, state.reason or "promotions are allowed now", state.changes_at),
        )

    async def _runs(self, stage: Stage) -> Mapping[str, AnalysisRun]:
        """The verification of what the Stage has now, and of what those have that it takes Freight from."""
        project = stage.metadata.namespace
        runs = await self.store.list_newest_runs(project, (stage.metadata.name, *upstream_of(stage)))
        return present_runs(runs, [await self.store.get_stage(project, run.stage) for run in runs])

    async def _verified(self, seen: Snapshot, promotion: Promotion) -> tuple[Gate, ...]:
        runs = await self._runs(seen.stage)
        known = await self.store.get_freight(promotion.project, promotion.freight.name) if runs else None
        return verification_gates(seen, promotion, runs, known[1]) if known is not None else ()

    async def find_pull(self, promotion: Promotion) -> PullRequest | None:
        """The pull request of a Promotion as it is now, None if it has none."""
        if promotion.pull is None or promotion.target is None:
            return None
        repository = self.github.repository_of(promotion.target.url)
        return (
            await self.github.get_pull_request(repository, promotion.pull) if repository is not None else None
        )

    async def people_commits(self, promotion: Promotion, pull: PullRequest) -> tuple[CommitId, ...]:
        """Commits of the branch that the App did not make, newest first."""
        if promotion.target is None or promotion.base is None or pull.merged or not pull.open:
            return ()
        await self.git.fetch(promotion.target.url, f"refs/pull/{pull.number}/head")
        return await self.people_below(promotion, pull.head)

    async def people_below(self, promotion: Promotion, head: CommitId) -> tuple[CommitId, ...]:
        """Commits below a head in the mirror that the App did not make: its own may stand on top of people's."""
        if promotion.target is None or promotion.base is None:
            return ()
        url = promotion.target.url
        tip = await self.git.resolve(url, f"refs/heads/{promotion.target.branch}")
        commits = await self.git.log(url, tip or promotion.base, head)
        return tuple(c.id for c in commits if c.id not in promotion.own_commits)

    async def tally(
        self, policy: ReviewPolicy, promotion: Promotion, preview: Preview, pull: PullRequest | None
    ) -> Tally:
        """Whose approvals count, read live."""
        needed, on_destroy = needed_approvals(policy, destroys=preview.destroys, rollback=promotion.rollback)
        if pull is None:
            return Tally(count=0, needed=0, by_policy=policy.metadata.name)
        reviews = await self.github.list_reviews(pull.repository, pull.number)
        excluded = await self.excluded(policy, promotion, pull, [r.user for r in reviews])
        if promotion.follows is not None:
            excluded = {**early_reviewers(reviews, promotion.follows.shown_at), **excluded}
        logins = sorted({r.user.login for r in reviews})
        standings = {login.lower(): await self.standing(pull.repository, login, policy) for login in logins}
        tally = count_approvals(reviews, promotion.heads, policy.approvals, excluded, standings)
        unasked = policy.auto_merge or policy.review == "None"
        by_policy = policy.metadata.name if unasked and needed == 0 else ""
        return replace(tally, needed=needed, destroy_needed=on_destroy, by_policy=by_policy)

    async def excluded(
        self, policy: ReviewPolicy, promotion: Promotion, pull: PullRequest, people: Iterable[User]
    ) -> Mapping[str, str]:
        """Logins, in lower case, whose approval never counts, each with the reason; `people` are who may be meant."""
        pushed = (person.login.lower() for person in people if person.id in promotion.pushers)
        excluded = dict.fromkeys(pushed, "pushed to the branch")
        authors = await self.github.list_commit_authors(pull.repository, pull.number)
        for commit, logins in authors.items():
            if commit not in promotion.own_commits:
                excluded |= {login.lower(): f"wrote the commit {commit[:7]}" for login in logins}
        if not policy.approvals.requester and promotion.actor_id:
            # By the id as well, since somebody may have taken another login meanwhile.
            names = [promotion.actor, *(p.login for p in people if p.id == promotion.actor_id)]
            excluded |= {name.lower(): "asked for this promotion" for name in names}
        return excluded

    async def standing(self, repository: Repository, login: str, policy: ReviewPolicy) -> Standing:
        """A person's role on the repository, and which of the policy's teams they are in."""
        entries = [*policy.approvals.from_, *policy.approvals.on_destroy.from_, *policy.commands.values()]
        teams = {entry.removeprefix("team:").lower() for entry in entries if entry.startswith("team:")}
        member = [t for t in sorted(teams) if await self.github.is_team_member(repository.owner, t, login)]
        return Standing(await self.github.get_permission(repository, login), frozenset(member))

    async def _base_changed(self, promotion: Promotion, preview: Preview) -> tuple[str, ...]:
        """Touched paths that the target branch changed since the preview was made."""
        ready = promotion.early.base if promotion.early is not None and promotion.is_ahead else None
        if promotion.state not in (State.REVIEW, State.QUEUED) and ready is None:
            return ()
        url, base = preview.target.url, ready or preview.base
        await self.git.fetch(url)
        tip = await self.git.resolve(url, f"refs/heads/{preview.target.branch}")
        if tip is None or tip == base:
            return ()
        changed = await self.git.diff(url, base, tip)
        return tuple(path for path, _, _ in changed if path in preview.touched)

    async def _lost(self, promotion: Promotion, preview: Preview) -> str:
        """What was merged and is no longer there, of a Promotion that waits for its first effect or stopped."""
        begun = promotion.effects_begun and promotion.state is not State.STOPPED
        if promotion.merge_commit is None or promotion.state not in _WAITING or begun:
            return ""
        url = preview.target.url
        await self.git.fetch(url)
        return await find_lost(self.git, preview)

    async def _done(self, promotion: Promotion, preview: Preview) -> str:
        """What was applied before the merge, of a promotion that applies there."""
        if not promotion.is_ahead:
            return ""
        return describe_done(preview, await self.store.list_steps(promotion.id), promotion.first_attempt)

    async def _applied(self, promotion: Promotion, preview: Preview) -> bool:
        """Whether an apply or another effect has begun since the merge; one that stopped before it has not."""
        if promotion.state is not State.STOPPED:
            return promotion.effects_begun
        runs = await self.store.list_steps(promotion.id)
        effects = (r.alias for r in preview.steps if r.kind == "tf-apply" or r.step_class is StepClass.ACT)
        found = (runs[alias].status for alias in effects if alias in runs)
        return any(status not in (StepStatus.RUNNING, StepStatus.SKIPPED) for status in found)

    async def _check_green(
        self, promotion: Promotion, pull: PullRequest | None, gates: Sequence[Gate], method: str
    ) -> bool:
        """Whether GitHub shows our success on the head; asked only when the App is about to merge."""
        if pull is None or not pull.open or not method or not all(gate.open for gate in gates):
            return False
        checks = await self.github.list_checks(pull.repository, pull.head)
        return (
            any(c.name == "lockstep" and c.conclusion == "success" for c in checks)
            and pull.head == promotion.head
        )

    def steps_of(self, stage: Stage) -> tuple[Step, ...]:
        """The Stage's steps as a new Promotion would have them. Raises TaskError."""
        template = stage.template
        if template is None:
            return ()
        pipeline, project = self.configuration.pipeline, stage.metadata.namespace
        tasks = {name: task for (owner, name), task in pipeline.tasks.items() if owner == project}
        return inflate_steps(template.steps, tasks, pipeline.cluster_tasks, stage.task_variables)

    def draft(self, stage: Stage, freight: Freight) -> Promotion:
        """A Promotion of this Freight alone as it would be made now, the bot's own. Raises TaskError."""
        steps, now = self.steps_of(stage), self.clock.now()
        name = promotion_name(stage.metadata.name, ulid(now, secrets.token_bytes(10)), freight.name)
        return Promotion(
            id=PromotionId(name),
            project=stage.metadata.namespace,
            stage=stage.metadata.name,
            freight=freight,
            collection=(freight,),
            steps=steps,
            variables=stage.task_variables,
            actor="lockstep",
            actor_id=0,
            created_at=now,
            policy_revision=self.configuration.pipeline.revision,
        )

    def _steps_changed(self, stage: Stage, promotion: Promotion, preview: Preview | None) -> bool:
        if promotion.state not in (State.REVIEW, State.QUEUED) or preview is None:
            return False
        if promotion.policy_revision == self.configuration.pipeline.revision:
            return False
        try:
            return self.steps_of(stage) != promotion.steps or stage.task_variables != promotion.variables
        except TaskError:
            return False

    async def _candidate(
        self, stage: Stage, record: StageRecord, promotion: Promotion | None, recent: Sequence[Promotion]
    ) -> tuple[Freight | None, str, datetime | None]:
        """The Freight that auto-promotion would take now, or why there is none and when time alone will tell."""
        project, name = stage.metadata.namespace, stage.metadata.name
        config = self.configuration.project_config(project)
        if not is_auto_promotion_enabled(config, name, stage.metadata.labels):
            return None, not_by_itself(name), None
        if record.differs:
            return None, describe_difference(name, record.differs), None
        known = await self.store.list_freight(project)
        index = self._index(project, known)
        unfinished = promotion.freight.name if promotion is not None else None
        ended = [(old.freight.name, old.state) for old in recent if old.state.ended]
        progress = progress_of(record, unfinished, ended)
        return choose_candidate(stage, config, progress, index, self.clock.now())

    def _index(self, project: str, known: Sequence[tuple[Freight, FreightStatus]]) -> FreightIndex:
        """The index of a project's Freight, made once for what the store gives as the same object."""
        kept = self.indexes.get(project)
        if kept is None or kept[0] is not known:
            kept = (known, index_freight(KnownFreight(freight, status) for freight, status in known))
            self.indexes[project] = kept
        return kept[1]


def _retry_at(preview: Preview) -> datetime | None:
    """When a preview that failed for a passing reason, or that waits, is made again."""
    return preview.made_at + _RETRY_PREVIEW if preview.is_passing else None
