"""Replacing scalars of TOML texts."""

from __future__ import annotations

import pytest

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.keys import Update
from bot.editors.toml import find_toml_leaves, update_toml

TEXT = (
    'a = 1 # c\r\nb.c = "x"\r\n[t."q.r"]\r\nd = [1, [2, {e = 3}], # ]\r\n  4,\r\n]\r\n'
    '[[s]]\r\nn = """m "\r\nl""""\r\n[[s]]\r\nn = 1979-05-27 07:32:00Z\r\n[[s.u]]\r\nv = \'\'\'q\'\'\'\r\n'
    "[s.w]\r\nx = 0x1F\r\n"
)


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        pytest.param("a", 2, "a = 1 #", "a = 2 #", id="a comment stays"),
        pytest.param("b.c", "y", '"x"', "'y'", id="a dotted key, single quotes as go-toml"),
        pytest.param("t.q\\.r.d.0", 5, "[1,", "[5,", id="a list item under a quoted name"),
        pytest.param("t.q\\.r.d.1.1.e", "z", "{e = 3}", "{e = 'z'}", id="an inline table in a list"),
        pytest.param("t.q\\.r.d[2]", 5, "  4,", "  5,", id="an index in brackets, behind a comment"),
        pytest.param("s.0.n", "v", '"""m "\r\nl""""', "'v'", id="a string over lines that ends in a quote"),
        pytest.param("s.1.n", "v", "1979-05-27 07:32:00Z", "'v'", id="a date with a space"),
        pytest.param("s[1].u[0].v", "v", "'''q'''", "'v'", id="an array of tables in another"),
        pytest.param("s.1.w.x", 32, "0x1F", "32", id="a table of the last table of an array"),
        pytest.param("a", "it's", "a = 1", 'a = "it\'s"', id="a single quote needs double ones"),
        pytest.param("a", 'q"\\', "a = 1", "a = 'q\"\\'", id="double quotes and backslashes do not"),
        pytest.param("a", "\x00\t", "a = 1", 'a = "\\u0000\\t"', id="control characters do"),
        pytest.param("a", 1.0, "a = 1", "a = 1.0", id="a float shows its point"),
        pytest.param("a", 1e-7, "a = 1", "a = 0.0000001", id="and no exponent"),
        pytest.param("a", False, "a = 1", "a = false", id="a boolean"),
    ],
)
def test_replaces_only_the_value(key: str, value: Json, old: str, new: str) -> None:
    assert TEXT.count(old) == 1
    assert update_toml(TEXT, [Update(key, value)]) == TEXT.replace(old, new)


@pytest.mark.parametrize(
    ("text", "key", "value", "said"),
    [
        pytest.param(TEXT, "aa", 1, "was not found; did you mean 'a'", id="misspelt"),
        pytest.param(TEXT, "s.2.n", 1, "did you mean 's.1.n'", id="index past the end"),
        pytest.param(TEXT, "s", 1, "line 7: .*is a table", id="an array of tables"),
        pytest.param(TEXT, "t", 1, "line 3: .*is a table", id="a table"),
        pytest.param(TEXT, "t.q\\.r.d", 1, "line 4: .*holds a list or table", id="a list"),
        pytest.param(TEXT, "a", None, "no scalar that TOML can hold", id="null"),
        pytest.param(TEXT, "a", float("nan"), "no scalar", id="NaN"),
        pytest.param(TEXT, "a", 1 << 63, "no scalar that TOML can hold .int", id="a number beyond 64 bits"),
        pytest.param("a = 1\na = 2\n", "a", 1, "line 2: this is no valid TOML", id="a duplicate key"),
        pytest.param("a = \n", "a", 1, "line 1: this is no valid TOML", id="no value"),
    ],
)
def test_refuses_and_says_why(text: str, key: str, value: Json, said: str) -> None:
    with pytest.raises(EditError, match=said):
        update_toml(text, [Update(key, value)])


def test_several_updates_at_once() -> None:
    updates = [Update("b", 3), Update("a", "x"), Update("b", 4)]
    assert update_toml("\ufeffa = 1\nb = 2 # c", updates) == "\ufeffa = 'x'\nb = 4 # c"


def test_finds_leaves() -> None:
    assert find_toml_leaves(TEXT)[("s", 1, "n")] == "1979-05-27 07:32:00+00:00"
    assert find_toml_leaves("a = []\n[b]\n") == {("a",): [], ("b",): {}}
