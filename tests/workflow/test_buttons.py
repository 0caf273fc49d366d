"""Buttons on check runs: what their commands do, once per press, as far as the person may."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.domain.commands import Command, Plan, Retry
from bot.domain.events import ButtonPressed
from bot.domain.files import CommitId
from bot.domain.github import CheckId, PullNumber, Repository, User
from bot.sandbox.github.auth import person
from bot.sandbox.github.checks import press
from bot.sandbox.github.records import CheckRun, Comment
from bot.workflow.buttons import Asked, Buttons, Refusal
from tests.e2e.pipelines import Seed
from tests.e2e.road import Road, open_road
from tests.reports.views import HEAD, MAIN, promotion


async def press_plan(road: Road, run: CheckRun, user: str) -> None:
    """Press "Preview again"; GitHub would let nobody without write permission, which may have been taken since."""
    world = road.sandbox.github.world
    await asyncio.to_thread(press, world, person(world.need_user(user)), run, "plan")


@pytest.mark.e2e
async def test_preview_again_makes_a_new_preview_for_who_may_and_a_reply_for_who_may_not(
    tmp_path: Path,
) -> None:
    async with open_road(tmp_path / "road", Seed()) as road:
        await road.start_bot()
        pull = await road.wait_for_pull()
        first = await road.wait_for_check(pull.number, "lockstep / plan", "success")
        assert [(a["label"], a["identifier"]) for a in first.actions] == [("Preview again", "plan")]
        assert (first.external_id or "").endswith("/1/plan")

        await press_plan(road, first, "uma")

        async def refused() -> Comment | None:
            return next(iter(await road.replies()), None)

        reply = await road.until("the reply to uma", refused)
        assert "`@uma` pressed a button" in reply.body
        assert "needs perm:write" in reply.body
        await road.wait_until_quiet()
        newest = road.check(pull.head_sha, "lockstep / plan")
        assert newest is not None
        assert newest.external_id == first.external_id

        await press_plan(road, first, "rafael")

        async def again() -> bool:
            run = road.check(road.pull(pull.number).head_sha, "lockstep / plan")
            return run is not None and (run.external_id or "").endswith("/2/plan")

        await road.until("the second preview", again)
        await road.wait_until_quiet()
        assert len(await road.replies()) == 1
        assert len(road.comments(pull.number, "plan")) == 1


# -- one press ---------------------------------------------------------------------------------------------------

REPOSITORY = Repository("acme", "operations")
PROMOTION = promotion()


@dataclass
class Desk:
    """Records what is asked and answered; everything is refused if there is a refusal."""

    refusal: str = ""
    asked: list[Command] = field(default_factory=list)
    replies: list[tuple[int, str]] = field(default_factory=list)

    async def obey(self, asked: Asked) -> str:
        self.asked.append(asked.command)
        if self.refusal:
            raise Refusal(self.refusal)
        return ""

    async def reply(self, repository: Repository, number: PullNumber, key: str, body: str) -> None:
        self.replies.append((number, body))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DatabaseStore]:
    opened = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", KeyFileVault(tmp_path / "vault.key"))
    yield opened
    opened.close()


def pressed(identifier: str = "plan", **changes: object) -> ButtonPressed:
    made = ButtonPressed(
        REPOSITORY,
        CommitId(HEAD),
        CheckId(5),
        "lockstep / plan",
        identifier,
        User("dana", 3),
        f"{PROMOTION.id}/1/plan",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


async def buttons(store: DatabaseStore, desk: Desk) -> Buttons:
    await store.create_promotion(PROMOTION)
    return Buttons(store, lambda url: REPOSITORY if url == MAIN.url else None, desk.obey, desk.reply)


@pytest.mark.parametrize(("identifier", "command"), [("plan", Plan()), ("retry", Retry())])
async def test_a_button_does_its_command_once_per_delivery(
    store: DatabaseStore, identifier: str, command: Command
) -> None:
    desk = Desk()
    found = await buttons(store, desk)
    for delivery in ("one", "one", "two"):
        await found.press(pressed(identifier), delivery)
    assert desk.asked == [command, command]
    assert desk.replies == []


async def test_a_refusal_is_said_once_and_mentions_nobody(store: DatabaseStore) -> None:
    desk = Desk(refusal="`/plan` on staging needs perm:write")
    found = await buttons(store, desk)
    for _ in range(2):
        await found.press(pressed(), "one")
    said = "`@dana` pressed a button of the check lockstep / plan: `/plan` on staging needs perm:write"
    assert desk.replies == [(7, said)]


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(pressed("merge"), id="no button of ours"),
        pytest.param(pressed(external_id="staging.other/1"), id="no promotion"),
        pytest.param(pressed(external_id=PROMOTION.id), id="no check of a promotion"),
        pytest.param(pressed(external_id=""), id="nothing to go by"),
        pytest.param(pressed(repository=Repository("evil", "operations")), id="another repository"),
        pytest.param(pressed(sender=User("renovate[bot]", 9, bot=True)), id="a bot"),
    ],
)
async def test_what_is_not_understood_does_nothing(store: DatabaseStore, event: ButtonPressed) -> None:
    desk = Desk()
    await (await buttons(store, desk)).press(event, "one")
    assert (desk.asked, desk.replies) == ([], [])


async def test_on_a_persons_pull_request_the_button_names_the_head_that_it_stands_on(
    store: DatabaseStore,
) -> None:
    desk = Desk(refusal="you may not")
    event = pressed(external_id="pull/9/plan")
    await (await buttons(store, desk)).press(event, "delivery-1")
    assert desk.asked == [Plan(HEAD)]
    assert [number for number, _ in desk.replies] == [9]


@pytest.mark.parametrize("external_id", ["pull/x/plan", "pull/", "issue/9", ""])
async def test_a_button_that_belongs_to_nothing_does_nothing(store: DatabaseStore, external_id: str) -> None:
    desk = Desk()
    await (await buttons(store, desk)).press(pressed(external_id=external_id), "delivery-1")
    assert (desk.asked, desk.replies) == ([], [])
