"""Invariant 11: without unknown values, waits and drift the gate's final trees are those of a task without review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from bot.domain.github import ReviewState
from bot.domain.promotion import State
from tests.e2e.pipelines import TAG, URL, C, M, P, S, policy, task, values
from tests.workflow.life import Bot, QuickLoop, World
from tests.workflow.life_pipeline import APPLY, READ, WRITE, freight

Y, YU = values(TAG), values(TAG, URL)
M2 = M.replace("as: commit", "as: recommit")
P2 = P.replace("uses: git-push", "uses: git-push\nas: again")
ORDERS: Mapping[str, Sequence[str]] = {
    "C H A O Y+ M P S": (C, WRITE, APPLY, READ, YU, M, P, S),
    "C Y H A M P S": (C, Y, WRITE, APPLY, M, P, S),
    "C H Y A M P S": (C, WRITE, Y, APPLY, M, P, S),
    "C H A Y M P S": (C, WRITE, APPLY, Y, M, P, S),
    "C H A M P S Y M P": (C, WRITE, APPLY, M, P, S, Y, M2, P2),
    "C H M P A Y M P": (
        C,
        WRITE,
        M.replace("${{ task.outputs['tf-apply'].result }}", "none"),
        P,
        APPLY,
        Y,
        M2,
        P2,
    ),
    "C Y H M P S": (C, Y, WRITE, M.replace("${{ task.outputs['tf-apply'].result }}", "none"), P, S),
}


def released(
    directory: Path, steps: Sequence[str], review: str, loop: QuickLoop
) -> tuple[dict[str, str], object]:
    """The files of main and the cloud's resources after two releases; of the second every value is known."""
    directory.mkdir()
    files = {"promote.yaml": task(steps), "review.yaml": policy(review)}
    world = World(loop, directory, acts=False, files=files)
    bot = Bot(world)
    loop.run_until_complete(bot.start())
    try:
        for version in (1, 2):
            loop.run_until_complete(bot.store.add_freight(freight(version, version, world.now())))
            loop.run_until_complete(bot.settle())
            for number in [n for n in world.github.pulls if world.github.seen(n).open]:
                world.github.review(number, world.people["bob"], ReviewState.APPROVED)
                loop.run_until_complete(bot.settle())
                world.github.merge(number, "bob")
                loop.run_until_complete(bot.settle())
            found = loop.run_until_complete(bot.promotion())
            assert found is not None
            assert found.state is State.SUCCEEDED, (found.reason, found.stop, review)
        resources = {key: state.resources for key, state in world.terraform.states.items()}
        return {
            path: world.git.text(world.git.tip(), path) for path in world.git.files(world.git.tip())
        }, resources
    finally:
        bot.die()


@pytest.mark.parametrize("order", ORDERS)
def test_a_task_ends_in_the_same_trees_with_and_without_review(tmp_path: Path, order: str) -> None:
    loop = QuickLoop()
    reviewed = released(tmp_path / "reviewed", ORDERS[order], "", loop)
    unasked = released(tmp_path / "unasked", ORDERS[order], "review: None\n", loop)
    loop.close()
    assert reviewed == unasked
