"""A pull request to a branch that does not exist yet: it begins with an empty commit, once the request is opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from bot.domain.files import CommitId
from bot.domain.github import ReviewState
from bot.domain.promotion import Promotion, State
from bot.domain.review import Preview
from tests.e2e.pipelines import TAG, C, commit, task, values
from tests.workflow.life import Bot, Killed, QuickLoop, World
from tests.workflow.life_claims import BRANCH
from tests.workflow.life_pipeline import BASE, VALUES, freight, tag_in

TARGET = "env/x"
PUSH = f"uses: git-push\nconfig:\n  path: ./src\n  targetBranch: {TARGET}\n"
WHOLE = (C, values(TAG), commit("Promote ${{ ctx.stage }}"), PUSH)
CREATED = """\
uses: git-clone
config:
  repoURL: ${{ vars.repoURL }}
  checkout:
    - {branch: env/x, path: ./out, create: true}
"""
RENDERED = (
    CREATED,
    "uses: file-write\nconfig:\n  path: ./out/tag.txt\n  overwrite: true\n"
    "  contents: ${{ quote(imageFrom(vars.image).Tag) }}\n",
    commit("Promote ${{ ctx.stage }}").replace("./src", "./out"),
    "uses: git-push\nconfig:\n  path: ./out\n",
)


@pytest.fixture
def loop() -> Iterator[QuickLoop]:
    made = QuickLoop()
    yield made
    made.close()


class Life:
    """A Stage of this task; nothing is released yet."""

    def __init__(self, loop: QuickLoop, directory: Path, steps: Sequence[str]) -> None:
        self.world = World(loop, directory, acts=False, files={"promote.yaml": task(steps)})
        self.run = loop.run_until_complete
        self.start()

    def start(self) -> None:
        """A process over the database that is there."""
        self.bot = Bot(self.world)
        self.run(self.bot.start())

    def release(self, number: int) -> None:
        self.run(self.bot.store.add_freight(freight(number, number, self.world.now())))
        self.run(self.bot.settle())

    def merge(self) -> None:
        """Bob approves and merges the open pull request."""
        number = next(n for n in self.world.github.pulls if self.world.github.seen(n).open)
        self.world.github.review(number, self.world.people["bob"], ReviewState.APPROVED)
        self.run(self.bot.settle())
        self.world.github.merge(number, "bob")
        self.run(self.bot.settle())
        assert self.promotion.state is State.SUCCEEDED, (self.promotion.reason, self.promotion.stop)

    @property
    def promotion(self) -> Promotion:
        found = self.run(self.bot.promotion())
        assert found is not None
        return found

    @property
    def preview(self) -> Preview:
        found = self.run(self.bot.store.get_preview(self.promotion.id, self.promotion.preview))
        assert found is not None
        return found

    def is_seed(self) -> bool:
        """Whether the target is at a first commit that holds nothing."""
        git = self.world.git
        tip = git.tip(TARGET)
        return git.commits[tip].parents == () and git.files(tip) == {}


@pytest.mark.parametrize("steps", [pytest.param(WHOLE, id="of main"), pytest.param(RENDERED, id="created")])
def test_it_is_seeded_and_the_diff_is_the_whole_tree(
    loop: QuickLoop, tmp_path: Path, steps: Sequence[str]
) -> None:
    life = Life(loop, tmp_path, steps)
    git, main = life.world.git, life.world.git.tip()
    life.release(1)
    wanted = set(BASE) if steps is WHOLE else {"tag.txt"}
    assert (life.promotion.reason, life.is_seed()) == ("0 of 1 approvals", True)
    assert set(life.preview.differences) == wanted == set(git.files(git.tip(BRANCH)))
    assert git.commits[git.tip(BRANCH)].parents == (git.tip(TARGET),)
    again = life.run(life.bot.preview_again(life.promotion))
    assert again is not None
    assert again.digest == life.promotion.digest
    life.merge()
    assert set(git.files(git.tip(TARGET))) == wanted

    life.release(2)
    changed = VALUES if steps is WHOLE else "tag.txt"
    assert list(life.preview.differences) == [changed]
    life.merge()
    text = git.text(git.tip(TARGET), changed)
    assert (tag_in(text) if steps is WHOLE else text.strip('"\n')) == "2"
    assert git.tip() == main
    life.bot.die()


def test_a_crash_behind_the_seed_ends_in_one_pull_request_on_it(loop: QuickLoop, tmp_path: Path) -> None:
    life = Life(loop, tmp_path, WHOLE)
    usual = life.world.git.watch

    def die(branch: str, old: CommitId | None, new: CommitId | None) -> None:
        if branch == BRANCH:
            life.world.git.watch = usual
            raise Killed("before the promotion branch")
        usual(branch, old, new)

    life.world.git.watch = die
    with suppress(Killed):
        life.release(1)
    assert (life.is_seed(), life.world.github.pulls) == (True, {})
    seed = life.world.git.tip(TARGET)
    life.bot.die()
    life.start()
    life.run(life.bot.settle())
    assert (life.world.git.tip(TARGET), list(life.world.github.pulls)) == (seed, [1])
    life.merge()
    life.bot.die()


def test_a_branch_that_appears_meanwhile_is_what_the_pull_request_goes_onto(
    loop: QuickLoop, tmp_path: Path
) -> None:
    life = Life(loop, tmp_path, WHOLE)
    usual = life.world.git.tick

    def appear(what: str) -> None:
        if what == "git push":
            life.world.git.tick = usual
            life.world.git.push_files(TARGET, {"theirs.txt": "x\n"}, "first", life.world.signature("ada"))
        usual(what)

    life.world.git.tick = appear
    life.release(1)
    git = life.world.git
    assert life.preview.base == git.tip(TARGET)
    assert life.preview.differences["theirs.txt"] is None
    assert set(life.preview.differences) == {"theirs.txt", *BASE}
    life.merge()
    assert set(git.files(git.tip(TARGET))) == set(BASE)
    life.bot.die()


def test_a_commit_of_a_person_on_the_branch_is_held(loop: QuickLoop, tmp_path: Path) -> None:
    life = Life(loop, tmp_path, WHOLE)
    life.release(1)
    life.world.git.push_files(BRANCH, {"README.md": "read it\n"}, "edit", life.world.signature("ada"))
    life.run(life.bot.settle())
    assert life.promotion.reason == "0 of 1 approvals"
    life.merge()
    git = life.world.git
    text = git.text(git.tip(TARGET), VALUES)
    assert (git.text(git.tip(TARGET), "README.md"), tag_in(text)) == ("read it\n", "1")
    life.bot.die()
