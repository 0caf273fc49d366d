from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.values import Json
from bot.pipeline.reader import MAX_BYTES, ReadDocument, read_documents


def read_one(text: str) -> ReadDocument:
    (document,) = read_documents(text)
    return document


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("yes", True),
        ("Off", False),
        ("n", False),
        ("~", None),
        ("1.20", 1.2),
        ("010", 8),
        ("0o10", 8),
        ("0x1F", 31),
        ("0b101", 5),
        ("-0x10", -16),
        ("1_000", 1000),
        ("09", 9.0),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e999", "1e999"),
        ("12:30:45", "12:30:45"),
        ("2026-01-01", "2026-01-01"),
        ("+", "+"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("!!int '7'", 7),
        ("9" * 80, "9" * 80),
    ],
)
def test_scalars_are_what_kubernetes_tools_make_of_them(scalar: str, value: Json) -> None:
    found = read_one(f"key: {scalar}\n").value
    assert found == {"key": value}
    assert isinstance(found, dict)
    assert type(found["key"]) is type(value)


def test_every_value_has_the_line_of_its_key() -> None:
    document = read_one("a:\n  b:\n    - c: 1\n      d:\n        e\n    - 2\n")
    assert document.marks.line_at(("a",)) == 1
    assert document.marks.line_at(("a", "b", 0, "d")) == 4
    assert document.marks.line_at(("a", "b", 1)) == 6
    assert document.marks.line_at(("a", "b", 0, "missing", "deeper")) == 3


def test_documents_are_separate_and_keep_their_lines() -> None:
    first, broken, last = read_documents("---\na: 1\n---\nb: [\n--- # comment\nc: 3\n")
    assert first.value == {"a": 1}
    assert broken.complaints[0].fatal
    assert broken.complaints[0].line in {4, 5}
    assert last.marks.line_at(("c",)) == 6


def test_a_separator_inside_a_text_separates_nothing() -> None:
    assert read_one("a: |\n  ---\n  b\n").value == {"a": "---\nb\n"}


def test_anchors_and_merge_keys_work() -> None:
    document = read_one("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\nlist: [*b, *b]\n'<<': plain\n")
    assert document.value == {
        "base": {"x": 1, "y": 2},
        "use": {"y": 3, "x": 1},
        "list": [{"x": 1, "y": 2}] * 2,
        "<<": "plain",
    }


def test_the_last_of_two_equal_keys_counts() -> None:
    document = read_one("a: 1\nb: 2\na: 3\n")
    assert document.value == {"a": 3, "b": 2}
    (complaint,) = document.complaints
    assert (complaint.line, complaint.path, complaint.fatal) == (3, ("a",), False)


def test_keys_are_text_as_they_are_written() -> None:
    assert read_one("1: a\ntrue: b\n1.50: c\non: d\n").value == {
        "1": "a",
        "true": "b",
        "1.50": "c",
        "on": "d",
    }


def test_directives_and_comments_are_no_document() -> None:
    assert read_one("# first\n%YAML 1.1\n---\na: 1\n").value == {"a": 1}
    assert list(read_documents("\n# nothing\n---\n---\n")) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: *b\n", "has no anchor"),
        ("a: &x [*x]\n", "contains itself"),
        ("a: !Ref b\n", "the tag !Ref means nothing"),
        ("? [a]\n: b\n", "a key must be a plain value"),
        ("? \n: b\n", "a key is empty"),
        ("a: {<<: 1}\n", "needs a mapping"),
        ("a: 'x\n", "not valid YAML"),
        ("a: \x00\n", "not valid YAML"),
        ("\ud800", "not valid UTF-8"),
        ("a: 1\n...\nb: 2\n", "not valid YAML"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, message: str) -> None:
    complaints = [complaint for document in read_documents(text) for complaint in document.complaints]
    assert any(message in complaint.message for complaint in complaints)


BOMB = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: " + "x" * 10_000_000, "more than", id="ten megabytes"),
        pytest.param(BOMB, "aliases counted in full", id="billion laughs"),
        pytest.param("[" * 100_000, "maximum nesting depth", id="deep lists"),
        pytest.param("{a: " * 50_000, "nested more than", id="deep mappings"),
        pytest.param("- " * 50_000, "nested more than", id="deep block lists"),
        pytest.param("- a\n" * 400_000, "more than", id="many values"),
        pytest.param("---\na\n" * 10_000, "documents", id="many documents"),
    ],
)
def test_hostile_files_are_refused_with_one_problem_and_soon(text: str, message: str) -> None:
    begun = time.monotonic()
    documents = list(read_documents(text))
    assert time.monotonic() - begun < 5
    (document,) = documents
    (complaint,) = document.complaints
    assert complaint.fatal
    assert message in complaint.message
    assert len(complaint.message) < 200


def test_a_file_of_the_largest_size_is_still_read() -> None:
    text = "a: |\n" + "  x\n" * (MAX_BYTES // 4 - 10)
    assert read_one(text).complaints == ()


@settings(max_examples=300)
@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=80))
def test_no_text_breaks_the_reader(text: str) -> None:
    for document in read_documents(text):
        assert document.value is not None or document.complaints


YAMLISH = st.text(alphabet="ab:- \n[]{},&*!|>'\"#?<%@0.~", max_size=60)


@settings(max_examples=500)
@given(YAMLISH)
def test_no_scrap_of_yaml_breaks_the_reader(text: str) -> None:
    for document in read_documents(text):
        assert document.value is not None or document.complaints
