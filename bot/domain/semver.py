"""Semantic versions and constraints as Kargo reads them.

The rules are those of Masterminds/semver v3: what counts as a version with and without strictness, how versions
are ordered, and which constraints admit which versions. A pre-release is admitted only by an "and" group of which
at least one part names a pre-release itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, total_ordering

_MAX_NUMBER = 2**64 - 1
_MAX_CONSTRAINT = 512
_SPACE = " \t\n\f\r"
_LOOSE = re.compile(
    r"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)
_IDENTIFIER = re.compile(r"[0-9A-Za-z-]+")
_DIGITS = re.compile(r"[0-9]+")


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """One version; comparison follows SemVer precedence, so build metadata does not count.

    `original` is the text that was parsed; `str()` gives the canonical form without a leading `v`.
    """

    major: int
    minor: int
    patch: int
    prerelease: str = ""
    metadata: str = ""
    original: str = field(default="", compare=False)

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += f"-{self.prerelease}"
        return f"{text}+{self.metadata}" if self.metadata else text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and compare(self, other) == 0

    def __lt__(self, other: Version) -> bool:
        return compare(self, other) < 0

    def __hash__(self) -> int:
        return hash((self.major, self.minor, self.patch, self.prerelease))


def parse_version(text: str, *, strict: bool) -> Version | None:
    """The version that a text stands for, or None.

    Strict asks for MAJOR.MINOR.PATCH without leading zeros or `v`; otherwise minor and patch may be absent, a
    leading `v` is allowed, and leading zeros are dropped. Numbers must fit 64 bits.
    """
    return _parse_strict(text) if strict else _parse_loose(text)


def parse_tag(tag: str, *, strict: bool) -> Version | None:
    """The version of a tag as Kargo's tag selection reads it: strict tags may still begin with `v`."""
    version = _parse_loose(tag)
    if version is None or not strict:
        return version
    return version if _parse_strict(tag.removeprefix("v")) is not None else None


def _parse_loose(text: str) -> Version | None:
    match = _LOOSE.fullmatch(text)
    if match is None:
        return None
    major, minor, patch = (_number(match.group(index) or "0") for index in (1, 2, 3))
    prerelease = match.group(4) or ""
    if major is None or minor is None or patch is None or not _valid_prerelease(prerelease):
        return None
    return Version(major, minor, patch, prerelease, match.group(5) or "", text)


def _parse_strict(text: str) -> Version | None:
    parts = text.split(".", 2)
    if len(parts) != 3:
        return None
    rest, _, metadata = parts[2].partition("+")
    last, _, prerelease = rest.partition("-")
    numbers = []
    for part in (parts[0], parts[1], last):
        if not _DIGITS.fullmatch(part) or (len(part) > 1 and part.startswith("0")):
            return None
        numbers.append(_number(part))
    major, minor, patch = numbers
    if major is None or minor is None or patch is None or not _valid_prerelease(prerelease):
        return None
    if metadata and not all(_IDENTIFIER.fullmatch(part) for part in metadata.split(".")):
        return None
    return Version(major, minor, patch, prerelease, metadata, text)


def _number(digits: str) -> int | None:
    # Far beyond 20 digits the answer is known, and int() would refuse or take long.
    if len(digits.lstrip("0")) > 20:
        return None
    value = int(digits)
    return value if value <= _MAX_NUMBER else None


def _valid_prerelease(text: str) -> bool:
    if not text:
        return True
    for part in text.split("."):
        if _DIGITS.fullmatch(part):
            if len(part) > 1 and part.startswith("0"):
                return False
        elif not _IDENTIFIER.fullmatch(part):
            return False
    return True


def compare(left: Version, right: Version) -> int:
    """Minus one, zero or one by SemVer precedence; build metadata is ignored."""
    ours = (left.major, left.minor, left.patch)
    theirs = (right.major, right.minor, right.patch)
    if ours != theirs:
        return -1 if ours < theirs else 1
    return _compare_prereleases(left.prerelease, right.prerelease)


def _compare_prereleases(left: str, right: str) -> int:
    if left == right:
        return 0
    if not left or not right:
        return 1 if not left else -1
    ours, theirs = left.split("."), right.split(".")
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            return _compare_identifiers(one, other)
    return -1 if len(ours) < len(theirs) else 1


def _compare_identifiers(one: str, other: str) -> int:
    number, other_number = _identifier_number(one), _identifier_number(other)
    if number is None and other_number is None:
        return -1 if one < other else 1
    if number is None or other_number is None:
        # Numbers sort before words.
        return 1 if number is None else -1
    return -1 if number < other_number else 1


def _identifier_number(text: str) -> int | None:
    return _number(text) if _DIGITS.fullmatch(text) else None


# -- Constraints -------------------------------------------------------------------------------------------

_PART = r"[0-9|xX*]+"
_PATTERN = (
    rf"v?({_PART})(\.{_PART})?(\.{_PART})?"
    r"(-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
    r"(\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_OPERAND = re.compile(_PATTERN)
_OPERATOR = re.compile(r"!=|>=|=>|<=|=<|~>|=|>|<|~|\^|")
_RANGE = re.compile(rf"[{_SPACE}]*({_PATTERN})[{_SPACE}]+-[{_SPACE}]+({_PATTERN})[{_SPACE}]*")


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One operator with its version; `open_minor` and `open_patch` tell which numbers were left open."""

    operator: str
    version: Version
    is_open: bool
    open_minor: bool
    open_patch: bool


@dataclass(frozen=True, slots=True)
class Constraint:
    """A parsed constraint: alternatives of comparisons that must all hold."""

    text: str
    alternatives: tuple[tuple[_Comparison, ...], ...]

    def admits(self, version: Version) -> bool:
        """Whether the version satisfies one of the alternatives."""
        return any(_admits_all(group, version) for group in self.alternatives)


@lru_cache(maxsize=1024)
def parse_constraint(text: str) -> Constraint:
    """The constraint that a text such as `^1.2 || >=3 <4` stands for.

    Raises ValueError with the part that is no constraint; an empty text is none. Longer than 512 characters is
    refused, so that a hostile text costs no time.
    """
    if len(text) > _MAX_CONSTRAINT:
        raise ValueError(f"the constraint is longer than {_MAX_CONSTRAINT} characters")
    rewritten = text
    for match in _RANGE.finditer(text):
        rewritten = rewritten.replace(match.group(0), f">= {match.group(1)}, <= {match.group(7)} ", 1)
    return Constraint(text, tuple(_parse_group(part) for part in rewritten.split("||")))


def _parse_group(text: str) -> tuple[_Comparison, ...]:
    comparisons = []
    position = _skip_space(text, 0)
    while True:
        operator = _OPERATOR.match(text, position)
        assert operator is not None
        operand = _OPERAND.match(text, _skip_space(text, operator.end()))
        if operand is None:
            raise ValueError(f"{text.strip()!r} is no version constraint")
        comparisons.append(_comparison(operator.group(), operand))
        position = _skip_space(text, operand.end())
        if position == len(text):
            return tuple(comparisons)
        if text[position] == ",":
            position = _skip_space(text, position + 1)
        elif position == operand.end():
            raise ValueError(f"{text.strip()!r} is no version constraint: {text[position:]!r} is left over")


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position


def _comparison(operator: str, operand: re.Match[str]) -> _Comparison:
    major, minor, patch = (str(operand.group(index) or "").lstrip(".") for index in (1, 2, 3))
    prerelease = operand.group(4) or ""
    open_minor = open_patch = False
    if _is_open(major):
        text = f"0.0.0{prerelease}"
        is_open = True
    else:
        is_open = open_minor = _is_open(minor)
        text = f"{major}.0.0{prerelease}"
        if not open_minor:
            is_open = open_patch = _is_open(patch)
            text = f"{major}.{minor}.{0 if open_patch else patch}{prerelease}"
    version = _parse_loose(text)
    if version is None:
        raise ValueError(f"{operand.group()!r} is no version")
    return _Comparison(operator, version, is_open, open_minor, open_patch)


def _is_open(part: str) -> bool:
    return part in {"", "x", "X", "*"}


def _admits_all(group: tuple[_Comparison, ...], version: Version) -> bool:
    wants_prereleases = any(part.version.prerelease for part in group)
    if version.prerelease and not wants_prereleases:
        return False
    return all(_CHECKS[part.operator](part, version) for part in group)


def _equal(wanted: _Comparison, version: Version) -> bool:
    return _tilde(wanted, version) if wanted.is_open else version == wanted.version


def _not_equal(wanted: _Comparison, version: Version) -> bool:
    if not wanted.is_open:
        return version != wanted.version
    target = wanted.version
    if version.major != target.major:
        return True
    if wanted.open_minor:
        return False
    if version.minor != target.minor:
        return True
    if wanted.open_patch:
        return _compare_prereleases(version.prerelease, target.prerelease) != 0
    return version.patch != target.patch or version != target


def _greater(wanted: _Comparison, version: Version) -> bool:
    target = wanted.version
    if wanted.is_open and version.major != target.major:
        return version.major > target.major
    if wanted.open_minor:
        return False
    if wanted.open_patch:
        return version.minor > target.minor
    return version > target


def _less_or_equal(wanted: _Comparison, version: Version) -> bool:
    target = wanted.version
    if not wanted.is_open:
        return version <= target
    if version.major > target.major:
        return False
    return version.major < target.major or wanted.open_minor or version.minor <= target.minor


def _tilde(wanted: _Comparison, version: Version) -> bool:
    target = wanted.version
    if version < target:
        return False
    if (target.major, target.minor, target.patch) == (0, 0, 0) and not (
        wanted.open_minor or wanted.open_patch
    ):
        # Masterminds treats ~0.0.0 like ~*: everything from there on.
        return True
    return version.major == target.major and (wanted.open_minor or version.minor == target.minor)


def _caret(wanted: _Comparison, version: Version) -> bool:
    target = wanted.version
    if version < target:
        return False
    if target.major > 0 or wanted.open_minor:
        return version.major == target.major
    if version.major > 0:
        return False
    if target.minor > 0 or wanted.open_patch:
        return version.minor == target.minor
    return version.minor == 0 and version.patch == target.patch


_CHECKS: dict[str, Callable[[_Comparison, Version], bool]] = {
    "": _equal,
    "=": _equal,
    "!=": _not_equal,
    ">": _greater,
    "<": lambda wanted, version: version < wanted.version,
    ">=": lambda wanted, version: version >= wanted.version,
    "=>": lambda wanted, version: version >= wanted.version,
    "<=": _less_or_equal,
    "=<": _less_or_equal,
    "~": _tilde,
    "~>": _tilde,
    "^": _caret,
}


def satisfies(constraint: str, version: str) -> bool:
    """Whether a version, read without strictness, satisfies a constraint; False if it is no version.

    Raises ValueError for a text that is no constraint.
    """
    wanted = parse_constraint(constraint)
    parsed = _parse_loose(version)
    return parsed is not None and wanted.admits(parsed)


def semver_diff(left: str, right: str) -> str:
    """The largest part in which two versions differ, as Kargo's `semverDiff` names it.

    `Major`, `Minor`, `Patch`, `Metadata` or `None`; `Incomparable` if either is no version. Versions that differ
    only in their pre-release count as `None`.
    """
    one, other = _parse_loose(left), _parse_loose(right)
    if one is None or other is None:
        return "Incomparable"
    if one.major != other.major:
        return "Major"
    if one.minor != other.minor:
        return "Minor"
    if one.patch != other.patch:
        return "Patch"
    return "Metadata" if one.metadata != other.metadata else "None"
