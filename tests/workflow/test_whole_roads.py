"""Whole roads in memory: what gets to its end, what stands still and says why, and what is left of what is replaced."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.domain.github import ReviewState
from bot.domain.promotion import Promotion, State
from tests.e2e.pipelines import policy
from tests.workflow.life import Bot, QuickLoop, World
from tests.workflow.life_pipeline import freight

RULE = "At least 1 approving review is required"
BY_ITSELF = policy("autoMerge: true\n")


@dataclass
class Road:
    """A bot over a world in memory, with one release under way."""

    loop: QuickLoop
    directory: Path

    def begin(self, review: str, rule: str = "") -> None:
        self.world = World(self.loop, self.directory, acts=False, files={"review.yaml": review})
        self.world.github.rule = rule
        self.bot = Bot(self.world)
        self.run(self.bot.start())
        self.release(1)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def release(self, version: int) -> None:
        self.run(self.bot.store.add_freight(freight(version, version, self.world.now())))
        self.run(self.bot.settle())

    @property
    def promotion(self) -> Promotion:
        found = self.run(self.bot.promotion())
        assert found is not None
        return found  # type: ignore[no-any-return]


@pytest.fixture
def road(tmp_path: Path) -> Iterator[Road]:
    loop = QuickLoop()
    made = Road(loop, tmp_path)
    yield made
    made.bot.die()
    loop.close()


def test_a_rule_that_keeps_it_from_being_merged_is_told_once(road: Road) -> None:
    road.begin(BY_ITSELF, rule=RULE)
    for _ in range(5):
        road.loop.passed += 60
        road.run(road.bot.settle())
    assert road.promotion.reason == f"GitHub does not merge it yet: {RULE}"
    events = road.run(road.bot.store.list_events(limit=100))
    assert [event.kind for event in events if RULE in event.message] == ["waits"]
    road.world.github.rule = ""
    road.run(road.bot.settle())
    assert road.promotion.merge_commit is not None


@pytest.mark.parametrize(
    "moves", [False, True], ids=["where nothing moves", "although the target moves elsewhere"]
)
def test_what_is_applied_before_the_merge_is_committed_and_merged(road: Road, *, moves: bool) -> None:
    road.begin(policy("apply: BeforeMerge\n"))
    number = int(road.promotion.pull or 0)
    road.world.github.review(number, road.world.people["bob"], ReviewState.APPROVED)
    road.run(road.bot.settle())
    if moves:
        road.world.git.push_files("main", {"README.md": "more\n"}, "more", road.world.signature("ada"))
    road.run(road.bot.say(number, "cyn", "/apply", 1))
    road.run(road.bot.settle())
    assert (road.promotion.stop, road.promotion.state) == (None, State.SUCCEEDED)


def test_the_saved_plan_of_what_a_person_replaced_is_deleted(road: Road) -> None:
    road.begin(policy("supersede: Never\n"))
    former = road.promotion
    preview = road.run(road.bot.store.get_preview(former.id, former.preview))
    (apply,) = preview.applies
    assert road.run(road.bot.store.get_bundle(former.id, apply.bundle)) is not None
    wanted = freight(2, 2, road.world.now())
    road.run(road.bot.store.add_freight(wanted))
    road.run(road.bot.say(int(former.pull or 0), "bob", f"/promote dev {wanted.name}", 1))
    assert road.run(road.bot.store.get_promotion(former.id)).state is State.ABORTED
    assert road.run(road.bot.store.get_bundle(former.id, apply.bundle)) is None
