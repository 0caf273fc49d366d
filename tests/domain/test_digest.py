"""The digest is equal for what is the same to a reviewer, and different for everything that is not."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from bot.domain.digest import preview_digest
from bot.domain.files import File, TreeId
from bot.domain.model import Step, Variable
from bot.domain.promotion import Promotion, Target
from bot.domain.review import ApplyKind, Patch, Preview, Split
from tests.domain import reviews as b

LATE = "known after apply: lambda_url"


def keyed(data: bytes) -> str:
    return hashlib.sha256(b"key" + data).hexdigest()


def digest(preview: Preview, promotion: Promotion | None = None) -> str:
    return preview_digest(preview, promotion or b.promotion(), keyed)


def patch(sentinel: str) -> Split:
    change = b.change("values.yaml", f"url: {sentinel}\n")
    return Split(cut=1, prepared=(), deferred=Patch(b.MAIN, (change,)))


BASIS = b.preview(
    differences={"tf/a.tfvars": File(b"x").entry},
    steps=b.steps(b.clone(), b.apply(), b.act()),
    split=patch("lockstep-unknown-1-aaa"),
    origins={"lockstep-unknown-1-aaa": LATE},
)


def test_it_has_sixteen_hex_digits() -> None:
    assert len(digest(BASIS)) == 16
    assert int(digest(BASIS), 16) >= 0


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(BASIS, base=b.HEAD), id="another base commit with the same differences"),
        pytest.param(replace(BASIS, tree=TreeId("1" * 40)), id="another tree with the same differences"),
        pytest.param(replace(BASIS, made_at=BASIS.made_at.replace(year=2027)), id="another time"),
        pytest.param(
            replace(BASIS, split=patch("lockstep-unknown-9-zzz"), origins={"lockstep-unknown-9-zzz": LATE}),
            id="another sentinel for the same value",
        ),
        pytest.param(replace(BASIS, warnings=("w",)), id="a warning"),
    ],
)
def test_what_is_the_same_to_a_reviewer_has_the_same_digest(other: Preview) -> None:
    assert digest(other) == digest(BASIS)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(BASIS, target=Target(b.URL, "next")), id="another branch"),
        pytest.param(replace(BASIS, differences={"tf/a.tfvars": File(b"y").entry}), id="another content"),
        pytest.param(replace(BASIS, differences={"tf/a.tfvars": None}), id="a removed file"),
        pytest.param(
            replace(BASIS, steps=b.steps(b.clone(), b.apply(ApplyKind.EMPTY), b.act())), id="no apply"
        ),
        pytest.param(replace(BASIS, steps=b.steps(b.clone(), b.apply())), id="no effect"),
        pytest.param(
            replace(BASIS, split=patch("https://known.example")), id="a value known instead of unknown"
        ),
    ],
)
def test_what_differs_for_a_reviewer_has_another_digest(other: Preview) -> None:
    assert digest(other) != digest(BASIS)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(b.promotion(freight=b.freight("e")), id="other Freight"),
        pytest.param(b.promotion(variables=(Variable("a", "b"),)), id="other vars"),
        pytest.param(b.promotion(steps=(Step(uses="fail", alias="x"),)), id="other steps"),
    ],
)
def test_the_task_and_its_freight_are_bound(other: Promotion) -> None:
    assert digest(BASIS, other) != digest(BASIS)


def test_a_short_secret_cannot_be_found_without_the_key() -> None:
    assert preview_digest(BASIS, b.promotion(), lambda data: hashlib.sha256(data).hexdigest()) != digest(
        BASIS
    )
