from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.freight import Chart, FreightOrigin, GitCommit, Image
from bot.domain.identity import collection_id, freight_alias, freight_name, promotion_name, ulid

ORIGIN = FreightOrigin("app")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_order_of_artifacts_does_not_matter() -> None:
    images = [Image("a/b", "1", "sha256:aa"), Image("a/c", "2", "sha256:bb")]
    commits = [GitCommit("https://git.example/a", "0" * 40)]
    charts = [Chart("oci://reg.example/c", "", "1.0.0")]
    one = freight_name(ORIGIN, images=images, commits=commits, charts=charts)
    assert one == freight_name(ORIGIN, images=reversed(images), commits=commits, charts=charts)
    assert one != freight_name(FreightOrigin("other"), images=images, commits=commits, charts=charts)


def test_a_collection_is_named_by_its_sorted_freight() -> None:
    assert collection_id(["b", "a"]) == collection_id(["a", "b"]) != collection_id(["a"])


def test_promotion_names_sort_by_time_and_stay_short() -> None:
    earlier, later = ulid(NOW, b"\xff" * 10), ulid(NOW + timedelta(milliseconds=1), bytes(10))
    assert len(earlier) == 26
    assert earlier < later
    name = promotion_name("s" * 300, later, "F" * 40)
    assert len(name) == 253
    assert name.endswith(".fffffff")


def test_a_ulid_takes_ten_bytes() -> None:
    with pytest.raises(ValueError, match="10 bytes"):
        ulid(NOW, b"short")


def test_an_alias_follows_from_the_hash_and_gives_way_to_taken_ones() -> None:
    name = "ab" * 20
    first = freight_alias(name, ())
    assert first == freight_alias(name, ())
    assert first.count("-") == 1
    second = freight_alias(name, {first})
    assert second.startswith(f"{first}-")
    third = freight_alias(name, {first, second})
    assert third not in {first, second}


def test_aliases_are_spread() -> None:
    assert len({freight_alias(f"{number:040x}", ()) for number in range(500)}) > 450
