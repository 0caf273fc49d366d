"""What people answer to a task: kept once through every crash, before the merge, after it, and where it came first."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.domain.github import ReviewState
from bot.domain.promotion import Promotion, State
from tests.e2e.pipelines import TAG, C, M, P, commit, policy, task, values
from tests.workflow.life import Bot, Killed, QuickLoop, World
from tests.workflow.life_pipeline import APPLY, VALUES, freight
from tests.workflow.life_pipeline import WRITE as INPUTS

ASK = """\
uses: get-user-input
as: ask
config:
  schema:
    required: [level]
    properties:
      level: {enum: [info, warn]}
"""
AGREE = "uses: wait-for-approval\nas: agree\nconfig:\n  minApprovals: 2\n"
WRITE = values(TAG, ("env.LEVEL", "${{ task.outputs['ask'].values.level }}"))
COMMIT = commit("Promote ${{ ctx.stage }}")
LATER = values(("replicas", "2"))
RECOMMIT = COMMIT.replace("as: commit", "as: recommit")
AGAIN = P.replace("uses: git-push", "uses: git-push\nas: again")


@dataclass
class Road:
    """One Stage, its world, and the process of the bot that lives just now."""

    loop: QuickLoop
    world: World
    bot: Bot

    def run(self, work: Coroutine[Any, Any, object]) -> bool:
        """Whether the bot lived through it; if not, another process begins."""
        try:
            self.loop.run_until_complete(work)
        except Killed:
            self.world.armed = None
            self.bot.die()
            self.bot = Bot(self.world)
            self.loop.run_until_complete(self.bot.start())
            return False
        return True

    def say(self, who: str, text: str, comment: int) -> list[str]:
        """The replies to a comment, once everything that follows from it is done."""
        self.run(self.bot.say(1, who, text, comment))
        self.run(self.bot.settle())
        found = self.world.github.comments
        return [body for (_, marker), body in found.items() if marker == f"lockstep:reply:{comment}"]

    def say_and_die(self, who: str, text: str, comment: int) -> int:
        """Have the same comment delivered until no touch of the world kills the bot; the answer is the deaths."""

        def die() -> None:
            raise Killed("between two touches")

        deaths = 0
        while True:
            self.world.armed = (deaths, die)
            if self.run(self.bot.say(1, who, text, comment)):
                self.world.armed = None
                self.run(self.bot.settle())
                return deaths
            deaths += 1

    def review(self) -> None:
        self.world.github.review(1, self.world.people["bob"], ReviewState.APPROVED)
        self.run(self.bot.settle())

    def merge(self) -> None:
        assert self.world.github.merge(1, "bob") is not None
        self.run(self.bot.settle())

    @property
    def promotion(self) -> Promotion:
        found = self.loop.run_until_complete(self.bot.promotion())
        assert found is not None
        return found

    @property
    def answers(self) -> int:
        """How many answers are kept."""
        return len(self.loop.run_until_complete(self.bot.store.list_answers(self.promotion.id)))

    @property
    def log(self) -> list[str]:
        """What the audit log says."""
        rows = self.loop.run_until_complete(self.bot.store.list_audit())
        return [row.entry.message for row in rows]

    def text(self, branch: str = "main") -> str:
        return self.world.git.text(self.world.git.tip(branch), VALUES)


class Roads:
    """Makes the one road of a test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.made: list[Road] = []

    def __call__(self, *steps: str, review: str = "") -> Road:
        loop = QuickLoop()
        files = {"promote.yaml": task(steps), "review.yaml": policy(review)}
        world = World(loop, self.directory, acts=False, files=files)
        road = Road(loop, world, Bot(world))
        self.made.append(road)
        road.run(road.bot.start())
        road.run(road.bot.store.add_freight(freight(1, 1, world.now())))
        road.run(road.bot.settle())
        return road


@pytest.fixture
def roads(tmp_path: Path) -> Iterator[Roads]:
    made = Roads(tmp_path)
    yield made
    for road in made.made:
        road.bot.die()
        road.loop.close()


def test_an_answer_before_the_merge_survives_every_crash_and_makes_another_head(roads: Roads) -> None:
    road = roads(C, ASK, WRITE, COMMIT, P)
    asked = road.promotion
    assert asked.reason.startswith("ask asks whoever may `/apply`: comment `/answer ask level=info`")
    assert road.say_and_die("bob", "/answer level=warn", 7) > 5
    answered = road.promotion
    said = road.log
    assert any("/answer" in text and text.endswith(": done") for text in said)
    assert not any("warn" in text for text in said), "what was answered is in no log"
    assert (answered.digest != asked.digest, answered.head != asked.head, road.answers) == (True, True, 1)
    assert "LEVEL: warn" in road.text(answered.branch)
    (refused,) = road.say("bob", "/answer level=info", 8)
    assert "bob answered ask already, and the first answer stays" in refused
    road.review()
    road.merge()
    assert road.promotion.state is State.SUCCEEDED, (road.promotion.reason, road.promotion.stop)
    assert "LEVEL: warn" in road.text()


def test_an_answer_that_does_not_fit_leaves_everything_as_it_is(roads: Roads) -> None:
    road = roads(C, ASK, WRITE, COMMIT, P)
    before = road.promotion
    (wrong,) = road.say("bob", "/answer ask level=loud more=1", 7)
    assert "more is not asked for; level must be one of info, warn" in wrong
    (unknown,) = road.say("bob", "/answer other level=warn", 8)
    assert "these ask: " in unknown
    (stranger,) = road.say("uma", "/answer level=warn", 9)
    assert (
        "`@uma` may not do this: `/apply` on dev needs write permission in acme/ops, and so does" in stranger
    )
    assert (road.promotion.digest, road.answers) == (before.digest, 0)


def test_behind_a_push_the_question_and_the_approval_are_for_the_merged_pull_request(roads: Roads) -> None:
    road = roads(C, values(TAG), COMMIT, P, ASK, AGREE, LATER, RECOMMIT, AGAIN)
    (early,) = road.say("bob", "/answer level=warn", 7)
    assert "nothing is asked just now" in early
    road.review()
    road.merge()
    assert road.promotion.reason.startswith("ask asks whoever may")
    assert road.say_and_die("bob", "/answer level=warn", 8) > 5
    assert (
        road.promotion.reason == "agree has 0 of 2 approvals by whoever may `/apply`: they comment `/apply`"
    )
    (stranger,) = road.say("uma", "/apply", 9)
    assert "`@uma` may not do this" in stranger
    assert road.say_and_die("bob", "/apply", 10) > 5
    (twice,) = road.say("bob", "/apply", 11)
    assert "has approved agree already" in twice
    assert road.promotion.state is State.FULFILLING
    assert "replicas: 1" in road.text()
    road.say("cyn", "/apply", 12)
    assert (road.promotion.state, road.answers) == (State.SUCCEEDED, 3)
    assert "replicas: 2" in road.text()


def test_cancel_is_the_no_behind_an_effect(roads: Roads) -> None:
    road = roads(C, values(TAG), COMMIT, P, AGREE, LATER, RECOMMIT, AGAIN)
    road.review()
    road.merge()
    road.say("bob", "/apply", 7)
    road.say("cyn", "/cancel", 8)
    assert road.promotion.state is State.ABORTED, (road.promotion.reason, road.promotion.stop)
    assert "replicas: 1" in road.text()


def test_what_was_merged_before_it_was_answered_is_held_until_it_is(roads: Roads) -> None:
    road = roads(C, ASK, WRITE, COMMIT, P)
    road.review()
    road.merge()
    held = road.promotion
    assert (held.state, "ask asks whoever may" in held.reason) == (State.HELD, True)
    assert road.say_and_die("bob", "/answer level=warn", 7) > 5
    assert road.promotion.state is State.SUCCEEDED, (road.promotion.reason, road.promotion.stop)
    assert "LEVEL: warn" in road.text()


def test_a_question_alone_opens_a_pull_request_to_be_asked_on(roads: Roads) -> None:
    road = roads(
        C, ASK, values(("replicas", "1")), M.replace("${{ task.outputs['tf-apply'].result }}", "x"), P
    )
    assert road.world.github.seen(1).open
    road.say("bob", "/answer level=warn", 7)
    road.review()
    road.merge()
    assert road.promotion.state is State.SUCCEEDED, (road.promotion.reason, road.promotion.stop)


def test_before_its_merge_a_walk_that_applied_asks_on_the_open_pull_request(roads: Roads) -> None:
    late = values(TAG, ("env.LEVEL", "${{ task.outputs['ask'].values.level }}"))
    road = roads(C, INPUTS, APPLY, ASK, AGREE, late, M, P, review="apply: BeforeMerge\n")
    (early,) = road.say("bob", "/answer level=warn", 7)
    assert "nothing is asked just now" in early
    road.review()
    road.say("bob", "/apply", 8)
    assert "comment `/answer ask level=info`" in road.promotion.reason
    assert (road.promotion.is_ahead, road.promotion.effects_begun) == (True, True)
    road.say("bob", "/answer level=warn", 9)
    road.say("bob", "/apply", 10)
    assert "agree has 1 of 2 approvals" in road.promotion.reason
    road.say("cyn", "/apply", 11)
    assert road.promotion.state is State.SUCCEEDED, (road.promotion.reason, road.promotion.stop)
    assert "LEVEL: warn" in road.text()
