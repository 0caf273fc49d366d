"""Carrying out looks: each is a unit of durable work, alone among those of its key, and safe to do again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.domain.analysis import next_time
from bot.domain.files import CommitId
from bot.domain.github import PullNumber, PullRequest, Repository
from bot.domain.problems import Severity
from bot.domain.promotion import PromotionId
from bot.ports import Clock, DueLook, Event, GitHub, Look, Store, TerminalError, TransientError
from bot.workflow import engine
from bot.workflow.bystanders import Bystanders
from bot.workflow.commands import Commands
from bot.workflow.configuration import Configuration
from bot.workflow.differing import Differences
from bot.workflow.discovery import Discoverer
from bot.workflow.drift import DriftWatch
from bot.workflow.event_routing import EventRouting
from bot.workflow.intake import Intake
from bot.workflow.intervals import is_overdue, next_look
from bot.workflow.lost_comments import LostComments
from bot.workflow.merge_groups import judge_group
from bot.workflow.outbox import Outbox
from bot.workflow.people_sweep import find_people_looks
from bot.workflow.peoples_pulls import PeoplesPulls
from bot.workflow.reporting import Reporter
from bot.workflow.repromotion import Repromoter
from bot.workflow.retention import Retention
from bot.workflow.segments import Worker
from bot.workflow.stages import StageLooker
from bot.workflow.verification import Verifier

log = logging.getLogger(__name__)

_TERMINAL_PAUSE = timedelta(minutes=1)
_TRANSIENT_PAUSE = 10.0
_FAILED_PAUSE = 1.0
_MOST_PROBLEMS = 20
"""Problems of a configuration that the timeline shows; `lockstep validate` and the check show all."""


@dataclass(slots=True)
class Looks:
    """Does looks of every kind. `pause` is how long the loop rests when there is nothing to do, in seconds."""

    store: Store
    github: GitHub
    clock: Clock
    configuration: Configuration
    stages: StageLooker
    discoverer: Discoverer
    commands: Commands
    worker: Worker
    reporter: Reporter
    intake: Intake
    outbox: Outbox
    bystanders: Bystanders
    people: PeoplesPulls
    repromoter: Repromoter
    differences: Differences
    verifier: Verifier
    retention: Retention
    drift: DriftWatch
    routing: EventRouting
    pause: float = 0.1
    nudged: asyncio.Event = field(default_factory=asyncio.Event)
    submitted: dict[tuple[str, str], int] = field(default_factory=dict)
    told: str = ""
    """The newest revision of the configuration whose problems were told."""
    swept_at: datetime | None = None
    """When this process last looked at everything."""

    # -- the loops -------------------------------------------------------------------------------------------------

    async def dispatch_for_ever(self, running: engine.Engine) -> None:
        """Drain deliveries and queue due looks, again and again."""
        while True:
            await self._guarded("dispatch", self._dispatch_once(running))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.nudged.wait(), timeout=self.pause)
            self.nudged.clear()

    async def _dispatch_once(self, running: engine.Engine) -> None:
        await self.configuration.follow()
        await self.intake.drain()
        await self.dispatch(running)

    async def _guarded(self, name: str, work: Awaitable[None]) -> None:
        """Do one round of a loop: what goes wrong in it is told, and the loop goes on with a pause."""
        try:
            await work
        except TransientError as error:
            log.warning("a round was cut short", extra={"loop": name, "error": str(error)})
            await asyncio.sleep(_FAILED_PAUSE)
        except Exception:
            log.exception("a round failed", extra={"loop": name})
            await asyncio.sleep(_FAILED_PAUSE)

    async def dispatch(self, running: engine.Engine) -> int:
        """Queue every look that is due and not queued yet. Other replicas do the same, under the same ids."""
        queued = 0
        wanted = await self.store.list_due_looks(self.clock.now())
        # What is no longer due has been done, here or elsewhere; when it is due again, it has another number.
        still = {(due.kind, due.key) for due in wanted}
        self.submitted = {key: number for key, number in self.submitted.items() if key in still}
        for due in wanted:
            if self.submitted.get((due.kind, due.key), -1) >= due.number:
                continue
            argument = json.dumps([due.kind, due.key, due.number])
            name = f"{due.kind}/{due.key}"
            await running.submit(
                engine.LOOKS, "look", argument, work_id=f"look/{name}/{due.number}", key=name
            )
            self.submitted[(due.kind, due.key)] = due.number
            queued += 1
        return queued

    async def send_for_ever(self, running: engine.Engine) -> None:
        """Send what the outbox holds, again and again, while this is the replica that does so."""
        while True:
            await self._guarded("outbox", self._send_once(running))

    async def tell_for_ever(self, running: engine.Engine) -> None:
        """Send what EventRouters tell, again and again, while this is the replica that does so."""
        while True:
            await self._guarded("messages", self._tell_once(running))

    async def _tell_once(self, running: engine.Engine) -> None:
        if not running.leads or not await self.routing.send_due():
            await asyncio.sleep(self.pause * 10)

    async def _send_once(self, running: engine.Engine) -> None:
        # Two senders that look for the same comment at once would both post it.
        if not running.leads or not await self.outbox.send_due():
            await asyncio.sleep(self.pause)

    async def sweep_for_ever(self, interval: float, running: engine.Engine) -> None:
        """Look at everything from time to time, so that a lost event is harmless; `interval` is in seconds.

        Of several replicas one does it, and the one that becomes the one begins at once.
        """
        await self.store.request_looks([Look("config", "", "the program started")])
        while True:
            while not running.leads:
                await asyncio.sleep(self.pause)
            await self._guarded("sweep", self.sweep())
            await self._guarded("retention", self.retention.tidy(lambda: running.leads, running.forget))
            await asyncio.sleep(interval)
            await self._guarded("comments", self._find_lost_comments(interval))

    async def sweep(self) -> None:
        """Ask for a look at the configuration and every Stage, and have failed deliveries sent again.

        A Warehouse is looked at when its own interval is over, since each look costs its registries requests; the
        sweep asks only for those whose timer is lost.
        """
        await self.store.request_looks([Look("config", "", "a sweep")])
        pipeline = self.configuration.pipeline
        looks = [Look("stage", f"{project}/{name}", "a sweep") for project, name in pipeline.stages]
        await self.store.request_looks(looks + await self._overdue_warehouses())
        await self._look_at_verifications()
        await self.store.request_looks(await find_people_looks(self.people, self.differences))
        await self.drift.remind()
        since = self.clock.now() - timedelta(days=3)
        for delivery, guid in await self.github.list_failed_deliveries(since):
            if await self.store.get_delivery(guid) is None:
                await self.github.redeliver(delivery)
        self.swept_at = self.clock.now()

    async def _overdue_warehouses(self) -> list[Look]:
        now, warehouses = self.clock.now(), self.configuration.pipeline.warehouses
        seen = {
            (project, name): at
            for project in {project for project, _ in warehouses}
            for name, (_, at) in (await self.store.list_discoveries(project)).items()
        }
        return [
            Look("warehouse", f"{project}/{name}", "a sweep")
            for (project, name), warehouse in warehouses.items()
            if is_overdue(now, warehouse.interval, seen.get((project, name)))
        ]

    async def _find_lost_comments(self, age: float) -> None:
        """Have commands run whose delivery never came within `age` seconds."""
        lost = LostComments(self.store, self.github, self.clock, self.configuration, self.commands.obey)
        await lost.find(age)

    # -- work ------------------------------------------------------------------------------------------------------

    async def do_segment(self, argument: str) -> None:
        """One segment of a Promotion."""
        await self.configuration.follow()
        promotion, _, segment = argument.rpartition(" ")
        await self.worker.run(PromotionId(promotion), int(segment))

    async def do_look(self, argument: str) -> None:
        """One look. What the world answers wrongly is tried again later, by a new look."""
        kind, key, number = json.loads(argument)
        due = DueLook(kind, key, number)
        again: timedelta | None = None
        await self.configuration.follow()
        try:
            await self._look(kind, key)
        except TransientError as error:
            log.warning("a look must be repeated", extra={"kind": kind, "key": key, "error": str(error)})
            pause = error.retry_after if error.retry_after is not None else _TRANSIENT_PAUSE
            again = timedelta(seconds=pause)
        except TerminalError as error:
            log.error("a look failed", extra={"kind": kind, "key": key, "error": str(error)})
            await self._tell(kind, key, str(error))
            again = _TERMINAL_PAUSE if kind in ("stage", "warehouse") else None
        await self.store.finish_look(due)
        if again is not None:
            await self.store.request_looks([Look(kind, key, "tried again")], at=self.clock.now() + again)

    async def _look(self, kind: str, key: str) -> None:
        if kind != "config" and not self.configuration.pipeline.revision:
            # Just started: without the pipeline every Stage would seem not to exist.
            await self.refresh()
        match kind:
            case "stage":
                await self._look_at_stage(key)
            case "verification":
                project, _, name = key.partition("/")
                await self.verifier.look(project, name)
            case "drift":
                project, _, name = key.partition("/")
                await self.drift.look(project, name)
            case "warehouse":
                await self._look_at_warehouse(key)
            case "config":
                await self.refresh()
            case "command":
                delivery = await self.store.get_delivery(key)
                if delivery is not None:
                    await self.commands.run(delivery)
            case "pull":
                name, _, number = key.rpartition("#")
                await self._look_at_pull(Repository.parse(name), PullNumber(int(number)))
            case "head":
                name, _, head = key.rpartition("@")
                await self._look_at_head(Repository.parse(name), CommitId(head))
            case "follow-ups":
                await self.stages.follow_ups.close_left(PromotionId(key))
            case "branch":
                name, _, branch = key.partition("@")
                await self._look_at_branch(Repository.parse(name), branch)
            case "group":
                place, _, head = key.rpartition("@")
                name, _, number = place.rpartition("#")
                await self._look_at_group(Repository.parse(name), PullNumber(int(number)), CommitId(head))
            case _:
                raise TerminalError(f"there is nothing called {kind!r} to look at")

    async def refresh(self) -> None:
        """Read the configuration; if it changed, look at everything and tell what is wrong with it."""
        if await self.configuration.refresh():
            await self.look_at_everything("the configuration changed")
        if self.configuration.newest != self.told:
            self.told = self.configuration.newest
            await self._tell_problems()

    async def _tell_problems(self) -> None:
        errors = [p for p in self.configuration.problems if p.severity is Severity.ERROR]
        for problem in errors[:_MOST_PROBLEMS]:
            said = f"{problem.path}:{problem.line}: {problem.key}: {problem.message}"
            log.error("the configuration has a problem: %s", said)
            await self.store.add_event(
                Event(self.clock.now(), problem.project, problem.stage, "", "config", said)
            )

    async def look_at_everything(self, reason: str) -> None:
        """Ask for a look at every Warehouse and Stage."""
        pipeline = self.configuration.pipeline
        looks = [Look("warehouse", f"{project}/{name}", reason) for project, name in pipeline.warehouses]
        looks += [Look("stage", f"{project}/{name}", reason) for project, name in pipeline.stages]
        await self.store.request_looks(looks)
        await self.drift.remind(schedules_changed=True)

    async def _look_at_verifications(self) -> None:
        """Ask for a look at every verification that is due: one whose look was lost goes on."""
        now = self.clock.now()
        for run in await self.store.list_open_runs():
            if (next_time(run) or now) <= now:
                look = Look("verification", f"{run.project}/{run.stage}", "a sweep")
                await self.store.request_looks([look])

    async def _look_at_stage(self, key: str) -> None:
        project, _, name = key.partition("/")
        stage = self.configuration.stage(project, name)
        if stage is not None:
            await self.routing.queue(stage)
            # Before newer Freight has its turn, what a merge of people's changed is applied.
            await self.repromoter.begin(stage)
            await self.stages.look(stage)

    async def _look_at_warehouse(self, key: str) -> None:
        project, _, name = key.partition("/")
        warehouse = self.configuration.pipeline.warehouses.get((project, name))
        if warehouse is None:
            return
        again = next_look(self.clock.now(), warehouse.interval, random.random())
        await self.store.request_looks([Look("warehouse", key, "its interval")], at=again)
        discovered = await self.discoverer.look(warehouse)
        if discovered.freight is not None:
            await self.store.request_looks(self.stages.downstream(project))

    async def _look_at_pull(self, repository: Repository, number: PullNumber) -> None:
        """Somebody else's pull request: the required check must conclude there too."""
        pull = await self.github.get_pull_request(repository, number)
        if await self.stages.follow_ups.wake(pull) or await self._is_promotions(pull):
            return
        if pull.open:
            await self._judge(pull)
        else:
            await self.repromoter.settle(pull)

    async def _look_at_head(self, repository: Repository, head: CommitId) -> None:
        for pull in await self.github.find_pull_requests_of(repository, head):
            url = self.github.clone_url(repository)
            promotion = await self.store.find_promotion_by_pull(url, pull.number)
            if promotion is not None and not promotion.state.ended:
                look = Look("stage", f"{promotion.project}/{promotion.stage}", "its check was asked for")
                await self.store.request_looks([look])
            elif await self.stages.follow_ups.wake(pull):
                continue
            elif pull.open and pull.head == head and not await self._is_promotions(pull):
                await self._judge(pull)

    async def _look_at_group(self, repository: Repository, number: PullNumber, head: CommitId) -> None:
        """A merge queue asks about the commit that a pull request would become."""
        promotion = await self.store.find_promotion_by_pull(self.github.clone_url(repository), number)
        unfinished = promotion is not None and not promotion.state.ended
        stage = self.configuration.stage(promotion.project, promotion.stage) if promotion else None
        if stage is None or not unfinished:
            pull = await self.github.get_pull_request(repository, number)
            follow_ups = self.stages.follow_ups
            ours = await follow_ups.find_promotion(pull) is not None
            judged = follow_ups.judge_group if ours else self.people.judge
            await self.reporter.post_check(repository, await judged(pull, head))
            return
        seen = await self.stages.gatherer.gather(stage)
        await self.reporter.post_check(repository, await judge_group(self.stages.gatherer.git, seen, head))

    async def _is_promotions(self, pull: PullRequest) -> bool:
        """Whether it is or was a promotion's, which may not know the number of its pull request yet."""
        url = self.github.clone_url(pull.repository)
        named = pull.head_branch.startswith("lockstep/") and not pull.from_fork
        promotion = await self.store.find_promotion_by_pull(url, pull.number)
        if named or (promotion is not None and promotion.follows is None):
            return True
        unfinished = await self.store.list_unfinished_promotions() if not pull.from_fork else ()
        return any(
            promotion.source == pull.head_branch
            and promotion.follows is None
            and promotion.target is not None
            and self.github.repository_of(promotion.target.url) == pull.repository
            for promotion in unfinished
        )

    async def _judge(self, pull: PullRequest) -> None:
        """Post the check of a person's pull request, unless its head is that of a promotion, which has its own."""
        look = await self.bystanders.find_promotion_at(pull)
        if look is not None:
            await self.store.request_looks([look])
            return
        await self.people.look(pull)

    async def _look_at_branch(self, repository: Repository, branch: str) -> None:
        """What moved on a branch may undo what a Stage's steps wrote, and is the base of people's pull requests."""
        await self.differences.look(repository, branch)
        url = self.github.clone_url(repository)
        pulls = [
            Look("pull", f"{repository}#{row.pull}", f"{branch} was pushed")
            for row in await self.store.list_peoples_pulls()
            if (row.url, row.branch) == (url, branch)
        ]
        await self.store.request_looks(pulls)

    async def _tell(self, kind: str, key: str, message: str) -> None:
        """Put a failed look into the timeline, where people look for reasons."""
        project, _, name = key.partition("/")
        stage = name if kind == "stage" else ""
        await self.store.add_event(Event(self.clock.now(), project, stage, "", "error", message))
