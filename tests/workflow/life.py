"""The bot's own workflow over a world in memory: time passes at once, and every touch of the world may kill it."""

from __future__ import annotations

import asyncio
import json
import selectors
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

from sqlalchemy import event

from bot.adapters.store.database import Database, open_database
from bot.adapters.store.store import DatabaseStore
from bot.app import join, load
from bot.domain.argocd import Application
from bot.domain.events import AppIdentity, Commented
from bot.domain.github import CommentId, Permission, PullNumber, User
from bot.domain.model import Stage
from bot.domain.promotion import Promotion
from bot.domain.review import Preview
from bot.domain.terraform import Applied, ApplyOutcome, Failed, Planned, PlanOutcome
from bot.ports import (
    GitHub,
    HttpRequest,
    HttpResponse,
    Ports,
    Signature,
    SyncRefused,
    SyncStarted,
    TerminalError,
    TerraformRun,
    TransientError,
)
from bot.settings import Settings
from bot.workflow.branches import find_base, find_branch
from bot.workflow.configuration import Configuration
from bot.workflow.looks import Looks
from tests.steps.fakes import FakeArgoCD, FakeDns, FakeHttp, FakeTerraform, FakeVault
from tests.workflow.life_claims import Claims
from tests.workflow.life_pipeline import BASE, URL, texts
from tests.workflow.life_ports import FixedSource, NoRules, NoSecrets, OneProject
from tests.workflow.memory_git import MemoryGit
from tests.workflow.memory_github import OPS, MemoryGitHub

START = datetime(2126, 3, 4, 5, 6, 7, tzinfo=UTC)
"""Later than the machine's clock, by which the store dates what is due at once."""
APPLICATION = "otel-app-dev"
_MOST_ROUNDS = 60


class Killed(BaseException):
    """The process died here."""


class _Quick(selectors.SelectSelector):
    """Waits for nothing but other tasks: a pause of the loop is over at once, and the time has passed."""

    loop: QuickLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everything waits for something that never comes"
        self.loop.passed += timeout
        return super().select(0)


class QuickLoop(asyncio.SelectorEventLoop):
    """An event loop on which a sleep takes no time."""

    def __init__(self) -> None:
        self.passed = 0.0
        selector = _Quick()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.passed


@dataclass(slots=True)
class OneThread(Database):
    """A database whose units of work are done where they are asked for; `tick` is told before and after each."""

    tick: Callable[[str], None]

    async def run(self, work: Callable[[Any], Any]) -> Any:
        self.tick("begin a transaction")
        found = self._transact(work)
        self.tick("committed a transaction")
        return found


class StrictTerraform(FakeTerraform):
    """Tells what is planned and applied, and may be killed in the middle of an apply."""

    def __init__(self, tick: Callable[[str], None], claims: Claims) -> None:
        super().__init__()
        self.tick = tick
        self.claims = claims

    async def plan(self, run: TerraformRun) -> PlanOutcome:
        self.tick("terraform plan")
        self.claims.planning(run)
        outcome = await super().plan(run)
        if not isinstance(outcome, Planned):
            return outcome
        saved = {**json.loads(outcome.bundle), "number": self.claims.planned(outcome.plan, run)}
        return Planned(outcome.plan, outcome.text, json.dumps(saved).encode())

    async def apply(self, run: TerraformRun, bundle: bytes) -> ApplyOutcome:
        self.tick("terraform apply")
        try:
            outcome = await super().apply(run, bundle)
        except KeyboardInterrupt:
            self.interrupt = False
            self.claims.applied(run, json.loads(bundle)["number"], succeeded=False)
            raise Killed("in the middle of an apply") from None
        if isinstance(outcome, Applied | Failed):
            self.claims.applied(run, json.loads(bundle)["number"], succeeded=isinstance(outcome, Applied))
        self.tick("terraform applied")
        return outcome


class ClockedArgoCD(FakeArgoCD):
    """Its controllers work while time passes; it follows the branch."""

    def __init__(self, world: World) -> None:
        super().__init__(world.now())
        self.world = world

    async def get_application(
        self, server: str, name: str, *, namespace: str = "", project: str = "", refresh: str = ""
    ) -> Application | None:
        self.world.tick("read the Application")
        self.head = self.world.git.tip()
        if self.world.now() > self.now:
            self.advance((self.world.now() - self.now).total_seconds())
        return await super().get_application(server, name, refresh=refresh)

    async def sync(
        self, server: str, application: Application, *, revision: str, infos: Mapping[str, str]
    ) -> SyncStarted | SyncRefused:
        self.world.tick("sync")
        self.world.claims.syncing(revision)
        started = await super().sync(server, application, revision=revision, infos=infos)
        self.world.tick("synced")
        return started


class CountingHttp(FakeHttp):
    """Tells of every request that is sent."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.world.tick("send a request")
        self.world.claims.posting(request)
        answer = await super().send(request)
        self.world.tick("sent a request")
        return answer


@dataclass
class World:
    """What is outside of the bot and outlives it. `armed` is what happens after so many further touches of it."""

    loop: QuickLoop
    directory: Path
    acts: bool
    files: Mapping[str, str] = field(default_factory=dict)
    """Files of the configuration in place of the usual ones."""
    armed: tuple[int, Callable[[], None]] | None = None
    people: dict[str, User] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.git = MemoryGit(URL, self.tick)
        self.github = MemoryGitHub(self.git, self.now, self.tick, lambda pull: self.claims.opened(pull))
        self.claims = Claims(self.git, self.github, acts=self.acts)
        self.git.watch = self.claims.pushing
        self.terraform = StrictTerraform(self.tick, self.claims)
        self.claims.states = self.terraform.states
        self.argocd = ClockedArgoCD(self)
        self.argocd.add(APPLICATION, URL, {"kargo.akuity.io/authorized-stage": "acme:dev"})
        self.http = CountingHttp(self)
        self.http.answer("POST", "https://hooks.example/migrate", 200, "{}")
        self.git.push_files("main", BASE, "first", self.signature("ada"))
        for number, (login, role) in enumerate(
            (
                ("ada", Permission.WRITE),
                ("bob", Permission.WRITE),
                ("cyn", Permission.ADMIN),
                ("uma", Permission.READ),
            )
        ):
            self.people[login] = User(login, number + 1)
            self.github.permissions[login] = role

    def now(self) -> datetime:
        """Never the same time twice."""
        self.loop.passed += 0.001
        return START + timedelta(seconds=self.loop.passed)

    def signature(self, who: str) -> Signature:
        return Signature(who, f"{who}@example.com", self.now())

    def tick(self, what: str) -> None:
        """Something touches the world: what is armed may happen now."""
        if self.armed is None:
            return
        left, happens = self.armed
        self.armed = (left - 1, happens) if left else None
        if not left:
            happens()


@dataclass
class Bot:
    """One process of the bot, over a database that outlives it."""

    world: World

    async def start(self) -> None:
        """Open the database and join the workflow's parts."""
        database = open_database(f"sqlite:///{self.world.directory / 'lockstep.db'}")
        database.engine.dispose()
        # What a crash of the machine would lose is not what these tests are about.
        event.listen(database.engine, "connect", _do_not_sync)
        self.store = DatabaseStore(OneThread(database.engine, database.threads, self.world.tick), FakeVault())
        self.configuration = Configuration(
            FixedSource({**texts(acts=self.world.acts), **self.world.files}), self.store, partial(load)
        )
        ports = self._ports()
        settings = Settings.from_env(
            {
                "LOCKSTEP_DATA": str(self.world.directory),
                "LOCKSTEP_CONFIG": str(self.world.directory),
                "LOCKSTEP_APP_ID": "1",
                "LOCKSTEP_PRIVATE_KEY": "none",
                "LOCKSTEP_WEBHOOK_SECRET": "none",
            }
        )
        self.looks: Looks = join(settings, ports, self.store, self.configuration, AppIdentity(1, 99))
        await self.configuration.start()
        errors = [str(p) for p in self.configuration.problems if p.severity == "error"]
        assert not errors, errors

    def _ports(self) -> Ports:
        world = self.world
        never = cast(Any, None)
        return Ports(
            clock=world,
            git=world.git,
            project_git=OneProject(world.git),
            terraform=world.terraform,
            github=cast(GitHub, world.github),
            branch_rules=NoRules(),
            argocd=world.argocd,
            registry=never,
            charts=never,
            watched=never,
            secrets=NoSecrets(),
            vault=FakeVault(),
            http=world.http,
            dns=FakeDns(),
            store=self.store,
            renderer=never,
            artifacts=never,
            issues=never,
            workflows=never,
            messages=never,
            signed_push=never,
            commands=never,
        )

    @property
    def stage(self) -> Stage:
        """The one Stage."""
        stage = self.configuration.stage("acme", "dev")
        assert stage is not None
        return stage

    async def promotion(self) -> Promotion | None:
        """The newest Promotion."""
        found = await self.store.list_promotions("acme", "dev", limit=1)
        return found[0] if found else None

    async def look(self) -> bool:
        """One look at the Stage, and what GitHub is to show; whether anything changed."""
        before = await self.promotion()
        await self.claims.remember(self.store, before)
        earlier = self.claims.approved(before)
        try:
            await self.looks.stages.look(self.stage)
        except TransientError as error:
            await asyncio.sleep(error.retry_after if error.retry_after is not None else 10.0)
        except TerminalError as error:
            self.claims.errors.append(str(error))
            await asyncio.sleep(60.0)
        after = await self.promotion()
        await self.claims.remember(self.store, after)
        self.claims.beginning(after, earlier)
        sent = await self.looks.outbox.send_due()
        return sent > 0 or (before is None) != (after is None) or before != after

    async def segment(self) -> bool:
        """One segment, if one is in flight."""
        promotion = await self.promotion()
        if promotion is None or not promotion.running:
            return False
        self.claims.acting = promotion
        try:
            await self.looks.worker.run(promotion.id, promotion.segment)
        finally:
            self.claims.acting = None
        await self.claims.ended(self.store, await self.promotion())
        return True

    async def settle(self) -> None:
        """Look and work until only waiting is left."""
        for _ in range(_MOST_ROUNDS):
            looked, worked = await self.look(), await self.segment()
            if not looked and not worked:
                return
        promotion = await self.promotion()
        self.claims.broken.append(
            f"it never comes to rest: {promotion and (promotion.state, promotion.reason)}"
        )

    async def preview_again(self, promotion: Promotion) -> Preview | None:
        """What another replica would preview now; None if the branch conflicts."""
        worker = self.looks.worker
        found = await find_branch(self.world.git, worker.gatherer, promotion)
        previous = await self.store.get_preview(promotion.id, promotion.preview)
        base = await find_base(self.world.git, promotion, previous, found)
        if base is not None and not hasattr(base, "place"):
            return None
        evaluator = await worker.evaluator(promotion)
        policy = self.configuration.policy(self.stage)
        return await worker.previewer.preview(promotion, policy, evaluator, cast(Any, base))

    async def say(self, number: int, who: str, text: str, comment: int) -> None:
        """A person's comment on a pull request."""
        said = Commented(
            OPS, PullNumber(number), CommentId(comment), self.world.people[who], text, self.world.now()
        )
        await self.looks.commands.obey(said)

    @property
    def claims(self) -> Claims:
        return self.world.claims

    def die(self) -> None:
        """The process is gone; the database stays as it is."""
        self.claims.acting = None
        self.store.close()


def _do_not_sync(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA synchronous=OFF")
