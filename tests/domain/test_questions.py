"""What a schema asks, which answers fit it, and what is said of those that do not."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.answer_command import Answer, parse_answer
from bot.domain.commands import CommandProblem, parse_command
from bot.domain.questions import (
    GivenAnswer,
    Question,
    QuestionError,
    describe_fields,
    find_wrong_values,
    parse_question,
    read_answer,
    write_example,
)
from bot.domain.values import Json


def ask(required: list[Json] | None = None, **fields: dict[str, Json]) -> Question:
    properties: dict[str, Json] = dict(fields)
    return parse_question({"type": "object", "properties": properties, "required": required or []})


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        pytest.param({}, "42", "42", id="without a type it is a text"),
        pytest.param({"type": "string"}, "42", "42", id="a text of digits stays a text"),
        pytest.param({"type": "string"}, "", "", id="a text may be empty"),
        pytest.param({"type": "integer"}, "42", 42, id="a whole number"),
        pytest.param({"type": "integer"}, "4.0", 4, id="a whole number with a needless fraction"),
        pytest.param({"type": "number"}, "-0.5", -0.5, id="a number"),
        pytest.param({"type": "boolean"}, "true", True, id="a boolean"),
        pytest.param({"type": ["string", "null"]}, "null", None, id="null before text"),
        pytest.param({"type": ["string", "integer"]}, "x", "x", id="text where it is nothing else"),
        pytest.param({"type": "array", "items": {"type": "string"}}, '["a","b"]', ["a", "b"], id="a list"),
        pytest.param({"type": "object"}, '{"a":1}', {"a": 1}, id="an object"),
        pytest.param({"enum": ["eu", 2, True]}, "2", 2, id="an item of the enum by its JSON"),
        pytest.param({"enum": ["eu", 2, True]}, "eu", "eu", id="an item of the enum by its text"),
        pytest.param({"type": "string", "pattern": "^v[0-9]+$"}, "v12", "v12", id="a text of the pattern"),
    ],
)
def test_what_is_typed_becomes_a_value_of_the_field(schema: dict[str, Json], text: str, value: Json) -> None:
    values, wrong = read_answer(ask(x=schema), [("x", text)])
    assert (values, wrong) == ({"x": value}, ())
    assert type(values["x"]) is type(value)


@pytest.mark.parametrize(
    ("schema", "text", "said"),
    [
        ({"type": "integer"}, "1.5", "x must be a whole number"),
        ({"type": "integer"}, "true", "x must be a whole number"),
        ({"type": "integer"}, "9" * 400, "x must be a whole number"),
        ({"type": "number"}, "1e999", "x must be a number"),
        ({"type": "number"}, "NaN", "x must be a number"),
        ({"type": "boolean"}, "yes", "x must be true or false"),
        ({"type": "object"}, "{", 'x must be an object, written like {"a":1}'),
        ({"type": "array"}, "[" * 3000, 'x must be a list, written like ["a","b"]'),
        ({"enum": ["eu", "us"]}, "asia", "x must be one of eu, us"),
        ({"enum": [1]}, "true", "x must be one of 1"),
        ({"type": "integer", "minimum": 1}, "0", "x must be at least 1"),
        ({"type": "integer", "maximum": 5}, "6", "x must be at most 5"),
        ({"type": "number", "exclusiveMinimum": 0}, "0", "x must be more than 0"),
        ({"type": "number", "exclusiveMaximum": 1}, "1", "x must be less than 1"),
        ({"type": "integer", "multipleOf": 5}, "7", "x must be a multiple of 5"),
        ({"type": "string", "minLength": 3}, "ab", "x must have at least 3 characters"),
        ({"type": "string", "maxLength": 1}, "ab", "x must have at most 1 characters"),
        ({"type": "string", "pattern": "^v"}, "ab", "x must match ^v"),
        ({"type": "array", "minItems": 1}, "[]", "x must have at least 1 items"),
        ({"type": "array", "maxItems": 1}, "[1,2]", "x must have at most 1 items"),
        ({"type": "array", "uniqueItems": True}, "[1,1]", "x must not hold an item twice"),
        ({"type": "array", "items": {"type": "string"}}, "[1]", "x has an item 0 that must be a text"),
        ({"const": "yes"}, "no", "x must be yes"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_by_its_field(
    schema: dict[str, Json], text: str, said: str
) -> None:
    assert read_answer(ask(x=schema), [("x", text)])[1] == (said,)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    question = ask(["a", "b"], a={"type": "integer"}, b={"type": "string"}, c={"enum": ["x"]})
    _, wrong = read_answer(question, [("a", "many"), ("c", "y"), ("d", "1")])
    assert wrong == (
        "a must be a whole number",
        "d is not asked for",
        "b is missing",
        "c must be one of x",
    )


def test_defaults_are_filled_in_and_optional_fields_stay_away() -> None:
    question = ask(["a"], a={"type": "integer", "default": 2}, b={"type": "string"})
    assert read_answer(question, []) == ({"a": 2}, ())
    assert find_wrong_values(question, {"a": 2, "old": 1}) == ("old is not asked for",)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({}, "it has no properties"),
        ({"type": "array", "properties": {"a": {}}}, "its type must be object"),
        ({"properties": {"a": {}}, "allOf": []}, "the keyword allOf is not carried out"),
        ({"properties": {"a": {"$ref": "https://x.example"}}}, "a: the keyword $ref is not carried out"),
        ({"properties": {"a": {"items": {"if": {}}}}}, "a: items: the keyword if is not carried out"),
        ({"properties": {"a": {"type": "date"}}}, "a: there is no type date"),
        ({"properties": {"a": {"format": "password"}}}, "a: a secret must not be typed into a comment"),
        ({"properties": {"a": {"writeOnly": True}}}, "a: a secret must not be typed into a comment"),
        ({"properties": {"a": {"pattern": "("}}}, "a: pattern:"),
        ({"properties": {"a": {"minimum": "1"}}}, "a: minimum must be a number"),
        ({"properties": {"a": {"multipleOf": 0}}}, "a: multipleOf must be greater than 0"),
        ({"properties": {"a": {"enum": []}}}, "a: enum must be a list"),
        ({"properties": {"a": {"type": "integer", "default": "x"}}}, "a: its default must be a whole number"),
        ({"properties": {"a b": {}}}, "'a b' cannot be typed"),
        ({"properties": {"a": 1}}, "a must be a schema of its own"),
        ({"properties": {"a": {}}, "required": ["b"]}, "b is required but no property"),
    ],
)
def test_a_schema_that_cannot_be_asked_is_refused(schema: dict[str, Json], said: str) -> None:
    with pytest.raises(QuestionError) as raised:
        parse_question(schema)
    assert said in str(raised.value)


def test_the_example_is_an_answer() -> None:
    question = ask(
        ["region", "count", "why", "tags"],
        region={"enum": ["eu", "us"]},
        count={"type": "integer", "minimum": 3},
        why={"type": "string", "examples": ["two words"]},
        tags={"type": "array"},
        more={"type": "boolean"},
    )
    example = write_example(question, "ask")
    assert example == '/answer ask region=eu count=3 why="two words" tags=["a"]'
    command = parse_command(example)
    assert isinstance(command, Answer)
    assert read_answer(question, command.values)[1] == ()
    assert describe_fields(question).startswith(
        "region (one of eu, us), count (a whole number), why (a text)"
    )


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ("/answer a=1", Answer("", (("a", "1"),))),
        ("/answer", Answer()),
        ("/answer ask", Answer("ask")),
        ("/answer task-1::ask a=1 b=", Answer("task-1::ask", (("a", "1"), ("b", "")))),
        ('/answer a="x \\"y\\" \\\\" b=\'it "is"\'', Answer("", (("a", 'x "y" \\'), ("b", 'it "is"')))),
        ("/answer ask\r\na=1\r\n  b=zwölf\r\n\r\nc=3", Answer("ask", (("a", "1"), ("b", "zwölf")))),
        ("/answer \t ask \t a=b=c", Answer("ask", (("a", "b=c"),))),
    ],
)
def test_an_answer_is_read_from_its_lines(body: str, command: Answer) -> None:
    assert parse_command(body) == command


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("/answer a=1 a=2", "a stands there twice"),
        ("/answer a=1 b", "write NAME=VALUE"),
        ('/answer a="1', "write NAME=VALUE"),
        ('/answer a="1"2', "write NAME=VALUE"),
        ("/answer a=1\nplease", "write NAME=VALUE"),
        ("/answer =1", "write NAME=VALUE"),
        ("/answer $x a=1", "named by its alias"),
        ("/answer a=1\u202e2", "invisible"),
        ("/answer " + "\n".join(f"a{n}=1" for n in range(51)), "at most 50 values"),
        ("/answer a=1\n" + "\n".join(["b=" + "x" * 400] * 11), "at most 4000 characters"),
        ("/answer a=" + "x" * 500, "more than 500 characters"),
    ],
)
def test_an_answer_that_is_none_is_refused(body: str, said: str) -> None:
    problem = parse_command(body)
    assert isinstance(problem, CommandProblem)
    assert said in problem.message


@given(st.text(), st.lists(st.text(), max_size=4))
def test_whatever_is_typed_is_an_answer_or_a_problem(rest: str, below: list[str]) -> None:
    body = "\n".join([f"/answer {rest}", *below])
    assert isinstance(parse_command(body), Answer | CommandProblem)


def test_no_repr_shows_what_was_answered() -> None:
    given_answer = GivenAnswer("ask", "ada", datetime(2026, 1, 1, tzinfo=UTC), "1", values={"a": "hunter2"})
    shown = repr([parse_answer("a=hunter2", []), given_answer])
    assert "hunter2" not in shown
