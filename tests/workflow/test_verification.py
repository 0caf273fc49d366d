"""Verifications on a real database and a real web server; the clock alone is turned by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from bot.adapters.config import DirectorySource
from bot.adapters.http import HttpClient
from bot.adapters.secrets import SecretStore
from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.app import load
from bot.domain.analysis import AnalysisRun, Phase, describe_run
from bot.domain.freight import Freight, FreightName, FreightOrigin, Image
from bot.domain.model import Stage
from bot.domain.promotion import Promotion, PromotionId, State
from bot.ports import Commands, Http, HttpRequest, HttpResponse
from bot.workflow.arrival import Arrival
from bot.workflow.buttons import Refusal
from bot.workflow.configuration import Configuration
from bot.workflow.measuring import Meter
from bot.workflow.reverification import Reverification
from bot.workflow.scopes import Evaluators
from bot.workflow.verification import Verifier
from tests.pipeline.test_analysis import BASE, DEV
from tests.probe import Probe, open_probe
from tests.web.site import Hands

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
VERIFIED = """\
  verification:
    analysisTemplates: [{name: healthy}]
    analysisRunMetadata: {labels: {team: web}}
    args:
      - {name: tag, value: "${{ imageFrom('reg.example/app').Tag }}"}
"""
TEMPLATE = """\
apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: healthy, namespace: shop}
spec:
  args:
    - name: tag
    - name: token
      valueFrom: {secretKeyRef: {name: probe, key: token}}
  metrics:
    - name: ok
      interval: 60s
      count: 2
      successCondition: result.ok
      provider:
        web:
          url: PROBE/{{ args.tag }}
          headers: [{key: Authorization, value: "Bearer {{ args.token }}"}]
"""
SECRETS = {"LOCKSTEP_SECRET_SHOP_PROBE_TOKEN": "hush-hush-4711"}
APP = Freight(
    FreightName("a" * 40),
    "shop",
    "",
    FreightOrigin("apps"),
    NOW,
    images=(Image("reg.example/app", "1.2.0", "sha256:0"),),
)
NEWER = replace(APP, name=FreightName("b" * 40), discovered_at=NOW + timedelta(hours=1))


def promotion(number: int = 1, freight: Freight = APP, state: State = State.SUCCEEDED) -> Promotion:
    ulid = f"01hzzzzzzzzzzzzzzzzzzzzz{number:02}"
    return Promotion(
        id=PromotionId(f"dev.{ulid}.{freight.name[:7]}"),
        project="shop",
        stage="dev",
        freight=freight,
        collection=(freight,),
        steps=(),
        variables=(),
        actor="lockstep",
        actor_id=0,
        created_at=NOW + timedelta(seconds=number),
        state=state,
        effects_begun=True,
    )


@dataclass
class Bed:
    """A verifier with everything that it needs, which can be left and opened again as after a crash."""

    directory: Path
    probe: Probe
    http: Http
    clock: Hands
    store: DatabaseStore
    verifier: Verifier
    arrival: Arrival

    @property
    def stage(self) -> Stage:
        found = self.verifier.configuration.stage("shop", "dev")
        assert found is not None
        return found

    async def arrive(self, number: int = 1, freight: Freight = APP) -> AnalysisRun:
        await self.store.add_freight(freight)
        arrived = promotion(number, freight)
        await self.store.create_promotion(arrived)
        await self.arrival.note(arrived, self.stage)
        return await self.newest()

    async def look(self, *, after: float = 0) -> AnalysisRun:
        self.clock.turn(seconds=after)
        await self.verifier.look("shop", "dev")
        return await self.newest()

    async def newest(self) -> AnalysisRun:
        return (await self.store.list_runs("shop", "dev"))[0]

    async def due(self, kind: str, *, after: float = 0) -> list[str]:
        found = await self.store.list_due_looks(self.clock.now() + timedelta(seconds=after))
        return [look.key for look in found if look.kind == kind]

    async def verified_at(self, freight: Freight = APP) -> datetime | None:
        known = await self.store.get_freight("shop", freight.name)
        assert known is not None
        verified = known[1].verified_in.get("dev")
        return verified.verified_at if verified is not None else None

    async def told(self) -> list[str]:
        return [e.message for e in reversed(await self.store.list_events(project="shop"))]


Open = Callable[[], Awaitable[Bed]]


@pytest.fixture
async def open_bed(tmp_path: Path) -> AsyncIterator[Open]:
    """Opens the bed; opened again it is another process on the same database."""
    async with AsyncExitStack() as stack:
        probe = await stack.enter_async_context(open_probe())
        http = await stack.enter_async_context(HttpClient())
        clock, opened = Hands(NOW), list[DatabaseStore]()
        files = {"base": BASE, "stage": DEV + VERIFIED, "template": TEMPLATE.replace("PROBE", probe.url)}
        (tmp_path / "config").mkdir()
        for name, text in files.items():
            (tmp_path / "config" / f"{name}.yaml").write_text(text)

        async def open_again() -> Bed:
            while opened:
                opened.pop().close()
            store = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", KeyFileVault(tmp_path / "vault.key"))
            opened.append(store)
            configuration = Configuration(DirectorySource(tmp_path / "config"), store, load)
            await configuration.start()
            assert not configuration.problems
            secrets = SecretStore(lambda: configuration.pipeline, environment=SECRETS)
            evaluators = Evaluators(configuration, store, secrets, "")
            verifier = Verifier(
                store, Meter(http, clock, cast(Commands, None)), secrets, clock, configuration, evaluators
            )
            return Bed(tmp_path, probe, http, clock, store, verifier, Arrival(store, clock, verifier))

        yield open_again
        for store in opened:
            store.close()


async def test_freight_is_verified_after_its_last_measurement(open_bed: Open) -> None:
    bed = await open_bed()
    run = await bed.arrive()
    assert (run.phase, run.freight, await bed.verified_at()) == (Phase.PENDING, (APP.name,), None)
    run = await bed.look()
    assert describe_run(run) == "waits for verification: 1 of 2 measurements, next at 2026-05-01 12:01:00 UTC"
    assert bed.probe.asked == ["GET /1.2.0 HTTP/1.1"]
    assert run.labels == {"team": "web"}
    assert await bed.due("verification", after=59) == []
    assert await bed.due("verification", after=60) == ["shop/dev"]
    run = await bed.look(after=60)
    assert (run.phase, run.settled) == (Phase.SUCCESSFUL, True)
    assert await bed.verified_at() == run.finished_at == bed.clock.now()
    assert await bed.due("stage", after=1e9) == ["shop/dev"]
    assert await bed.told() == ["measures ok", "verification succeeded"]


async def test_a_crash_neither_repeats_nor_loses_what_is_counted(open_bed: Open) -> None:
    bed = await open_bed()
    await bed.arrive()
    await bed.look()
    bed = await open_bed()
    run = await bed.look(after=30)
    assert (run.results["ok"].count, len(bed.probe.asked)) == (1, 1)
    bed = await open_bed()
    run = await bed.look(after=30)
    assert (run.phase, run.results["ok"].count, len(bed.probe.asked)) == (Phase.SUCCESSFUL, 2, 2)
    bed = await open_bed()
    await bed.look(after=600)
    assert len(bed.probe.asked) == 2


async def test_a_crash_before_the_freight_is_told_is_made_good(open_bed: Open) -> None:
    bed = await open_bed()
    run = await bed.arrive()
    over = replace(run, phase=Phase.SUCCESSFUL, finished_at=NOW)
    assert await bed.store.save_run(over, expected=run)
    bed = await open_bed()
    assert [open_.id for open_ in await bed.store.list_open_runs()] == [run.id]
    assert (await bed.look()).settled
    assert await bed.verified_at() == NOW
    assert bed.probe.asked == []


async def test_an_arrival_that_is_noted_twice_makes_one_run(open_bed: Open) -> None:
    bed = await open_bed()
    first = await bed.arrive()
    await bed.arrival.note(promotion(), bed.stage)
    assert list(await bed.store.list_runs("shop", "dev")) == [first]
    assert len((await bed.store.get_stage("shop", "dev")).history) == 1


async def test_without_a_verification_of_its_own_freight_is_verified_at_once(open_bed: Open) -> None:
    bed = await open_bed()
    await bed.store.add_freight(APP)
    await bed.arrival.note(promotion(), replace(bed.stage, verification=None))
    assert await bed.verified_at() == NOW
    assert await bed.store.list_runs("shop", "dev") == []


async def test_freight_that_fails_later_is_no_longer_verified(open_bed: Open) -> None:
    bed = await open_bed()
    await bed.arrive()
    await bed.look()
    await bed.look(after=60)
    assert await bed.verified_at() is not None
    again = Reverification(bed.store, bed.verifier)
    assert await again.ask(bed.stage, "olivia", abort=False) == "what dev has is verified anew"
    bed.probe.answer(503, "down")
    run = await bed.look()
    assert (run.actor, run.results["ok"].errors) == ("olivia", 1)
    bed.probe.answer(200, {"ok": False})
    run = await bed.look(after=10)
    assert (run.phase, run.settled, await bed.verified_at()) == (Phase.FAILED, True, None)
    bed.probe.answer(200, {"ok": True})
    await again.ask(bed.stage, "olivia", abort=False)
    await bed.look()
    await bed.look(after=60)
    assert await bed.verified_at() == bed.clock.now()


async def test_what_could_not_be_measured_proves_nothing(open_bed: Open) -> None:
    bed = await open_bed()
    await bed.arrive()
    await bed.look()
    await bed.look(after=60)
    verified = await bed.verified_at()
    await Reverification(bed.store, bed.verifier).ask(bed.stage, "olivia", abort=False)
    bed.probe.answer(503, "no entry for {authorization}")
    for _ in range(5):
        run = await bed.look(after=10)
    assert run.phase is Phase.ERROR
    assert run.message.endswith("(5) > consecutiveErrorLimit (4): the answer is 503: no entry for Bearer ***")
    assert await bed.verified_at() == verified


async def test_newer_freight_ends_the_verification_of_older(open_bed: Open) -> None:
    bed = await open_bed()
    await bed.arrive()
    await bed.look()
    await bed.arrive(2, NEWER)
    newest = await bed.look()
    old = (await bed.store.list_runs("shop", "dev"))[1]
    assert (old.phase, old.settled, old.message) == (Phase.ABORTED, True, "another verification began")
    assert (newest.freight, newest.results["ok"].count) == ((NEWER.name,), 1)
    assert await bed.verified_at() is None


async def test_nothing_is_measured_while_other_freight_is_on_its_way(open_bed: Open) -> None:
    bed = await open_bed()
    await bed.arrive()
    await bed.look()
    under_way = promotion(2, NEWER, State.FULFILLING)
    assert await bed.store.create_promotion(under_way)
    run = await bed.look(after=60)
    assert "is under way" in describe_run(run)
    assert len(bed.probe.asked) == 1
    await bed.store.save_promotion(replace(under_way, state=State.FAILED), expected=under_way)
    assert (await bed.look(after=15)).phase is Phase.SUCCESSFUL


async def test_templates_that_are_broken_meanwhile_are_an_error(open_bed: Open) -> None:
    bed = await open_bed()
    await bed.arrive()
    config = bed.verifier.configuration
    config.pipeline = replace(config.pipeline, analysis_templates={})
    run = await bed.look()
    assert (run.phase, run.settled) == (Phase.ERROR, True)
    assert describe_run(run) == "verification could not be carried out: there is no AnalysisTemplate healthy"


async def test_a_secret_that_is_not_there_is_an_error(open_bed: Open) -> None:
    bed = await open_bed()
    await bed.arrive()
    nothing = SecretStore(lambda: bed.verifier.configuration.pipeline, environment={})
    bed.verifier = replace(bed.verifier, secrets=nothing)
    run = await bed.look()
    assert run.phase is Phase.ERROR
    assert "the key token of the Secret probe, which is not there" in run.message


@dataclass
class Interrupting:
    """HTTP during which something else happens."""

    meanwhile: Callable[[], Awaitable[object]]

    async def send(self, request: HttpRequest) -> HttpResponse:
        await self.meanwhile()
        return HttpResponse(200, (("content-type", "application/json"),), b'{"ok": true}')


async def test_a_measurement_that_ends_after_the_abort_is_not_counted(open_bed: Open) -> None:
    bed = await open_bed()
    await bed.arrive()
    again = Reverification(bed.store, bed.verifier)

    async def abort() -> None:
        assert await again.ask(bed.stage, "olivia", abort=True) == "the verification of dev is aborted"

    bed.verifier = replace(bed.verifier, meter=Meter(Interrupting(abort), bed.clock, cast(Commands, None)))
    run = await bed.look()
    assert (run.phase, run.settled, run.result(run.metrics[0]).count) == (Phase.ABORTED, True, 0)
    assert describe_run(run) == "verification was aborted: by olivia"
    assert await bed.verified_at() is None
    with pytest.raises(Refusal, match="no verification of dev is under way"):
        await again.ask(bed.stage, "olivia", abort=True)


async def test_what_cannot_be_verified_anew_is_refused(open_bed: Open) -> None:
    bed = await open_bed()
    again = Reverification(bed.store, bed.verifier)
    with pytest.raises(Refusal, match="dev has no Freight yet"):
        await again.ask(bed.stage, "olivia", abort=False)
    await bed.arrive()
    with pytest.raises(Refusal, match="`/verify dev abort` ends it"):
        await again.ask(bed.stage, "olivia", abort=False)
    await bed.look()
    await bed.look(after=60)
    failed = replace(promotion(2, NEWER, State.FAILED), blocked=True, reason="tf-apply failed")
    await bed.store.create_promotion(failed)
    with pytest.raises(Refusal, match="tf-apply failed"):
        await again.ask(bed.stage, "olivia", abort=False)


async def test_a_stage_whose_verification_was_taken_away_counts_as_verified_when_asked(
    open_bed: Open,
) -> None:
    bed = await open_bed()
    bed.probe.answer(200, {"ok": False})
    await bed.arrive()
    await bed.look()
    again = Reverification(bed.store, bed.verifier)
    reply = await again.ask(replace(bed.stage, verification=None), "olivia", abort=False)
    assert "counts as verified" in reply
    assert await bed.verified_at() == bed.clock.now()
