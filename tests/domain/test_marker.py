"""The machine block survives a round trip and no edit."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace

import pytest

from bot.domain.marker import (
    Marker,
    NotBelieved,
    Place,
    PlaceKind,
    read_body,
    read_marker,
    read_trailers,
    render_block,
    render_marker,
)
from tests.domain import reviews as b

MARKER = Marker("dev.01.a", "shop", "dev", b.freight(alias="a--> <b>"), "d1", "Review", b.NOW)


def keyed(data: bytes) -> str:
    return hmac.new(b"key", data, hashlib.sha256).hexdigest()


def test_it_is_read_back_from_a_body_and_hides_in_a_comment() -> None:
    block = render_marker(MARKER, keyed)
    assert block.count("-->") == 1
    assert "\n" not in block
    assert read_marker(f"# A body\n\n{block}\n", keyed) == MARKER


@pytest.mark.parametrize("change", [('"dev"', '"prod"'), ('"d1"', '"d2"')])
def test_an_edited_one_is_not_believed(change: tuple[str, str]) -> None:
    block = render_marker(MARKER, keyed)
    assert change[0] in block
    assert read_marker(block.replace(*change), keyed) is None


def test_one_signed_with_another_key_is_not_believed() -> None:
    assert read_marker(render_marker(MARKER, keyed), lambda data: hashlib.sha256(data).hexdigest()) is None


def test_a_forged_one_before_ours_does_not_hide_ours() -> None:
    block = render_marker(MARKER, keyed)
    assert read_marker(block.replace('"dev"', '"prod"') + "\n" + block, keyed) == MARKER


def test_a_body_of_many_beginnings_is_read_in_one_go() -> None:
    block = render_marker(MARKER, keyed)
    assert read_marker("<!-- lockstep-marker {" * 30_000 + block, keyed) == MARKER


PULL = Place(PlaceKind.PULL, "acme/operations", "7")
PLACED = replace(MARKER, place=PULL)


@pytest.mark.parametrize(
    ("marker", "place", "why"),
    [
        (PLACED, Place(PlaceKind.PULL, "acme/operations", "8"), "signed for acme/operations#7"),
        (PLACED, Place(PlaceKind.PULL, "acme/other", "7"), "signed for acme/operations#7"),
        (PLACED, Place(PlaceKind.BRANCH, "acme/operations", "7"), "signed for acme/operations#7"),
        (replace(MARKER, schema=1), PULL, "did not sign the place"),
        (replace(PLACED, schema=3), PULL, "has schema 3"),
    ],
    ids=[
        "copied to another pull request",
        "copied to another repository",
        "copied to another kind of place",
        "of the version before, which named no place",
        "of a newer program",
    ],
)
def test_one_that_is_ours_but_does_not_belong_there_says_nothing(
    marker: Marker, place: Place, why: str
) -> None:
    found = read_body(render_marker(marker, keyed), place, keyed)
    assert isinstance(found, NotBelieved)
    assert why in found.reason


def test_where_it_was_put_it_is_believed_whatever_the_case_of_the_repository() -> None:
    there = Place(PlaceKind.PULL, "Acme/Operations", "7")
    assert read_body(render_marker(PLACED, keyed), there, keyed) == PLACED


def test_a_copied_one_before_ours_does_not_hide_ours() -> None:
    copied = render_marker(replace(MARKER, place=replace(PULL, name="1")), keyed)
    assert read_body(f"{copied}\n{render_marker(PLACED, keyed)}", PULL, keyed) == PLACED


def test_a_body_without_any_says_nothing_at_all() -> None:
    assert read_body("# A body", PULL, keyed) is None


def test_a_row_of_the_version_before_is_still_read_as_ours() -> None:
    signed = render_block(MARKER, keyed)
    fields = json.loads(signed[signed.index("{") : signed.rindex("}") + 1])
    first = ("promotion", "project", "stage", "freight", "digest", "state", "created_at", "finished_at")
    old = {name: fields[name] for name in ("$", *first)} | {"schema": 1}
    text = (
        json.dumps(old, sort_keys=True, separators=(",", ":")).replace(">", "\\u003e").replace("<", "\\u003c")
    )
    text = text.replace("--", "-\\u002d")
    block = f"<!-- lockstep-marker {text} {keyed(text.encode())} -->"
    assert read_marker(block, keyed) == replace(MARKER, schema=1)


def test_a_squash_that_joined_messages_holds_several_trailers() -> None:
    place = Place(PlaceKind.BRANCH, "acme/operations", "main")
    two = [replace(MARKER, promotion=name, place=place) for name in ("dev.1", "dev.2")]
    lines = [f"Lockstep-Marker: {render_block(marker, keyed)}" for marker in two]
    assert list(read_trailers("\n\n* x\n\n".join(lines), place, keyed)) == two
