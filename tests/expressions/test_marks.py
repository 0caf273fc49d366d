"""The table of how unknown and sensitive values travel (review gate, propagation), row by row."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.domain.values import Sensitive, Text, Unknown, Value
from bot.expressions.errors import ExpressionError
from bot.expressions.evaluator import compile_expression
from bot.expressions.functions import TEMPLATE_FUNCTIONS, UTILITY_FUNCTIONS

URL = Unknown("known after apply: lambda_url")
KEY = Unknown("known after apply: key", sensitive="secret('db').key")
PASSWORD = Sensitive("secret('db').password", "hunter2")
NUMBER = Sensitive("secret('db').port", 5432)
YES = Sensitive("secret('db').on", True)
NOTHING = Sensitive("secret('db').nothing", None)
HOLED = Text(("https://", URL, "/x"))
NAMES: dict[str, Value] = {
    "u": URL,
    "k": KEY,
    "p": PASSWORD,
    "port": NUMBER,
    "yes": YES,
    "nothing": NOTHING,
    "t": HOLED,
    "half": {"url": URL, "name": "web"},
    "list": [1, URL, 3],
    "secrets": {"a": PASSWORD, "b": "plain"},
    "box": Sensitive("secret('db').box", {"a": [1, 2]}),
}


def evaluate(source: str) -> Value:
    functions = {**TEMPLATE_FUNCTIONS, **UTILITY_FUNCTIONS}
    return compile_expression(source).evaluate(NAMES, functions, datetime(2024, 1, 2, tzinfo=UTC))


@pytest.mark.parametrize(
    "source",
    [
        "u.deep.deeper", "u?.deep", "u[0]", "u['x']", "u[1:2]", "list[u]", "half[u]", "list[u:]", "list[:u]",
        "u + 1", "'a' + u", "u - 1", "u * 2", "u ** 2", "u % 2", "1 < u", "u == u", "u != 'x'", "-u", "not u",
        "u in ['a']", "1 in list", "'url' in half", "u matches 'x'", "u contains 'x'", "u startsWith 'x'",
        "1..u", "list == [1, 2, 3]", "half == half",
        "u ? 1 : 2", "u ?? 'x'", "if u { 1 } else { 2 }",
        "len(u)", "keys(u)", "values(u)", "first(u)", "last(u)", "take(list, u)", "take(u, 1)", "get(u, 'x')",
        "get(half, u)", "map(u, # + 1)", "len(t)",
        "upper(u)", "join(list)", "type(u)", "type(list)", "toJSON(half)", "string(list)", "quote(u)",
        "unsafeQuote(half)", "asJSON(half)", "asYAML(list)", "semverDiff(u, '1.0.0')", "semverParse(u)",
        "filter(list, # > 1)", "any(list, # == 1)", "all(list, true)", "count(list, # == 1)", "find(list, # == 1)",
        "sum(list)", "sortBy(list, #)", "groupBy(list, #)", "reduce(list, #acc)", "reverse(list)", "uniq(list)",
        "concat(list, [1])", "flatten(list)", "toPairs(half)", "filter([1, 2], # == u)", "any([1], u)",
        "sortBy([1, 2], u)", "groupBy([1], u)", "sum([1], u)", "{(u): 1}", "u.method(1)", "t + 'x'", "t == 'x'",
        "now().Add(u)", "duration(u)",
    ],
)  # fmt: skip
def test_an_unknown_operand_makes_the_result_unknown(source: str) -> None:
    assert evaluate(source) == URL


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[u, 1]", [URL, 1]),
        ("{a: u}", {"a": URL}),
        ("half.name", "web"),
        ("half?.name", "web"),
        ("half.url", URL),
        ("list[0]", 1),
        ("list[-1]", 3),
        ("list[1:]", [URL, 3]),
        ("len(list)", 3),
        ("len(half)", 2),
        ("keys(half)", ["name", "url"]),
        ("values(half)", ["web", URL]),
        ("first(list)", 1),
        ("last(list)", 3),
        ("take(list, 2)", [1, URL]),
        ("get(half, 'name')", "web"),
        ("get(list, 9)", None),
        ("map(list, #)", [1, URL, 3]),
        ("map(list, 0)", [0, 0, 0]),
        ("map(list, # == 1)", [True, URL, False]),
        ("map([1, 2], u)", [URL, URL]),
        ("filter([1, 2], # == 1 or (u and false))", [1]),
        ("true ? 1 : u", 1),
        ("false ? u : 2", 2),
        ("true ? u : 2", URL),
        ("nil ?? u", URL),
        ("'x' ?? u", "x"),
        ("let v = u; 1", 1),
        ("t", HOLED),
    ],
)
def test_what_is_known_of_a_partly_unknown_value_stays_known(source: str, expected: Value) -> None:
    assert evaluate(source) == expected


LOGIC = {"true": True, "false": False, "u": None, "1 / 0 == nowhere.y": "error"}


@pytest.mark.parametrize("right", LOGIC)
@pytest.mark.parametrize("left", ["true", "false", "u"])
@pytest.mark.parametrize("operator", ["&&", "||", "and", "or"])
def test_logic_has_three_values(operator: str, left: str, right: str) -> None:
    deciding = operator in ("||", "or")
    one, other = LOGIC[left], LOGIC[right]
    if one is deciding:
        expected: object = deciding
    elif one is None:
        # An error on the right is not certain to happen, since the left side may decide.
        expected = deciding if other is deciding else URL
    elif other == "error":
        with pytest.raises(ExpressionError):
            evaluate(f"{left} {operator} ({right})")
        return
    else:
        expected = URL if other is None else other
    assert evaluate(f"{left} {operator} ({right})") == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("p", PASSWORD),
        ("p + '!'", Sensitive(PASSWORD.name, "hunter2!")),
        ("port + 1", Sensitive(NUMBER.name, 5433)),
        ("p + string(port)", Sensitive(f"{PASSWORD.name}, {NUMBER.name}", "hunter25432")),
        ("p + p", Sensitive(PASSWORD.name, "hunter2hunter2")),
        ("p == 'hunter2'", Sensitive(PASSWORD.name, True)),
        ("len(p)", Sensitive(PASSWORD.name, 7)),
        ("type(p)", Sensitive(PASSWORD.name, "string")),
        ("p[0:2]", Sensitive(PASSWORD.name, "hu")),
        ("box.a", Sensitive("secret('db').box", [1, 2])),
        ("box.a[1]", Sensitive("secret('db').box", 2)),
        ("map(box.a, # * 2)", Sensitive("secret('db').box", [2, 4])),
        ("first(box.a)", Sensitive("secret('db').box", 1)),
        ("get(box, 'missing')", Sensitive("secret('db').box", None)),
        ("filter([1, 5432], # == port)", Sensitive(NUMBER.name, [5432])),
        ("any([1], # == port)", Sensitive(NUMBER.name, False)),
        ("yes ? 'a' : 'b'", Sensitive(YES.name, "a")),
        ("yes && true", Sensitive(YES.name, True)),
        ("yes || u", YES),
        ("nothing ?? 'x'", Sensitive(NOTHING.name, "x")),
        ("nothing?.a.b", NOTHING),
        ("quote(p)", Sensitive(PASSWORD.name, '"hunter2"')),
        ("toJSON(secrets)", Sensitive(PASSWORD.name, '{\n  "a": "hunter2",\n  "b": "plain"\n}')),
        ("secrets.b", "plain"),
        ("secrets.a", PASSWORD),
        ("keys(secrets)", ["a", "b"]),
        ("[p, 1]", [PASSWORD, 1]),
        ("duration(toJSON(port) + 's').Seconds()", Sensitive(NUMBER.name, 5432.0)),
        ("{(p): 1}", Sensitive(PASSWORD.name, {"hunter2": 1})),
    ],
)
def test_a_sensitive_operand_makes_the_result_sensitive(source: str, expected: Value) -> None:
    assert evaluate(source) == expected


@pytest.mark.parametrize(
    "source", ["p + u", "u + p", "[p, u] == [1, 2]", "u ? p : 1 + u", "yes ? u : 1", "toJSON([u, p])"]
)
def test_unknown_and_sensitive_is_unknown_with_the_secrets_name(source: str) -> None:
    result = evaluate(source)
    assert isinstance(result, Unknown)
    assert result.origin == URL.origin
    if source != "u ? p : 1 + u":
        assert result.sensitive in (PASSWORD.name, YES.name)


def test_origins_and_names_are_joined_once_each() -> None:
    assert evaluate("[u, k, u, k] == [1]") == Unknown(f"{URL.origin}, {KEY.origin}", KEY.sensitive)


@pytest.mark.parametrize(
    "source", ["int(p)", "p * 2", "fromJSON(p)", "p.x", "duration(p)", "box[9]", "date(p)", "p matches '['"]
)
def test_an_error_about_a_secret_does_not_repeat_it(source: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(source)
    assert "hunter2" not in str(caught.value)


def test_now_may_be_unknown() -> None:
    later = Unknown("known after merge: time")
    assert compile_expression("now().Year()").evaluate({}, {}, later) == later
    assert (
        compile_expression("now()").evaluate({}, {}, datetime(2024, 1, 2, tzinfo=UTC))
        == "2024-01-02T00:00:00Z"
    )
