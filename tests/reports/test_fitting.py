"""Documents within a byte budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reports.fitting import Section, fit, head_of, tail_of
from bot.reports.markdown import size

A, B = Section(("aaaa", "aa", "a")), Section(("bbbb", "bb", ""))


@pytest.mark.parametrize(
    ("limit", "shown"),
    [
        pytest.param(100, "aaaa\n\nbbbb", id="all of it"),
        pytest.param(10, "aaaa\n\nbb", id="the last goes down first"),
        pytest.param(9, "aa\n\nbb", id="all go down one level before any goes down two"),
        pytest.param(6, "aa", id="then the last goes"),
        pytest.param(5, "a", id="then the first"),
    ],
)
def test_detail_is_given_up_in_order(limit: int, shown: str) -> None:
    assert fit([A, B], limit) == shown


def test_what_cannot_be_shortened_is_left_out_whole() -> None:
    kept, large = Section(("kept",)), Section(("x" * 500,))
    assert fit([kept, large, kept], 100) == "kept\n\nkept\n\nThe rest is too long for GitHub."


@given(st.lists(st.lists(st.text(max_size=40), min_size=1, max_size=4), max_size=6), st.integers(40, 200))
def test_never_exceeds_the_limit(versions: list[list[str]], limit: int) -> None:
    assert size(fit([Section(tuple(texts)) for texts in versions], limit)) <= limit


@given(st.text(max_size=300), st.integers(80, 200))
def test_beginnings_and_ends_fit(text: str, limit: int) -> None:
    for shown in (head_of(text, limit), tail_of(text, limit)):
        assert size(shown) <= limit
        assert (shown == text) == (size(text) <= limit)


def test_whole_lines_are_kept() -> None:
    lines = "".join(f"line {number}\n" for number in range(100))
    assert head_of(lines, 100).split("\n")[-2:] == ["line 4", "… 756 bytes more"]
    assert tail_of(lines, 100).split("\n")[1] == "line 96"
