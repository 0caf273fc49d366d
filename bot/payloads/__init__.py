"""Webhook bodies to domain events, one module per sender, listed in `SENDERS`.

What comes in is hostile until read: a body is an event, of no interest, or a `PayloadProblem`; nothing else happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.domain.events import AppIdentity, Event
from bot.payloads.distribution import parse_notifications
from bot.payloads.github import parse_delivery
from bot.payloads.reading import PayloadProblem


@dataclass(frozen=True, slots=True)
class Delivery:
    """One verified webhook request: its kind (GitHub's event header, else empty) and its raw body."""

    kind: str
    body: bytes
    app: AppIdentity


def _parse_github(delivery: Delivery) -> tuple[Event, ...]:
    event = parse_delivery(delivery.kind, delivery.body, delivery.app)
    return () if event is None else (event,)


def _parse_distribution(delivery: Delivery) -> tuple[Event, ...]:
    return parse_notifications(delivery.body)


SENDERS: Mapping[str, Callable[[Delivery], tuple[Event, ...]]] = {
    "github": _parse_github,
    "distribution": _parse_distribution,
}
"""Every sender by its name in our addresses; each raises PayloadProblem for what it cannot be."""

__all__ = ["SENDERS", "Delivery", "PayloadProblem"]
