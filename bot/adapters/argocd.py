"""The port `ArgoCD` on Argo CD's REST API, for several servers by name.

Sources: Argo CD's swagger description and the behaviour of its API server (gRPC-gateway errors, refresh, sync).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from urllib.parse import quote

import httpx

from bot.domain.argocd import Application, ApplicationSource, Operation
from bot.domain.values import Json
from bot.payloads.reading import Node, PayloadProblem, read_json, to_json
from bot.ports import SyncRefused, SyncStarted, TerminalError, TransientError

_UNKNOWN, _INVALID, _NOT_FOUND, _DENIED, _PRECONDITION, _UNAUTHENTICATED = 2, 3, 5, 7, 9, 16
"""gRPC codes as they stand in the body of an error."""

BUSY = (_PRECONDITION, "another operation is already in progress")
REFRESH_DEADLINE = (_UNKNOWN, "application refresh deadline exceeded")
SYNC_WINDOW = (_DENIED, "blocked by sync window")
"""Refusals that Argo CD tells apart by text alone, with the code that must come with it."""

_MOST_UNHEALTHY = 50
_RETRY = 10.0


@dataclass(frozen=True, slots=True)
class ArgoCDServer:
    """One Argo CD: its address, a token of a project role (or account), and the project that the token is for.

    `timeout` is in seconds; a refresh that takes longer is not waited for.
    """

    url: str
    token: str = field(repr=False)
    insecure: bool = False
    project: str = ""
    timeout: float = 30.0


@dataclass(frozen=True, slots=True)
class _Refusal:
    """An error as the gRPC gateway says it."""

    status: int
    code: int
    message: str
    retry_after: float | None

    def is_named(self, row: tuple[int, str]) -> bool:
        code, text = row
        return self.code == code and text in self.message


class _RefusedError(Exception):
    """Carries a refusal from the request to the one method that knows what it means there."""

    def __init__(self, refusal: _Refusal, tried: str) -> None:
        super().__init__(tried)
        self.refusal = refusal
        self.tried = tried

    def translate(self) -> TransientError | TerminalError:
        refusal = self.refusal
        said = f"Argo CD answered {refusal.status} to {self.tried}: {refusal.message}"
        if refusal.status >= 500 or refusal.status == 429:
            return TransientError(said, retry_after=refusal.retry_after)
        if refusal.code == _UNAUTHENTICATED or refusal.status == 401:
            return TerminalError(f"{said}; make a new token and put it in the settings")
        if refusal.code == _DENIED or refusal.status == 403:
            return TerminalError(
                f"{said}; the token needs applications get and sync (and update, to change sources) in that project,"
                " and without a project in the settings a missing Application looks the same"
            )
        if 300 <= refusal.status < 400:
            return TerminalError(
                f"{said}; this is no address of Argo CD's API (a sign-in page stands before it)"
            )
        return TerminalError(said)


class ArgoCDServers:
    """Argo CD servers by the name that a pipeline uses; used within `async with`, on one event loop."""

    def __init__(self, servers: Mapping[str, ArgoCDServer]) -> None:
        self._servers = dict(servers)
        self._clients: dict[str, httpx.AsyncClient] = {}

    async def __aenter__(self) -> ArgoCDServers:
        for name, server in self._servers.items():
            self._clients[name] = httpx.AsyncClient(
                base_url=f"{server.url.rstrip('/')}/api/v1/",
                headers={"Authorization": f"Bearer {server.token}"},
                timeout=server.timeout,
                verify=not server.insecure,
                follow_redirects=False,
            )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.aclose()

    async def get_application(
        self, server: str, name: str, *, namespace: str = "", project: str = "", refresh: str = ""
    ) -> Application | None:
        """Read an Application; a refresh that takes too long is left to Argo CD, and what is there now is read."""
        node = await self._find(server, name, namespace, project, refresh=refresh)
        return None if node is None else self._read(server, node)

    async def list_applications(
        self, server: str, selector: str, *, namespace: str = "", project: str = ""
    ) -> Sequence[Application]:
        project = project or self._server(server).project
        query = {"selector": selector, "appNamespace": namespace, "projects": project}
        try:
            root = await self._ask(server, "GET", "applications", query=query)
        except _RefusedError as error:
            raise error.translate() from error
        applications = [self._read(server, item) for item in root.items("items")]
        # Older servers ignore parameters that they do not know.
        return tuple(
            item
            for item in applications
            if project in {"", item.project} and namespace in {"", item.namespace}
        )

    async def sync(
        self, server: str, application: Application, *, revision: str, infos: Mapping[str, str]
    ) -> SyncStarted | SyncRefused:
        """Start an operation that carries `infos`.

        A revision goes with it only where Argo CD takes one: not for several sources, and with auto-sync on it would
        be refused, since then the Application's own target revision is synced.
        """
        if await self._is_ours_running(server, application, infos):
            return SyncStarted()
        body: dict[str, object] = {
            **self._identity(server, application),
            "prune": application.auto_prune,
            "infos": [{"name": key, "value": value} for key, value in infos.items()],
        }
        if revision and not application.auto_sync and len(application.sources) == 1:
            body["revision"] = revision
        try:
            await self._ask(server, "POST", f"{_path(application.name)}/sync", body=body)
        except TransientError:
            # The request may have arrived although its answer was lost.
            if await self._is_ours_running(server, application, infos):
                return SyncStarted()
            raise
        except _RefusedError as error:
            refusal = error.refusal
            if refusal.is_named(BUSY):
                return SyncRefused(refusal.message, busy=True)
            if refusal.is_named(SYNC_WINDOW) or refusal.code in {_PRECONDITION, _INVALID}:
                return SyncRefused(refusal.message)
            raise error.translate() from error
        return SyncStarted()

    async def patch_sources(self, server: str, application: Application, sources: Sequence[Json]) -> None:
        """Replace the sources; nothing is sent if they are so already."""
        node = await self._find(server, application.name, application.namespace, application.project)
        if node is None:
            raise TerminalError(
                f"Application {application.name} on Argo CD {server!r} does not exist any more"
            )
        if list(_raw_sources(node)) == list(sources):
            return
        if node.has("spec", "sources"):
            operation: dict[str, object] = {"path": "/spec/sources", "value": list(sources)}
        elif len(sources) == 1:
            operation = {"path": "/spec/source", "value": sources[0]}
        else:
            raise TerminalError(f"Application {application.name} has one source; {len(sources)} were given")
        patch = json.dumps([{"op": "replace", **operation}])
        body = {**self._identity(server, application), "patch": patch, "patchType": "json"}
        try:
            await self._ask(server, "PATCH", _path(application.name), body=body)
        except _RefusedError as error:
            raise error.translate() from error

    # -- underneath ----------------------------------------------------------------------------------------

    async def _find(
        self, server: str, name: str, namespace: str, project: str, *, refresh: str = ""
    ) -> Node | None:
        query = {"appNamespace": namespace, "project": project or self._server(server).project}
        if refresh:
            try:
                return await self._ask(server, "GET", _path(name), query=query | {"refresh": refresh})
            except _RefusedError as error:
                if error.refusal.status == 404:
                    return None
                if not error.refusal.is_named(REFRESH_DEADLINE):
                    raise error.translate() from error
            except TransientError as error:
                # The refresh goes on in Argo CD; that it is slow says nothing about the Application.
                if not isinstance(error.__cause__, httpx.ReadTimeout):
                    raise
        try:
            return await self._ask(server, "GET", _path(name), query=query)
        except _RefusedError as error:
            if error.refusal.status == 404:
                return None
            raise error.translate() from error

    async def _is_ours_running(self, server: str, application: Application, infos: Mapping[str, str]) -> bool:
        node = await self._find(server, application.name, application.namespace, application.project)
        if node is None:
            raise TerminalError(
                f"Application {application.name} on Argo CD {server!r} does not exist any more"
            )
        pending = node.find("operation")
        if pending is not None and _read_infos(pending) == dict(infos):
            return True
        state = node.find("status", "operationState")
        if state is None or state.text("phase", default="") not in {"Running", "Terminating"}:
            return False
        carried = state.find("operation")
        return carried is not None and _read_infos(carried) == dict(infos)

    def _identity(self, server: str, application: Application) -> dict[str, object]:
        return {
            "name": application.name,
            "appNamespace": application.namespace,
            "project": application.project or self._server(server).project,
        }

    def _server(self, name: str) -> ArgoCDServer:
        server = self._servers.get(name)
        if server is None:
            known = ", ".join(sorted(self._servers)) or "none"
            raise TerminalError(f"no Argo CD server is called {name!r} in the settings; known are: {known}")
        return server

    async def _ask(
        self,
        server: str,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
    ) -> Node:
        self._server(server)
        tried = f"{method} {path} on server {server!r}"
        parameters = {key: value for key, value in (query or {}).items() if value}
        try:
            response = await self._clients[server].request(method, path, params=parameters, json=body)
        except httpx.HTTPError as error:
            what = str(error) or type(error).__name__
            raise TransientError(f"Argo CD did not answer {tried}: {what}", retry_after=_RETRY) from error
        if response.status_code >= 300:
            raise _RefusedError(_read_refusal(response), tried)
        return read_json(response.content, _problem_of(tried))

    def _read(self, server: str, node: Node) -> Application:
        name, namespace = node.text("metadata", "name"), node.text("metadata", "namespace", default="")
        address = "/".join(quote(part, safe="") for part in (namespace, name) if part)
        return read_application(node, url=f"{self._server(server).url.rstrip('/')}/applications/{address}")


def read_application(node: Node, *, url: str) -> Application:
    """An Application from Argo CD's JSON of it; `url` is its page."""
    status = node.find("status") or Node({}, "status", node.problem)
    policy = node.find("spec", "syncPolicy", "automated")
    auto_sync = policy is not None and policy.boolean("enabled", default=True)
    return Application(
        name=node.text("metadata", "name"),
        namespace=node.text("metadata", "namespace", default=""),
        project=node.text("spec", "project", default="default"),
        annotations=node.texts("metadata", "annotations"),
        sources=_read_sources(node, status),
        sync_status=status.text("sync", "status", default="Unknown"),
        health=status.text("health", "status", default="Unknown"),
        health_message=status.text("health", "message", default=""),
        reconciled_at=status.find_time("reconciledAt"),
        operation=_read_operation(status.find("operationState")),
        operation_pending=node.has("operation"),
        conditions=tuple(
            (item.text("type"), item.text("message", default="")) for item in status.items("conditions")
        ),
        unhealthy=_read_unhealthy(status),
        auto_sync=auto_sync,
        auto_prune=policy is not None and auto_sync and policy.boolean("prune"),
        url=url,
        raw_sources=_raw_sources(node),
    )


def _raw_sources(node: Node) -> tuple[Json, ...]:
    several = [to_json(item) for item in node.items("spec", "sources")]
    if several:
        return tuple(several)
    single = node.find("spec", "source")
    return () if single is None else (to_json(single),)


def _read_sources(node: Node, status: Node) -> tuple[ApplicationSource, ...]:
    several = list(node.items("spec", "sources"))
    single = node.find("spec", "source")
    specs = several or ([single] if single is not None else [])
    revisions = _read_revisions(status.find("sync"))
    return tuple(
        ApplicationSource(
            repo_url=spec.text("repoURL", default=""),
            path=spec.text("path", default=""),
            chart=spec.text("chart", default=""),
            target_revision=spec.text("targetRevision", default=""),
            revision=revisions[index] if index < len(revisions) else "",
        )
        for index, spec in enumerate(specs)
    )


def _read_revisions(node: Node | None) -> tuple[str, ...]:
    """Revisions in the order of the sources; a single source has `revision` instead of a list."""
    if node is None:
        return ()
    several = tuple(item.value if isinstance(item.value, str) else "" for item in node.items("revisions"))
    single = node.text("revision", default="")
    return several or ((single,) if single else ())


def _read_operation(state: Node | None) -> Operation | None:
    if state is None:
        return None
    carried = state.find("operation")
    return Operation(
        phase=state.text("phase", default=""),
        message=state.text("message", default=""),
        started_at=state.find_time("startedAt"),
        finished_at=state.find_time("finishedAt"),
        revisions=_read_revisions(state.find("syncResult")),
        infos={} if carried is None else _read_infos(carried),
    )


def _read_infos(operation: Node) -> dict[str, str]:
    return {item.text("name"): item.text("value", default="") for item in operation.items("info")}


def _read_unhealthy(status: Node) -> tuple[str, ...]:
    found = []
    for item in status.items("resources"):
        health = item.text("health", "status", default="Healthy")
        if health in {"Healthy", ""}:
            continue
        message = item.text("health", "message", default="")
        what = f"{item.text('kind', default='?')} {item.text('name', default='?')} is {health}"
        found.append(f"{what} ({message})" if message else what)
    return tuple(found[:_MOST_UNHEALTHY])


def _read_refusal(response: httpx.Response) -> _Refusal:
    wait = response.headers.get("retry-after", "")
    retry_after = float(wait) if wait.isascii() and wait.isdigit() else None
    try:
        root = read_json(response.content)
        message = root.text("message", default="") or root.text("error", default="")
        code = root.number("code", default=0)
    except PayloadProblem:
        # A proxy in front of Argo CD answers with a page of its own.
        message, code = response.reason_phrase, 0
    return _Refusal(response.status_code, code, message[:500] or response.reason_phrase, retry_after)


def _problem_of(tried: str) -> Callable[[str, str], Exception]:
    def problem(path: str, message: str) -> Exception:
        place = f" at {path}" if path else ""
        return TerminalError(f"the answer to {tried} is not what Argo CD documents{place}: {message}")

    return problem


def _path(name: str) -> str:
    if name in {"", ".", ".."}:
        raise TerminalError(f"{name!r} is no name of an Application")
    return f"applications/{quote(name, safe='')}"
