"""Commit messages with our trailers, and what they say of the Promotion."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bot.domain.review import ApplyRecord
from bot.steps.contract import StepContext

PREFIX = "Lockstep-"
"""How our trailers begin."""

_TRAILER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*: \S.*|[ \t]+\S.*")
_OURS = re.compile(rf"^{PREFIX}", re.IGNORECASE | re.MULTILINE)


def release_message(text: str, context: StepContext) -> str:
    """The message of a commit of the task, with the trailers that name Freight, Stage, Promotion, step and applies."""
    promotion = context.promotion
    trailers = [
        ("Freight", promotion.freight.name),
        ("Stage", f"{promotion.project}/{promotion.stage}"),
        ("Promotion", promotion.id),
        ("Step", context.alias),
    ]
    for report in context.earlier:
        if isinstance(report.record, ApplyRecord):
            trailers.append(("Terraform", f"{report.record.state} {report.record.inputs}"))
    if context.marker:
        trailers.append(("Marker", context.marker))
    return add_trailers(text, [(PREFIX + key, value) for key, value in trailers])


def add_trailers(text: str, trailers: Iterable[tuple[str, str]]) -> str:
    """A message with trailers at its end, joined to those that it ends with already.

    Lines of the message that look like ours are marked as quoted: a message may hold what others wrote, and only we
    say what a trailer of ours says.
    """
    body = _OURS.sub(f"| {PREFIX}", text.replace("\r\n", "\n").replace("\0", "")).strip()
    added = "\n".join(f"{key}: {' '.join(value.split())}" for key, value in trailers)
    paragraphs = re.split(r"\n\s*\n", body)
    last = paragraphs[-1].split("\n")
    # The first paragraph is the subject, which git never takes for trailers.
    joins = len(paragraphs) > 1 and not last[0][:1].isspace() and all(map(_TRAILER.fullmatch, last))
    return f"{body}{chr(10) if joins else chr(10) * 2}{added}\n"
