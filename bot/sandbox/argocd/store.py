"""What Argo CD keeps on disk: Applications with what runs of them, projects and the signing key; and who watches."""

from __future__ import annotations

import asyncio
import copy
import json
import secrets
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.sandbox.argocd.rendering import Rendered
from bot.sandbox.files import write_whole


def now() -> str:
    """The time as Kubernetes writes it: UTC, whole seconds, so that two events may share one stamp."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(slots=True)
class Tracked:
    """An Application as the API shows it, and the simulated cluster behind it; `number` counts in order of creation.

    `live` is what was last applied, `pulled` the digest of a live state whose images the nodes have. A rollout makes
    health Progressing from `starts` to `ends` (Unix seconds).
    """

    app: dict[str, Any]
    live: Rendered | None = None
    starts: float = 0.0
    ends: float = 0.0
    pulled: str = ""
    number: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False)

    @property
    def name(self) -> str:
        """The Application's name."""
        return str(self.app["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The namespace that the Application object is in."""
        return str(self.app["metadata"]["namespace"])

    @property
    def project(self) -> str:
        """The AppProject it belongs to."""
        return str(self.app["spec"]["project"])

    def sources(self) -> list[dict[str, Any]]:
        """Its sources; a single one is a list of one."""
        spec = self.app["spec"]
        return list(spec["sources"]) if spec.get("sources") else [spec["source"]]

    @property
    def is_multi_source(self) -> bool:
        """Whether revisions are lists."""
        return bool(self.app["spec"].get("sources"))


Event = dict[str, Any]


class Store:
    """The directory. A change is saved whole, then every watcher hears of it."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory / "applications"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._projects_file = directory / "projects.json"
        self._watchers: list[asyncio.Queue[Event]] = []
        self.key = _read_key(directory / "signing.key")
        """Signs tokens; it stays the same, so tokens stay valid over a restart."""
        self.projects: dict[str, dict[str, Any]] = _read_json(self._projects_file, {})
        self._applications: dict[tuple[str, str], Tracked] = {}
        for file in sorted(self._folder.glob("*.json")):
            tracked = _read_tracked(file)
            self._applications[tracked.namespace, tracked.name] = tracked
        versions = [int(each.app["metadata"]["resourceVersion"]) for each in self._applications.values()]
        self._version = max(versions, default=1000)

    @property
    def version(self) -> int:
        """The number of the latest change."""
        return self._version

    def find(self, namespace: str, name: str) -> Tracked | None:
        """An Application, or None."""
        return self._applications.get((namespace, name))

    def all(self) -> list[Tracked]:
        """Every Application, by namespace and name."""
        return [self._applications[key] for key in sorted(self._applications)]

    def add(self, app: dict[str, Any]) -> Tracked:
        """Take a new Application in; its metadata is completed."""
        metadata = app["metadata"]
        metadata.update(uid=str(uuid.uuid4()), creationTimestamp=now(), generation=1)
        tracked = Tracked(
            app, number=1 + max((each.number for each in self._applications.values()), default=0)
        )
        self._applications[tracked.namespace, tracked.name] = tracked
        self.save(tracked, kind="ADDED")
        return tracked

    def remove(self, tracked: Tracked) -> None:
        """Forget an Application."""
        del self._applications[tracked.namespace, tracked.name]
        self._file(tracked).unlink(missing_ok=True)
        self._tell("DELETED", tracked)

    def save(self, tracked: Tracked, *, kind: str = "MODIFIED") -> None:
        """Write an Application down after a change and tell the watchers."""
        self._version += 1
        metadata = tracked.app["metadata"]
        metadata["resourceVersion"] = str(self._version)
        metadata["generation"] += kind == "MODIFIED"
        stored = {
            "app": tracked.app,
            "live": None if tracked.live is None else asdict(tracked.live),
            "starts": tracked.starts,
            "ends": tracked.ends,
            "pulled": tracked.pulled,
            "number": tracked.number,
        }
        _write_json(self._file(tracked), stored)
        self._tell(kind, tracked)

    def save_projects(self) -> None:
        """Write the projects down after a change."""
        _write_json(self._projects_file, self.projects)

    @contextmanager
    def watch(self) -> Iterator[asyncio.Queue[Event]]:
        """A queue of `{type, application}` for every change while the context is open."""
        queue: asyncio.Queue[Event] = asyncio.Queue()
        self._watchers.append(queue)
        try:
            yield queue
        finally:
            self._watchers.remove(queue)

    def _tell(self, kind: str, tracked: Tracked) -> None:
        if self._watchers:
            event = {"type": kind, "application": copy.deepcopy(tracked.app)}
            for queue in self._watchers:
                queue.put_nowait(event)

    def _file(self, tracked: Tracked) -> Path:
        return self._folder / f"{tracked.namespace}.{tracked.name}.json"


def _read_tracked(file: Path) -> Tracked:
    stored = json.loads(file.read_text())
    live = None if stored["live"] is None else Rendered(**stored["live"])
    return Tracked(**{**stored, "live": live})


def _read_key(file: Path) -> str:
    if not file.exists():
        write_whole(file, secrets.token_hex(32).encode(), private=True)
    return file.read_text()


def _read_json(file: Path, default: Any) -> Any:
    return json.loads(file.read_text()) if file.exists() else default


def _write_json(file: Path, value: object) -> None:
    write_whole(file, json.dumps(value, indent=1).encode())
