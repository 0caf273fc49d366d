"""Argo CD as one object: its ASGI application, its controller, and setting it up from Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from bot.sandbox.argocd import objects
from bot.sandbox.argocd.accounts import Accounts
from bot.sandbox.argocd.api import Api
from bot.sandbox.argocd.comparison import Loader
from bot.sandbox.argocd.controller import ArgoFaults, Controller, Timing
from bot.sandbox.argocd.errors import ApiError, Code, unavailable
from bot.sandbox.argocd.objects import NAMESPACE, NewApplication
from bot.sandbox.argocd.patches import find_spec_problem
from bot.sandbox.argocd.sources import GitSources, Repository, SourceError
from bot.sandbox.argocd.store import Store, Tracked, now
from bot.sandbox.argocd.webhook import Webhook
from bot.sandbox.faults import FaultGate
from bot.sandbox.pages import render_page
from bot.sandbox.serving import is_same_origin

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


class ArgoCD:
    """A simulated Argo CD under one directory. `start` sets its controller going; serving `asgi` is the caller's."""

    def __init__(
        self,
        directory: Path,
        *,
        admin_password: str = "admin",
        timing: Timing | None = None,
        webhook_secret: str = "",
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.admin_password = admin_password
        self.links: dict[str, str] = {}
        """Other pages by name, for the head of this server's own."""
        self._store = Store(directory)
        self._sources = GitSources(directory / "git")
        self._accounts = Accounts(self._store, admin_password)
        loader = Loader(self._sources)
        self._controller = Controller(self._store, loader, timing or Timing())
        api = Api(self._store, loader, self._controller, self._accounts)
        webhook = Webhook(self._store, self._controller, webhook_secret)
        app = Starlette(
            routes=[
                Route("/", self._page, methods=["GET"]),
                Route("/_sandbox/faults", self._fault_endpoint, methods=["GET", "POST", "DELETE"]),
                Route("/_sandbox/applications/{name}/{action}", self._act, methods=["POST"]),
                Route("/api/webhook", webhook.endpoint, methods=_METHODS),
                *api.routes(),
            ],
            exception_handlers={HTTPException: _answer_http_error},
        )
        self.asgi = FaultGate(app, ArgoFaults(), unavailable)

    @property
    def faults(self) -> ArgoFaults:
        """The fault switches; assign to change them, which compares every Application at once if it runs."""
        return self.asgi.faults

    @faults.setter
    def faults(self, faults: ArgoFaults) -> None:
        self.asgi.faults = self._controller.faults = faults
        if self._controller.is_running:
            self._controller.compare_all()

    async def start(self) -> None:
        """Compare, sync and refresh from now on."""
        self._controller.start()

    async def stop(self) -> None:
        """Stop the controller; an operation under way goes on after the next start."""
        await self._controller.stop()

    def create_project(self, name: str, *, roles: Mapping[str, tuple[str, ...]] | None = None) -> None:
        """Create or replace a project; `roles` gives each role's actions on its applications, such as `sync`."""
        described = []
        for role, actions in (roles or {}).items():
            subject = f"proj:{name}:{role}"
            policies = [f"p, {subject}, applications, {action}, {name}/*, allow" for action in actions]
            described.append({"name": role, "policies": policies})
        destinations = [{"server": "https://kubernetes.default.svc", "namespace": "*"}]
        spec = {"roles": described, "sourceRepos": ["*"], "destinations": destinations}
        self._store.projects[name] = {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}
        self._store.save_projects()

    def create_role_token(self, project: str, role: str, *, expires_in: int = 0) -> str:
        """A token of a project's role; ApiError if there is no such role."""
        return self._accounts.issue_role_token(project, role, expires_in=expires_in)

    def register_repository(
        self, url: str, *, path: Path | None = None, password: str = "", username: str = ""
    ) -> None:
        """How a repository is read: from a bare one on disk, or over HTTP with these credentials."""
        self._sources.register(Repository(url, str(path) if path else "", username, password))

    async def create_application(self, new: NewApplication, *, live: bool = True) -> dict[str, Any]:
        """Create an Application; `live` starts it Synced at its branch's tip, else it is Missing and OutOfSync.

        Raises ValueError if it exists or its project does not, SourceError if `live` and Git cannot be read.
        """
        return await self.add_application(new.manifest(), live=live)

    async def add_application(self, manifest: Mapping[str, Any], *, live: bool = True) -> dict[str, Any]:
        """Create an Application from a whole manifest, several sources included, as `create_application` does."""
        app = objects.application(manifest["metadata"], manifest["spec"])
        name, namespace, project = (
            app["metadata"]["name"],
            app["metadata"]["namespace"],
            app["spec"].get("project"),
        )
        if self._store.find(namespace, name) is not None:
            raise ValueError(f"there is an application {name} already")
        if problem := find_spec_problem(app["spec"], self._store.projects):
            raise ValueError(f"application {name} of project {project} is invalid: {problem}")
        tracked = self._store.add(app)
        if live:
            try:
                await self._controller.install(tracked)
            except SourceError:
                self._store.remove(tracked)
                raise
        else:
            await self._controller.compare(tracked)
        return tracked.app

    def applications(self) -> list[str]:
        """The names of all Applications, sorted."""
        return [tracked.name for tracked in self._store.all()]

    def application(self, name: str, *, namespace: str = NAMESPACE) -> dict[str, Any]:
        """An Application as the API shows it now; KeyError if there is none."""
        return self._get(name, namespace).app

    def live(self, name: str, *, namespace: str = NAMESPACE) -> tuple[list[str], dict[str, str]]:
        """The images that run and the environment they run with; empty before the first sync."""
        live = self._get(name, namespace).live
        return (live.images, live.env) if live is not None else ([], {})

    async def refresh(self, name: str, *, namespace: str = NAMESPACE) -> dict[str, Any]:
        """Compare an Application now; the Application afterwards."""
        tracked = self._get(name, namespace)
        await self._controller.refresh(tracked, "normal")
        return tracked.app

    def mark_deleting(self, name: str, *, namespace: str = NAMESPACE) -> None:
        """Put an Application into the state between its deletion and its disappearance."""
        tracked = self._get(name, namespace)
        tracked.app["metadata"]["deletionTimestamp"] = now()
        self._store.save(tracked)

    def delete_application(self, name: str, *, namespace: str = NAMESPACE) -> None:
        """Remove an Application."""
        self._store.remove(self._get(name, namespace))

    def _get(self, name: str, namespace: str) -> Tracked:
        tracked = self._store.find(namespace, name)
        if tracked is None:
            raise KeyError(f"there is no application {name} in {namespace}")
        return tracked

    async def _fault_endpoint(self, request: Request) -> Response:
        answer = await self.asgi.endpoint(request)
        if request.method != "GET":
            self.faults = self.asgi.faults
        return answer

    async def _act(self, request: Request) -> Response:
        """The page's buttons: they act as the administrator who looks at it."""
        if not is_same_origin(request):
            return JSONResponse({"message": "these buttons are for Argo CD's own page"}, status_code=403)
        tracked = self._store.find(NAMESPACE, request.path_params["name"])
        action = request.path_params["action"]
        if tracked is None or action not in ("refresh", "sync"):
            return _answer_error(ApiError(Code.NOT_FOUND, "Not Found"))
        try:
            if action == "refresh":
                await self._controller.refresh(tracked, "normal")
            else:
                await self._controller.sync_latest(tracked)
        except ApiError as error:
            return _answer_error(error)
        return RedirectResponse("/", status_code=303)

    async def _page(self, request: Request) -> Response:
        in_order = sorted(self._store.all(), key=lambda tracked: tracked.number)
        return render_page(
            request, "argocd/page.html", self.links, apps=[_describe(each) for each in in_order]
        )


def _answer_error(error: ApiError) -> Response:
    return error.response()


async def _answer_http_error(request: Request, error: Exception) -> Response:  # noqa: ARG001
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        return ApiError(Code.UNIMPLEMENTED, "Method Not Allowed").response()
    return ApiError(Code.NOT_FOUND, "Not Found").response()


_HEALTH = {
    "Healthy": "good",
    "Progressing": "busy",
    "Suspended": "warn",
    "Missing": "warn",
    "Degraded": "bad",
}
_SYNC = {"Synced": "good", "OutOfSync": "warn", "Unknown": "bad"}
_PHASE = {"Succeeded": "good", "Running": "busy", "Terminating": "warn", "Failed": "bad", "Error": "bad"}


def _describe(tracked: Tracked) -> dict[str, Any]:
    """What the page shows of an Application."""
    status, live, source = tracked.app["status"], tracked.live, tracked.sources()[0]
    state = status.get("operationState", {})
    phase = state.get("phase", "Queued" if "operation" in tracked.app else "")
    sync, health = status["sync"]["status"], status["health"]["status"]
    history = [
        {"id": entry["id"], "revision": _first(entry)[:7], "at": _time(entry["deployedAt"])}
        for entry in reversed(status.get("history", []))
    ]
    problems = [condition["message"] for condition in status.get("conditions", [])]
    return {
        "name": tracked.name,
        "project": tracked.project,
        "sync": (sync, _SYNC.get(sync, "")),
        "health": (health, _HEALTH.get(health, "")),
        "health_message": status["health"].get("message", ""),
        "operation": (phase, _PHASE.get(phase, "busy")),
        "operation_message": state.get("message", "") if phase in ("Failed", "Error", "Running") else "",
        "revision": _first(status["sync"])[:7],
        "target": f"{source.get('targetRevision') or 'HEAD'} · {source.get('path', '')}",
        "images": [] if live is None else [image.rpartition(":") for image in live.images],
        "env": {} if live is None else live.env,
        "reconciled": _time(status.get("reconciledAt", "never")),
        "automated": bool((tracked.app["spec"].get("syncPolicy") or {}).get("automated")),
        "problems": problems,
        "history": history,
    }


def _time(stamp: str) -> str:
    """A time for people: `2026-01-05 09:00:00`, UTC."""
    return stamp.replace("T", " ").removesuffix("Z")


def _first(fields: Mapping[str, Any]) -> str:
    revisions = fields.get("revisions") or [fields.get("revision") or ""]
    return str(revisions[0])
