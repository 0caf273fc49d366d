"""One segment of a Promotion's work: a preview that is published, or a pass over the steps after the merge."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from bot.domain.model import Stage
from bot.domain.planning import describe_revert, is_no_op
from bot.domain.promotion import Promotion, PromotionId, State, Stop
from bot.domain.review import Preview, Problem
from bot.domain.review_policy import ReviewPolicy
from bot.domain.splitting import Place
from bot.ports import Clock, Event, Git, GitHub, Look, Store, TerminalError, TransientError
from bot.reports.body import render_body, render_title
from bot.reports.checks import render_refused_check
from bot.workflow.arrival import Arrival
from bot.workflow.branches import Clash, find_base, find_branch, find_superseded
from bot.workflow.configuration import Configuration
from bot.workflow.early import EarlyApplier, event_kind, failed_ahead, remember
from bot.workflow.evaluation import Evaluator
from bot.workflow.follow_ups import OpenFollowUps
from bot.workflow.fulfil import Fulfiller, Task
from bot.workflow.merges import find_changed, find_lost, without_review
from bot.workflow.outcomes import Finished, Mergeable, Stopped, Waiting
from bot.workflow.preview import Previewer
from bot.workflow.publish import Branch, Publisher, Texts
from bot.workflow.reporting import Reporter, blank_snapshot
from bot.workflow.saving import keep_asked
from bot.workflow.snapshots import Gatherer
from bot.workflow.walk import Base

log = logging.getLogger(__name__)

_IN_SEGMENT = 30.0
"""Seconds that a segment stays with a step that is not done; longer waits end it."""
_UNTOLD = 3.0
"""Seconds of such a wait of which nothing is said, since most are over by then."""
_TOLD_EVERY = 10.0
"""Seconds between two reasons that are told, since some count down."""


@dataclass(frozen=True, slots=True)
class Worker:
    """Does the segments. `evaluator` makes the expressions of one Promotion."""

    previewer: Previewer
    fulfiller: Fulfiller
    publisher: Publisher
    reporter: Reporter
    gatherer: Gatherer
    store: Store
    git: Git
    github: GitHub
    clock: Clock
    configuration: Configuration
    evaluator: Callable[[Promotion], Awaitable[Evaluator]]
    arrival: Arrival
    follow_ups: OpenFollowUps

    async def run(self, promotion_id: PromotionId, segment: int) -> None:
        """Do one segment; a segment that is no longer the row's does nothing."""
        promotion = await self.store.get_promotion(promotion_id)
        if promotion is None or promotion.segment != segment or not promotion.running:
            return
        stage = self.configuration.stage(promotion.project, promotion.stage)
        try:
            if not self.configuration.pipeline.revision:
                raise TransientError("no configuration is in force yet")
            if promotion.running == "preview":
                done = await self._preview(promotion, stage)
            else:
                done = await self._fulfil(promotion, stage)
        except TransientError as error:
            pause = error.retry_after if error.retry_after is not None else 10.0
            wake = self.clock.now() + timedelta(seconds=pause)
            done = replace(await self._newest(promotion), reason=str(error), wake_at=wake)
        except TerminalError as error:
            done = self._refused(await self._newest(promotion), str(error))
        await self._save(promotion, replace(done, running=""))

    async def _newest(self, promotion: Promotion) -> Promotion:
        """The row with what this segment has saved so far: a branch that it claimed, effects that it began."""
        newest = await self.store.get_promotion(promotion.id)
        return newest if newest is not None and newest.segment == promotion.segment else promotion

    def _refused(self, promotion: Promotion, message: str) -> Promotion:
        """No retry can help: before the merge the Promotion ends, after it it fails and holds its Stage."""
        if promotion.has_begun_ahead:
            return failed_ahead(promotion, message)
        blocked = promotion.effects_begun or promotion.merge_commit is not None
        return replace(
            promotion, state=State.ERRORED, reason=message, blocked=blocked, finished_at=self.clock.now()
        )

    async def _save(self, before: Promotion, after: Promotion) -> None:
        """Save the row over whatever a command changed meanwhile, and have the Stage looked at."""
        expected = before
        while not await self.store.save_promotion(
            after,
            expected=expected,
            event=self._told(after, event_kind(after), after.reason),
            looks=self._following(after),
        ):
            newest = await self.store.get_promotion(before.id)
            if newest is None or newest.segment != before.segment:
                return
            after = keep_asked(after, newest, expected)
            expected = newest

    def _following(self, after: Promotion) -> list[Look]:
        """What is looked at after a segment: a crash must not lose it, nor what people are told."""
        project = after.project
        # At once even where the work waits: that look shows people what it waits for, and asks for the next one.
        looks = [Look("stage", f"{project}/{after.stage}", "a segment ended")]
        if after.state.ended:
            # What is measured in the Stage waited for this, and so did what it was to undo.
            kinds = ("verification", "drift") if after.corrects else ("verification",)
            looks += [Look(kind, f"{project}/{after.stage}", "a promotion ended") for kind in kinds]
        if after.state is State.SUCCEEDED:
            stages = self.configuration.stages_in_order(project)
            names = (stage.metadata.name for stage in stages if stage.metadata.name != after.stage)
            looks += [Look("stage", f"{project}/{name}", "Freight moved on") for name in names]
        return looks

    # -- preview -------------------------------------------------------------------------------------------------

    async def _preview(self, promotion: Promotion, stage: Stage | None) -> Promotion:
        promotion = self._with_newest_steps(promotion, stage)
        policy = self.configuration.policy(stage) if stage is not None else ReviewPolicy()
        found = await find_branch(self.git, self.gatherer, promotion)
        previous = await self.store.get_preview(promotion.id, promotion.preview)
        if found.people and previous is None:
            # After a rebuild: only a preview tells in which checkout the commits of people belong.
            previous = await self.previewer.preview(promotion, policy, await self.evaluator(promotion))
        base = await find_base(self.git, promotion, previous, found)
        if isinstance(base, Clash):
            return await self._conflicted(promotion, base, found)
        preview = await self.previewer.preview(promotion, policy, await self.evaluator(promotion), base)
        preview = await self.follow_ups.with_obstacle(preview, policy)
        if not await self._is_awaited(promotion):
            return replace(promotion, wake_at=None, reason="its pull request is no longer open")
        number = promotion.preview + 1
        await self.store.save_preview(promotion.id, number, preview)
        promotion = replace(promotion, preview=number, wake_at=None)
        return await self._publish(promotion, policy, preview, replace(found, people=base is not None))

    async def _is_awaited(self, promotion: Promotion) -> bool:
        """Whether a new preview has readers: a pull request merged meanwhile is bound to the preview before it."""
        repository = self.github.repository_of(promotion.target.url) if promotion.target is not None else None
        if promotion.pull is None or repository is None:
            return True
        return (await self.github.get_pull_request(repository, promotion.pull)).open

    async def _publish(
        self, promotion: Promotion, policy: ReviewPolicy, preview: Preview, found: Branch
    ) -> Promotion:
        """Bring the preview before people, or go on where there is nobody to ask."""
        red = _first_problem(preview)
        if red is not None and red.prepared and promotion.pull is None:
            return await self._nothing_to_show(promotion, preview, red)
        superseded = await find_superseded(self.store, promotion)
        unasked = is_no_op(preview) or (policy.review == "None" and not preview.source)
        if promotion.pull is None and red is None and unasked:
            for former in superseded:
                await self.publisher.close(former)
            ready = replace(promotion, state=State.FULFILLING, target=preview.target, digest=preview.digest)
            return replace(ready, reason="nothing to review", base=preview.base)
        if red is not None and red.prepared:
            return await self._on_head(promotion, preview, red.message, found)
        self.publisher.check_place(preview)
        before = promotion
        promotion = await self.publisher.leave_former(promotion, preview, superseded)
        await self._claim(before, promotion)
        marker = await self.reporter.marking.trailer(replace(promotion, digest=preview.digest))
        promotion = await self.publisher.publish_branch(promotion, preview, found, marker)
        view = await self.reporter.view(
            promotion, preview, "", blank_snapshot(promotion, policy, preview, self.clock)
        )
        labels = preview.request.labels if preview.request is not None else ()
        texts = Texts(render_title(view), render_body(view), labels)
        promotion = await self.publisher.open(promotion, preview, texts)
        if before.digest != promotion.digest:
            await self._event(promotion, "preview", f"{preview.lane.value}, digest {preview.digest}")
        reason = red.message if red is not None else preview.lane_reason
        return replace(promotion, state=State.REVIEW, reason=reason)

    async def _claim(self, before: Promotion, promotion: Promotion) -> None:
        """Remember a branch that the task named before it is written: by its name alone it is nobody's promotion."""
        if promotion.source == before.source:
            return
        stored = await self._newest(before)
        claimed = replace(stored, source=promotion.source, target=promotion.target, pull=promotion.pull)
        if not await self.store.save_promotion(claimed, expected=stored):
            raise TransientError("the promotion changed meanwhile", retry_after=1.0)

    async def _nothing_to_show(self, promotion: Promotion, preview: Preview, red: Problem) -> Promotion:
        """The prepared zone fails: half a change is never shown, so the target's tip carries the failed check.

        It stays queued: a change of the configuration or of a touched path has it tried again.
        """
        repository = self.github.repository_of(preview.target.url)
        if not red.transient:
            await self._event(promotion, "failed", red.message)
            if repository is not None:
                page = self.reporter.page_of(promotion)
                await self.reporter.post_check(repository, render_refused_check(promotion, preview, page))
        return replace(promotion, state=State.QUEUED, reason=red.message, target=preview.target)

    async def _conflicted(self, promotion: Promotion, clash: Clash, found: Branch) -> Promotion:
        """The branch cannot be merged: the last preview stays, red, until the branch or its target changes there."""
        previous = await self.store.get_preview(promotion.id, promotion.preview)
        if previous is None:
            gone = f"the preview of {promotion.id} is not to be found; promote the Freight again"
            raise TerminalError(gone)
        why = f"the branch conflicts with {previous.target.branch} in {', '.join(clash.paths[:5])}"
        # From this tip on it is counted what the target changes, or else the same clash would be found for ever.
        touched = previous.touched | frozenset(clash.paths)
        red = replace(previous, held=why, made_at=self.clock.now(), base=clash.tip, touched=touched)
        promotion = replace(promotion, preview=promotion.preview + 1, wake_at=None)
        await self.store.save_preview(promotion.id, promotion.preview, red)
        return await self._on_head(promotion, previous, why, found)

    async def _on_head(self, promotion: Promotion, preview: Preview, reason: str, found: Branch) -> Promotion:
        """Nothing is written to the branch, but the head that was found is what the red preview speaks of."""
        return replace(
            promotion, state=State.REVIEW, reason=reason, head=found.tip, heads=(), digest=preview.digest
        )

    def _with_newest_steps(self, promotion: Promotion, stage: Stage | None) -> Promotion:
        """Before the merge the pipeline's newest steps and vars count."""
        revision = self.configuration.pipeline.revision
        if stage is None or promotion.policy_revision == revision:
            return promotion
        steps = self.gatherer.steps_of(stage)
        return replace(promotion, steps=steps, variables=stage.task_variables, policy_revision=revision)

    # -- fulfil --------------------------------------------------------------------------------------------------

    async def _fulfil(self, promotion: Promotion, stage: Stage | None) -> Promotion:
        policy = self.configuration.policy(stage) if stage is not None else ReviewPolicy()
        preview = await self.store.get_preview(promotion.id, promotion.preview)
        if preview is None:
            raise TerminalError(
                f"the preview of {promotion.id} is not to be found; promote the Freight again"
            )
        early = EarlyApplier(self.git, self.store, self.clock, self.publisher.author)
        if promotion.early is not None:
            stood = await early.stand(promotion, preview)
            if stood.state is not State.FULFILLING:
                return stood
            promotion = await remember(self.store, promotion, stood)
        elif not promotion.effects_begun:
            checked = await self._check_merge(promotion, policy, preview)
            if isinstance(checked, Promotion):
                return checked
            preview = checked
            promotion = await remember(self.store, promotion, replace(promotion, effects_begun=True))
        if promotion.merge_commit is None and policy.review == "None" and promotion.early is None:
            preview = without_review(preview)
        sign = partial(self.reporter.marking.trailer, promotion)
        ahead = early.ahead(promotion, preview)
        task = Task(promotion, policy, preview, promotion.merge_commit, self.publisher.signs_as, sign, ahead)
        outcome = await self._walk(task)
        if promotion.is_ahead or isinstance(outcome, Mergeable):
            return await early.conclude(promotion, preview, outcome)
        return await self._concluded(promotion, stage, preview, outcome)

    async def _walk(self, task: Task) -> Finished | Waiting | Stopped | Mergeable:
        """Walk, and stay with a step that will be done soon; people are told what takes longer than a moment."""
        left, told, silent = _IN_SEGMENT, "", _IN_SEGMENT - _UNTOLD
        while True:
            outcome = await self.fulfiller.fulfil(task, await self.evaluator(task.promotion))
            if not isinstance(outcome, Waiting) or outcome.retry_after > left:
                return outcome
            if outcome.reason != told and left <= silent:
                told, silent = outcome.reason, left - _TOLD_EVERY
                await self._tell_wait(task.promotion.id, told)
            left -= max(outcome.retry_after, 0.2)
            await asyncio.sleep(max(outcome.retry_after, 0.2))

    async def _tell_wait(self, promotion_id: PromotionId, reason: str) -> None:
        """Say on the row what the walk waits for; where the row changes at that moment, the segment's end says it."""
        newest = await self.store.get_promotion(promotion_id)
        if newest is None or newest.reason == reason:
            return
        look = Look("stage", f"{newest.project}/{newest.stage}", "a step waits")
        await self.store.save_promotion(
            replace(newest, reason=reason),
            expected=newest,
            event=self._told(newest, "waits", reason),
            looks=[look],
        )

    async def _check_merge(
        self, promotion: Promotion, policy: ReviewPolicy, preview: Preview
    ) -> Preview | Promotion:
        """Before any effect: is what was merged what was approved? The answer is a Promotion that stops if not."""
        merge = promotion.merge_commit
        if merge is None:
            return preview
        url = preview.target.url
        await self.git.fetch(url)
        ended = await self._reverted(promotion, preview)
        if ended is not None:
            return ended
        changed = await find_changed(self.git, preview, merge, preview.tree)
        pull = await self.gatherer.find_pull(promotion)
        # Of a head that was pushed after the preview nobody has approved anything, whichever paths it touches.
        known = pull is not None and pull.head in promotion.heads
        if known and not changed:
            return preview
        commit = await self.git.read_commit(url, merge)
        place = Place(preview.target, preview.checkout, preview.source)
        base = Base(place, commit.parents[0], merge, reviewed=known, ours=True)
        again = await self.previewer.preview(promotion, policy, await self.evaluator(promotion), base)
        if again.digest == preview.digest:
            return again
        number = promotion.preview + 1
        await self.store.save_preview(promotion.id, number, again)
        if again.digest in promotion.accepted:
            return again
        names = ", ".join(changed[:3]) or "commits that were pushed after the preview"
        stop = Stop(f"the merge differs from what was approved in {names}", again.digest, tuple(changed))
        return replace(promotion, preview=number, state=State.STOPPED, stop=stop, reason=stop.reason)

    async def _reverted(self, promotion: Promotion, preview: Preview) -> Promotion | None:
        """The end of a Promotion whose merge was undone before anything was done, None if the merge stands."""
        lost = await find_lost(self.git, preview)
        if not lost:
            return None
        await self._clean(promotion)
        ended = replace(promotion, state=State.ABORTED, finished_at=self.clock.now())
        return replace(ended, reason=describe_revert(promotion, lost))

    async def _concluded(
        self,
        promotion: Promotion,
        stage: Stage | None,
        preview: Preview,
        outcome: Finished | Waiting | Stopped,
    ) -> Promotion:
        now = self.clock.now()
        match outcome:
            case Waiting(reason=reason, retry_after=pause):
                return replace(promotion, reason=reason, wake_at=now + timedelta(seconds=pause))
            case Stopped(stop=stop):
                await self.follow_ups.turn_red(promotion, stop.reason)
                return replace(promotion, state=State.STOPPED, stop=stop, reason=stop.reason)
            case Finished(state=State.SUCCEEDED):
                await self.arrival.note(promotion, stage)
                await self._clean(promotion)
                done = replace(promotion, state=State.SUCCEEDED, blocked=False, finished_at=now)
                return replace(
                    done,
                    reason=f"{preview.lane.value}: every step is done",
                    release_commit=outcome.release_commit,
                )
            case Finished(state=State.ABORTED, reason=reason):
                await self.follow_ups.close(promotion)
                return replace(promotion, state=State.ABORTED, reason=reason, blocked=True, finished_at=now)
            case Finished(state=state, reason=reason):
                await self.follow_ups.turn_red(promotion, reason)
                return replace(promotion, state=state, reason=reason, blocked=True, finished_at=now)

    async def _clean(self, promotion: Promotion) -> None:
        await self.store.drop_bundles(promotion.id)
        await self.publisher.delete_branch(promotion)

    def _told(self, promotion: Promotion, kind: str, message: str) -> Event:
        return Event(self.clock.now(), promotion.project, promotion.stage, promotion.id, kind, message)

    async def _event(self, promotion: Promotion, kind: str, message: str) -> None:
        await self.store.add_event(self._told(promotion, kind, message))


def _first_problem(preview: Preview) -> Problem | None:
    return preview.problems[0] if preview.problems else None
