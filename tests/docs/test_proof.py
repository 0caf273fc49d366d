"""The page of proofs has a row for everything that is promised, and names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "proof.md").read_text()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([a-z0-9_/]+\.py::[A-Za-z0-9_]+)`", PAGE))))
def test_what_it_names_exists(name: str) -> None:
    path, _, test = name.partition("::")
    text = (ROOT / "tests" / path).read_text()
    assert re.search(rf"^(?:async )?(?:def {test}\(|class {test}\b|{test} = )", text, re.MULTILINE)


@pytest.mark.parametrize(("heading", "count"), [("## What always holds", 19), ("## The scenarios", 43)])
def test_every_promise_has_its_row(heading: str, count: int) -> None:
    part = PAGE.partition(heading)[2].partition("\n## ")[0]
    assert [int(n) for n in re.findall(r"^\| (\d+) \|", part, re.MULTILINE)] == list(range(1, count + 1))
