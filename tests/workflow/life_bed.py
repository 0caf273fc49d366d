"""One Stage of a task over the world in memory: what a test does to it, and what has become of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from bot.domain.github import ReviewState
from bot.domain.promotion import Promotion, State
from bot.domain.review import Preview
from tests.workflow.life import Bot, QuickLoop, World
from tests.workflow.life_claims import BRANCH
from tests.workflow.life_pipeline import VALUES, freight


class Bed:
    """A Stage with these files of the configuration in place of the usual ones; nothing is released yet."""

    def __init__(self, loop: QuickLoop, directory: Path, files: Mapping[str, str]) -> None:
        self.world = World(loop, directory, acts=False, files=files)
        self.run = loop.run_until_complete
        self.start()

    def start(self) -> None:
        """A process over the database that is there."""
        self.bot = Bot(self.world)
        self.run(self.bot.start())

    def release(self, number: int) -> None:
        """Freight whose images all have this number. As after all that follows, the bot does its work."""
        self.run(self.bot.store.add_freight(freight(number, number, self.world.now())))
        self.run(self.bot.settle())

    def edit(self, path: str, old: str, new: str) -> None:
        """A person's commit on the promotion branch that puts one text in the place of another."""
        text = self.world.git.text(self.world.git.tip(BRANCH), path)
        assert old in text
        self.push({path: text.replace(old, new)})

    def push(self, files: dict[str, str]) -> None:
        """A person's commit on the promotion branch with these files."""
        self.world.git.push_files(BRANCH, files, "edit", self.world.signature("ada"))
        self.run(self.bot.settle())

    def merge(self) -> None:
        """Bob approves and merges the open pull request."""
        number = next(n for n in self.world.github.pulls if self.world.github.seen(n).open)
        self.world.github.review(number, self.world.people["bob"], ReviewState.APPROVED)
        self.run(self.bot.settle())
        self.world.github.merge(number, "bob")
        self.run(self.bot.settle())
        assert self.promotion.state is State.SUCCEEDED, (self.promotion.reason, self.promotion.stop)

    def preview_again(self) -> Preview:
        """What another replica makes of the branch as it is."""
        found = self.run(self.bot.preview_again(self.promotion))
        assert found is not None
        return found

    @property
    def promotion(self) -> Promotion:
        """The newest promotion."""
        found = self.run(self.bot.promotion())
        assert found is not None
        return found

    @property
    def preview(self) -> Preview:
        """Its preview."""
        found = self.run(self.bot.store.get_preview(self.promotion.id, self.promotion.preview))
        assert found is not None
        return found

    def text(self, path: str = VALUES) -> str:
        """A file of main."""
        return self.world.git.text(self.world.git.tip(), path)


Begin = Callable[..., Bed]
"""Begins the life of a Stage whose task has the steps that are given, if any are; `review` is its ReviewPolicy."""
