"""Parts of an Application object, in the shapes and words of Argo CD's API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bot.sandbox.argocd.store import Tracked, now

_HISTORY_LIMIT: Final = 10


NAMESPACE: Final = "argocd"
"""The namespace that Argo CD and, unless said otherwise, its Applications are in."""


@dataclass(frozen=True, slots=True)
class NewApplication:
    """An Application with one source, as most are; `auto_sync` lets Argo CD sync it by itself."""

    name: str
    project: str
    repo_url: str
    path: str
    target_revision: str = "HEAD"
    auto_sync: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def manifest(self) -> dict[str, Any]:
        """The Application as its owner writes it; it deploys to a namespace of its own name."""
        source = {"repoURL": self.repo_url, "path": self.path, "targetRevision": self.target_revision}
        destination = {"server": "https://kubernetes.default.svc", "namespace": self.name}
        spec: dict[str, Any] = {"project": self.project, "source": source, "destination": destination}
        if self.auto_sync:
            spec["syncPolicy"] = {"automated": {"prune": True}}
        named = {"name": self.name, "labels": self.labels, "annotations": self.annotations}
        return {"metadata": named, "spec": spec}


def application(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """A new Application that was never compared; empty labels and annotations are left out, as Go leaves them out."""
    named: dict[str, Any] = {"name": metadata["name"], "namespace": metadata.get("namespace", NAMESPACE)}
    for key in ("labels", "annotations"):
        if metadata.get(key):
            named[key] = dict(metadata[key])
    status = {"health": {"status": "Missing"}, "sync": {"status": "Unknown"}, "summary": {}}
    return {"metadata": named, "spec": dict(spec), "status": status}


def revision_fields(revisions: Sequence[str], *, multi: bool) -> dict[str, Any]:
    """`revision`, or `revisions` of an Application with several sources."""
    return {"revisions": list(revisions)} if multi else {"revision": revisions[0] if revisions else ""}


def source_fields(tracked: Tracked) -> dict[str, Any]:
    """`source`, or `sources` of an Application with several."""
    return {"sources": tracked.sources()} if tracked.is_multi_source else {"source": tracked.sources()[0]}


def sync_operation(
    revisions: Sequence[str], *, multi: bool, username: str = "", automated: bool = False, **sync: Any
) -> dict[str, Any]:
    """The `operation` of a sync; fields of `sync` that are empty are left out, as Go leaves them out."""
    given = {key: value for key, value in sync.items() if value}
    initiator: dict[str, Any] = {"automated": True} if automated else {"username": username}
    return {
        "sync": {**revision_fields(revisions, multi=multi), **given},
        "initiatedBy": initiator,
        "retry": {},
    }


def operation_revisions(operation: Mapping[str, Any]) -> list[str]:
    """The commits that an operation syncs to."""
    sync = operation["sync"]
    return list(sync["revisions"]) if "revisions" in sync else [sync["revision"]]


def operation_sources(operation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The sources that an operation brings along, as a rollback does; empty for those of the Application."""
    sync = operation["sync"]
    return list(sync.get("sources") or ([sync["source"]] if "source" in sync else []))


def operation_state(operation: Mapping[str, Any], started: str) -> dict[str, Any]:
    """The state of an operation that has just begun."""
    return {
        "operation": dict(operation),
        "phase": "Running",
        "startedAt": started,
        "message": "waiting for completion",
    }


def sync_result(tracked: Tracked, revisions: Sequence[str], status: str, message: str) -> dict[str, Any]:
    """What an operation did to each resource; `status` is Synced or SyncFailed."""
    images = [] if tracked.live is None else tracked.live.images
    resources = [
        {
            "group": group,
            "version": "v1",
            "kind": kind,
            "namespace": tracked.app["spec"]["destination"].get("namespace", ""),
            "name": tracked.name,
            "status": status,
            "message": message,
            "hookPhase": "Running" if status == "Synced" else "Failed",
            "syncPhase": "Sync",
            **({"images": images} if kind == "Deployment" and images else {}),
        }
        for group, kind in (("", "Service"), ("apps", "Deployment"))
    ]
    return {
        **revision_fields(revisions, multi=tracked.is_multi_source),
        **source_fields(tracked),
        "resources": resources,
    }


def add_history(
    tracked: Tracked, revisions: Sequence[str], operation: Mapping[str, Any], started: str
) -> None:
    """Remember a deployment; the oldest is forgotten beyond ten."""
    history = tracked.app["status"].setdefault("history", [])
    entry = {
        "id": history[-1]["id"] + 1 if history else 0,
        **revision_fields(revisions, multi=tracked.is_multi_source),
        **source_fields(tracked),
        "deployStartedAt": started,
        "deployedAt": now(),
        "initiatedBy": operation["initiatedBy"],
    }
    history.append(entry)
    limit = tracked.app["spec"].get("revisionHistoryLimit", _HISTORY_LIMIT)
    del history[: max(len(history) - limit, 0)]


def sync_status(tracked: Tracked, code: str, revisions: Sequence[str]) -> dict[str, Any]:
    """The result of a comparison."""
    compared = {**source_fields(tracked), "destination": tracked.app["spec"]["destination"]}
    return {
        "status": code,
        **revision_fields(revisions, multi=tracked.is_multi_source),
        "comparedTo": compared,
    }


def set_health(status: dict[str, Any], code: str, message: str) -> None:
    """Write health down; the transition time changes only with the status."""
    health = status["health"]
    if health["status"] != code or "lastTransitionTime" not in health:
        health["lastTransitionTime"] = now()
    health["status"] = code
    health.pop("message", None)
    if message:
        health["message"] = message


def conditions(status: Mapping[str, Any], kind: str, message: str) -> list[dict[str, Any]]:
    """One condition; its time stays while its text does."""
    for old in status.get("conditions", []):
        if (old["type"], old["message"]) == (kind, message):
            return [old]
    return [{"type": kind, "message": message, "lastTransitionTime": now()}]


def describe_resources(tracked: Tracked, code: str) -> None:
    """List the managed resources and sum up the images that run."""
    status, live = tracked.app["status"], tracked.live
    namespace = tracked.app["spec"]["destination"].get("namespace", "")
    health = {key: value for key, value in status["health"].items() if key in ("status", "message")}
    base = {"version": "v1", "namespace": namespace, "name": tracked.name, "status": code}
    service = {"status": "Missing" if live is None else "Healthy"}
    status["resources"] = [
        {**base, "kind": "Service", "health": service},
        {**base, "group": "apps", "kind": "Deployment", "health": health},
    ]
    status["sourceType"] = "Helm" if live is None else live.kind
    status["summary"] = {"images": live.images} if live is not None and live.images else {}
