"""Texts of strangers and of tired people: whatever they hold, the readers of the domain answer, and answer soon.

The examples are the same in every run. That a search ends is held by a search that would take for ever otherwise.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.domain.commands import HELP, CommandProblem, parse_command
from bot.domain.json_path import JsonPathError, parse_json_path
from bot.domain.marker import Marker, is_signed_message, read_marker, render_marker
from bot.domain.model import PromotionWindow
from bot.domain.values import Json
from bot.domain.windows import WindowState, window_state
from tests.domain import reviews as b

# -- commands ----------------------------------------------------------------------------------------------------

WORDS = st.one_of(
    st.sampled_from([f"/{word}" for word in HELP]),
    st.sampled_from(
        ["acme/dev", "dev", "-", "--force", "@all", "\u202e", "\x00", "a" * 300, "deadbeef", '"', "`", "/"]
    ),
    st.sampled_from([" ", "  ", "\t", "\n", "\r\n", "\u2028", "\u00a0"]),
    st.text(max_size=8),
)


@settings(max_examples=250, derandomize=True)
@given(st.lists(WORDS, max_size=8).map("".join))
def test_a_heap_of_command_words_gives_a_command_or_says_what_is_wrong(body: str) -> None:
    found = parse_command(body)
    if isinstance(found, CommandProblem):
        assert found.message
        assert len(found.message) < 2000
    if found is not None:
        assert body.lstrip().startswith("/")


# -- the machine block -------------------------------------------------------------------------------------------

MARKER = Marker("dev.01.a", "shop", "dev", b.freight(alias="a--> <b>"), "d1", "Review", b.NOW)


def keyed(data: bytes) -> str:
    return hmac.new(b"key", data, hashlib.sha256).hexdigest()


BLOCK = render_marker(MARKER, keyed)


def signed(text: str) -> str:
    return f"<!-- lockstep-marker {text} {keyed(text.encode())} -->"


@settings(max_examples=300, derandomize=True)
@given(st.integers(0, len(BLOCK) - 1), st.text(max_size=3), st.integers(0, 4))
def test_a_block_that_was_touched_anywhere_is_ours_or_none(at: int, put: str, cut: int) -> None:
    found = read_marker(BLOCK[:at] + put + BLOCK[at + cut :], keyed)
    assert found is None or found == MARKER


@settings(max_examples=300, derandomize=True)
@given(
    st.one_of(
        st.text(alphabet=st.characters(exclude_characters="<>"), max_size=40).map(lambda text: f"{{{text}}}"),
        st.sampled_from(["{}", '{"$":"Marker"}', '{"$":"Freight","alias":1}', '{"$":[]}', "{" * 3000 + "}"]),
    )
)
def test_what_an_older_or_newer_program_signed_is_read_or_none(text: str) -> None:
    try:
        block = signed(text)
    except UnicodeEncodeError:
        return
    assert read_marker(block, keyed) is None
    assert is_signed_message("x\n\nLockstep-Marker: " + block, keyed) is False


# -- JSON paths --------------------------------------------------------------------------------------------------

PATH_PIECES = st.sampled_from(
    ["$", "@", ".", "..", "a", "b", "*", "[", "]", "0", "-1", ":", ",", "'a'", '"b"', "?(", ")", "==", "<", "\\", " "]
)  # fmt: skip
ANSWERS: st.SearchStrategy[Json] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.floats(), st.sampled_from(["a", "b"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=12,
)


@settings(max_examples=700, derandomize=True)
@given(st.one_of(st.lists(PATH_PIECES, max_size=14).map("".join), st.text(max_size=20)), ANSWERS)
def test_any_path_finds_something_or_says_why_not(inner: str, answer: Json) -> None:
    with contextlib.suppress(JsonPathError):
        parse_json_path(f"{{{inner}}}").find(answer)


def nested(depth: int, *, wrap: str) -> Json:
    value: Json = 1
    for _ in range(depth):
        value = {"a": value} if wrap == "object" else [value]
    return value


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("{" + "['a','a']" * 60 + ".b}", nested(60, wrap="object")),
        ("{" + "[0,-1]" * 60 + ".b}", nested(60, wrap="list")),
        ("{..a..b}", nested(600, wrap="object")),
        ("{" + "[?(@..a..b)]" * 3 + "}", nested(300, wrap="object")),
    ],
    ids=[
        "the same name twice",
        "the same place twice",
        "everything below everything",
        "a search in a filter",
    ],
)
def test_a_search_whose_branches_multiply_is_given_up(path: str, answer: Json) -> None:
    with pytest.raises(JsonPathError, match=r"too large to be searched|nothing is found|cannot be read"):
        parse_json_path(path).find(answer)


# -- windows -----------------------------------------------------------------------------------------------------

DAYS = st.lists(st.sampled_from(["MO", "FR", "-1SU", "5MO", "99TU", "XX"]), max_size=3).map(",".join)
NUMBERS = st.sampled_from(["1", "2", "7", "31", "1000", "10000", "0", "-1", "x", ""])
RULE_PARTS = st.one_of(
    st.sampled_from(
        ["FREQ=DAILY", "FREQ=WEEKLY", "FREQ=MONTHLY", "FREQ=YEARLY", "FREQ=HOURLY", "WKST=SU", "A=B", ";"]
    ),
    st.tuples(st.sampled_from(["COUNT", "INTERVAL", "BYMONTHDAY", "BYMONTH"]), NUMBERS).map("=".join),
    DAYS.map(lambda days: f"BYDAY={days}"),
    st.sampled_from(["UNTIL=20270101T000000Z", "UNTIL=99991231", "UNTIL=00010101"]),
)
RULES = st.lists(RULE_PARTS, max_size=5).map(lambda parts: ";".join(["FREQ=DAILY", *parts]))
MOMENTS = st.sampled_from(
    [
        "19000101", "19700101T000000Z", "20260101T090000", "TZID=America/New_York:20260308T023000", "20260102T170000Z",
        "TZID=Pacific/Kiritimati:20270101T000000", "99991231T235959Z", "00010101T000000Z", "20260230", "", "soon",
        "TZID=America/New_York:99991231T235959", "TZID=../../etc/passwd:20260101",
    ]
)  # fmt: skip
WINDOWS = st.builds(
    PromotionWindow, st.just("w"), st.sampled_from(["Allow", "Deny"]), RULES | st.just(""), MOMENTS, MOMENTS
)
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


@settings(max_examples=400, derandomize=True)
@given(st.lists(WINDOWS, max_size=2))
@example([PromotionWindow("w", "Deny", "", "20260101", "99991231")])
def test_windows_of_any_times_are_answered_or_refused(windows: list[PromotionWindow]) -> None:
    with contextlib.suppress(ValueError):
        state = window_state(windows, NOW)
        assert state.changes_at is None or state.changes_at > NOW


def test_a_rule_that_has_run_out_is_closed_for_good() -> None:
    times = ("19900101T090000Z", "19900101T170000Z")
    window = PromotionWindow("w", "Allow", "FREQ=DAILY;COUNT=10000", *times)
    closed = WindowState(is_open=False, reason="promotions are allowed only in the window w")
    assert window_state([window], NOW) == closed


def test_the_last_occurrence_is_the_one_that_the_count_names() -> None:
    window = PromotionWindow(
        "w", "Deny", "FREQ=WEEKLY;BYDAY=FR;COUNT=3", "20260102T090000Z", "20260102T170000Z"
    )
    ends, moment = [], datetime(2026, 1, 1, tzinfo=UTC)
    while (state := window_state([window], moment)).changes_at is not None:
        moment = state.changes_at
        ends.append(moment)
    assert len(ends) == 6
    assert all(early < late for early, late in pairwise(ends))
    assert ends[-1] == datetime(2026, 1, 16, 17, tzinfo=UTC)
