"""The machine block survives a round trip and no edit."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from bot.domain.marker import Marker, read_marker, render_marker
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
