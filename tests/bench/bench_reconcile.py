"""How long one look at every Stage takes when there is nothing to do, and how much memory it needs.

Run as `python -m tests.bench.bench_reconcile`. The real database (SQLite) holds 1,000 Stages and 10,000 pieces of
Freight; nothing outside is asked, since no Promotion is under way.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Engine, create_engine, insert

from bot.adapters.clock import SystemClock
from bot.adapters.store.database import document
from bot.adapters.store.store import open_store
from bot.adapters.store.tables import freight as table
from bot.adapters.vault import KeyFileVault
from bot.app import load
from bot.domain.actions import Wait
from bot.domain.freight import Freight, FreightName, FreightOrigin, FreightStatus, Image, Verified
from bot.domain.history import FreightCollection
from bot.domain.planning import plan
from bot.ports import Git, GitHub, StageRecord, Store
from bot.workflow.configuration import Configuration
from bot.workflow.snapshots import Gatherer

STAGES = 1_000
ROUNDS = 3
FREIGHT = 10_000
LIMIT_S = 1.0
LIMIT_MB = 300
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


def pipeline_files(projects: int) -> dict[str, str]:
    """Projects of one Warehouse each, and Stages in pairs: one that takes Freight from it, one that follows."""
    parts = []
    for project in range(projects):
        parts.append(
            "apiVersion: kargo.akuity.io/v1alpha1\nkind: Project\n"
            f"metadata: {{name: p{project}}}\n---\n"
            "apiVersion: kargo.akuity.io/v1alpha1\nkind: ProjectConfig\n"
            f"metadata: {{name: p{project}, namespace: p{project}}}\n"
            "spec: {promotionPolicies: [{stageSelector: {name: 'glob:*'}, autoPromotionEnabled: true}]}\n---\n"
            "apiVersion: kargo.akuity.io/v1alpha1\nkind: Warehouse\n"
            f"metadata: {{name: app, namespace: p{project}}}\n"
            "spec: {subscriptions: [{image: {repoURL: registry.example/app}}]}\n"
        )
        for number in range(STAGES // projects):
            source = "{direct: true}" if number % 2 == 0 else f"{{stages: [s{number - 1}]}}"
            parts.append(
                f"apiVersion: kargo.akuity.io/v1alpha1\nkind: Stage\n"
                f"metadata: {{name: s{number}, namespace: p{project}}}\nspec:\n"
                f"  requestedFreight: [{{origin: {{kind: Warehouse, name: app}}, sources: {source}}}]\n"
                "  promotionTemplate: {spec: {steps: [{uses: git-clone, config: "
                "{repoURL: 'https://git.example/a/b', checkout: [{path: ./src}]}}]}}\n"
            )
    return {"pipeline.yaml": "---\n".join(parts)}


class Source:
    """The configuration as it stands."""

    def __init__(self, projects: int) -> None:
        self._files = pipeline_files(projects)

    async def read(self) -> tuple[str, dict[str, str]]:
        return "r1", self._files


async def fill(store: Store, database: Engine, projects: int) -> None:
    """Freight of every project, the newest of which all its Stages have and have verified."""
    for project in (f"p{number}" for number in range(projects)):
        origin, count, rows = FreightOrigin("app"), FREIGHT // projects, list[dict[str, object]]()
        for number in range(count):
            image = Image("registry.example/app", f"1.{number}.0", f"sha256:{number:064x}")
            freight = Freight(
                name=FreightName(f"{number:040x}"),
                project=project,
                alias=f"alias-{number}",
                origin=origin,
                discovered_at=BEGINNING + timedelta(minutes=number),
                images=(image,),
            )
            rows.append(
                {
                    "project": project,
                    "name": freight.name,
                    "alias": freight.alias,
                    "discovered_at": freight.discovered_at.timestamp(),
                    "document": document(freight),
                    "status": document(FreightStatus()),
                }
            )
        with database.begin() as connection:
            connection.execute(insert(table), rows)
        at = BEGINNING + timedelta(days=300)
        names = [f"s{number}" for number in range(STAGES // projects)]
        status = FreightStatus(dict.fromkeys(names, at), dict.fromkeys(names, Verified(at)))
        await store.change_freight_status(project, freight.name, lambda _, new=status: new)  # type: ignore[misc]
        for name in names:
            history = (FreightCollection({origin: freight.name}),)
            await store.save_stage(StageRecord(project, name, history=history, since=at))


async def look_at_all(gatherer: Gatherer) -> float:
    """Seconds that gathering and planning take for every Stage; each must wait."""
    begun = time.perf_counter()
    for stage in gatherer.configuration.pipeline.stages.values():
        seen = await gatherer.gather(stage)
        action = plan(seen)
        assert isinstance(action, Wait), action
    return time.perf_counter() - begun


async def measure(directory: Path, projects: int) -> bool:
    """Print time and memory; whether a bar is missed."""
    url = f"sqlite:///{directory / 'bench.db'}"
    store = open_store(url, KeyFileVault(directory / "key"))
    try:
        await fill(store, create_engine(url), projects)
        configuration = Configuration(Source(projects), store, load)
        await configuration.refresh()
        # Without a Promotion nothing outside of the database is asked.
        nobody = cast(Any, None)
        gatherer = Gatherer(store, cast(Git, nobody), cast(GitHub, nobody), SystemClock(), configuration)
        seconds = [await look_at_all(gatherer) for _ in range(ROUNDS)]
    finally:
        store.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    count = len(configuration.pipeline.stages)
    print(
        f"{count} Stages, {FREIGHT} Freight in {projects} project(s): first pass {seconds[0]:.2f} s, "
        f"best {min(seconds):.2f} s (bar {LIMIT_S:.0f} s), peak {memory:.0f} MB (bar {LIMIT_MB} MB)",
        flush=True,
    )
    return min(seconds) > LIMIT_S or memory > LIMIT_MB


def main() -> int:
    """Run each case in a directory that is removed afterwards; 1 if a bar is missed."""
    missed = False
    for projects in (20, 1):
        with tempfile.TemporaryDirectory() as root:
            missed |= asyncio.run(measure(Path(root), projects))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
