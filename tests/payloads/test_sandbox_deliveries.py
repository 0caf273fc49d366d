"""What the simulated GitHub and registry really send is read as the events that it stands for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.domain.events import (
    AppIdentity,
    ButtonPressed,
    CheckRerun,
    Commented,
    Event,
    ImagePushed,
    InstallationChanged,
    PullRequestChanged,
    Pushed,
    ReviewChanged,
)
from bot.domain.github import Repository
from bot.payloads import SENDERS, Delivery
from bot.sandbox.registry.notifications import Endpoint
from bot.sandbox.registry.registry import Registry
from bot.sandbox.serving import Listener
from tests.sandbox.github.conftest import Stage, stage

SHOP = Repository("acme", "shop")


@pytest.fixture
async def github(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path / "github") as made:
        yield made
        await made.github.settled()


async def events(github: Stage) -> list[Event]:
    """Everything that was delivered so far, read as ours; what we take no interest in is left out."""
    await github.github.settled()
    slug = (await github.app.ok("GET", "/app"))["slug"]
    bot = await github.bot.ok("GET", f"/users/{slug}%5Bbot%5D")
    app = AppIdentity(github.credentials.app_id, bot["id"])
    found: list[Event] = []
    for headers, body in github.receiver.got:
        found += SENDERS["github"](Delivery(headers["x-github-event"], body, app))
    return found


async def test_the_road_of_a_pull_request(github: Stage) -> None:
    pull = await github.pull()
    number, head = pull["number"], pull["head"]["sha"]
    actions = github.github.actions
    actions.comment("olivia", "acme/shop", number, "/promote dev\r\nthanks")
    actions.approve("rafael", "acme/shop", number)
    run = await github.bot.ok(
        "POST",
        "/repos/acme/shop/check-runs",
        {
            "name": "lockstep",
            "head_sha": head,
            "external_id": "p1",
            "status": "completed",
            "conclusion": "failure",
            "output": {"title": "t", "summary": "s"},
            "actions": [{"label": "Retry", "description": "Try again", "identifier": "retry"}],
        },
    )
    actions.rerun_check("olivia", "acme/shop", run["id"])
    actions.press("olivia", "acme/shop", run["id"], "retry")
    await github.github.settled()
    await github.bot.ok("PUT", f"/repos/acme/shop/pulls/{number}/merge", {"sha": head})
    found = await events(github)

    (installed,) = [item for item in found if isinstance(item, InstallationChanged)]
    assert installed.added == (SHOP,)
    opened, *_, merged = [item for item in found if isinstance(item, PullRequestChanged)]
    assert (opened.action, opened.head, opened.by_app, opened.from_fork) == ("opened", head, True, False)
    assert (merged.action, merged.merged) == ("closed", True)
    (said,) = [item for item in found if isinstance(item, Commented)]
    assert (said.author.login, said.first_line, said.by_app) == ("olivia", "/promote dev", False)
    (review,) = [item for item in found if isinstance(item, ReviewChanged)]
    assert (review.number, review.sender.login) == (number, "rafael")
    assert [item.name for item in found if isinstance(item, CheckRerun)] == ["lockstep"]
    (pressed,) = [item for item in found if isinstance(item, ButtonPressed)]
    assert (pressed.identifier, pressed.external_id, pressed.sender.login) == ("retry", "p1", "olivia")
    pushes = [item for item in found if isinstance(item, Pushed)]
    assert [(item.branch, item.by_app) for item in pushes] == [("promote", False), ("main", True)]


async def test_a_published_image(tmp_path: Path) -> None:
    got: list[bytes] = []

    async def receive(request: Request) -> Response:
        got.append(await request.body())
        return Response(status_code=202)

    hook, listener = Listener(), Listener()
    registry = Registry(tmp_path / "registry", host="Registry.example:5000")
    await hook.start(Starlette(routes=[Route("/", receive, methods=["POST"])]))
    await listener.start(registry.asgi)
    await registry.start()
    await registry.notify(Endpoint(f"{hook.url}/"))
    published = await asyncio.to_thread(
        registry.publish, "acme/app", "1.2.3", platforms=("linux/amd64", "linux/arm64")
    )
    await registry.drain()
    found = [event for body in got for event in SENDERS["distribution"](Delivery("", body, AppIdentity()))]
    assert found == [ImagePushed("registry.example:5000/acme/app", "1.2.3", published.digest)]
    await registry.stop()
    await listener.stop()
    await hook.stop()
