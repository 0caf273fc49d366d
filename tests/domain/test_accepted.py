"""What an approver accepted is carried on to the commit that writes it."""

from __future__ import annotations

import pytest

from bot.domain.accepted import changed_values, with_accepted
from bot.domain.compare import compare_patch
from bot.domain.files import Change, File
from bot.domain.values import Unknown, Value

VALUES = (("https://a/", "https://b/"),)
BEFORE = "tag: 1.0\nurl: https://a/\nname: x\n"


def change(after: str, before: str = BEFORE) -> Change:
    return Change("values.yaml", File(before.encode()), File(after.encode()))


@pytest.mark.parametrize(
    ("approved", "actual", "pairs"),
    [
        pytest.param({"url": {"value": "a"}}, {"url": {"value": "b"}}, (("a", "b"),), id="a text"),
        pytest.param({"port": 80}, {"port": 81}, (("80", "81"),), id="a number"),
        pytest.param([1, {"x": "a"}], [1, {"x": "c"}], (("a", "c"),), id="inside a list"),
        pytest.param({"url": Unknown("known after apply: url")}, {"url": "b"}, (), id="a hole is no change"),
        pytest.param({"url": "a"}, {"url": "a"}, (), id="the same"),
        pytest.param({"url": ""}, {"url": "b"}, (), id="an empty text is everywhere"),
    ],
)
def test_changed_values_are_pairs(approved: Value, actual: Value, pairs: tuple[tuple[str, str], ...]) -> None:
    assert changed_values(approved, actual) == pairs


@pytest.mark.parametrize(
    ("approved", "actual", "differs"),
    [
        pytest.param(
            [change(BEFORE.replace("1.0", "1.1"))],
            change("tag: 1.1\nurl: https://b/\nname: x\n"),
            False,
            id="the accepted value beside the approved one",
        ),
        pytest.param(
            [], change("tag: 1.0\nurl: https://b/\nname: x\n"), False, id="in a file that was to stay"
        ),
        pytest.param(
            [change(BEFORE.replace("1.0", "1.1"))],
            change("tag: 1.2\nurl: https://b/\nname: x\n"),
            True,
            id="another value that nobody accepted",
        ),
        pytest.param([], change("tag: 1.0\nurl: https://c/\nname: x\n"), True, id="a third value"),
        pytest.param([], change(BEFORE + "more: https://b/\n"), True, id="a line more"),
    ],
)
def test_a_commit_may_hold_what_was_accepted(
    approved: list[Change], actual: Change, *, differs: bool
) -> None:
    wanted = with_accepted(approved, [actual], VALUES)
    assert bool(compare_patch(wanted, [actual], {})) is differs


def test_without_accepted_values_nothing_is_carried_on() -> None:
    actual = change("tag: 1.0\nurl: https://b/\nname: x\n")
    assert with_accepted([], [actual], ()) == []
