"""asYAML writes what Go's yaml.v3 writes, and every YAML reader gets the value back."""

from __future__ import annotations

from typing import cast

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.domain.values import Json
from bot.expressions.goyaml import write_yaml
from bot.expressions.meter import Meter


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"foo": "bar", "count": 2}, "count: 2\nfoo: bar\n"),
        ({"a": {"b": {"c": 1}}}, "a:\n    b:\n        c: 1\n"),
        ({"a": [1, {"x": 1, "z": [2]}]}, "a:\n    - 1\n    - x: 1\n      z:\n        - 2\n"),
        ([[1, 2], [3]], "- - 1\n  - 2\n- - 3\n"),
        ({"a": [], "b": {}, "c": None}, "a: []\nb: {}\nc: null\n"),
        ({"a10": 1, "a9": 2, "b": 3, "A": 4}, "A: 4\na9: 2\na10: 1\nb: 3\n"),
        ("1", '"1"\n'),
        ("true", '"true"\n'),
        ("yes", '"yes"\n'),
        ("1:30", '"1:30"\n'),
        ("2024-01-02", '"2024-01-02"\n'),
        ("", '""\n'),
        ("a: b", "'a: b'\n"),
        ("it's: x", "'it''s: x'\n"),
        ("#x", "'#x'\n"),
        ("- x", "'- x'\n"),
        ("-x", "-x\n"),
        (" x", "' x'\n"),
        ("a\nb", "|-\n    a\n    b\n"),
        ({"a": "x\ny\n"}, "a: |\n    x\n    y\n"),
        (["x\ny"], "- |-\n  x\n  y\n"),
        ({"a": [{"k": "x\ny"}]}, "a:\n    - k: |-\n        x\n        y\n"),
        ("a \nb", '"a \\nb"\n'),
        ("\t", '"\\t"\n'),
        ("\u00e9", "\u00e9\n"),
        ("\U0001f600", '"\\U0001F600"\n'),
        (1.5, "1.5\n"),
        (1000000.0, "1e+06\n"),
        (42.0, "42\n"),
        (True, "true\n"),
    ],
)
def test_writes_as_go(value: Json, expected: str) -> None:
    assert write_yaml(value, Meter()) == expected


texts = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\x85\u2028\u2029\ufeff"), max_size=12
) | st.sampled_from(
    [
        "- a",
        "a\n",
        "\na",
        "a\n\n",
        "a\nb",
        "key: value",
        "[x]",
        "null",
        "0x1f",
        "1e3",
        "~",
        "!x",
        "a #b",
        "? x",
        "---",
        "...",
    ]
)
scalars = st.none() | st.booleans() | st.integers(-(10**12), 10**12) | texts
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts.filter(bool), inner, max_size=3),
    max_leaves=8,
)


class _Reader(yaml.SafeLoader):
    """Reads a plain `=` as text, as Go does; PyYAML knows its type of YAML 1.1 and cannot make it."""


_Reader.add_constructor("tag:yaml.org,2002:value", lambda loader, node: str(node.value))


@settings(max_examples=400, deadline=None)
@given(documents)
@example("=")
def test_reads_back_the_same(value: Json) -> None:
    written = write_yaml(value, Meter())
    assert cast(Json, yaml.load(written, _Reader)) == value, written
