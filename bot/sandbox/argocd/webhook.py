"""`POST /api/webhook`: a GitHub push makes the Applications that follow the pushed branch refresh, nothing else."""

from __future__ import annotations

import hashlib
import hmac
import html
import json
from collections.abc import Iterable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from bot.sandbox.argocd.controller import Controller
from bot.sandbox.argocd.sources import normalise_url
from bot.sandbox.argocd.store import Store, Tracked

_PATHS: Final = "argocd.argoproj.io/manifest-generate-paths"


class Webhook:
    """The receiver; a `secret` makes GitHub's signature mandatory."""

    def __init__(self, store: Store, controller: Controller, secret: str) -> None:
        self._store = store
        self._controller = controller
        self._secret = secret

    async def endpoint(self, request: Request) -> Response:
        """200 when queued, 400 for what it does not understand or trust, 405 unless posted."""
        if request.method != "POST":
            return _refuse("HTTP method not allowed", 405)
        event = request.headers.get("x-github-event")
        if event is None:
            return PlainTextResponse("Unknown webhook event", status_code=400)
        body = await request.body()
        if self._secret and not self._is_signed(request, body):
            return _refuse("HMAC verification failed", 400)
        if event not in ("push", "ping"):
            return _refuse("event not defined to be parsed", 400)
        try:
            push = json.loads(body)
            if event == "push":
                self._refresh(push)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return _refuse(f"error parsing payload: {error}", 400)
        return Response(status_code=200)

    def _is_signed(self, request: Request, body: bytes) -> bool:
        wanted = "sha256=" + hmac.new(self._secret.encode(), body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(wanted, request.headers.get("x-hub-signature-256", ""))

    def _refresh(self, push: dict[str, Any]) -> None:
        url, branch = normalise_url(push["repository"]["html_url"]), str(push["ref"]).rpartition("/")[2]
        is_default = branch == push["repository"].get("default_branch")
        changed = {
            name
            for commit in push.get("commits") or []
            for kind in ("added", "modified", "removed")
            for name in commit.get(kind) or []
        }
        for tracked in self._store.all():
            for source in tracked.sources():
                target = source.get("targetRevision") or "HEAD"
                follows = is_default if target == "HEAD" else target.rpartition("/")[2] == branch
                if normalise_url(source["repoURL"]) == url and follows and _touches(tracked, source, changed):
                    self._controller.compare_soon(tracked)
                    break


def _touches(tracked: Tracked, source: dict[str, Any], changed: Iterable[str]) -> bool:
    paths = tracked.app["metadata"].get("annotations", {}).get(_PATHS, "")
    if not paths or not changed:
        return True
    base = str(source.get("path") or "").strip("/")
    folders = []
    for path in paths.split(";"):
        own = path.strip("/") if path.startswith("/") else "/".join(filter(None, (base, path.strip("./"))))
        folders.append(own)
    return any(
        not folder or name == folder or name.startswith(f"{folder}/")
        for name in changed
        for folder in folders
    )


def _refuse(reason: str, status: int) -> Response:
    return PlainTextResponse(f"Webhook processing failed: {html.escape(reason)}", status_code=status)
