"""Selectors of Stages and projects: from a checked mapping to the model, and what a schema cannot check."""

from __future__ import annotations

from collections.abc import Iterator

from bot.domain.model import LabelRequirement, Selector
from bot.domain.patterns import check_requirement, compile_name_pattern
from bot.domain.values import Json
from bot.pipeline.access import mapping_at, mappings_at, text_at, texts_at
from bot.pipeline.reader import Path
from bot.pipeline.schema import Finding, shown

_PREFIXES = ("glob", "regex", "regexp")


def build_selector(given: dict[str, Json]) -> Selector:
    """The selector that a checked mapping describes; an empty one selects everything."""
    return Selector(
        name=text_at(given, "name"),
        match_labels={key: str(value) for key, value in mapping_at(given, "matchLabels").items()},
        match_expressions=tuple(
            LabelRequirement(text_at(item, "key"), text_at(item, "operator"), texts_at(item, "values"))
            for item in mappings_at(given, "matchExpressions")
        ),
    )


def check_selector(given: dict[str, Json], path: Path) -> Iterator[Finding]:
    """A pattern that cannot be compiled, a prefix that does not exist, a label expression without sense."""
    name = text_at(given, "name")
    prefix, colon, _ = name.partition(":")
    if colon and prefix not in _PREFIXES:
        yield Finding((*path, "name"), f"{shown(name)}: the prefix must be glob:, regex: or regexp:")
    elif name:
        try:
            compile_name_pattern(name)
        except ValueError as error:
            yield Finding((*path, "name"), str(error))
    for index, item in enumerate(mappings_at(given, "matchExpressions")):
        requirement = LabelRequirement(
            text_at(item, "key"), text_at(item, "operator"), texts_at(item, "values")
        )
        if requirement.key and requirement.operator:
            try:
                check_requirement(requirement)
            except ValueError as error:
                yield Finding((*path, "matchExpressions", index), str(error))
