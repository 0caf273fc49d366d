"""The machine block: what a lost database is rebuilt from, signed, since anybody with write access may edit a body.

A block stands in the body of a pull request, in the last trailer of our commits and in the payload of a deployment.
What is signed names that place, so that one that was copied elsewhere can be told from ours. A block is canonical JSON
with an HMAC behind it.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from bot.domain.audit import AuditHead
from bot.domain.auto_promotion import Hold
from bot.domain.codec import CodecError, decode, encode
from bot.domain.freight import Freight, FreightName
from bot.domain.promotion import Target

SCHEMA = 2
"""1 did not name the place; such a block still tells our commits, and nothing is rebuilt from it."""

# Angle brackets are escaped inside, so that a text of many beginnings is still read in one go.
_BLOCK = r"lockstep-marker (\{[^<>\n]*\}) ([0-9a-f]{64})"
_COMMENT = re.compile(rf"<!-- {_BLOCK} -->")
_TRAILER = re.compile(rf"^Lockstep-Marker: {_BLOCK}\s*$", re.MULTILINE)
_PAYLOAD = re.compile(_BLOCK)

Keyed = Callable[[bytes], str]
"""The hash that blocks are signed with, 64 hex digits."""


class PlaceKind(StrEnum):
    """Where a block may stand."""

    PULL = "pull"
    BRANCH = "branch"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block was put: a repository by its full name, and the number, branch or environment there.

    Of commits it is the branch that they are meant for, whichever branch brings them there.
    """

    kind: PlaceKind
    repository: str
    name: str

    def __str__(self) -> str:
        match self.kind:
            case PlaceKind.PULL:
                return f"{self.repository}#{self.name}"
            case PlaceKind.BRANCH:
                return f"{self.repository}, branch {self.name}"
            case PlaceKind.ENVIRONMENT:
                return f"{self.repository}, environment {self.name}"


@dataclass(frozen=True, slots=True)
class AppliedInputs:
    """The last apply of a Terraform state that the Promotion named: keyed digest of its inputs, commit and time."""

    state: str
    inputs: str
    commit: str
    at: datetime
    succeeded: bool = True


@dataclass(frozen=True, slots=True)
class Standing:
    """What people decided of the Stage, as far as it outlives a Promotion."""

    holds: tuple[Hold, ...] = ()
    frozen: str = ""
    quarantine: tuple[FreightName, ...] = ()
    differs: str = ""


@dataclass(frozen=True, slots=True)
class Marker:
    """What one Promotion was about and how far it came.

    `state` is a `State`; `applied` what is known of the Terraform states that it named; `verified_at` since when the
    Freight is verified in the Stage; `standing` stands in bodies alone. `audit` is the newest entry of the audit log
    that speaks of the Promotion.
    """

    promotion: str
    project: str
    stage: str
    freight: Freight
    digest: str
    state: str
    created_at: datetime
    finished_at: datetime | None = None
    place: Place | None = None
    target: Target | None = None
    source: str = ""
    actor: str = ""
    actor_id: int = 0
    pushers: tuple[int, ...] = ()
    rollback: bool = False
    corrects: bool = False
    reason: str = ""
    verified_at: datetime | None = None
    applied: tuple[AppliedInputs, ...] = ()
    standing: Standing | None = None
    audit: AuditHead | None = None
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class NotBelieved:
    """Why a block says nothing."""

    reason: str


def render_marker(marker: Marker, keyed: Keyed) -> str:
    """The block as an HTML comment."""
    return f"<!-- {render_block(marker, keyed)} -->"


def render_block(marker: Marker, keyed: Keyed) -> str:
    """The block on one line, for a trailer or a payload."""
    text = _canonical(marker)
    return f"lockstep-marker {text} {keyed(text.encode())}"


def read_marker(text: str, keyed: Keyed) -> Marker | None:
    """The first block of a text that we signed, wherever it was put; None if there is none or it was changed."""
    for match in _COMMENT.finditer(text):
        if _is_signed(match, keyed):
            return _decode(match[1])
    return None


def read_body(text: str, place: Place, keyed: Keyed) -> Marker | NotBelieved | None:
    """What the body of a pull request says: of several blocks the first that is ours and of this place.

    None if there is no block at all.
    """
    return _first(_read_all(_COMMENT, text, place, keyed))


def read_payload(text: str, place: Place, keyed: Keyed) -> Marker | NotBelieved | None:
    """What the payload of a deployment says, as `read_body`."""
    return _first(_read_all(_PAYLOAD, text, place, keyed))


def read_trailers(message: str, place: Place, keyed: Keyed) -> Sequence[Marker | NotBelieved]:
    """What the trailers of a commit say, which holds several if GitHub joined commits."""
    return tuple(_read_all(_TRAILER, message, place, keyed))


def is_signed_message(message: str, keyed: Keyed) -> bool:
    """Whether a commit message holds a trailer that we signed, wherever GitHub put it when it joined messages.

    It says that the commit is ours, or a copy of one that is: who copies a trailer gains nothing but that their own
    commit is taken for ours.
    """
    return any(_is_signed(found, keyed) for found in _TRAILER.finditer(message))


def place_of(marker: Marker, kind: PlaceKind, repository: str, name: str) -> Marker:
    """The marker as it stands at a place."""
    return replace(marker, place=Place(kind, repository, name))


def _read_all(
    pattern: re.Pattern[str], text: str, place: Place, keyed: Keyed
) -> Iterator[Marker | NotBelieved]:
    for match in pattern.finditer(text):
        yield _read(match, place, keyed)


def _first(found: Iterator[Marker | NotBelieved]) -> Marker | NotBelieved | None:
    refused: NotBelieved | None = None
    for item in found:
        if isinstance(item, Marker):
            return item
        refused = refused or item
    return refused


def _read(match: re.Match[str], place: Place, keyed: Keyed) -> Marker | NotBelieved:
    if not _is_signed(match, keyed):
        return NotBelieved("its marker is not signed with this key, or was changed")
    marker = _decode(match[1])
    if marker is None:
        return NotBelieved("its marker is signed, but this program cannot read it")
    if marker.schema > SCHEMA:
        return NotBelieved(f"its marker has schema {marker.schema}, this program knows {SCHEMA}")
    if marker.place is None:
        return NotBelieved("its marker is of an older version, which did not sign the place where it stands")
    if _plain(marker.place) != _plain(place):
        return NotBelieved(f"its marker was copied: it was signed for {marker.place}")
    return marker


def _plain(place: Place) -> Place:
    # GitHub's names of owners and repositories do not tell cases apart.
    return replace(place, repository=place.repository.lower())


def _is_signed(match: re.Match[str], keyed: Keyed) -> bool:
    return hmac.compare_digest(keyed(match[1].encode()), match[2])


def _decode(text: str) -> Marker | None:
    """A marker of this schema or the one before, whose missing fields take their defaults."""
    try:
        return decode(Marker, json.loads(text))
    except (CodecError, ValueError):
        return None


def _canonical(marker: Marker) -> str:
    # In an HTML comment `--` and `>` could end it early, so both are written as escapes of JSON.
    text = json.dumps(encode(marker), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return text.replace("--", "-\\u002d").replace(">", "\\u003e").replace("<", "\\u003c")
