from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.semver import (
    compare,
    parse_constraint,
    parse_tag,
    parse_version,
    satisfies,
    semver_diff,
)


@pytest.mark.parametrize(
    ("text", "strict", "canonical"),
    [
        ("1.2.3", True, "1.2.3"),
        ("v1.2.3", True, None),
        ("v1.2.3", False, "1.2.3"),
        ("1.2", False, "1.2.0"),
        ("1.2", True, None),
        ("007", False, "7.0.0"),
        ("1.2.3-01", False, None),
        ("1.2.3-0a.1+007", True, "1.2.3-0a.1+007"),
        ("18446744073709551615.0.0", True, "18446744073709551615.0.0"),
        ("18446744073709551616.0.0", True, None),
        ("9" * 100_000, False, None),
        ("1.2.3\n", False, None),
        ("١.2.3", False, None),
        ("1.2.3-", True, "1.2.3"),
        ("1.2.3-", False, None),
    ],
)
def test_versions_are_read_with_and_without_strictness(
    text: str, strict: bool, canonical: str | None
) -> None:
    version = parse_version(text, strict=strict)
    assert (None if version is None else str(version)) == canonical


def test_a_strict_tag_may_begin_with_v() -> None:
    assert str(parse_tag("v1.2.3", strict=True)) == "1.2.3"
    assert parse_tag("v1.2", strict=True) is None


def test_precedence_is_that_of_semver() -> None:
    ordered = "1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.1"
    versions = [parse_version(text, strict=True) for text in ordered.split()]
    known = [version for version in versions if version is not None]
    assert len(known) == 9
    assert sorted(sorted(known, key=str, reverse=True)) == known


def test_build_metadata_does_not_count() -> None:
    one, other = parse_version("1.0.0+a", strict=True), parse_version("1.0.0+b", strict=True)
    assert one is not None
    assert other is not None
    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    ("constraint", "yes", "no"),
    [
        ("^1.2.3", "1.9.9", "2.0.0"),
        ("^0.2", "0.2.9", "0.3.0"),
        ("^0.0", "0.0.9", "0.1.0"),
        ("^0.0.3", "0.0.3", "0.0.4"),
        ("~1.2", "1.2.9", "1.3.0"),
        ("~>2", "2.9.0", "3.0.0"),
        ("~0.0.0", "9.9.9", "0.0.0-rc"),
        ("1.2 - 1.4", "1.4.9", "1.5.0"),
        ("1.0.0-rc.1 - 2", "1.0.0-rc.2", "0.9.0"),
        ("=>1, =<2", "2.9.9", "3.0.0"),
        (">1.2", "1.3.0", "1.2.9"),
        ("<=1.2", "1.2.9", "1.3.0"),
        ("!=1.2.x", "1.3.0", "1.2.7"),
        ("!=1.2.3", "1.2.4", "1.2.3+b"),
        ("2.x || 4.*", "4.1.0", "3.0.0"),
        (" >= 1.2.3 , < 2 ", "1.5.0", "2.0.0"),
        (">=1.0.0-0 <2", "1.5.0-rc.1", "2.0.0"),
        ("X", "3.0.0", "3.0.0-rc"),
        ("v1.2.3", "1.2.3", "1.2.4"),
    ],
)
def test_constraints_admit_as_masterminds_does(constraint: str, yes: str, no: str) -> None:
    assert satisfies(constraint, yes)
    assert not satisfies(constraint, no)


@pytest.mark.parametrize(
    "text", ["", " ", "bogus", ">>1", "1.2.3.4", "1 ||", "1x", "1,", "> =1", "1.2.3 latest"]
)
def test_what_is_no_constraint_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"constraint|version"):
        parse_constraint(text)


def test_a_hostile_constraint_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="longer than"):
        parse_constraint("1 " * 100_000)
    assert satisfies("1" + "   1" * 100, "1.0.0")


@pytest.mark.parametrize(
    ("left", "right", "answer"),
    [
        ("1.0.0", "2.0.0", "Major"),
        ("1.0.0", "1.1.0", "Minor"),
        ("1.0.0", "v1.0.1", "Patch"),
        ("1.0.0+a", "1.0.0+b", "Metadata"),
        ("1.0.0-a", "1.0.0-b", "None"),
        ("latest", "1.0.0", "Incomparable"),
    ],
)
def test_the_difference_is_the_largest_part(left: str, right: str, answer: str) -> None:
    assert semver_diff(left, right) == answer


@given(st.text(max_size=40))
def test_no_text_breaks_the_readers(text: str) -> None:
    version = parse_version(text, strict=False)
    if version is not None:
        again = parse_version(str(version), strict=True)
        assert again is not None
        assert compare(again, version) == 0
    with suppress(ValueError):
        assert parse_constraint(text).text == text
