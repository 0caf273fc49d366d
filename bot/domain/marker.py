"""The machine block: what a lost database is rebuilt from, signed, since anybody with write access may edit a body."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from bot.domain.codec import CodecError, decode, encode
from bot.domain.freight import Freight

# Angle brackets are escaped inside, so that a text of many beginnings is still read in one go.
_PATTERN = re.compile(r"<!-- lockstep-marker (\{[^<>]*\}) ([0-9a-f]{64}) -->")
_TRAILER = re.compile(r"^Lockstep-Marker: lockstep-marker (\{[^<>\n]*\}) ([0-9a-f]{64})\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Marker:
    """What one Promotion was about and how far it came."""

    promotion: str
    project: str
    stage: str
    freight: Freight
    digest: str
    state: str
    created_at: datetime
    finished_at: datetime | None = None
    schema: int = 1


def render_marker(marker: Marker, keyed: Callable[[bytes], str]) -> str:
    """The block as an HTML comment; canonical JSON with an HMAC behind it."""
    text = _canonical(marker)
    return f"<!-- lockstep-marker {text} {keyed(text.encode())} -->"


def read_marker(text: str, keyed: Callable[[bytes], str]) -> Marker | None:
    """The first block of a text that we signed; None if there is none or it was changed."""
    for match in _PATTERN.finditer(text):
        if hmac.compare_digest(keyed(match[1].encode()), match[2]):
            try:
                return decode(Marker, json.loads(match[1]))
            except (CodecError, ValueError):
                return None
    return None


def is_signed_message(message: str, keyed: Callable[[bytes], str]) -> bool:
    """Whether a commit message holds a trailer that we signed, wherever GitHub put it when it joined messages.

    It says that the commit is ours, or a copy of one that is: who copies a trailer gains nothing but that their own
    commit is taken for ours.
    """
    return any(
        hmac.compare_digest(keyed(found[1].encode()), found[2]) for found in _TRAILER.finditer(message)
    )


def _canonical(marker: Marker) -> str:
    # In an HTML comment `--` and `>` could end it early, so both are written as escapes of JSON.
    text = json.dumps(encode(marker), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return text.replace("--", "-\\u002d").replace(">", "\\u003e").replace("<", "\\u003c")
