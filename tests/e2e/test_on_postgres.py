"""The same road with the bot on PostgreSQL."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import StartRoad
from tests.postgres import PostgresServer

pytestmark = pytest.mark.e2e


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
    assert road.terraform()["POST"] == 1
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
