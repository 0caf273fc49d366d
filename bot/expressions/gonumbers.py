"""Numbers as Go reads and writes them: `strconv.ParseFloat`, `ParseBool`, `Atoi`, and the forms of a float."""

from __future__ import annotations

import math
import re

from bot.expressions.operands import INT_MAX, INT_MIN

_DECIMAL = re.compile(r"[+-]?(?:[0-9_]+\.?[0-9_]*|\.[0-9_]+)(?:[eE][+-]?[0-9_]+)?", re.ASCII)
_HEX = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F_]+\.?[0-9a-fA-F_]*|\.[0-9a-fA-F_]+)[pP][+-]?[0-9_]+", re.ASCII)
_SPECIAL = re.compile(r"[+-]?(?:inf|infinity)|nan", re.IGNORECASE | re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_MAX_DIGITS = 4000
_EXPONENT_FROM = 6

TRUE_WORDS = frozenset({"1", "t", "T", "TRUE", "true", "True"})
FALSE_WORDS = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def parse_bool(text: str) -> bool | None:
    """Go's `strconv.ParseBool`; None where Go gives an error."""
    if text in TRUE_WORDS:
        return True
    return False if text in FALSE_WORDS else None


def parse_float(text: str) -> float | None:
    """Go's `strconv.ParseFloat(text, 64)`; None where Go gives an error, out of range included.

    Underscores may stand between digits, hexadecimal needs a `p` exponent, no space is allowed around.
    """
    if not text or len(text) > _MAX_DIGITS:
        return None
    if _SPECIAL.fullmatch(text):
        return float(text)
    is_hex = _HEX.fullmatch(text) is not None
    if not is_hex and not _DECIMAL.fullmatch(text):
        return None
    if "_" in text and not _underscores_separate_digits(text):
        return None
    plain = text.replace("_", "")
    try:
        number = float.fromhex(plain) if is_hex else float(plain)
    except (ValueError, OverflowError):
        return None
    return None if math.isinf(number) else number


def _underscores_separate_digits(text: str) -> bool:
    """Go's rule: an underscore stands between digits, or between base prefix and digit."""
    body = text.lstrip("+-")
    is_hex = body[:2].lower() == "0x"
    before = "^"
    if is_hex:
        before, body = "0", body[2:]
    for letter in body:
        if letter.isdigit() or (is_hex and letter in "abcdefABCDEF"):
            before = "0"
        elif letter == "_":
            if before != "0":
                return False
            before = "_"
        else:
            if before == "_":
                return False
            before = "!"
    return before != "_"


def parse_number(text: str) -> int | float | None:
    """A number as `parse_float`, but exact.

    Kargo turns every number into a float, which changes the last digits of whole numbers above 2**53, such as
    a tag made of a timestamp with milliseconds. A plain whole number that a float cannot hold stays an int here.
    """
    number = parse_float(text)
    if number is not None and abs(number) > 2**53 and len(text) <= 20 and _INTEGER.fullmatch(text):
        exact = int(text)
        if INT_MIN <= exact <= INT_MAX and exact != number:
            return exact
    return number


def parse_int(text: str) -> int | None:
    """Go's `strconv.Atoi`; None where Go gives an error."""
    if len(text) > _MAX_DIGITS or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if INT_MIN <= number <= INT_MAX else None


def format_float_json(number: float) -> str:
    """A finite float as Go's encoding/json writes it: exponents below 1e-6 and from 1e21."""
    size = abs(number)
    if size != 0 and (size < 1e-6 or size >= 1e21):
        mantissa, exponent = _shortest(number)
        sign = "-" if exponent < 0 else "+"
        return f"{mantissa}e{sign}{abs(exponent)}"
    return format_plain(number)


def format_float_go(number: float) -> str:
    """A float as Go's `%v` writes it: the shortest digits, with an exponent below 1e-4 and from 1e6 on."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    mantissa, exponent = _shortest(number)
    if exponent < -4 or exponent >= _EXPONENT_FROM:
        sign = "-" if exponent < 0 else "+"
        return f"{mantissa}e{sign}{abs(exponent):02d}"
    return format_plain(number)


def _shortest(number: float) -> tuple[str, int]:
    """The shortest digits that read back as the same float: `d.ddd` and the decimal exponent."""
    digits, _, exponent = repr(number).partition("e")
    sign = "-" if digits.startswith("-") else ""
    whole, _, fraction = digits.lstrip("-").partition(".")
    shift = int(exponent) if exponent else 0
    fraction = "" if fraction == "0" else fraction
    joined = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(joined)
    point = len(whole) - leading + shift
    joined = joined.rstrip("0") or "0"
    mantissa = joined[0] + ("." + joined[1:] if len(joined) > 1 else "")
    return sign + mantissa, point - 1


def format_plain(number: float) -> str:
    """A finite float without exponent, in the fewest digits that read back as the same float."""
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    mantissa, exponent = _shortest(number)
    sign = "-" if mantissa.startswith("-") else ""
    digits = mantissa.lstrip("-").replace(".", "")
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    if len(digits) <= exponent + 1:
        return sign + digits.ljust(exponent + 1, "0")
    return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"


def settle(number: float) -> int | float:
    """A float as it comes back from Go's JSON: whole ones below 1e21 are ints."""
    if number.is_integer() and abs(number) < 1e21:
        text = format_plain(number)
        return 0 if text == "-0" else int(text)
    return number
