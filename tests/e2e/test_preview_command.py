"""`lockstep preview`: what a pull request would say, and no trace of it anywhere."""

from __future__ import annotations

import pytest

from tests.e2e.beside import lockstep
from tests.e2e.conftest import StartRoad

pytestmark = pytest.mark.e2e


async def test_a_preview_shows_the_pull_request_and_leaves_no_trace(start_road: StartRoad) -> None:
    road = await start_road(bot=False)
    before = len(await road.requests())
    status, shown, errors = await lockstep(road, "preview", "acme/dev")
    assert (status, errors) == (0, "")
    assert "4 to create" in shown
    assert "<known after apply: lambda_url>" in shown
    assert "lockstep-marker" not in shown
    tokens = [request for request in (await road.requests())[before:] if "access_tokens" not in request.path]
    assert tokens == []
    assert await road.pulls() == []
    assert "POST" not in road.terraform()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(("nope",), "there is no Stage nope"), (("dev", "zzz"), "there is no Freight zzz")],
    ids=["an unknown Stage", "unknown Freight"],
)
async def test_what_is_not_there_is_named(
    start_road: StartRoad, arguments: tuple[str, ...], says: str
) -> None:
    road = await start_road(bot=False)
    status, shown, errors = await lockstep(road, "preview", *arguments)
    assert (status, shown) == (1, "")
    assert says in errors
    assert "Traceback" not in errors
