"""What becomes of an open promotion pull request: a clash with its target, a branch built anew, another target."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.domain.files import CommitId
from bot.domain.github import ReviewState
from bot.domain.promotion import Promotion, State
from tests.workflow.life import Bot, QuickLoop, World
from tests.workflow.life_claims import BRANCH
from tests.workflow.life_pipeline import TFVARS, VALUES, freight, tag_in


@pytest.fixture
def loop() -> Iterator[QuickLoop]:
    made = QuickLoop()
    yield made
    made.close()


@pytest.fixture
def bot(loop: QuickLoop, tmp_path: Path) -> Iterator[Bot]:
    """A bot that has opened a pull request for the first release."""
    made = Bot(World(loop, tmp_path, acts=False))
    loop.run_until_complete(made.start())
    loop.run_until_complete(made.store.add_freight(freight(1, 1, made.world.now())))
    loop.run_until_complete(made.settle())
    yield made
    made.die()
    assert made.claims.broken == []


def newest(bot: Bot) -> Promotion:
    """The newest Promotion."""
    found = bot.world.loop.run_until_complete(bot.promotion())
    assert found is not None
    return found


def push(bot: Bot, branch: str, path: str, old: str, new: str) -> CommitId:
    """A person's commit on a branch; then the bot does what there is to do."""
    git = bot.world.git
    text = git.text(git.tip(branch), path)
    assert old in text
    commit = git.push_files(branch, {path: text.replace(old, new)}, "edit", bot.world.signature("ada"))
    bot.world.loop.run_until_complete(bot.settle())
    return commit


def say(bot: Bot, text: str) -> None:
    """A command; then the bot does what there is to do."""
    bot.world.loop.run_until_complete(bot.say(1, "cyn", text, 1))
    bot.world.loop.run_until_complete(bot.settle())


def replies(bot: Bot) -> str:
    """What was answered to commands."""
    return "\n".join(body for (_, marker), body in bot.world.github.comments.items() if "reply" in marker)


def test_a_clash_is_told_once_and_gone_when_it_is_resolved(bot: Bot) -> None:
    push(bot, BRANCH, TFVARS, '"128"', '"256"')
    push(bot, "main", TFVARS, '"128"', '"512"')
    made = newest(bot).preview
    assert newest(bot).reason == f"the branch conflicts with main in {TFVARS}"
    bot.world.loop.run_until_complete(bot.settle())
    assert newest(bot).preview == made
    push(bot, "main", TFVARS, '"512"', '"128"')
    assert newest(bot).reason == "0 of 1 approvals"


def test_a_clash_in_a_file_of_no_step_is_gone_when_it_is_resolved(bot: Bot) -> None:
    push(bot, BRANCH, "README.md", "read me", "read it")
    # The preview looks at it again because of the values; what clashes is the other file.
    git = bot.world.git
    git.push_files("main", {"README.md": "read this\n"}, "edit", bot.world.signature("bob"))
    push(bot, "main", VALUES, "replicas: 1", "replicas: 2")
    assert newest(bot).reason == "the branch conflicts with main in README.md"
    push(bot, "main", "README.md", "read this", "read me")
    assert newest(bot).reason == "0 of 1 approvals"


def test_promote_builds_a_branch_anew_and_names_what_it_drops(bot: Bot) -> None:
    dropped = push(bot, BRANCH, TFVARS, "lambda-app:1", "by-hand:9")
    assert "does not hold what the task writes" in newest(bot).reason
    say(bot, "/promote dev")
    assert newest(bot).reason == "0 of 1 approvals"
    assert "lambda-app:1" in bot.world.git.text(bot.world.git.tip(BRANCH), TFVARS)
    assert dropped not in bot.world.git.ancestors(bot.world.git.tip(BRANCH))
    assert f"built anew without {dropped[:7]}" in replies(bot)


def test_what_is_pushed_after_promote_was_said_is_kept(bot: Bot) -> None:
    push(bot, BRANCH, VALUES, "LEVEL: info", "LEVEL: debug")
    bot.world.loop.run_until_complete(bot.say(1, "cyn", "/promote dev", 1))
    push(bot, BRANCH, VALUES, "replicas: 1", "replicas: 2")
    text = bot.world.git.text(bot.world.git.tip(BRANCH), VALUES)
    assert ("LEVEL: debug" in text, "replicas: 2" in text) == (True, True)
    # Who wrote it is a person as before: their own approval does not count.
    bot.world.github.review(1, bot.world.people["ada"], ReviewState.APPROVED)
    bot.world.loop.run_until_complete(bot.settle())
    assert newest(bot).reason == "0 of 1 approvals"


def test_newer_freight_closes_a_pull_request_that_was_pointed_elsewhere(bot: Bot) -> None:
    world = bot.world
    world.git.move("other", world.git.tip())
    world.github.retarget(1, "other")
    world.loop.run_until_complete(bot.store.add_freight(freight(2, 2, world.now())))
    world.loop.run_until_complete(bot.settle())
    assert [number for number in world.github.pulls if world.github.seen(number).open] == [2]
    assert (newest(bot).state, newest(bot).pull) == (State.REVIEW, 2)
    assert tag_in(world.git.text(world.git.tip(), VALUES)) == "0"
