"""Argo CD's REST API: sessions, Applications, project tokens and the webhook, with its statuses and its texts."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bot.sandbox.argocd import objects
from bot.sandbox.argocd.accounts import Accounts, Caller
from bot.sandbox.argocd.comparison import Loader
from bot.sandbox.argocd.controller import REFRESH, Controller, is_automated, is_named
from bot.sandbox.argocd.errors import ApiError, Code
from bot.sandbox.argocd.objects import NAMESPACE
from bot.sandbox.argocd.patches import apply_patch, find_spec_problem
from bot.sandbox.argocd.selection import Selection
from bot.sandbox.argocd.sources import SourceError
from bot.sandbox.argocd.store import Store, Tracked
from bot.sandbox.argocd.stream import stream_applications

VERSION = "v3.6.0"
Handler = Callable[[Request], Awaitable[Response]]


class Api:
    """The routes. Every one but the version, a log-in and `userinfo` needs a valid token."""

    def __init__(self, store: Store, loader: Loader, controller: Controller, accounts: Accounts) -> None:
        self._store = store
        self._loader = loader
        self._controller = controller
        self._accounts = accounts

    def routes(self) -> list[Route]:
        """Every route under `/api/`, except the webhook."""
        one = "/api/v1/applications/{name}"
        routes: list[tuple[str, str, Handler]] = [
            ("GET", "/api/version", self._version),
            ("POST", "/api/v1/session", self._log_in),
            ("DELETE", "/api/v1/session", self._log_out),
            ("GET", "/api/v1/session/userinfo", self._user_info),
            ("GET", "/api/v1/applications", self._list),
            ("GET", one, self._get),
            ("PATCH", one, self._patch),
            ("PUT", f"{one}/spec", self._put_spec),
            ("POST", f"{one}/sync", self._sync),
            ("DELETE", f"{one}/operation", self._terminate),
            ("POST", f"{one}/rollback", self._rollback),
            ("GET", "/api/v1/stream/applications", self._stream),
            ("POST", "/api/v1/projects/{project}/roles/{role}/token", self._create_token),
            ("DELETE", "/api/v1/projects/{project}/roles/{role}/token/{iat:int}", self._delete_token),
        ]
        return [Route(path, self._guarded(handler), methods=[method]) for method, path, handler in routes]

    def _guarded(self, handler: Handler) -> Handler:
        async def guarded(request: Request) -> Response:
            content_type = request.headers.get("content-type", "").lower()
            if request.method not in ("GET", "HEAD") and content_type != "application/json":
                # Argo CD's guard against forged requests; it compares the whole header, with or without a body.
                return PlainTextResponse("Invalid content type", status_code=415)
            try:
                return await handler(request)
            except ApiError as error:
                return error.response()

        return guarded

    async def _version(self, request: Request) -> Response:
        try:
            self._accounts.identify(request)
        except ApiError:
            return JSONResponse({"Version": VERSION})
        return JSONResponse(
            {"Version": VERSION, "Platform": "linux/amd64", "GoVersion": "go1.26.4", "Compiler": "gc"}
        )

    async def _log_in(self, request: Request) -> Response:
        body = await _read_object(request)
        username, password = str(body.get("username", "")), str(body.get("password", ""))
        return JSONResponse({"token": self._accounts.log_in(username, password)})

    async def _log_out(self, request: Request) -> Response:
        self._accounts.identify(request)
        return JSONResponse({})

    async def _user_info(self, request: Request) -> Response:
        try:
            caller = self._accounts.identify(request)
        except ApiError:
            # The real server answers strangers too; fields with zero values are left out.
            return JSONResponse({})
        return JSONResponse({"loggedIn": True, "username": caller.username, "iss": "argocd"})

    async def _list(self, request: Request) -> Response:
        caller = self._accounts.identify(request)
        found = self._visible(caller, Selection.read(request.query_params))
        version = {"resourceVersion": str(self._store.version)}
        return JSONResponse({"metadata": version, "items": [tracked.app for tracked in found]})

    async def _stream(self, request: Request) -> Response:
        try:
            caller = self._accounts.identify(request)
            selection = Selection.read(request.query_params)
        except ApiError as error:
            return error.stream_response()

        def shows(tracked: Tracked) -> bool:
            return selection.matches(tracked) and self._may_get(caller, tracked)

        events = "text/event-stream" in request.headers.get("accept", "")
        return stream_applications(self._store, shows, server_sent_events=events)

    async def _get(self, request: Request) -> Response:
        query = request.query_params
        _, tracked = self._find(request, query.get("project", ""), query.get("appNamespace", ""))
        if refresh := query.get("refresh"):
            await self._controller.refresh(tracked, refresh)
        return JSONResponse(tracked.app)

    async def _patch(self, request: Request) -> Response:
        body = await _read_object(request)
        caller, tracked = self._find(request, _string(body, "project"), _string(body, "appNamespace"))
        self._require(caller, "update", tracked)
        patched = apply_patch(tracked.app, _string(body, "patch"), _string(body, "patchType"))
        self._update(tracked, patched)
        return JSONResponse(tracked.app)

    async def _put_spec(self, request: Request) -> Response:
        query = request.query_params
        caller, tracked = self._find(request, query.get("project", ""), query.get("appNamespace", ""))
        self._require(caller, "update", tracked)
        self._update(tracked, {**tracked.app, "spec": await _read_object(request)})
        return JSONResponse(tracked.app["spec"])

    async def _sync(self, request: Request) -> Response:
        body = await _read_object(request)
        caller, tracked = self._find(request, _string(body, "project"), _string(body, "appNamespace"))
        if is_named(self._controller.faults.blocked, tracked):
            raise ApiError(Code.PERMISSION_DENIED, "cannot sync: blocked by sync window")
        self._require(caller, "sync", tracked)
        if body.get("manifests"):
            self._require(caller, "override", tracked)
        _refuse_deleting(tracked)
        wanted = _wanted_revisions(body, tracked)
        try:
            revisions = await self._loader.resolve(tracked, wanted)
        except SourceError as error:
            raise ApiError(Code.FAILED_PRECONDITION, str(error)) from error
        options = body.get("syncOptions") or {}
        operation = objects.sync_operation(
            revisions,
            multi=tracked.is_multi_source,
            username=caller.username,
            prune=bool(body.get("prune")),
            dryRun=bool(body.get("dryRun")),
            syncStrategy=body.get("strategy"),
            resources=body.get("resources"),
            syncOptions=options.get("items"),
        )
        operation["retry"] = body.get("retryStrategy") or {}
        if body.get("infos"):
            operation["info"] = body["infos"]
        self._controller.set_operation(tracked, operation)
        return JSONResponse(tracked.app)

    async def _terminate(self, request: Request) -> Response:
        query = request.query_params
        caller, tracked = self._find(request, query.get("project", ""), query.get("appNamespace", ""))
        self._require(caller, "sync", tracked)
        self._controller.terminate(tracked)
        return JSONResponse({})

    async def _rollback(self, request: Request) -> Response:
        body = await _read_object(request)
        caller, tracked = self._find(request, _string(body, "project"), _string(body, "appNamespace"))
        self._require(caller, "sync", tracked)
        _refuse_deleting(tracked)
        if is_automated(tracked):
            raise ApiError(Code.FAILED_PRECONDITION, "rollback cannot be initiated when auto-sync is enabled")
        wanted = body.get("id", 0)
        entry = next(
            (each for each in tracked.app["status"].get("history", []) if each["id"] == wanted), None
        )
        if entry is None:
            text = f"application {tracked.name} does not have deployment with id {wanted}"
            raise ApiError(Code.INVALID_ARGUMENT, text)
        revisions = entry["revisions"] if "revisions" in entry else [entry["revision"]]
        operation = objects.sync_operation(
            revisions,
            multi=tracked.is_multi_source,
            username=caller.username,
            prune=bool(body.get("prune")),
            dryRun=bool(body.get("dryRun")),
            syncStrategy={"apply": {}},
            source=entry.get("source"),
            sources=entry.get("sources"),
        )
        self._controller.set_operation(tracked, operation)
        return JSONResponse(tracked.app)

    async def _create_token(self, request: Request) -> Response:
        caller, project, role = self._accounts.identify(request), *_project_and_role(request)
        if project not in self._store.projects:
            raise ApiError(Code.NOT_FOUND, f'appprojects.argoproj.io "{project}" not found')
        self._accounts.require(caller, "projects", "update", project)
        body = await _read_object(request)
        seconds = body.get("expiresIn", 0)
        if not isinstance(seconds, int | str) or not str(seconds).isdecimal():
            raise ApiError(Code.INVALID_ARGUMENT, "expiresIn must be a number of seconds")
        token_id = _string(body, "id")
        token = self._accounts.issue_role_token(project, role, expires_in=int(seconds), token_id=token_id)
        return JSONResponse({"token": token})

    async def _delete_token(self, request: Request) -> Response:
        caller, project, role = self._accounts.identify(request), *_project_and_role(request)
        self._accounts.require(caller, "projects", "update", project)
        issued = int(request.path_params["iat"])
        self._accounts.revoke_role_token(project, role, issued, request.query_params.get("id", ""))
        return JSONResponse({})

    def _find(self, request: Request, project: str, namespace: str) -> tuple[Caller, Tracked]:
        """The caller and the Application they may read.

        Without `project` a missing Application looks like a forbidden one, so that names cannot be guessed.
        """
        caller, name = self._accounts.identify(request), request.path_params["name"]
        denied = ApiError(Code.PERMISSION_DENIED, "permission denied")
        if project and not self._accounts.may(caller, "applications", "get", f"{project}/{name}"):
            raise denied
        tracked = self._store.find(namespace or NAMESPACE, name)
        if tracked is None or (project and tracked.project != project):
            if not project:
                raise denied
            raise ApiError(Code.NOT_FOUND, f'applications.argoproj.io "{name}" not found')
        if not self._may_get(caller, tracked):
            raise denied
        return caller, tracked

    def _visible(self, caller: Caller, selection: Selection) -> list[Tracked]:
        return [each for each in self._store.all() if selection.matches(each) and self._may_get(caller, each)]

    def _may_get(self, caller: Caller, tracked: Tracked) -> bool:
        return self._accounts.may(caller, "applications", "get", rbac_name(tracked))

    def _require(self, caller: Caller, action: str, tracked: Tracked) -> None:
        self._accounts.require(caller, "applications", action, rbac_name(tracked))

    def _update(self, tracked: Tracked, changed: dict[str, Any]) -> None:
        """Take spec, labels and annotations over; everything else belongs to the controller."""
        spec = changed.get("spec")
        if problem := find_spec_problem(spec, self._store.projects):
            text = f"application spec for {tracked.name} is invalid: InvalidSpecError: {problem}"
            raise ApiError(Code.INVALID_ARGUMENT, text)
        tracked.app["spec"] = spec
        for key in ("labels", "annotations"):
            given = (changed.get("metadata") or {}).get(key)
            tracked.app["metadata"].pop(key, None)
            if given:
                tracked.app["metadata"][key] = given
        self._store.save(tracked)
        if REFRESH in tracked.app["metadata"].get("annotations", {}):
            self._controller.compare_soon(tracked, delay=self._controller.faults.slow_refresh)
        else:
            self._controller.compare_soon(tracked)


def rbac_name(tracked: Tracked) -> str:
    """The Application as policies name it: with its namespace only outside Argo CD's own."""
    if tracked.namespace == NAMESPACE:
        return f"{tracked.project}/{tracked.name}"
    return f"{tracked.project}/{tracked.namespace}/{tracked.name}"


def _wanted_revisions(body: dict[str, Any], tracked: Tracked) -> list[str]:
    """The revision to sync to by source, empty where none is asked for; refused where auto-sync follows another."""
    sources = tracked.sources()
    wanted = [""] * len(sources)
    if tracked.is_multi_source:
        positions, revisions = body.get("sourcePositions") or [], body.get("revisions") or []
        for position, revision in zip(positions, revisions, strict=False):
            if not 1 <= int(position) <= len(sources):
                raise ApiError(Code.FAILED_PRECONDITION, "source position is out of range")
            wanted[int(position) - 1] = str(revision)
    else:
        wanted[0] = _string(body, "revision")
    for source, revision in zip(sources, wanted, strict=True):
        followed = source.get("targetRevision") or "HEAD"
        if revision not in ("", followed) and is_automated(tracked) and not body.get("dryRun"):
            what = (
                f"source {source['repoURL']} to {revision}" if tracked.is_multi_source else f"to {revision}"
            )
            text = f"Cannot sync {what}: auto-sync currently set to {followed}"
            raise ApiError(Code.FAILED_PRECONDITION, text)
    return wanted


def _refuse_deleting(tracked: Tracked) -> None:
    if "deletionTimestamp" in tracked.app["metadata"]:
        raise ApiError(Code.FAILED_PRECONDITION, "application is deleting")


def _project_and_role(request: Request) -> tuple[str, str]:
    return request.path_params["project"], request.path_params["role"]


def _string(body: dict[str, Any], key: str) -> str:
    value = body.get(key) or ""
    if not isinstance(value, str):
        raise ApiError(Code.INVALID_ARGUMENT, f"json: cannot unmarshal {key}: it must be a string")
    return value


async def _read_object(request: Request) -> dict[str, Any]:
    body = await request.body()
    try:
        content = json.loads(body) if body else {}
    except ValueError as error:
        raise ApiError(Code.INVALID_ARGUMENT, f"invalid request body: {error}") from error
    if not isinstance(content, dict):
        raise ApiError(Code.INVALID_ARGUMENT, "invalid request body: it must be a JSON object")
    return content
