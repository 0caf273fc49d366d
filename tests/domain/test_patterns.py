from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.glob import compile_glob
from bot.domain.model import LabelRequirement, Selector
from bot.domain.patterns import (
    compile_name_pattern,
    compile_path_filter,
    compile_path_pattern,
    matches_selector,
)


@pytest.mark.parametrize(
    ("glob", "text", "matches"),
    [
        ("a/**", "a", True),
        ("a/**/", "a", True),
        ("a/**", "a/b/c", True),
        ("a/**", "ab", False),
        ("**/b", "b", True),
        ("**/b", "a/x/b", True),
        ("**", "", True),
        ("a/**/c", "a/c", True),
        ("a/**c", "a/b/c", False),
        ("*", "a/b", False),
        ("*/b", "/b", True),
        ("?", "/", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        (r"[\]]", "]", True),
        ("[a-]", "-", True),
        ("{a,b/{c,d}}.txt", "b/d.txt", True),
        ("{a,b}", "{a,b}", False),
        (r"\{a\}", "{a}", True),
        ("a{,b}", "a", True),
        ("x{**}", "xa/b", True),
    ],
)
def test_globs_match_as_doublestar_does(glob: str, text: str, matches: bool) -> None:
    assert compile_glob(glob).search(text) is matches


@pytest.mark.parametrize("glob", ["[", "[]", "[^]", "{a", "a}", "a\\", "[a", "{a,b}" * 12, "a" * 3000])
def test_a_malformed_glob_is_refused(glob: str) -> None:
    with pytest.raises(ValueError, match="the glob"):
        compile_glob(glob)


@given(st.text(max_size=20), st.text(max_size=10))
def test_no_glob_breaks_the_reader(glob: str, text: str) -> None:
    with suppress(ValueError):
        assert compile_glob(glob).search(text) in {True, False}


def test_only_a_real_parent_step_leads_out_of_a_directory() -> None:
    below = compile_path_pattern("a")
    assert below("a/b..c")
    assert below("a/../a/x")
    assert not below("a/../x")


def test_a_path_filter_looks_at_each_path_by_itself() -> None:
    keeps = compile_path_filter(["env"], ["env/docs"])
    assert keeps(["env/docs/a", "env/x"])
    assert not keeps(["env/docs/a", "other"])
    assert not keeps([])
    assert compile_path_filter([], [])([])


def test_a_name_without_prefix_is_exact() -> None:
    assert compile_name_pattern("dev")("dev")
    assert not compile_name_pattern("dev")("dev-1")


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (Selector(), True),
        (Selector(name="glob:d*", match_labels={"tier": "low"}), True),
        (Selector(name="glob:p*", match_labels={"tier": "low"}), False),
        (Selector(match_expressions=(LabelRequirement("tier", "NotIn", ("high",)),)), True),
        (Selector(match_expressions=(LabelRequirement("zone", "NotIn", ("x",)),)), True),
        (Selector(match_expressions=(LabelRequirement("zone", "Exists"),)), False),
    ],
)
def test_all_parts_of_a_selector_must_hold(selector: Selector, selected: bool) -> None:
    assert matches_selector(selector, "dev", {"tier": "low"}) is selected


@pytest.mark.parametrize(
    "requirement",
    [
        LabelRequirement("a", "Like", ("x",)),
        LabelRequirement("a", "In"),
        LabelRequirement("a", "Exists", ("x",)),
    ],
)
def test_a_senseless_label_expression_is_refused(requirement: LabelRequirement) -> None:
    with pytest.raises(ValueError, match="operator"):
        matches_selector(Selector(match_expressions=(requirement,)), "dev", {})
