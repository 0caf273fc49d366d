"""Templates: where expressions are found, what is inserted, and how the result is read."""

from __future__ import annotations

import pytest

from bot.domain.values import Json, Sensitive, Text, Unknown, Value, reveal
from bot.expressions.errors import ExpressionError
from bot.expressions.functions import TEMPLATE_FUNCTIONS
from bot.expressions.templates import (
    Scope,
    coerce,
    evaluate_bool,
    evaluate_criteria,
    evaluate_template,
    evaluate_text,
)

URL = Unknown("known after apply: lambda_url")
KEY = Unknown("known after apply: key", sensitive="secret('db').key")
PASSWORD = Sensitive("secret('db').password", "hunter2")
PORT = Sensitive("secret('db').port", "5432")
NAMES: dict[str, Value] = {
    "word": "hello",
    "n": 42,
    "f": 20240101.0,
    "tag": "1.20",
    "u": URL,
    "k": KEY,
    "p": PASSWORD,
    "port": PORT,
    "t": Text(("https://", URL, "/x")),
    "half": {"url": URL, "n": 2.0},
    "secrets": {"a": PASSWORD},
    "yes": Sensitive("secret('db').on", True),
}
SCOPE = Scope(NAMES, TEMPLATE_FUNCTIONS)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("42", "42"),
        ("plain {{ word }}", "plain {{ word }}"),
        ("${{ word }}", "hello"),
        ("a ${{ n }}${{ n }} b", "a 4242 b"),
        ("${{ n }}${{ n }}", 4242),
        ("${% '}}' %}", "}}"),
        ("${{ word }} ${% n %}", "hello 42"),
        ("a ${{}} b ${{ word }}", "a  b ${{ word }}"),
        ("$${{ word }}}", "$hello}"),
        ("${{ nil }}", None),
        ("a ${{ nil }}", "a null"),
        ("${{ [1, {'a': word}] }}", [1, {"a": "hello"}]),
        ("x=${{ {'b': '<', 'a': 1.0} }}", 'x={"a":1,"b":"\\u003c"}'),
        ("${{ tag }}", 1.2),
        ("${{ quote(tag) }}", "1.20"),
        ("v${{ tag }}", "v1.20"),
        ("${{ f }}", 20240101),
        ("${{ word }}\n", "hello\n"),
        ("${{ n }}\n", 42),
        ("${{ quote(n) }}\n", "42\n"),
        ("${{ unsafeQuote(word) }}", '"hello"'),
        ("${{ asJSON({'b': 1, 'a': [true]}) }}", '{\n  "a": [\n    true\n  ],\n  "b": 1\n}\n'),
        ("${{ asYAML({'b': 1, 'a': [true]}) }}", "a:\n    - true\nb: 1\n"),
        ("${{ 't' }}", True),
        ("${{ ' 42' }}", 42),
        ("${{ '' }}", ""),
    ],
)
def test_evaluates_a_text(template: str, expected: Json) -> None:
    result = evaluate_template(template, SCOPE)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    "template",
    ["${{ word", "${% word }}", "${{ '}}' }}", "${{ ) }}", "${{ 1 / 0 }}", "${{ 'inf' }}", "${{ 'nan' }}"],
)
def test_refuses_a_text(template: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate_template(template, SCOPE)


def test_values_are_evaluated_and_keys_are_not() -> None:
    config: Json = {"${{ word }}": ["${{ n }}", {"deep": "${{ word }}"}, 1.0, None, True]}
    assert evaluate_template(config, SCOPE) == {"${{ word }}": [42, {"deep": "hello"}, 1, None, True]}


def test_an_error_names_the_key_and_the_place() -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate_template({"updates": [{"key": "a", "value": "x ${{ missing.x }}"}]}, SCOPE)
    assert str(caught.value).startswith("updates[0].value: missing is nil here")
    assert caught.value.position == 14


@pytest.mark.parametrize("name", ["quote", "asYAML", "asJSON"])
def test_reserved_names_cannot_be_set(name: str) -> None:
    with pytest.raises(ExpressionError, match="reserved"):
        evaluate_template({}, Scope({name: 1}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1_000", 1000),
        ("1__0", "1__0"),
        ("1_", "1_"),
        ("_1", "_1"),
        ("1_.5", "1_.5"),
        ("1e1_0", 1e10),
        ("+5", 5),
        (".5", 0.5),
        ("5.", 5),
        (".", "."),
        ("0x1p4", 16),
        ("0x_1p-2", 0.25),
        ("0x10", "0x10"),
        ("0b11", "0b11"),
        ("1e400", "1e400"),
        ("1e-400", 0),
        ("007", 7),
        (" 7", 7),
        ("7 ", 7),
        ("7\n\n", 7),
        ("1,5", "1,5"),
        ("\u0663", "\u0663"),
        ("T", True),
        ("False", False),
        ("yes", "yes"),
        ("null", None),
        ("Null", "Null"),
        ('"quoted"', "quoted"),
        ('"', '"'),
        ('"a" "b"', 'a" "b'),
        ("{a: 1}", "{a: 1}"),
        ('{"a": [1, "x"]}', {"a": [1, "x"]}),
        ('{"a": NaN}', '{"a": NaN}'),
        ('{"a": 1e999}', '{"a": 1e999}'),
        ("[1] [2]", "[1] [2]"),
        ("[" * 300 + "]" * 300, "[" * 300 + "]" * 300),
        ("1" * 5000, "1" * 5000),
        ("20240101123456789", 20240101123456789),
        ("100000000000000000000000", 1e23),
    ],
)
def test_reads_a_result_as_go_does(text: str, expected: Json) -> None:
    assert coerce(text) == expected


def test_numbers_of_variables_are_floats_as_in_kargo() -> None:
    assert isinstance(evaluate_text("${{ 42 }}", SCOPE), float)
    assert isinstance(evaluate_template("${{ 42 }}", SCOPE), int)


# -- unknown and sensitive ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("${{ u }}", URL),
        ("${{ k }}", KEY),
        ("https://${{ u }}/x", Text(("https://", URL, "/x"))),
        ("${{ u }}${{ u }}", Text((URL, URL))),
        ("${{ u }}\n", Text((URL, "\n"))),
        ("1${{ u }}", Text(("1", URL))),
        ("${{ t }}", Text(("https://", URL, "/x"))),
        ("a ${{ t }}b", Text(("a https://", URL, "/xb"))),
        ("${{ half }}", {"url": URL, "n": 2}),
        ("a ${{ half }}", Text(("a ", URL))),
        ("${{ quote(u) }}", URL),
        ("${{ p }}", PASSWORD),
        ("${{ port }}", Sensitive(PORT.name, 5432)),
        ("${{ quote(port) }}", PORT),
        ("pw=${{ p }};", Text(("pw=", PASSWORD, ";"))),
        ("${{ p }}${{ u }}", Text((PASSWORD, URL))),
        ("1${{ port }}", Sensitive(PORT.name, 15432)),
        ("a ${{ secrets }}", Text(("a ", Sensitive(PASSWORD.name, '{"a":"hunter2"}')))),
        ("${{ secrets }}", {"a": PASSWORD}),
        ("${{ [port, 1] }}", [PORT, 1]),
        ("${{ p }}${{ port }}", Text((PASSWORD, PORT))),
    ],
)
def test_marks_stay_in_texts(template: str, expected: Value) -> None:
    assert evaluate_template(template, SCOPE) == expected


def test_a_revealed_text_is_what_kargo_would_give() -> None:
    value = evaluate_template({"dsn": "db://user:${{ p }}@host:${{ port }}"}, SCOPE)
    assert reveal(value) == {"dsn": "db://user:hunter2@host:5432"}


# -- conditions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${{ n > 1 }}", True),
        ("${{ 'F' }}", False),
        ("${{ yes }}", True),
        ("${{ u }}", URL),
        ("${{ u == 'x' }}", URL),
        ("a${{ u }}", URL),
        ("${{ u && false }}", False),
    ],
)
def test_decides_a_condition(text: str, expected: bool | Unknown) -> None:
    assert evaluate_bool(text, SCOPE) == expected


@pytest.mark.parametrize(
    "text", ["true", "", "${{ '' }}", "${{ n }}", "${{ 1 }}", "x ${{ true }}", "${{ p }}"]
)
def test_refuses_what_is_no_condition(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate_bool(text, SCOPE)


@pytest.mark.parametrize(
    ("text", "expected"), [("n == 42", True), ("'0'", False), ("'TRUE'", True), ("u", URL)]
)
def test_decides_criteria(text: str, expected: bool | Unknown) -> None:
    assert evaluate_criteria(text, SCOPE) == expected


@pytest.mark.parametrize("text", ["n", "'yes'", "nil", "word", "[true]"])
def test_refuses_what_are_no_criteria(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate_criteria(text, SCOPE)
