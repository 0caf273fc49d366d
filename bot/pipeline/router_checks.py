"""What keeps EventRouters from telling what they are meant to: warnings, since no Stage depends on them."""

from __future__ import annotations

from collections.abc import Iterator

from bot.domain.event_router import EventRouter, check_router, read_router
from bot.domain.pipeline import Pipeline
from bot.domain.problems import ConfigProblem, Severity
from bot.expressions.errors import ExpressionError
from bot.expressions.evaluator import compile_expression
from bot.expressions.templates import parse_template


def find_router_problems(pipeline: Pipeline) -> Iterator[ConfigProblem]:
    """Warnings for every EventRouter of the pipeline."""
    for document in pipeline.others:
        if document.kind != "EventRouter":
            continue
        router, source = read_router(document), document.metadata.source
        for key, message in (
            *check_router(router),
            *_check_texts(router),
            *_check_channels(router, pipeline),
        ):
            yield ConfigProblem(source.path, source.line, key, message, Severity.WARNING)


def _check_texts(router: EventRouter) -> Iterator[tuple[str, str]]:
    if router.when.strip():
        try:
            compile_expression(router.when)
        except ExpressionError as error:
            yield "spec.when", f"the expression cannot be read, so nothing is told: {error}"
    texts = {"spec.output": router.output, "spec.groupingKey": router.grouping_key}
    texts |= {f"spec.channels[{index}].output": item.output for index, item in enumerate(router.channels)}
    for key, text in texts.items():
        try:
            parse_template(text)
        except ExpressionError as error:
            yield key, f"the text cannot be filled in, so nothing is told: {error}"


def _check_channels(router: EventRouter, pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    known = {(d.kind, d.metadata.namespace, d.metadata.name) for d in pipeline.others}
    for index, channel in enumerate(router.channels):
        owner = router.metadata.namespace if channel.kind == "MessageChannel" else ""
        if channel.name and (channel.kind, owner, channel.name) not in known:
            yield f"spec.channels[{index}]", f"there is no {channel.kind} {channel.name!r}"
