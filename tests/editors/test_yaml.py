"""Replacing, reading and naming values of YAML texts."""

from __future__ import annotations

import pytest

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.keys import split_key
from bot.editors.yaml import YamlUpdate, find_leaves, get_yaml, line_of, quote_scalar, update_yaml


def one(text: str, key: str, value: Json) -> str:
    return update_yaml(text, [YamlUpdate(key, value)])


@pytest.mark.parametrize(
    ("text", "key", "value", "expected"),
    [
        pytest.param("a: x # c\n", "a", "y", "a: y # c\n", id="a comment behind the value stays"),
        pytest.param("a:   x\t # c\n", "a", 3, "a:   3\t # c\n", id="spacing around the value stays"),
        pytest.param("a:\tx\n", "a", 3, "a:\t3\n", id="a tab before the value stays"),
        pytest.param("a: 1\r\nb: 2 # c\r\n", "b", 3, "a: 1\r\nb: 3 # c\r\n", id="CRLF stays"),
        pytest.param("\ufeffa: 1\n", "a", 3, "\ufeffa: 3\n", id="a byte order mark stays"),
        pytest.param("a: 1", "a", 3, "a: 3\n", id="a last line gets an end, as in Kargo"),
        pytest.param("a: 1\r\nb: 1", "b", 3, "a: 1\r\nb: 3\r\n", id="that end is CRLF where the others are"),
        pytest.param(
            "b: 1\na: |\n  x", "b", 2, "b: 2\na: |\n  x", id="but not where it would join a block scalar"
        ),
        pytest.param("a: &x 1 # c\nb: *x\n", "a", "v", "a: &x v # c\nb: *x\n", id="an anchor stays"),
        pytest.param("a: &x\nb: 1\n", "a", "v", "a: &x v\nb: 1\n", id="an anchor on an empty value stays"),
        pytest.param("a: !!str 5\n", "a", "6", 'a: !!str "6"\n', id="a fitting tag stays"),
        pytest.param(
            "a: &q !!str 5\n",
            "a",
            6,
            "a: &q 6\n",
            id="a tag that contradicts the value goes, the anchor stays",
        ),
        pytest.param("a: ! x\n", "a", "5", 'a: ! "5"\n', id="the non-specific tag stays"),
        pytest.param(
            "{a: 1, b: 'x'} # c\n", "b", "u:v", "{a: 1, b: 'u:v'} # c\n", id="flow mapping, old quotes kept"
        ),
        pytest.param("[a,b,  c]\n", "1", "q,r", '[a,"q,r",  c]\n', id="a comma in a flow list is quoted"),
        pytest.param("[a,b,  c]\n", "[2]", True, "[a,b,  true]\n", id="an index in brackets"),
        pytest.param("a: [[1,2]]\n", "a[0][1]", 3, "a: [[1,3]]\n", id="indexes behind the name"),
        pytest.param("a[0]: 1\n", "a[0]", 3, "a[0]: 3\n", id="unless that is the key itself"),
        pytest.param("{a, b: 1}\n", "a", "x", "{a: x, b: 1}\n", id="a flow key without value"),
        pytest.param("a:\nb: 1\n", "a", "v", "a: v\nb: 1\n", id="an empty value"),
        pytest.param("a: # c\nb: 1\n", "a", "v", "a: v # c\nb: 1\n", id="an empty value before a comment"),
        pytest.param("a:  \r\nb: 1\r\n", "a", "v", "a: v\r\nb: 1\r\n", id="an empty value before blanks"),
        pytest.param("-\n- 1\n", "0", "x", "- x\n- 1\n", id="an empty list item"),
        pytest.param(
            "a: |\n  x\n  y\n\nb: 1\n", "a", "v", "a: v\n\nb: 1\n", id="one line replaces a block scalar"
        ),
        pytest.param(
            "a: |- # c\n    x\n# d\nb: 1\n",
            "a",
            "v\nw",
            "a: |- # c\n    v\n    w\n# d\nb: 1\n",
            id="lines keep the block",
        ),
        pytest.param(
            "a: |\r\n  x\r\nb: 1\r\n",
            "a",
            "v\nw\n",
            "a: |\r\n  v\r\n  w\r\nb: 1\r\n",
            id="a block in a CRLF file",
        ),
        pytest.param(
            "a: >\n  x\n", "a", "v\n\n", 'a: "v\\n\\n"\n', id="what no clipped block can hold is quoted"
        ),
        pytest.param(
            "a:\n    b: |\n    c: 1\n",
            "a.b",
            "v\nw\n",
            'a:\n    b: "v\\nw\\n"\n    c: 1\n',
            id="an empty block",
        ),
        pytest.param("a: 'x\n  y'\nb: 1\n", "a", "v", "a: v\nb: 1\n", id="a quoted scalar on two lines"),
        pytest.param("a: x\n  y # c\nb: 1\n", "a", "v", "a: v # c\nb: 1\n", id="a bare scalar on two lines"),
        pytest.param("a: 1\n---\na: 2\n", "a", "v", "a: v\n---\na: 2\n", id="only the first document"),
        pytest.param(
            "a: 😀\nb: 2\n", "b", "é", "a: 😀\nb: é\n", id="characters beyond 16 bits before the value"
        ),
        pytest.param('a: "{{ x }}"\n', "a", "{{ y }}", 'a: "{{ y }}"\n', id="a template is quoted"),
        pytest.param("a: 1\n", "a", "lk-4f.hole", "a: lk-4f.hole\n", id="a DNS label is an ordinary string"),
        pytest.param("a\\.b: 1\n? c\n: 2\n", "c", 3, "a\\.b: 1\n? c\n: 3\n", id="an explicit key"),
    ],
)
def test_replaces_only_the_value(text: str, key: str, value: Json, expected: str) -> None:
    assert one(text, key, value) == expected


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("1.10", '"1.10"'), ("20240101", '"20240101"'), ("1e3", '"1e3"'), ("1_000", '"1_000"'), ("0x1F", '"0x1F"'),
        ("0o17", '"0o17"'), ("0755", '"0755"'), ("12:30:45", '"12:30:45"'), ("2024-01-01", '"2024-01-01"'),
        ("yes", '"yes"'), ("Off", '"Off"'), ("y", "y"), ("true", '"true"'), ("null", '"null"'), ("~", '"~"'),
        ("", '""'), ("=", '"="'), ("<<", '"<<"'), (".inf", '".inf"'), ("inf", '"inf"'), (".5", '".5"'),
        ("a: b", '"a: b"'), ("x #y", '"x #y"'), ("x:", '"x:"'), ("- x", '"- x"'), ("-x", "-x"), ("---", '"---"'),
        ("*x", '"*x"'), (" x", '" x"'), ("x ", '"x "'), ("a\nb", '"a\\nb"'), ("\x85", '"\\u0085"'),
        ("\u2028", '"\\u2028"'), ('say "hi"', 'say "hi"'), ('"hi"', '"\\"hi\\""'), ("a\\b", "a\\b"),
        ("v1.0+2", "v1.0+2"),
        ("sha256:ab", "sha256:ab"), ("http://x/y", "http://x/y"), ("1.2.3", "1.2.3"), ("[1]", '"[1]"'), ("@x", '"@x"'),
        (1000000, "1000000"), (10**30, str(10**30)), (1.5, "1.5"), (5.0, "5"), (1e21, "1.0e+21"), (1e-7, "1.0e-07"),
        (True, "true"), (None, "null"),
    ],
)  # fmt: skip
def test_a_value_keeps_its_type(value: Json, written: str) -> None:
    text = one("a: old # c\n", "a", value)
    assert text == f"a: {written} # c\n"
    found = get_yaml(text, "a")
    assert found == value
    assert isinstance(found, str) == isinstance(value, str)


@pytest.mark.parametrize(
    ("text", "key", "value", "said"),
    [
        pytest.param(
            "a:\n  image: 1\n", "a.imag", 1, "line 2: .*no 'imag' in 'a'; did you mean 'image'", id="misspelt"
        ),
        pytest.param("a: 1\nb: 2\n", "zzz", 1, "no 'zzz' at the top; there is 'a', 'b'", id="nothing near"),
        pytest.param("a: 1\n---\nb: 2\n", "b", 1, "a later document has it", id="in a later document"),
        pytest.param("", "a", 1, "holds no document", id="empty text"),
        pytest.param("a: {}\n", "a", 1, "holds a mapping; only scalars", id="a mapping"),
        pytest.param("a: [1]\n", "a", 1, "holds a list of 1 items", id="a list"),
        pytest.param("a: [1]\n", "a.1", 1, "a list of 1 items, and '1' names none", id="index past the end"),
        pytest.param("a: [1]\n", "a.-1", 1, "'-1' names none", id="negative index"),
        pytest.param("a: 1\n", "a.b", 1, "in 'a' is a scalar", id="through a scalar"),
        pytest.param(
            "a: 1\na: 2\n", "a", 1, "stands twice in one mapping, at lines 1 and 2", id="duplicate key"
        ),
        pytest.param(
            "x: &k {a: 1}\ny: *k\n", "y.a", 1, "line 2: .*alias \\*k.*anchor at line 1", id="through an alias"
        ),
        pytest.param("x: &k 1\ny: *k\n", "y", 1, "through the alias", id="an alias itself"),
        pytest.param("x: &k {a: 1}\ny: {<<: *k}\n", "y.a", 1, "merged by '<<'", id="through a merge key"),
        pytest.param("a: !vault x\n", "a", "y", "carries the tag !vault", id="a private tag"),
        pytest.param("a: 1\n", "a", [1], "only scalars can be written", id="a list as value"),
        pytest.param("a: 1\n", "a", float("nan"), "not a finite number", id="NaN"),
        pytest.param(
            "a: 1\n", "a", "\ud800", "cannot be written here without harm", id="half a surrogate pair"
        ),
        pytest.param("a: [1\n", "a", 1, "line 2: this is no valid YAML", id="no YAML"),
        pytest.param("a: 1\nb: {{ x }}\n", "b", 1, "holds a mapping", id="a Helm template"),
        pytest.param(
            "a: 1\nb: *x\n", "a", 1, "line 2: the alias \\*x has no anchor", id="an unknown alias elsewhere"
        ),
        pytest.param("? a\n", "a", 1, "without harm", id="an explicit key without value"),
        pytest.param("a: 1\n", "", 1, "the key is empty", id="empty key"),
    ],
)
def test_refuses_and_says_why(text: str, key: str, value: Json, said: str) -> None:
    with pytest.raises(EditError, match=said):
        one(text, key, value)


def test_several_updates_at_once_and_the_last_of_one_key_counts() -> None:
    text = "a: 1 # x\nb: [1, 2]\nc: 'q'\n"
    updates = [YamlUpdate("c", "z"), YamlUpdate("b.1", 5), YamlUpdate("a", 2), YamlUpdate("a", 3)]
    assert update_yaml(text, updates) == "a: 3 # x\nb: [1, 5]\nc: z\n"


def test_no_update_leaves_the_text_but_for_its_last_end() -> None:
    assert update_yaml("a: 1 # c", []) == "a: 1 # c\n"
    with pytest.raises(EditError, match="no valid YAML"):
        update_yaml("a: [", [])


def test_one_bad_update_of_several_changes_nothing() -> None:
    with pytest.raises(EditError, match="'b' was not found"):
        update_yaml("a: 1\n", [YamlUpdate("a", 2), YamlUpdate("b", 2)])


@pytest.mark.parametrize(
    ("key", "parts"),
    [("a.b", ["a", "b"]), ("a\\", ["a"]),
     ("a\\.b.c", ["a.b", "c"]), (":0.a", ["0", "a"]), ("a\\:b", ["a:b"]), (" a ", ["a"]),
     ("::a", ["a"]), ("a b", ["a b"])],
)  # fmt: skip
def test_splits_keys_as_kargo(key: str, parts: list[str]) -> None:
    assert split_key(key) == parts


@pytest.mark.parametrize("key", ["", " ", ".", "a.", ".a", "a..b", "a\\x", "\\", "a:b", ":"])
def test_refuses_bad_keys(key: str) -> None:
    with pytest.raises(EditError):
        split_key(key)


def test_commit_messages_show_values_as_kargo_does() -> None:
    assert [quote_scalar(each) for each in ("yes", "1.0", "", 3, True)] == ["yes", '"1.0"', "", "3", "true"]


def test_reads_types_as_helm_does() -> None:
    text = "a: 0755\nb: yes\nc: 2024-01-01\nd: .inf\ne: 1e3\nf: ~\ng: 'true'\nh: !!str 5\ni: 0x1F\nj: 1_000\nk: !x 5\n"
    assert find_leaves(text) == {
        ("a",): 493, ("b",): "yes", ("c",): "2024-01-01", ("d",): ".inf", ("e",): 1000.0, ("f",): None,
        ("g",): "true", ("h",): "5", ("i",): 31, ("j",): 1000, ("k",): "5",
    }  # fmt: skip


def test_finds_leaves_through_aliases_and_in_every_document() -> None:
    text = "a: &x {k: [1]}\nb: *x\nc: []\nd: {}\n---\ne: 1\n"
    assert find_leaves(text) == {
        ("a", "k", 0): 1, ("b", "k", 0): 1, ("c",): [], ("d",): {}, ("document 2", "e"): 1,
    }  # fmt: skip


def test_follows_aliases_when_reading() -> None:
    text = "a: &x {k: [1, {l: v}]}\nb: *x\n"
    assert get_yaml(text, "b.k.1.l") == "v"
    assert get_yaml(text, "b") == {"k": [1, {"l": "v"}]}
    assert line_of(text, "b.k[0]") == 1
    assert line_of("a:\n  b:\n    - 1\n    - 2\n", "a.b.1") == 4
    with pytest.raises(EditError, match="did you mean 'kk'"):
        get_yaml("kk: 1\n", "k")
