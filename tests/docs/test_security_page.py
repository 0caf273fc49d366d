"""The security page names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([a-z0-9_/]+/(?:test_[a-z0-9_]+\.py)?)`", PAGE))))
def test_what_it_names_exists(name: str) -> None:
    assert (ROOT / "tests" / name).exists()


def test_every_threat_has_its_row() -> None:
    assert [int(n) for n in re.findall(r"^\| T(\d+) \|", PAGE, re.MULTILINE)] == list(range(1, 21))
