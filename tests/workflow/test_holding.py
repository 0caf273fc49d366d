"""Commits of people on a promotion branch: what the task writes from the base must be there, and is not done twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bot.domain.github import ReviewState
from bot.domain.promotion import Promotion, State
from bot.domain.review import Preview
from tests.e2e.pipelines import TAG, C, M, P, S, commit, task, values
from tests.workflow.life import Bot, QuickLoop, World
from tests.workflow.life_claims import BRANCH
from tests.workflow.life_pipeline import APPLY, BASE, POST, TFVARS, VALUES, freight, tag_in

PARSE = """\
uses: yaml-parse
as: read
config:
  path: ./src/env/${{ ctx.stage }}/helm/values.yaml
  outputs:
    - {name: replicas, fromExpression: replicas}
    - {name: tag, fromExpression: image.tag}
"""
GROW = values(TAG, ("replicas", "${{ task.outputs['read'].replicas + 1 }}"))
MORE = """\
uses: hcl-update
config:
  path: ./src/env/${{ ctx.stage }}/terraform/main.auto.tfvars
  updates:
    - key: fn__memory
      value: ${{ quote(128 * (task.outputs['read'].replicas + 1)) }}
"""
MEMORY = MORE.replace("${{ quote(128 * (task.outputs['read'].replicas + 1)) }}", "'512'")
HISTORY = values(("env.LEVEL", "from-${{ task.outputs['read'].tag }}"))
PLAIN = commit("Promote ${{ ctx.stage }}")
AGAIN, PUSH = PLAIN.replace("as: commit", "as: recommit"), P.replace("git-push", "git-push\nas: again")


@pytest.fixture
def loop() -> Iterator[QuickLoop]:
    made = QuickLoop()
    yield made
    made.close()


class Life:
    """One release of a task, whose pull request is open."""

    def __init__(self, loop: QuickLoop, directory: Path, steps: Sequence[str]) -> None:
        self.world = World(loop, directory, acts=False, files={"promote.yaml": task(steps)})
        self.bot = Bot(self.world)
        self.run = loop.run_until_complete
        self.run(self.bot.start())
        self.release(1, 1)

    def release(self, otel: int, function: int) -> None:
        self.run(self.bot.store.add_freight(freight(otel, function, self.world.now())))
        self.run(self.bot.settle())

    def push(self, path: str, old: str, new: str) -> None:
        """A person's commit on the promotion branch; then the bot does what there is to do."""
        text = self.world.git.text(self.world.git.tip(BRANCH), path)
        assert old in text
        who = self.world.signature("ada")
        self.world.git.push_files(BRANCH, {path: text.replace(old, new)}, "edit", who)
        self.run(self.bot.settle())

    def merge(self) -> None:
        """Bob approves and merges the open pull request; then the bot does what there is to do."""
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

    def text(self, path: str = VALUES) -> str:
        """A file of main."""
        return self.world.git.text(self.world.git.tip(), path)


@pytest.fixture
def live(loop: QuickLoop, tmp_path: Path) -> Iterator[list[Life]]:
    made: list[Life] = []
    yield made
    for life in made:
        life.bot.die()


def test_a_number_that_grows_has_grown_once_beside_an_edit_of_a_person(
    loop: QuickLoop, tmp_path: Path, live: list[Life]
) -> None:
    live.append(life := Life(loop, tmp_path, (C, PARSE, GROW, PLAIN, P, S)))
    before = life.promotion.digest
    life.push("README.md", "read me", "read it")
    assert (life.promotion.reason, life.preview.held) == ("0 of 1 approvals", "")
    assert life.promotion.digest != before
    life.merge()
    assert ("replicas: 2\n" in life.text(), tag_in(life.text())) == (True, "1")
    assert life.text("README.md") == "read it\n"


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        pytest.param(VALUES, "replicas: 2", "replicas: 1", id="the number is set back"),
        pytest.param(VALUES, "pull: Always", "pull: Never", id="another line of the file that it grows in"),
    ],
)
def test_a_number_that_grows_is_not_held_where_its_file_differs(
    loop: QuickLoop, tmp_path: Path, live: list[Life], path: str, old: str, new: str
) -> None:
    live.append(life := Life(loop, tmp_path, (C, PARSE, GROW, PLAIN, P, S)))
    life.push(path, old, new)
    assert f"does not hold what the task writes to {path}" in life.promotion.reason
    life.push(path, new, old)
    assert life.promotion.reason == "0 of 1 approvals"


def test_what_is_committed_later_is_made_of_what_was_read_from_the_base(
    loop: QuickLoop, tmp_path: Path, live: list[Life]
) -> None:
    steps = (C, PARSE, values(TAG), PLAIN, P, POST, HISTORY, AGAIN, PUSH)
    live.append(life := Life(loop, tmp_path, steps))
    life.push("README.md", "read me", "read it")
    (later,) = life.preview.split.deferred.changes
    assert b"LEVEL: from-0\n" in (later.after.data if later.after is not None else b"")
    life.merge()
    assert "LEVEL: from-0\n" in life.text()


def test_what_is_committed_later_stands_beside_an_edit_of_a_person(
    loop: QuickLoop, tmp_path: Path, live: list[Life]
) -> None:
    live.append(life := Life(loop, tmp_path, (C, PARSE, MORE, GROW, APPLY, M, P, S)))
    life.push(VALUES, "pull: Always", "pull: Never")
    assert life.promotion.reason == "0 of 1 approvals"
    life.merge()
    assert ("replicas: 2\n" in life.text(), "pull: Never\n" in life.text()) == (True, True)
    assert 'fn__memory = "256"' in life.text(TFVARS)
    (state,) = life.world.terraform.states.values()
    assert "256" in str(state.resources)


def test_an_edit_that_waits_is_made_behind_one_of_the_same_file_that_does_not(
    loop: QuickLoop, tmp_path: Path, live: list[Life]
) -> None:
    steps = (C, values(TAG), PLAIN, P, values(("env.LEVEL", "debug")), MEMORY, APPLY, AGAIN, PUSH)
    live.append(life := Life(loop, tmp_path, steps))
    life.merge()
    assert (tag_in(life.text()), "LEVEL: debug\n" in life.text()) == ("1", True)
    assert 'fn__memory = "512"' in life.text(TFVARS)


def test_what_an_edit_of_terraform_defers_is_not_done_on_top_of_itself(
    loop: QuickLoop, tmp_path: Path, live: list[Life]
) -> None:
    live.append(life := Life(loop, tmp_path, (C, APPLY, PARSE, GROW, M, P, S)))
    life.merge()
    assert "replicas: 2\n" in life.text()
    life.release(2, 2)
    assert life.preview.split.deferred.changes == ()
    life.push(TFVARS, '"128"', '"256"')
    assert f"does not hold what the task writes to {VALUES}" in life.promotion.reason


def test_the_same_branch_has_the_same_digest_on_any_replica(
    loop: QuickLoop, tmp_path: Path, live: list[Life]
) -> None:
    live.append(life := Life(loop, tmp_path, (C, PARSE, GROW, PLAIN, P, S)))
    life.push("README.md", "read me", "read it")
    again = life.run(life.bot.preview_again(life.promotion))
    assert again is not None
    assert again.digest == life.promotion.digest
    assert BASE["README.md"] == "read me\n"
