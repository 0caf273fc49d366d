"""What holds for every edit of every text: only the target changes, the value comes back with its type, no crash."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.hcl import (
    find_backend,
    find_file_calls,
    find_hcl_leaves,
    find_module_sources,
    read_hcl_value,
    update_hcl,
)
from bot.editors.json import find_json_leaves, update_json
from bot.editors.keys import Update, same_value
from bot.editors.toml import find_toml_leaves, update_toml
from bot.editors.yaml import find_leaves, get_yaml, line_of, merge_yaml, update_yaml
from tests.editors import messy
from tests.editors.messy import SCALARS, Messy, key_of

CALM = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def assert_only(
    before: Mapping[messy.Path, object], after: Mapping[messy.Path, object], path: messy.Path, value: Json
) -> None:
    assert list(before) == list(after)
    for each in before:
        if each != path:
            assert before[each] == after[each], each
    found = after[path]
    assert isinstance(found, str) == isinstance(value, str)
    assert isinstance(found, str | int | float | None)
    if isinstance(value, float) and isinstance(found, int) and not isinstance(found, bool):
        # A whole float is written with the digits that are enough to tell it from other floats.
        found = float(found)
    assert same_value(found, value)


def assert_spliced(before: str, after: str) -> None:
    """The texts share everything but one stretch that lies within a line's value, apart from a final line end."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    changed = before[start : len(before) - end]
    assert len(changed) <= 400


def pick(data: st.DataObject, text: Messy) -> tuple[messy.Path, Json]:
    assume(text.leaves)
    return data.draw(st.sampled_from(list(text.leaves))), data.draw(SCALARS)


@CALM
@given(messy.yaml_texts(), st.data())
def test_yaml_update_changes_one_leaf(text: Messy, data: st.DataObject) -> None:
    path, value = pick(data, text)
    before = find_leaves(text.text)
    for known, held in text.leaves.items():
        assert same_value(before[known], held)
    after = update_yaml(text.text, [Update(key_of(path), value)])
    assert_only(before, find_leaves(after), path, value)
    assert after.count("\r\n") - before_lines(text.text, after) == text.text.count("\r\n")
    assert next(yaml.load_all(after.removeprefix("\ufeff"), Loader=yaml.CSafeLoader)) is not None


def before_lines(before: str, after: str) -> int:
    """How many CRLF line ends a block scalar gained or lost, or the last line gained."""
    return (after.count("\n") - before.count("\n")) if "\r\n" in before else 0


@CALM
@given(messy.yaml_texts(), st.data())
def test_yaml_comments_survive(text: Messy, data: st.DataObject) -> None:
    path, _ = pick(data, text)
    after = update_yaml(text.text, [Update(key_of(path), "plainvalue")])
    for comment in ("# note", "# tag: 1.0", "# 'quoted", "# comment: here", "# - far left", "# top"):
        assert after.count(comment) == text.text.count(comment)


@CALM
@given(messy.yaml_texts(), st.lists(messy.NAMES, min_size=1, max_size=2), st.data())
def test_yaml_create_adds_one_leaf(text: Messy, names: list[str], data: st.DataObject) -> None:
    parent = data.draw(st.sampled_from([path[:-1] for path in text.leaves] or [()]))
    path = (*parent, *(f"new {name}" for name in names))
    value = data.draw(SCALARS)
    before = find_leaves(text.text)
    assume(
        not isinstance(next((each[len(parent)] for each in before if each[: len(parent)] == parent), ""), int)
    )
    after = update_yaml(text.text, [Update(key_of(path), value)], create=True)
    found = find_leaves(after)
    assert {each: held for each, held in found.items() if each != path} == before
    assert same_value(found[path], value)


@CALM
@given(messy.yaml_texts(), messy.yaml_texts())
def test_yaml_merge_gives_the_merged_values(held: Messy, laid: Messy) -> None:
    assume("image: other" not in held.text + laid.text)
    try:
        merged = merge_yaml([held.text, laid.text])
    except EditError as error:
        refusal = str(error)
        assume("they cannot be merged" not in refusal)
        raise
    after = find_leaves(merged)
    above = find_leaves(laid.text)
    for path, value in above.items():
        if value is not None:
            assert same_value(after[path], value)
    tops = {path[0] for path in above}
    for path, value in find_leaves(held.text).items():
        if path[0] not in tops:
            assert same_value(after[path], value)


@CALM
@given(messy.hcl_texts(), st.data())
def test_hcl_update_changes_one_leaf(text: Messy, data: st.DataObject) -> None:
    path, value = pick(data, text)
    before = find_hcl_leaves(text.text)
    for known, held in text.leaves.items():
        found = before[known]
        assert isinstance(found, str | int | float | None)
        assert same_value(found, held)
    after = update_hcl(text.text, [Update(key_of(path), value)])
    assert_only(before, find_hcl_leaves(after), path, value)
    assert_spliced(text.text, after)
    assert after.count("\n") == text.text.count("\n")
    assert after.startswith("\ufeff") == text.text.startswith("\ufeff")
    found = read_hcl_value(after, key_of(path))
    assert same_value(found, value)


@CALM
@given(messy.json_texts(), st.data())
def test_json_update_changes_one_leaf(text: Messy, data: st.DataObject) -> None:
    path, value = pick(data, text)
    before = find_json_leaves(text.text)
    key = ".".join((":" if isinstance(part, str) else "") + _json_part(part) for part in path)
    after = update_json(text.text, [Update(key, value)])
    assert_only(before, find_json_leaves(after), path, value)
    assert after.count("\n") == text.text.count("\n") or not before


def _json_part(part: str | int) -> str:
    return "".join("\\" + each if each in ".*?#:\\" else each for each in str(part))


@CALM
@given(messy.toml_texts(), st.data())
def test_toml_update_changes_one_leaf(text: Messy, data: st.DataObject) -> None:
    path, value = pick(data, text)
    assume(value is not None and (not isinstance(value, int) or -(1 << 63) <= value < 1 << 63))
    before = find_toml_leaves(text.text)
    for known, held in text.leaves.items():
        assert same_value(before[known], held)
    after = update_toml(text.text, [Update(key_of(path), value)])
    assert_only(
        {each: str(held) for each, held in before.items()} | {path: before[path]},
        {each: str(held) for each, held in find_toml_leaves(after).items()}
        | {path: find_toml_leaves(after)[path]},
        path,
        value,
    )


ALPHABET = st.sampled_from(list("ab01:-?&*!|>'\"%@`{}[],# \t~.=<\\$\r\x00\ud800é\u2028\ufeff\n\n"))
FRAGMENTS = st.lists(
    st.sampled_from(
        ["a: ", "- ", "b = ", '"x"', "{", "}", "[", "]", "\n", "  ", "&x ", "*x", "|", ">-", "# c", "'", "<<: ", "---",
         "resource ", '"t" ', "<<EOF\n", "EOF\n", "${", "}", "!!str ", "[[t]]", "= ", "1", "null", ",", ":", "? "]
    ),
    max_size=25,
).map("".join)  # fmt: skip
KEYS = st.sampled_from(
    ["a", "a.b", "b", "a.0", "a[0]", "b.x", "-1", "t.0.a", "", ".", "a\\", "resource.t.a", "*"]
)
READERS: dict[str, Callable[[str, Update], object]] = {
    "update_yaml": lambda text, update: update_yaml(text, [update]),
    "create_yaml": lambda text, update: update_yaml(text, [update], create=True),
    "merge_yaml": lambda text, update: merge_yaml(["a: 1\nb: [x]\n", text, "c: {d: 1}\n"]),
    "find_leaves": lambda text, update: find_leaves(text),
    "get_yaml": lambda text, update: get_yaml(text, update.key),
    "line_of": lambda text, update: line_of(text, update.key),
    "update_hcl": lambda text, update: update_hcl(text, [update]),
    "read_hcl_value": lambda text, update: read_hcl_value(text, update.key),
    "find_hcl_leaves": lambda text, update: find_hcl_leaves(text),
    "find_module_sources": lambda text, update: find_module_sources(text),
    "find_backend": lambda text, update: find_backend(text),
    "find_file_calls": lambda text, update: find_file_calls(text),
    "update_json": lambda text, update: update_json(text, [update]),
    "find_json_leaves": lambda text, update: find_json_leaves(text),
    "update_toml": lambda text, update: update_toml(text, [update]),
    "find_toml_leaves": lambda text, update: find_toml_leaves(text),
}


def refused(name: str, text: str, update: Update) -> EditError | None:
    """The refusal, if there was one; whatever else is raised fails the test."""
    try:
        READERS[name](text, update)
    except EditError as error:
        return error
    return None


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=120, deadline=2000)
@given(text=st.text(ALPHABET, max_size=40) | FRAGMENTS, key=KEYS, value=SCALARS | st.just(float("nan")))
def test_any_text_is_edited_or_refused(name: str, text: str, key: str, value: Json) -> None:
    refusal = refused(name, text, Update(key, value))
    if refusal is not None:
        assert refusal.message
        assert refusal.line is None or refusal.line >= 1


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000, "{" * 100_000, "- " * 50_000, "a: [" * 5_000, '{"a":' * 100_000, "a = " + "[" * 100_000,
        "a = " + "(" * 50_000 + "1" + ")" * 50_000, "a = [" * 20_000, "a {\n" * 20_000,
        "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*{'a' if not n else f'b{n - 1}'}, *a]\n" for n in range(200)),
        "a: &a [*a]\n", "a0: &a0 [x]\n" + "".join(f"a{n + 1}: &a{n + 1} [*a{n},*a{n}]\n" for n in range(60)),
        "a" * 2_000_000, "'" * 100_000, "# c\n" * 100_000, '"\\' * 50_000, "a = <<EOF\n" * 5_000, "a:\n" * 100_000,
    ],
    ids=lambda text: f"{text[:12]!r}*{len(text)}",
)  # fmt: skip
def test_hostile_text_neither_hangs_nor_crashes(name: str, text: str) -> None:
    refusal = refused(name, text, Update("a", "v"))
    assert refusal is None or len(str(refusal)) < 2_000
