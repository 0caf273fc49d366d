"""Masks: in which forms a secret is found, and what is left alone."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.adapters.masks import MaskError, Masks

SECRET = 'p"ss wörd/<&>+\\n%7'


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        json.dumps(json.dumps(SECRET)),
        json.dumps(SECRET, ensure_ascii=False)
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026"),
        quote(SECRET),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        quote_plus(SECRET),
        html.escape(SECRET),
        SECRET.encode().hex(),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
    ],
)
def test_a_secret_is_found_in_every_form(form: str) -> None:
    masks = Masks({"TOKEN": SECRET})
    assert "<sensitive: TOKEN>" in masks(f"before {form} after")
    assert masks.find(f"before {form} after") == "TOKEN"


@given(st.binary(max_size=9), st.text(min_size=6), st.binary(max_size=9))
def test_a_secret_inside_a_longer_base64_text_is_found(before: bytes, secret: str, after: bytes) -> None:
    raw = secret.encode()
    encoded = base64.b64encode(before + raw + after).decode()
    masked = Masks({"S": secret})(encoded)
    assert "<sensitive: S>" in masked
    # What is left at the edges tells less than one character of the secret at either end.
    left = masked.split("<sensitive: S>", 1)[0]
    assert len(left) * 6 <= (len(before) * 8) + 12


@given(st.text(), st.text(min_size=4))
def test_the_plain_secret_is_never_left(text: str, secret: str) -> None:
    masked = Masks({"name": secret})(text + secret + text)
    assert secret not in masked or secret in "<sensitive: name>"


def test_the_longest_secret_is_replaced_first() -> None:
    masks = Masks({"short": "abcdef", "long": "abcdefghij"})
    assert masks("abcdefghij abcdef") == "<sensitive: long> <sensitive: short>"


def test_short_secrets_are_named_instead_of_masked() -> None:
    masks = Masks({"flag": "1", "region": "eu1", "empty": "", "ok": "abcd"})
    assert masks.unmasked == ("flag", "region")
    assert masks("1 eu1 abcd") == "1 eu1 <sensitive: ok>"


def test_lines_of_a_longer_secret_are_found_one_by_one() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nabc\n-----END KEY-----\n"
    assert "MIIEvQ" not in Masks({"KEY": key})("| MIIEvQIBADANBgkq")
    assert Masks({"KEY": key})("abc") == "abc"


def test_patterns_are_masked() -> None:
    masks = Masks({}, [r"AKIA[A-Z0-9]{4}", "x*"])
    assert masks("key AKIA1234 end") == "key <masked> end"
    assert masks.find("AKIA1234") == "masked"
    assert Masks({}, [r"AKIA"]).find("nothing") == ""


def test_an_invalid_pattern_is_an_error() -> None:
    with pytest.raises(MaskError, match="not a valid regular expression"):
        Masks({}, ["("])
