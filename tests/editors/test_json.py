"""Setting paths in JSON texts."""

from __future__ import annotations

import pytest

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.json import find_json_leaves, update_json
from bot.editors.keys import Update

LINE = '{"a": 1, "b": {"c": "x"}, "l": [1, 2]}'
PRETTY = '{\n  "a": 1,\n  "b": {\n    "c": "x"\n  },\n  "l": [\n    1,\n    2\n  ]\n}\n'


@pytest.mark.parametrize(
    ("text", "key", "value", "expected"),
    [
        pytest.param(PRETTY, "b.c", "y", PRETTY.replace('"x"', '"y"'), id="in place"),
        pytest.param(LINE, "l.0", None, LINE.replace("[1,", "[null,"), id="an item"),
        pytest.param(LINE, "l.-1", 3, LINE.replace("2]", "2,3]"), id="-1 appends"),
        pytest.param(
            LINE, "l.4", 9, LINE.replace("[1, 2]", "[1,2,null,null,9]"), id="past the end pads, as sjson"
        ),
        pytest.param(LINE, "x.y.z", 1, LINE[:-1] + ',"x":{"y":{"z":1}}}', id="a path of new objects"),
        pytest.param(LINE, "x.1.y", 1, LINE[:-1] + ',"x":[null,{"y":1}]}', id="a number makes a list"),
        pytest.param(LINE, "x.:1", 1, LINE[:-1] + ',"x":{"1":1}}', id="a colon makes it a key"),
        pytest.param(LINE, "a.b", 1, LINE.replace('"a": 1', '"a": {"b":1}'), id="a scalar gives way"),
        pytest.param(LINE, "a\\.b", 1, LINE[:-1] + ',"a.b":1}', id="an escaped dot"),
        pytest.param(
            PRETTY,
            "b.d",
            True,
            PRETTY.replace('"x"\n', '"x",\n    "d": true\n'),
            id="a new key gets a line of its own",
        ),
        pytest.param(
            PRETTY, "l.-1", 3, PRETTY.replace("2\n", "2,\n    3\n"), id="a new item gets a line of its own"
        ),
        pytest.param(
            '{\r\n\t"a" :1\r\n}\r\n', "b", 2, '{\r\n\t"a" :1,\r\n\t"b":2\r\n}\r\n', id="CRLF and tabs"
        ),
        pytest.param('\ufeff{"a":1}', "a", 2, '\ufeff{"a":2}', id="a byte order mark"),
        pytest.param("", "a.b", 1, '{"a":{"b":1}}', id="an empty text"),
        pytest.param("[]", "-1", 2, "[2]", id="an empty list"),
        pytest.param('{"a":1}', "a", "<é>&\\", '{"a":"<é>&\\\\"}', id="no HTML escapes"),
        pytest.param('{"a":1}', "a", "\u2028", '{"a":"\\u2028"}', id="line separators are escaped"),
        pytest.param('{"a":1}', "a", 1e21, '{"a":1000000000000000000000}', id="no exponent"),
        pytest.param('{"a":1}', "a", 3.630065985886618e16, '{"a":36300659858866180}', id="beyond 53 bits"),
        pytest.param('{"a":1}', "a", 5.0, '{"a":5}', id="a whole float"),
        pytest.param('{"a":1e5,"b":1.10}', "b", 2, '{"a":1e5,"b":2}', id="other numbers keep their spelling"),
    ],
)
def test_sets_a_path(text: str, key: str, value: Json, expected: str) -> None:
    assert update_json(text, [Update(key, value)]) == expected


@pytest.mark.parametrize(
    ("text", "key", "value", "said"),
    [
        pytest.param(LINE, "l.x", 1, "line 1: .*'x' is no index of the list of 2", id="a name in a list"),
        pytest.param(LINE, "l.:9", 1, "'9' is no index", id="a forced key in a list"),
        pytest.param(LINE, "l.99999", 1, "would pad a list with 99997 nulls", id="an index far away"),
        pytest.param(LINE, "", 1, "empty", id="an empty path"),
        pytest.param(LINE, "a..b", 1, "empty part", id="an empty part"),
        pytest.param(LINE, "l.#", 1, "wildcards name no single place", id="a wildcard"),
        pytest.param(LINE, "a", {"x": 1}, "only scalars", id="an object as value"),
        pytest.param(LINE, "a", 10**5000, "cannot be written", id="a number of 5,001 digits"),
        pytest.param(LINE, "a", float("inf"), "no JSON number", id="infinity"),
        pytest.param(LINE, "a", "\udc00", "half a surrogate pair", id="half a surrogate pair"),
        pytest.param('{\n"a":1,\n"a":2}', "a", 3, "line 3: .*stands twice", id="a duplicate key"),
        pytest.param('{"a":1,\n}', "a", 3, "line 2: this is no valid JSON", id="a trailing comma"),
        pytest.param('{"a":NaN}', "a", 3, "NaN is no JSON value", id="NaN in the text"),
        pytest.param('{"a":1} // c', "a", 3, "no valid JSON", id="a comment"),
    ],
)
def test_refuses_and_says_why(text: str, key: str, value: Json, said: str) -> None:
    with pytest.raises(EditError, match=said):
        update_json(text, [Update(key, value)])


def test_later_updates_see_earlier_ones() -> None:
    assert update_json("{}", [Update("a.-1", 1), Update("b.0", 1), Update("b.-1", 2)]) == (
        '{"a":{"-1":1},"b":[1,2]}'
    )


def test_finds_leaves() -> None:
    assert find_json_leaves('{"a": [1, {"b": null}], "c": {}, "d": []}') == {
        ("a", 0): 1, ("a", 1, "b"): None, ("c",): {}, ("d",): [],
    }  # fmt: skip
