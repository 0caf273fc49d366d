"""Kargo's EventRouter: which events of a project are told to which message channels, and in which words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bot.domain.model import Document, Metadata
from bot.domain.values import Json

EVENT_TYPES = (
    "PromotionCreated",
    "PromotionSucceeded",
    "PromotionFailed",
    "PromotionErrored",
    "PromotionAborted",
    "FreightApproved",
    "FreightVerificationSucceeded",
    "FreightVerificationFailed",
    "FreightVerificationErrored",
    "FreightVerificationAborted",
    "FreightVerificationInconclusive",
)
"""Kargo's types of events; its FreightVerificationUnknown cannot happen here."""

_IMPOSSIBLE = "FreightVerificationUnknown"
ENCODINGS = ("", "json", "yaml", "xml")
CHANNEL_KINDS = ("MessageChannel", "ClusterMessageChannel")


@dataclass(frozen=True, slots=True)
class RoutedChannel:
    """A channel that is told; `output` is what it is told in place of the router's."""

    kind: str
    name: str
    output: str = ""
    encoding: str = ""


@dataclass(frozen=True, slots=True)
class EventRouter:
    """One router; `when` is a bare expression, `output` and `grouping_key` are texts with `${{ }}`."""

    metadata: Metadata
    types: frozenset[str]
    channels: tuple[RoutedChannel, ...]
    when: str = ""
    output: str = ""
    encoding: str = ""
    grouping_key: str = ""


def read_router(document: Document) -> EventRouter:
    """The router that a document describes; what is not written as it must be is left out (`check_router` names it)."""
    spec = _mapping(document.body.get("spec"))
    given = spec.get("types")
    types = [item for item in given if isinstance(item, str)] if isinstance(given, list) else []
    listed = spec.get("channels")
    channels = [_mapping(item) for item in listed] if isinstance(listed, list) else []
    return EventRouter(
        metadata=document.metadata,
        types=frozenset(types),
        channels=tuple(
            RoutedChannel(
                _text(item.get("kind")),
                _text(item.get("name")),
                _text(item.get("output")),
                _text(item.get("encodingType")),
            )
            for item in channels
        ),
        when=_text(spec.get("when")),
        output=_text(spec.get("output")),
        encoding=_text(spec.get("encodingType")),
        grouping_key=_text(spec.get("groupingKey")),
    )


def check_router(router: EventRouter) -> Iterator[tuple[str, str]]:
    """What keeps a router from telling what it is meant to: the key, and why."""
    if not router.types:
        yield "spec.types", "name at least one type of event"
    for name in sorted(router.types - set(EVENT_TYPES)):
        why = "never happens here" if name == _IMPOSSIBLE else "is no type of event"
        yield "spec.types", f"{name} {why}; there are {', '.join(EVENT_TYPES)}"
    if not router.channels:
        yield "spec.channels", "name at least one channel"
    for index, channel in enumerate(router.channels):
        if channel.kind not in CHANNEL_KINDS or not channel.name:
            yield f"spec.channels[{index}]", f"give name, and as kind one of {', '.join(CHANNEL_KINDS)}"
        if channel.encoding not in ENCODINGS:
            yield f"spec.channels[{index}].encodingType", "must be json, yaml or xml"
    if router.encoding not in ENCODINGS:
        yield "spec.encodingType", "must be json, yaml or xml"


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
