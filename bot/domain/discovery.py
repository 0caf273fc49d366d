"""What a look at a Warehouse found, as people see it: per subscription what it offers, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from bot.domain.codec import CodecError, decode, encode
from bot.domain.values import Json

SUBJECT_LENGTH = 80
"""Kargo cuts the subject of a discovered commit to so many characters."""


@dataclass(frozen=True, slots=True)
class Find:
    """One version that a subscription offers: a tag, a version or a commit.

    `exact` is the commit or digest where it is known: of images only what makes Freight is asked for. `note` is a
    commit's subject.
    """

    version: str
    exact: str = ""
    at: datetime | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class SubscriptionFinds:
    """What one subscription offers. `kind` is git, image, chart or a generic type; `note` says what was left out."""

    kind: str
    address: str
    name: str = ""
    finds: tuple[Find, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Discovery:
    """One look at a Warehouse; `outcome` says which Freight came of it, or why none did.

    `freight` is the name of the Freight that the newest artifacts are, empty if they are none.
    """

    finds: tuple[SubscriptionFinds, ...]
    outcome: str
    freight: str = ""
    schema: int = 1


def encode_discovery(discovery: Discovery) -> Json:
    """The discovery as it is stored."""
    return encode(discovery)


def decode_discovery(stored: Json) -> Discovery:
    """A stored discovery; of rows that came before schema 1 (tags by image) the tags are left.

    Raises CodecError for what is neither.
    """
    if isinstance(stored, dict) and "schema" in stored:
        return decode(Discovery, stored)
    if not isinstance(stored, dict):
        raise CodecError("a discovery is an object")
    finds = [
        SubscriptionFinds("image", address, finds=tuple(Find(str(tag)) for tag in tags))
        for address, tags in stored.items()
        if isinstance(tags, list)
    ]
    return Discovery(tuple(finds), "")
