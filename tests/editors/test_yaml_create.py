"""Adding keys, items and containers, and laying texts over each other."""

from __future__ import annotations

import pytest

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.yaml import YamlUpdate, merge_yaml, update_yaml


@pytest.mark.parametrize(
    ("text", "key", "value", "expected"),
    [
        pytest.param(
            "a:\n  b: 1\nc: 2\n", "a.z", "v", "a:\n  b: 1\n  z: v\nc: 2\n", id="beside its siblings"
        ),
        pytest.param(
            "a:\n    b: 1 # c\n\n# d\nc: 2\n",
            "a.z.y",
            1,
            "a:\n    b: 1 # c\n    z:\n      y: 1\n\n# d\nc: 2\n",
            id="with what leads to it, before the blank line",
        ),
        pytest.param("a:\n- 1\nb: 1\n", "a.-1", "v", "a:\n- 1\n- v\nb: 1\n", id="at the end of a list"),
        pytest.param("a:\n  - x: 1\n", "a.0.z", "v", "a:\n  - x: 1\n    z: v\n", id="in a mapping of a list"),
        pytest.param(
            "a:\n  - x: 1\n", "a.5.z", "v", "a:\n  - x: 1\n  - {z: v}\n", id="an index past the end appends"
        ),
        pytest.param("- - 1\n", "0.-1", 2, "- - 1\n  - 2\n", id="in a list of a list"),
        pytest.param("a: {x: 1, } # c\n", "a.b", "v", "a: {x: 1, b: v, } # c\n", id="in a flow mapping"),
        pytest.param("a: []\n", "a.-1", "u, v", 'a: ["u, v"]\n', id="in an empty flow list"),
        pytest.param("r:\nb: 1\n", "r.n", "v", "r:\n  n: v\nb: 1\n", id="an empty value becomes a mapping"),
        pytest.param("r: ~ # c\n", "r.n", "v", "r: {n: v} # c\n", id="a written null becomes a flow mapping"),
        pytest.param("", "a.b", "yes", 'a:\n  b: "yes"\n', id="an empty text"),
        pytest.param("# c\n", "a", "v", "# c\na: v\n", id="a text of comments"),
        pytest.param(
            "---\na: 1\n...\n", "b", "v", "---\na: 1\nb: v\n...\n", id="before the end of the document"
        ),
        pytest.param("a: 1\n---\nb: 1\n", "c", 2, "a: 1\nc: 2\n---\nb: 1\n", id="in the first document"),
        pytest.param(
            "a: 1\r\nb:\r\n  c: 1", "b.d", "v", "a: 1\r\nb:\r\n  c: 1\r\n  d: v\r\n", id="CRLF, no last end"
        ),
        pytest.param(
            "a:\n  t: |\n    x\n\nb: 1\n",
            "a.c",
            "v",
            "a:\n  t: |\n    x\n  c: v\n\nb: 1\n",
            id="behind a block",
        ),
        pytest.param(
            "a:\n  t: |+\n    x\n\nb: 1\n",
            "a.c",
            "v",
            "a:\n  t: |+\n    x\n\n  c: v\nb: 1\n",
            id="behind a kept block",
        ),
        pytest.param(
            "a:\n- b: 1\nc: 2\n", "a", [1, {"x": None}], "a: [1, {x: null}]\nc: 2\n", id="a list for a list"
        ),
        pytest.param("a: 1 # c\n", "a", 2, "a: 2 # c\n", id="what is there is replaced in place"),
        pytest.param("a: 1\n", "a.b.c", "v", "a: {b: {c: v}}\n", id="a scalar on the way gives way"),
        pytest.param(
            "x: &k {a: 1}\ny: *k\n", "y", "v", "x: &k {a: 1}\ny: v\n", id="an alias at the end is replaced"
        ),
        pytest.param(
            "x: &k {a: 1}\ny: *k\n", "y.a", 2, "x: &k {a: 2}\ny: *k\n", id="one on the way leads on"
        ),
        pytest.param("a: 1\n", "a\\.b", "v", "a: 1\na.b: v\n", id="a dot inside a name"),
        pytest.param("a: 1\n", "0", "v", 'a: 1\n"0": v\n', id="a number as name stays text"),
    ],
)
def test_creates_what_is_missing(text: str, key: str, value: Json, expected: str) -> None:
    assert update_yaml(text, [YamlUpdate(key, value)], create=True) == expected


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        pytest.param("a: [1]\n", "a.x", "'x' is no index", id="a name in a list"),
        pytest.param("a: [1]\n", "a.-2", "'-2' is no index", id="an index below -1"),
        pytest.param(
            "x: &k {a: 1}\ny: *k\n", "y.b", "without changing something else", id="a new key through an alias"
        ),
        pytest.param(
            "x: &k\n  a: 1\ny: *k\n", "x.b", "without changing something else", id="a mapping others share"
        ),
        pytest.param("a: [\n", "b", "no valid YAML", id="no YAML"),
    ],
)
def test_refuses_to_create(text: str, key: str, said: str) -> None:
    with pytest.raises(EditError, match=said):
        update_yaml(text, [YamlUpdate(key, 1)], create=True)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param(["a: 1\n", "a: 2\n"], "a: 2\n", id="the later scalar wins"),
        pytest.param(["a: 1 # c\n", "a: 2 # d\n"], "a: 2 # c\n", id="the first text's comment stays"),
        pytest.param(["a:\n  b: 1\n  c: 2\n", "a:\n  b: null\n"], "a:\n  c: 2\n", id="a null removes"),
        pytest.param(
            ["a:\n  b: 1\nc: 1\n", "a:\n  b: ~\n"], "a:\n  {}\nc: 1\n", id="the last key of a mapping"
        ),
        pytest.param(
            ["l:\n- a # x\n- b\nm: 1\n", "l: [c]\n"], "l: [c]\nm: 1\n", id="lists are replaced whole"
        ),
        pytest.param(
            ["l: [c]\nm: 1\n", "l:\n- a # x\n- b\n"], "l:\n- a # x\n- b\nm: 1\n", id="by a block list"
        ),
        pytest.param(
            [
                "# top\na:\n    b: 1\n\n# tail\nc:   'q'\n",
                "a:\n  # why\n  d:\n    - x: 1\n      y: |\n        t\n",
            ],
            "# top\na:\n    b: 1\n    # why\n    d:\n      - x: 1\n        y: |\n          t\n\n# tail\nc:   'q'\n",
            id="new entries come with their lines, moved to their place",
        ),
        pytest.param(
            ["a: {b: 1}\n", "a:\n  c:\n    - 1\n"], "a: {b: 1, c: [1]}\n", id="a block into a flow mapping"
        ),
        pytest.param(
            ["a:\n  b: 1\n", "{a: {c: 'x, y'}}\n"], "a:\n  b: 1\n  c: x, y\n", id="a flow into a block"
        ),
        pytest.param(
            ["a: 1\r\n", "b:\n  c: 2\n"], "a: 1\r\nb:\r\n  c: 2\r\n", id="the first text's line ends"
        ),
        pytest.param(["a: 1", "b: 2"], "a: 1\nb: 2\n", id="no last line end"),
        pytest.param(["", "# c\n", "a: 1\n", "~\n"], "a: 1\n", id="empty texts change nothing"),
        pytest.param(
            ["a: &x {k: 1}\nb: *x\n", "b: {k: 2}\n"],
            "a: &x {k: 1}\nb: {k: 2}\n",
            id="an alias is written out",
        ),
        pytest.param(
            ["a: &x  [1]  # c\nb: *x\n"] * 2, "a: &x  [1]  # c\nb: *x\n", id="what is equal stays as it is"
        ),
        pytest.param(["- 1\n", "- 2\n"], "- 2\n", id="a list at the top"),
        pytest.param(["a: 1\nb: 1\n", "b: 2\n", "a: 3\n"], "a: 3\nb: 2\n", id="three texts"),
        pytest.param([], "", id="nothing"),
    ],
)
def test_merges(texts: list[str], expected: str) -> None:
    assert merge_yaml(texts) == expected


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        pytest.param(
            ["a: 1\n---\nb: 1\n", "a: 2\n"], "line 3: only files of one document", id="two documents"
        ),
        pytest.param(
            ["a: {b: 1}\n", "a: {b: [x]}\n"], "'a.b' one file holds a scalar, a later one a list", id="kinds"
        ),
        pytest.param(["a: 1\n", "- a\n"], "at the top one file holds a mapping", id="kinds at the top"),
        pytest.param(["a: {b: 1}\n", "a: {$patch: delete}\n"], "'a' holds a \\$patch", id="a directive"),
        pytest.param(["a: 1\n", ":"], "no valid YAML", id="no YAML"),
        pytest.param(
            ["a: &x {k: 1}\nb: *x\n", "a: {k: 2}\n"],
            "without changing a value",
            id="a shared mapping changes",
        ),
    ],
)
def test_refuses_to_merge(texts: list[str], said: str) -> None:
    with pytest.raises(EditError, match=said):
        merge_yaml(texts)
