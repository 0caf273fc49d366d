"""What is done next with a follow-up pull request, and under which name it is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.compare import Filled, find_filled
from bot.domain.files import Change, Entry, File, Mode
from bot.domain.follow_up import (
    Closed,
    FollowUp,
    FollowUpAction,
    MergeIt,
    ReadBack,
    Rebuild,
    TurnGreen,
    TurnRed,
    compare_entries,
    follow_up_branch,
    plan_follow_up,
    promotion_of_branch,
)
from tests.domain import reviews as r

READY = FollowUp(
    open=True, merged=False, base_branch="main", wanted_branch="main", green=True, mergeable=True
)
SPOILED = replace(READY, differences=("a.yaml is not what was approved",))


@pytest.mark.parametrize(
    ("seen", "action"),
    [
        pytest.param(READY, MergeIt(), id="green and exact is merged"),
        pytest.param(
            replace(READY, green=False),
            TurnGreen("turns green before it is merged"),
            id="exact but not shown as green is not merged yet",
        ),
        pytest.param(
            SPOILED, TurnRed("a.yaml is not what was approved"), id="a person's commit turns it red"
        ),
        pytest.param(
            replace(SPOILED, rebuildable=True),
            Rebuild(),
            id="our own commit that no longer fits is made anew",
        ),
        pytest.param(
            replace(READY, base_branch="prod"),
            TurnRed("goes to prod instead of main"),
            id="one that was retargeted is red, however exact",
        ),
        pytest.param(
            replace(SPOILED, base_branch="prod", rebuildable=True),
            TurnRed("goes to prod instead of main"),
            id="one that was retargeted is not made anew",
        ),
        pytest.param(
            replace(READY, draft=True),
            TurnGreen("is a draft; mark it as ready for review"),
            id="a draft waits for a person",
        ),
        pytest.param(
            replace(READY, mergeable=False),
            TurnGreen("cannot be merged into main yet"),
            id="GitHub sees a conflict that we do not see",
        ),
        pytest.param(
            replace(READY, mergeable=None),
            TurnGreen("is being looked at by GitHub"),
            id="GitHub does not know yet whether it can be merged",
        ),
        pytest.param(
            replace(READY, open=False, closed_by="rafael"),
            Closed("was closed by rafael without a merge"),
            id="closed unmerged stops",
        ),
        pytest.param(
            replace(READY, open=False), Closed("was closed without a merge"), id="closed by somebody unknown"
        ),
        pytest.param(
            replace(READY, open=False, merged=True, base_branch="prod"),
            Closed("was merged into prod instead of main"),
            id="merged elsewhere stops",
        ),
        pytest.param(
            replace(SPOILED, open=False, merged=True),
            ReadBack(),
            id="merged is read back, whatever was thought of it",
        ),
    ],
)
def test_what_is_next_with_a_follow_up(seen: FollowUp, action: FollowUpAction) -> None:
    assert plan_follow_up(seen) == action


@pytest.mark.parametrize(
    ("attempt", "name"),
    [(1, "lockstep/shop/_release/dev.01.aaaaaaa/8"), (3, "lockstep/shop/_release/dev.01.aaaaaaa/8-3")],
)
def test_a_follow_up_is_found_by_its_branch(attempt: int, name: str) -> None:
    promotion = r.promotion()
    assert follow_up_branch(promotion, 7, attempt) == name
    assert promotion_of_branch(name) == promotion.id
    # Git keeps no branch below another one, and this one is kept beside the promotion's.
    assert not name.startswith(f"{promotion.branch}/")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("lockstep/shop/dev", id="a promotion's branch"),
        pytest.param("lockstep/shop/_release/dev.01.aaaaaaa", id="no number"),
        pytest.param("lockstep/shop/_release/a/b/8", id="one folder more"),
        pytest.param("x/lockstep/shop/_release/dev.01.aaaaaaa/8", id="another prefix"),
        pytest.param("lockstep/shop/_release/dev.01.aaaaaaa/8\n", id="a line break behind it"),
    ],
)
def test_other_branches_are_no_follow_ups(name: str) -> None:
    assert promotion_of_branch(name) is None


OLD, NEW = File(b"tag: 1\n"), File(b"tag: 2\n")
PATCH = [Change("a.yaml", OLD, NEW), Change("gone.yaml", OLD, None)]
EXACT: dict[str, Entry | None] = {"a.yaml": NEW.entry, "gone.yaml": None}


@pytest.mark.parametrize(
    ("actual", "said"),
    [
        pytest.param(EXACT, (), id="exactly the patch"),
        pytest.param(
            {**EXACT, "a.yaml": File(b"tag: 3\n").entry},
            ("a.yaml is not what was approved",),
            id="another value",
        ),
        pytest.param(
            {**EXACT, "a.yaml": Entry(Mode.EXECUTABLE, NEW.entry.blob)},
            ("a.yaml is not what was approved",),
            id="another mode",
        ),
        pytest.param({**EXACT, "b.yaml": NEW.entry}, ("b.yaml was not to change",), id="a file more"),
        pytest.param({"a.yaml": NEW.entry}, ("gone.yaml does not change",), id="a file less"),
        pytest.param(
            {**EXACT, "gone.yaml": OLD.entry}, ("gone.yaml is not what was approved",), id="kept, not removed"
        ),
    ],
)
def test_a_merge_must_bring_the_patch_byte_by_byte(
    actual: dict[str, Entry | None], said: tuple[str, ...]
) -> None:
    assert compare_entries(PATCH, actual) == said


def test_of_many_differences_the_first_are_named() -> None:
    said = compare_entries([], {f"f{number:03}": None for number in range(50)})
    assert said[0] == "f000 was not to change"
    assert said[-1] == "and 30 more"
    assert len(said) == 21


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(b"url: old\ntag: 1\n", b"url: https://x\ntag: 2\n", id="on the base that was previewed"),
        pytest.param(
            b"# more\nurl: old\ntag: 1\n", b"# more\nurl: https://x\ntag: 2\n", id="on a base that moved"
        ),
        pytest.param(b"url: old\ntag: 1\n", b"url: old\ntag: 2\n", id="with the value that was there"),
    ],
)
def test_the_values_that_were_not_known_are_told(before: bytes, after: bytes) -> None:
    approved = Change("v.yaml", File(b"url: old\ntag: 1\n"), File(b"url: HOLE-1\ntag: 2\n"))
    (filled,) = find_filled(
        [approved], [Change("v.yaml", File(before), File(after))], {"HOLE-1": "lambda_url"}
    )
    assert filled == Filled("v.yaml", "url: <lambda_url>", after.decode().split("\n")[-3])
