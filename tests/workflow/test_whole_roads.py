"""Whole roads in memory: what gets to its end, what stands still and says why, and what is left of what is replaced."""

from __future__ import annotations

import pytest

from bot.domain.github import ReviewState
from bot.domain.promotion import State
from tests.workflow.life_bed import Begin
from tests.workflow.life_pipeline import freight

RULE = "At least 1 approving review is required"


def test_a_rule_that_keeps_it_from_being_merged_is_told_once(begin: Begin) -> None:
    road = begin(review="autoMerge: true\n")
    road.world.github.rule = RULE
    road.release(1)
    for _ in range(5):
        road.world.loop.passed += 60
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
def test_what_is_applied_before_the_merge_is_committed_and_merged(begin: Begin, *, moves: bool) -> None:
    road = begin(review="apply: BeforeMerge\n")
    road.release(1)
    number = int(road.promotion.pull or 0)
    road.world.github.review(number, road.world.people["bob"], ReviewState.APPROVED)
    road.run(road.bot.settle())
    if moves:
        road.world.git.push_files("main", {"README.md": "more\n"}, "more", road.world.signature("ada"))
    road.run(road.bot.say(number, "cyn", "/apply", 1))
    road.run(road.bot.settle())
    assert (road.promotion.stop, road.promotion.state) == (None, State.SUCCEEDED)


def test_the_saved_plan_of_what_a_person_replaced_is_deleted(begin: Begin) -> None:
    road = begin(review="supersede: Never\n")
    road.release(1)
    former = road.promotion
    (apply,) = road.preview.applies
    assert road.run(road.bot.store.get_bundle(former.id, apply.bundle)) is not None
    wanted = freight(2, 2, road.world.now())
    road.run(road.bot.store.add_freight(wanted))
    road.run(road.bot.say(int(former.pull or 0), "bob", f"/promote dev {wanted.name}", 1))
    ended = road.run(road.bot.store.get_promotion(former.id))
    assert ended is not None
    assert ended.state is State.ABORTED
    assert road.run(road.bot.store.get_bundle(former.id, apply.bundle)) is None
