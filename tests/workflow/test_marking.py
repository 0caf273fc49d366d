"""What the signed blocks tell of a Promotion, on a real store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from bot.adapters.store.store import open_store
from bot.adapters.vault import KeyFileVault
from bot.domain.files import CommitId
from bot.domain.github import PullNumber, Repository
from bot.domain.marker import Marker, Place, PlaceKind, read_body
from bot.domain.promotion import Promotion, State
from bot.ports import AppliedState, GitHub, StageRecord, Store
from bot.workflow.marking import Marking
from tests.reports.views import NOW
from tests.reports.views import apply as any_apply
from tests.reports.views import preview as any_preview
from tests.reports.views import promotion as any_promotion


class OneRepository:
    """A GitHub with one repository, at whatever address."""

    def repository_of(self, url: str) -> Repository:
        return Repository("acme", "operations")


@pytest.fixture
def vault(tmp_path: Path) -> KeyFileVault:
    return KeyFileVault(tmp_path / "vault.key")


@pytest.fixture
def store(tmp_path: Path, vault: KeyFileVault) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", vault)
    yield opened
    opened.close()


def open_one(**changes: object) -> Promotion:
    return any_promotion(**{"pull": PullNumber(7), "merge_commit": None, **changes})


@pytest.mark.parametrize(
    ("promotion", "told"),
    [
        (open_one(state=State.REVIEW), ()),
        (open_one(state=State.REVIEW, merge_commit=CommitId("d" * 40)), ("i1",)),
        (open_one(state=State.STOPPED, effects_begun=True), ("i1",)),
        (open_one(state=State.ABORTED, effects_begun=True), ("i1",)),
        (open_one(state=State.REVIEW, attempt=2, first_attempt=2), ("i1",)),
    ],
    ids=[
        "of one in review it says nothing",
        "of one that is merged it says what was applied last",
        "so it does of one that was applied before its merge and stopped",
        "or was closed after that",
        "or is previewed again after that",
    ],
)
async def test_a_body_tells_what_may_have_been_applied(
    store: Store, vault: KeyFileVault, promotion: Promotion, told: tuple[str, ...]
) -> None:
    record = any_apply()
    await store.record_applied(AppliedState(record.state, "i1", "c", promotion.id, succeeded=True, at=NOW))
    marking = Marking(store, cast(GitHub, OneRepository()), vault)
    body = await marking.body(promotion, any_preview(record), StageRecord("acme", promotion.stage))
    marker = read_body(body, Place(PlaceKind.PULL, "acme/operations", "7"), vault.digest)
    assert isinstance(marker, Marker)
    assert tuple(applied.inputs for applied in marker.applied) == told
