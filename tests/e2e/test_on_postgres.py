"""The same road with the bot on PostgreSQL."""

from __future__ import annotations

import asyncio

import pytest

from bot.sandbox.bot_process import BotProcess
from tests.e2e.conftest import StartRoad
from tests.e2e.road import Road, free_ports
from tests.postgres import PostgresServer, open_postgres

pytestmark = pytest.mark.e2e


async def claim_one_apply(road: Road) -> None:
    """One run of Terraform has written the state; if not, the requests and the timeline tell when and why."""
    requests = road.sandbox.cloud.requests("acme/dev")
    assert road.applies() == 1, "\n".join([*map(str, requests), await road.tell()])


async def test_the_first_release_arrives_although_the_bot_dies_on_the_way(
    start_road: StartRoad, postgres: PostgresServer
) -> None:
    url = postgres.create_database()
    road = await start_road(bot=False, LOCKSTEP_DATABASE=url)
    await road.start_bot()

    async def plans() -> bool:
        return bool(road.terraform())

    # In the middle of the preview: Terraform reads the state, and no pull request is open yet.
    await road.until("Terraform to read the state", plans)
    await road.bot.kill()
    assert not await road.pulls()
    await road.start_bot()

    await road.release()
    assert "took over from a dead replica" in road.bot.log.read_text()
    assert len(await road.pulls()) == 1
    await claim_one_apply(road)
    tags, environment = road.live()
    assert tags == ["1.0.0"]
    assert environment["LAMBDA_URL"] == road.outputs()["lambda_url"]
    # Work has been recorded there, and none of it is left.
    database = url.rpartition("/")[2]
    (left,) = postgres.execute(
        "SELECT count(*), count(*) FILTER (WHERE status IN ('PENDING', 'ENQUEUED')) FROM dbos.workflow_status "
        "WHERE queue_name = 'segments'",
        database,
    )
    assert left == (left[0], 0)
    assert left[0] != 0


async def test_of_two_replicas_the_other_goes_on_when_one_dies_at_work(
    start_road: StartRoad, postgres: PostgresServer
) -> None:
    url = postgres.create_database()
    road = await start_road(bot=False, LOCKSTEP_DATABASE=url, LOCKSTEP_SWEEP="5")
    first = road.bot
    # Both are on one machine here, so they share the directory that replicas have at the same path.
    shared = {**first.extra, "LOCKSTEP_DATA": str(first.directory / "data")}
    second = BotProcess(
        first.directory.with_name("second"),
        free_ports(1)[0],
        first.receiver_secret,
        extra={**shared, "LOCKSTEP_EXECUTOR": "second"},
    )
    await road.start_bot(LOCKSTEP_EXECUTOR="first")
    try:
        await second.start(road.demo)
        await road.release()
        road.forget_terraform()
        await road.publish(otel="1.1.0", lambda_="1.1.0")

        async def at_work() -> str | None:
            found = postgres.execute(
                "SELECT executor_id FROM dbos.workflow_status WHERE status = 'PENDING' AND queue_name = 'segments'",
                url.rpartition("/")[2],
            )
            return str(found[0][0]) if found and road.terraform() else None

        name = await road.until("a replica at work", at_work)
        dying, road.bot = (first, second) if name == "first" else (second, first)
        await dying.kill()
        await road.release()
        assert "took over from a dead replica" in road.bot.log.read_text()
        await claim_one_apply(road)
    finally:
        road.bot = first
        await second.stop()


async def test_a_bot_whose_server_stays_away_ends_and_goes_on_afterwards(start_road: StartRoad) -> None:
    with open_postgres() as server:
        road = await start_road(bot=False, LOCKSTEP_DATABASE=server.create_database())
        await road.start_bot()

        async def plans() -> bool:
            return bool(road.terraform())

        await road.until("Terraform to read the state", plans)
        process = road.bot.process
        assert process is not None
        server.stop()
        assert await asyncio.wait_for(process.wait(), 20) == 1
        assert "this replica is lost: the lock of executor" in road.bot.log.read_text()
        server.start()
        await road.start_bot()
        await road.release()
        assert len(await road.pulls()) == 1
        await claim_one_apply(road)
        await road.bot.stop()
