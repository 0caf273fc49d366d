"""What keeps a webhook receiver from doing what its author wants; warnings, since Kargo admits all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.domain.model import ProjectConfig, WebhookReceiver
from bot.domain.problems import Severity
from bot.domain.receiving import TOKEN_VENDORS
from bot.domain.values import Json
from bot.expressions.errors import ExpressionError
from bot.expressions.evaluator import compile_expression
from bot.expressions.templates import has_expression, parse_template
from bot.pipeline.access import mappings_at, text_at
from bot.pipeline.reader import Path
from bot.pipeline.schema import Finding

_PRIVATE = re.compile(r"header\w*\(\s*['\"](authorization|cookie|proxy-authorization)['\"]", re.IGNORECASE)


def check_receivers(config: ProjectConfig) -> Iterator[Finding]:
    """What is wrong with the receivers of a ProjectConfig or ClusterConfig."""
    for index, receiver in enumerate(config.webhook_receivers):
        path: Path = ("spec", "webhookReceivers", index, receiver.vendor)
        if not receiver.secret and receiver.vendor not in TOKEN_VENDORS:
            message = "no Secret is named, so the receiver accepts no event"
            yield Finding((*path, "secretRef"), message, Severity.WARNING)
        if receiver.vendor == "generic":
            yield from _check_actions(receiver, path)


def _check_actions(receiver: WebhookReceiver, path: Path) -> Iterator[Finding]:
    for index, action in enumerate(mappings_at(dict(receiver.config), "actions")):
        where: Path = (*path, "actions", index)
        condition = text_at(action, "whenExpression")
        bare = not has_expression(condition)
        yield from _check_text(condition, (*where, "whenExpression"), bare=bare)
        for key in ("parameters", "targetSelectionCriteria"):
            for place, text in _texts(action.get(key), (*where, key)):
                yield from _check_text(text, place, bare=False)


def _check_text(text: str, path: Path, *, bare: bool) -> Iterator[Finding]:
    try:
        if bare and text.strip():
            compile_expression(text)
        elif not bare:
            parse_template(text)
    except ExpressionError as error:
        yield Finding(path, f"the expression cannot be read: {error}", Severity.WARNING)
    named = _PRIVATE.search(text)
    if named is not None:
        message = (
            f"the header {named[1]} is not kept, so expressions find it empty; the address is the credential"
        )
        yield Finding(path, message, Severity.WARNING)


def _texts(value: Json, path: Path) -> Iterator[tuple[Path, str]]:
    match value:
        case str():
            yield path, value
        case list():
            for index, item in enumerate(value):
                yield from _texts(item, (*path, index))
        case dict():
            for key, item in value.items():
                yield from _texts(item, (*path, key))
        case _:
            return
