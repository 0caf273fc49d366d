"""Patterns that select names, paths and labels: Kargo's `glob:` and `regex:` prefixes, and label selectors.

A name without prefix is compared exactly; a path without prefix is a base directory. Globs are doublestar's, regular
expressions are Go's. Kargo refuses every path that holds two dots anywhere below a base directory (`a/b..c`), an
accident of its comparison; here only a real parent step leads out of a directory.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from bot.domain.glob import compile_glob
from bot.domain.model import LabelRequirement, Selector
from bot.domain.regex import compile_regex

Matcher: TypeAlias = Callable[[str], bool]
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
"""What a `matchExpressions` entry may ask."""


@lru_cache(maxsize=1024)
def compile_name_pattern(pattern: str) -> Matcher:
    """A test of names: exact, or by `glob:`, `regex:` or `regexp:`; raises ValueError if the pattern is wrong."""
    return _compile_prefixed(pattern) or pattern.__eq__


@lru_cache(maxsize=1024)
def compile_path_pattern(pattern: str) -> Matcher:
    """A test of paths: at or below a directory, or by prefix as for names; raises ValueError if it is wrong."""
    prefixed = _compile_prefixed(pattern)
    if prefixed is not None:
        return prefixed
    base_is_absolute, base = _split_path(pattern)

    def is_below(path: str) -> bool:
        is_absolute, parts = _split_path(path)
        rest = parts[len(base) :]
        return is_absolute == base_is_absolute and parts[: len(base)] == base and ".." not in rest

    return is_below


def _compile_prefixed(pattern: str) -> Matcher | None:
    kind, colon, body = pattern.partition(":")
    if colon and kind == "glob":
        return compile_glob(body).search
    if colon and kind in {"regex", "regexp"}:
        return compile_regex(body).search
    return None


def _split_path(path: str) -> tuple[bool, list[str]]:
    clean = posixpath.normpath(path or ".")
    return clean.startswith("/"), [part for part in clean.split("/") if part not in {"", "."}]


def matches_any(patterns: Iterable[str], value: str, compile_pattern: Callable[[str], Matcher]) -> bool:
    """Whether one of the patterns matches; every pattern is compiled first, so a wrong one always shows."""
    matchers = [compile_pattern(pattern) for pattern in patterns]
    return any(matcher(value) for matcher in matchers)


def compile_path_filter(include: Iterable[str], exclude: Iterable[str]) -> Callable[[Iterable[str]], bool]:
    """Kargo's path filter of commits: is one changed path included (all are by default) and not excluded?

    Without patterns everything passes; with patterns a commit that changes nothing never does. Raises ValueError
    for a wrong pattern.
    """
    wanted = [compile_path_pattern(pattern) for pattern in include]
    unwanted = [compile_path_pattern(pattern) for pattern in exclude]
    if not wanted and not unwanted:
        return lambda _: True

    def keeps(changed: Iterable[str]) -> bool:
        return any(
            (not wanted or any(test(path) for test in wanted)) and not any(test(path) for test in unwanted)
            for path in changed
        )

    return keeps


def matches_labels(
    match_labels: Mapping[str, str], expressions: Iterable[LabelRequirement], labels: Mapping[str, str]
) -> bool:
    """Whether labels satisfy a Kubernetes label selector; an empty selector matches everything.

    Raises ValueError for an operator that does not exist or values that do not go with it.
    """
    requirements = list(expressions)
    for requirement in requirements:
        check_requirement(requirement)
    if any(labels.get(key) != value for key, value in match_labels.items()):
        return False
    return all(_meets(requirement, labels) for requirement in requirements)


def check_requirement(requirement: LabelRequirement) -> None:
    """Raises ValueError if a `matchExpressions` entry could never be evaluated."""
    if requirement.operator not in OPERATORS:
        raise ValueError(f"the operator {requirement.operator!r} is none of {', '.join(OPERATORS)}")
    if requirement.operator in {"In", "NotIn"} and not requirement.values:
        raise ValueError(f"the operator {requirement.operator} for label {requirement.key!r} needs values")
    if requirement.operator in {"Exists", "DoesNotExist"} and requirement.values:
        raise ValueError(f"the operator {requirement.operator} for label {requirement.key!r} takes no values")


def _meets(requirement: LabelRequirement, labels: Mapping[str, str]) -> bool:
    present = requirement.key in labels
    match requirement.operator:
        case "In":
            return present and labels[requirement.key] in requirement.values
        case "NotIn":
            return not present or labels[requirement.key] not in requirement.values
        case "Exists":
            return present
        case _:
            return not present


def matches_selector(selector: Selector, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a `stageSelector` selects; its parts must all hold, and an empty one selects everything.

    Raises ValueError for a wrong pattern or label requirement.
    """
    if selector.name and not compile_name_pattern(selector.name)(name):
        return False
    return matches_labels(selector.match_labels, selector.match_expressions, labels)
