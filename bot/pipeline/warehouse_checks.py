"""What keeps a Warehouse from making Freight although it is well-formed; it concerns the Stages that wait for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bot.domain.model import (
    GenericSubscription,
    GitSubscription,
    ImageSubscription,
    Warehouse,
)
from bot.domain.patterns import compile_path_pattern
from bot.domain.regex import compile_regex
from bot.pipeline.expression_checks import check_bare_expression
from bot.pipeline.reader import Path
from bot.pipeline.schema import Finding, shown


def check_warehouse(warehouse: Warehouse) -> Iterator[Finding]:
    """Patterns and expressions that cannot be compiled, and subscriptions that nobody here can look into."""
    path: Path = ("spec", "freightCreationCriteria", "expression")
    yield from check_bare_expression(warehouse.freight_creation_criteria, path)
    for index, subscription in enumerate(warehouse.subscriptions):
        where: Path = ("spec", "subscriptions", index)
        if isinstance(subscription, GenericSubscription):
            kind = subscription.artifact_type
            message = f"subscriptions of kind {shown(kind)} cannot be discovered here, so no Freight is made"
            yield Finding((*where, kind), message)
        elif isinstance(subscription, ImageSubscription):
            yield from _tag_filters(subscription, (*where, "image"))
        elif isinstance(subscription, GitSubscription):
            yield from _git(subscription, (*where, "git"))


def _git(subscription: GitSubscription, path: Path) -> Iterator[Finding]:
    yield from _tag_filters(subscription, path)
    yield from _patterns(subscription.include_paths, (*path, "includePaths"), compile_path_pattern)
    yield from _patterns(subscription.exclude_paths, (*path, "excludePaths"), compile_path_pattern)
    yield from check_bare_expression(subscription.expression_filter, (*path, "expressionFilter"))


def _tag_filters(subscription: ImageSubscription | GitSubscription, path: Path) -> Iterator[Finding]:
    yield from _patterns(subscription.allow_tags_regexes, (*path, "allowTagsRegexes"), compile_regex)
    yield from _patterns(subscription.ignore_tags_regexes, (*path, "ignoreTagsRegexes"), compile_regex)


def _patterns(
    patterns: Sequence[str], path: Path, compile_pattern: Callable[[str], object]
) -> Iterator[Finding]:
    for index, pattern in enumerate(patterns):
        try:
            compile_pattern(pattern)
        except ValueError as error:
            yield Finding((*path, index), str(error))
