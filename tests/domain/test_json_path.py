"""Paths as Kubernetes writes them."""

from __future__ import annotations

import pytest

from bot.domain.json_path import JsonPathError, parse_json_path
from bot.domain.values import Json

ANSWER: Json = {
    "ok": True,
    "data": {"rate": 0.97, "a.b": 1, "list": [1, 2, 3]},
    "items": [{"name": "p", "ready": False, "n": 1}, {"name": "q", "ready": True, "n": 2}],
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", ANSWER),
        ("{$}", ANSWER),
        ("{$.ok}", True),
        ("{.data.rate}", 0.97),
        ("{ $.data.rate }", 0.97),
        ("{data.rate}", 0.97),
        ("{$['data']['a.b']}", 1),
        (r"{.data.a\.b}", 1),
        ("{.data.list[0]}", 1),
        ("{.data.list[-1]}", 3),
        ("{.data.list[1:]}", 2),
        ("{.data.list[::2]}", 1),
        ("{.data.list[7,2]}", 3),
        ("{.data['none','rate']}", 0.97),
        ("{.items[*].name}", "p"),
        ("{..rate}", 0.97),
        ("{..['rate']}", 0.97),
        ("{.items[?(@.name == 'q')].n}", 2),
        ('{.items[?(@.name=="q")].ready}', True),
        ("{.items[?(@.n > 1)].name}", "q"),
        ("{.items[?(@.ready == true)].name}", "q"),
        ("{.items[?(@.ready != false)].name}", "q"),
        ("{.items[?(@.n)].name}", "p"),
    ],
)
def test_what_a_path_leads_to(path: str, found: Json) -> None:
    assert parse_json_path(path).find(ANSWER) == found


@pytest.mark.parametrize("path", ["{.nope}", "{.data.list[5]}", "{.items[?(@.n > 9)]}", "{.ok.deeper}"])
def test_a_path_that_leads_nowhere(path: str) -> None:
    with pytest.raises(JsonPathError, match="nothing is found"):
        parse_json_path(path).find(ANSWER)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("$.ok", "in braces"),
        ("{.list[}", "not closed"),
        ("{.list[x]}", "neither a place"),
        ("{.a..b..c..d}", "at most 2 times"),
        ("{.list[::0]}", "by 0"),
        ("{range .items[*]}", "cannot be read"),
        ("{.items[?(@.a =~ 'x')]}", "filter"),
        ("{" + "." * 2000 + "}", "more than 1000"),
    ],
)
def test_a_path_that_cannot_be_read(path: str, says: str) -> None:
    with pytest.raises(JsonPathError, match=says):
        parse_json_path(path)
