"""Which Warehouses a push to a repository makes the bot look at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.adapters.clock import SystemClock
from bot.adapters.github.app import GitHubApp
from bot.adapters.github.connection import GitHubSettings
from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.domain.events import AppIdentity
from bot.domain.model import (
    CommitSelectionStrategy,
    GitSubscription,
    ImageSubscription,
    Metadata,
    Subscription,
    Warehouse,
)
from bot.domain.pipeline import Pipeline
from bot.domain.promotion import Target
from bot.ports import Delivery
from bot.workflow.intake import Intake
from bot.workflow.receivers import ReceivedIntake
from tests.domain.reviews import in_review

ONE, TWO = "1" * 40, "2" * 40
US = AppIdentity(1, 4242)
WATCHING: dict[str, Subscription] = {
    "app": GitSubscription("https://ghe.example/acme/app"),
    "app-main": GitSubscription("https://ghe.example/ACME/App.git", branch="main"),
    "app-dev": GitSubscription("https://ghe.example/acme/app", branch="dev"),
    "app-docs": GitSubscription("https://ghe.example/acme/app", include_paths=("docs",)),
    "app-tags": GitSubscription(
        "https://ghe.example/acme/app", strategy=CommitSelectionStrategy.SEMVER, semver_constraint="^1"
    ),
    "other": GitSubscription("https://ghe.example/acme/other"),
    "elsewhere": GitSubscription("https://github.com/acme/app"),
    "image": ImageSubscription("ghe.example/acme/app"),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DatabaseStore]:
    opened = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", KeyFileVault(tmp_path / "vault.key"))
    yield opened
    opened.close()


async def looked_at(store: DatabaseStore, body: dict[str, object]) -> set[str]:
    """The Warehouses that are to be looked at after a push with this body."""
    warehouses = {
        ("acme", name): Warehouse(Metadata(name, "acme"), (subscription,))
        for name, subscription in WATCHING.items()
    }
    github = GitHubApp(GitHubSettings(1, "no key is needed", web_url="https://ghe.example/"), SystemClock())
    pipeline = Pipeline(warehouses=warehouses)
    received = ReceivedIntake(store, github, lambda: pipeline)
    intake = Intake(store, github, lambda: US, lambda: pipeline, None, received)
    now = datetime.now(UTC)
    await store.store_delivery(Delivery("guid", "github", "push", json.dumps(body).encode(), now))
    assert await intake.drain() == 1
    due = await store.list_due_looks(now + timedelta(minutes=1))
    return {look.key.removeprefix("acme/") for look in due if look.kind == "warehouse"}


def push(ref: str, *paths: str, sender: int = 7, **more: object) -> dict[str, object]:
    return {
        "ref": ref,
        "before": ONE,
        "after": TWO,
        "commits": [{"added": list(paths), "modified": [], "removed": []}] if paths else [],
        "repository": {"full_name": "Acme/app", "default_branch": "trunk"},
        "sender": {"login": "ann", "id": sender},
        **more,
    }


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(push("refs/heads/trunk", "docs/a"), {"app", "app-docs"}, id="the default branch"),
        pytest.param(push("refs/heads/trunk", "src/a"), {"app"}, id="a path that nobody filters out"),
        pytest.param(push("refs/heads/main", "src/a"), {"app", "app-main"}, id="main"),
        pytest.param(push("refs/heads/dev"), {"app-dev"}, id="another branch"),
        pytest.param(push("refs/tags/v1.2.0"), {"app-tags"}, id="a tag that fits"),
        pytest.param(push("refs/tags/v2.0.0"), set(), id="a tag that does not fit"),
        pytest.param(
            push("refs/heads/trunk", "docs/a", sender=US.user_id), set(), id="what the App pushed itself"
        ),
    ],
)
async def test_a_push_looks_at_the_warehouses_that_watch_it(
    store: DatabaseStore, body: dict[str, object], expected: set[str]
) -> None:
    assert await looked_at(store, body) == expected


@pytest.mark.parametrize(
    ("branch", "pushers"),
    [
        pytest.param("lockstep/shop/dev", (7,), id="to the promotion's branch"),
        pytest.param("lockstep/shop/_release/dev.01.aaaaaaa/8", (7,), id="to its follow-up's"),
        pytest.param("lockstep/shop/_release/dev.02.bbbbbbb/8", (), id="to another promotion's follow-up"),
        pytest.param("main", (), id="to the target"),
    ],
)
async def test_who_pushed_to_a_branch_of_a_promotion_is_remembered(
    store: DatabaseStore, branch: str, pushers: tuple[int, ...]
) -> None:
    promotion = in_review(target=Target("https://ghe.example/acme/app", "main"))
    await store.create_promotion(promotion)
    await looked_at(store, push(f"refs/heads/{branch}"))
    (found,) = await store.list_unfinished_promotions()
    assert found.pushers == pushers
