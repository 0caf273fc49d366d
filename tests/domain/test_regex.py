from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.regex import compile_regex


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("", "", True),
        ("a+b", "xaab", True),
        ("^a$", "a\n", False),
        ("(?m)^b$", "a\nb\nc", True),
        (r"\Aa\z", "a", True),
        (r"\bprod\b", "aprod", False),
        (r"\bprod\b", "a-prod", True),
        (r"\Bx", "ax", True),
        ("(?i)PROD", "my-prod", True),
        ("(?i)[a-c]+$", "CBA", True),
        ("(?i)k", "\u212a", True),
        ("(?i:A)b", "aB", False),
        ("(?i)a(?-i)b", "AB", False),
        ("a{2,3}c", "caac", True),
        ("a{3}", "caab", False),
        ("a{,3}", "a{,3}", True),
        ("x{0}y", "y", True),
        ("[^a]", "\n", True),
        (".", "\n", False),
        ("(?s).", "\n", True),
        (r"\d", "٣", False),
        ("[[:alpha:]]+1", "x1", True),
        ("[[:^digit:]]", "1", False),
        (r"[\D]", "1", False),
        (r"[^\d]", "a", True),
        (r"\p{Lu}", "é", False),
        (r"\pL", "é", True),
        (r"\P{L}", "1", True),
        ("[]a]", "]", True),
        ("[a-]", "-", True),
        ("a|b|", "zzz", True),
        ("(?P<n>a)(?<m>b)", "ab", True),
        (r"\Qa.b\E", "axb", False),
        (r"\Qa.b\E+", "a.bbb", True),
        (r"\x{41}\x42\103", "ABC", True),
        ("(a|b)*?c", "abac", True),
    ],
)
def test_patterns_find_as_go_does(pattern: str, text: str, found: bool) -> None:
    assert compile_regex(pattern).search(text) is found


REFUSED = r"""
[a-z (?=a) (?<!a)b (a)\1 a** *a ( ) [z-a] a{1001} a{3,2} \Z \8 (?z) \p{Klingon} (?P<a-b>a)
(?P<n>a)(?P<n>b) [[:nope:]] \x{110000} \ (?i (((a{900}){900}){9})
"""


@pytest.mark.parametrize("pattern", [*REFUSED.split(), "(" * 200 + ")" * 200])
def test_what_go_refuses_is_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(ValueError, match="regular expression"):
        compile_regex(pattern)


def test_the_running_time_does_not_explode() -> None:
    # A backtracking engine needs longer than the universe has lasted.
    assert not compile_regex("(a+)+$").search("a" * 5000 + "b")
    assert not compile_regex("(a|aa)+$").search("a" * 5000 + "b")


def test_many_states_cost_no_unbounded_memory() -> None:
    regex = compile_regex("a.{12}b")
    text = "".join("ab"[(number * 7919 >> 3) & 1] for number in range(20_000))
    assert regex.search(text) is (re.search("a.{12}b", text) is not None)
    assert len(regex._states) <= 2_000


_LITERAL = st.sampled_from("abc01_- \n")
_ATOM = st.one_of(
    _LITERAL.map(re.escape),
    st.sampled_from([".", "[ab]", "[^a]", r"\d", r"\w", r"\s", "^", r"\b"]),
)


def _extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{1,2}", "{0}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    )


@given(st.recursive(_ATOM, _extend, max_leaves=6), st.text("abc01_- \n", max_size=8))
def test_plain_patterns_agree_with_pythons(pattern: str, text: str) -> None:
    assert compile_regex(pattern).search(text) is (re.search(pattern, text, re.ASCII) is not None)


@given(st.text(max_size=30), st.text(max_size=10))
def test_no_pattern_breaks_the_reader(pattern: str, text: str) -> None:
    with suppress(ValueError):
        assert compile_regex(pattern).search(text) in {True, False}
