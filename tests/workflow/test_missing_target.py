"""A pull request to a branch that does not exist yet: it begins with an empty commit, once the request is opened."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pytest

from bot.domain.files import CommitId
from tests.e2e.pipelines import TAG, C, commit, values
from tests.workflow.life import Killed
from tests.workflow.life_bed import Bed, Begin
from tests.workflow.life_claims import BRANCH
from tests.workflow.life_pipeline import BASE, VALUES, tag_in

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


def is_seed(life: Bed) -> bool:
    """Whether the target is at a first commit that holds nothing."""
    git = life.world.git
    tip = git.tip(TARGET)
    return git.commits[tip].parents == () and git.files(tip) == {}


@pytest.mark.parametrize("steps", [pytest.param(WHOLE, id="of main"), pytest.param(RENDERED, id="created")])
def test_it_is_seeded_and_the_diff_is_the_whole_tree(begin: Begin, steps: Sequence[str]) -> None:
    life = begin(*steps)
    git, main = life.world.git, life.world.git.tip()
    life.release(1)
    wanted = set(BASE) if steps is WHOLE else {"tag.txt"}
    assert (life.promotion.reason, is_seed(life)) == ("0 of 1 approvals", True)
    assert set(life.preview.differences) == wanted == set(git.files(git.tip(BRANCH)))
    assert git.commits[git.tip(BRANCH)].parents == (git.tip(TARGET),)
    assert life.preview_again().digest == life.promotion.digest
    life.merge()
    assert set(git.files(git.tip(TARGET))) == wanted

    life.release(2)
    changed = VALUES if steps is WHOLE else "tag.txt"
    assert list(life.preview.differences) == [changed]
    life.merge()
    text = git.text(git.tip(TARGET), changed)
    assert (tag_in(text) if steps is WHOLE else text.strip('"\n')) == "2"
    assert git.tip() == main


def test_a_crash_behind_the_seed_ends_in_one_pull_request_on_it(begin: Begin) -> None:
    life = begin(*WHOLE)
    usual = life.world.git.watch

    def die(branch: str, old: CommitId | None, new: CommitId | None) -> None:
        if branch == BRANCH:
            life.world.git.watch = usual
            raise Killed("before the promotion branch")
        usual(branch, old, new)

    life.world.git.watch = die
    with suppress(Killed):
        life.release(1)
    assert (is_seed(life), life.world.github.pulls) == (True, {})
    seed = life.world.git.tip(TARGET)
    life.bot.die()
    life.start()
    life.run(life.bot.settle())
    assert (life.world.git.tip(TARGET), list(life.world.github.pulls)) == (seed, [1])
    life.merge()


def test_a_branch_that_appears_meanwhile_is_what_the_pull_request_goes_onto(begin: Begin) -> None:
    life = begin(*WHOLE)
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


def test_a_commit_of_a_person_on_the_branch_is_held(begin: Begin) -> None:
    life = begin(*WHOLE)
    life.release(1)
    life.push({"README.md": "read it\n"})
    assert life.promotion.reason == "0 of 1 approvals"
    life.merge()
    git = life.world.git
    text = git.text(git.tip(TARGET), VALUES)
    assert (git.text(git.tip(TARGET), "README.md"), tag_in(text)) == ("read it\n", "1")
