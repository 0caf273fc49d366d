"""The registry as one object: its ASGI application, its notifications, and publishing from Python or the page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from bot.sandbox.faults import FaultGate, Faults
from bot.sandbox.pages import render_page
from bot.sandbox.registry.api import Api
from bot.sandbox.registry.errors import RegistryError, unavailable
from bot.sandbox.registry.images import build_image
from bot.sandbox.registry.manifests import OCI_INDEX
from bot.sandbox.registry.notifications import Delivery, Endpoint, Notifier, Origin
from bot.sandbox.registry.storage import NAME, TAG, Storage
from bot.sandbox.registry.tokens import Access, Tokens
from bot.sandbox.registry.versions import next_versions, sort_newest_first
from bot.sandbox.serving import is_same_origin

_SHOWN_TAGS = 20


@dataclass(frozen=True, slots=True)
class Published:
    """What a publish put into the registry; `digest` is that of the tag, an index if there are several platforms."""

    repository: str
    tag: str
    digest: str
    media_type: str


class Registry:
    """An OCI registry under one directory. `start` begins to deliver notifications; serving `asgi` is the caller's.

    `host` is the `host:port` that images are named by. Without `accounts` nobody needs a token; with them pushing
    does, and pulling needs at least the anonymous one unless `anonymous_pull` is off.
    """

    def __init__(
        self,
        directory: Path,
        *,
        host: str,
        accounts: Mapping[str, str] | None = None,
        anonymous_pull: bool = True,
        longest_pause: float = 5.0,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.host = host
        self.links: dict[str, str] = {}
        """Other pages by name, for the head of this server's own."""
        self._storage = Storage(directory)
        self._notifier = Notifier(directory, longest_pause=longest_pause)
        tokens = Tokens(Access(dict(accounts or {}), anonymous_pull))
        self._api = Api(self._storage, tokens, self._notifier)
        app = Starlette(
            routes=[
                Route("/", self._page, methods=["GET"]),
                Route("/_sandbox/publish", self._publish_endpoint, methods=["POST"]),
                Route("/_sandbox/faults", self._fault_endpoint, methods=["GET", "POST", "DELETE"]),
                *self._api.routes(),
            ]
        )
        self.asgi = FaultGate(app, Faults(), unavailable)

    @property
    def faults(self) -> Faults:
        """The fault switches; assign to change them."""
        return self.asgi.faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self.asgi.faults = faults

    async def start(self) -> None:
        """Deliver notifications from now on."""
        self._notifier.start()

    async def stop(self) -> None:
        """Stop delivering notifications."""
        await self._notifier.stop()

    async def notify(self, *endpoints: Endpoint) -> None:
        """Send notifications to these endpoints and no others; kept on disk."""
        await self._notifier.configure(endpoints)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where notifications go."""
        return self._notifier.endpoints()

    @property
    def deliveries(self) -> tuple[Delivery, ...]:
        """The latest attempts to deliver, oldest first, at most 1000."""
        return tuple(self._notifier.deliveries)

    async def drain(self) -> None:
        """Return when every notification so far was accepted."""
        await self._notifier.drain()

    def counts(self) -> dict[str, int]:
        """Requests since the start by method and kind, such as `GET tags` or `HEAD manifests`."""
        return dict(self._api.counts)

    def repositories(self) -> list[str]:
        """The repositories, sorted."""
        return self._storage.repositories()

    def tags(self, repository: str) -> dict[str, str]:
        """Digest by tag; empty for an unknown repository."""
        return self._storage.tags(repository)

    def publish(
        self,
        repository: str,
        tag: str,
        *,
        created: datetime | None = None,
        labels: Mapping[str, str] | None = None,
        platforms: tuple[str, ...] = ("linux/amd64",),
    ) -> Published:
        """Push a small real image; a tag that exists is moved.

        Raises ValueError, with one sentence, for a name, tag or platform that no registry would take.
        """
        if not NAME.fullmatch(repository) or len(repository) > 255:
            raise ValueError(f"{repository!r} is no repository name: lower-case words joined by . _ - and /")
        if not TAG.fullmatch(tag):
            raise ValueError(
                f"{tag!r} is no tag: letters, digits, . _ and -, at most 128, not starting with . or -"
            )
        moment = datetime.now(UTC) if created is None else created
        image = build_image(repository, tag, created=moment, labels=labels or {}, platforms=platforms)
        origin = Origin(host=self.host)
        for blob in image.blobs:
            self._api.push_blob(repository, blob, origin)
        *parts, top = image.manifests
        for part in parts:
            self._api.push_manifest(repository, part, None, origin)
        self._api.push_manifest(repository, top, tag, origin)
        return Published(repository, tag, top.digest, top.media_type)

    def delete(self, repository: str, tag: str) -> None:
        """Remove a tag, as a clean-up would; KeyError if it is not there."""
        if tag not in self._storage.tags(repository):
            raise KeyError(f"{repository}:{tag}")
        self._storage.delete_tag(repository, tag)

    async def _fault_endpoint(self, request: Request) -> Response:
        return await self.asgi.endpoint(request)

    async def _publish_endpoint(self, request: Request) -> Response:
        if not is_same_origin(request):
            return JSONResponse({"message": "publishing is for this registry's own page"}, status_code=403)
        form = request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
        try:
            asked = _form(await request.body()) if form else json.loads(await request.body())
            published = self.publish(**_publish_arguments(asked))
        except ValueError as error:
            return JSONResponse({"message": str(error)}, status_code=400)
        if form:
            return RedirectResponse("/", status_code=303)
        body = {"repository": published.repository, "tag": published.tag, "digest": published.digest}
        return JSONResponse({**body, "mediaType": published.media_type}, status_code=201)

    async def _page(self, request: Request) -> Response:
        repositories = [self._describe(name) for name in self.repositories()]
        return render_page(
            request, "registry/page.html", self.links, host=self.host, repositories=repositories
        )

    def _describe(self, repository: str) -> dict[str, Any]:
        names = sort_newest_first(self._storage.tag_names(repository))
        rows = [self._describe_tag(repository, tag) for tag in names[:_SHOWN_TAGS]]
        return {
            "name": repository,
            "tags": rows,
            "hidden": len(names) - len(rows),
            "next": next_versions(names),
        }

    def _describe_tag(self, repository: str, tag: str) -> dict[str, Any]:
        try:
            manifest = self._storage.manifest(repository, tag)
        except RegistryError:
            # A tag may outlive its manifest for the moment between two renames.
            return {"tag": tag, "digest": "", "platforms": [], "created": ""}
        content = json.loads(manifest.body)
        if manifest.media_type == OCI_INDEX:
            platforms = [_platform_name(entry.get("platform")) for entry in content["manifests"]]
            annotations = content.get("annotations") or {}
            created = str(annotations.get("org.opencontainers.image.created", ""))
        else:
            config = self._read_config(repository, content)
            platforms = [_platform_name(config)]
            created = str(config.get("created", ""))
        return {"tag": tag, "digest": manifest.digest, "platforms": platforms, "created": created[:19]}

    def _read_config(self, repository: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
        try:
            config = json.loads(self._storage.blob(repository, manifest["config"]["digest"]).read_bytes())
        except (ValueError, RegistryError):
            # Charts and signatures have configs of other kinds, and a config may have been deleted.
            return {}
        return config if isinstance(config, dict) else {}


def _platform_name(platform: object) -> str:
    if not isinstance(platform, dict) or "os" not in platform:
        return "-"
    return "/".join(str(platform[key]) for key in ("os", "architecture", "variant") if platform.get(key))


def _form(body: bytes) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(body.decode()).items()}


def _publish_arguments(asked: object) -> dict[str, Any]:
    """The arguments of `publish` from a request; ValueError when one is missing, unknown or of a wrong type."""
    if not isinstance(asked, dict):
        raise ValueError("say what to publish as an object with repository and tag")
    if unknown := sorted(set(asked) - {"repository", "tag", "created", "labels", "platforms"}):
        raise ValueError(
            f"unknown field {', '.join(unknown)}; known are repository, tag, created, labels, platforms"
        )
    if not isinstance(asked.get("repository"), str) or not isinstance(asked.get("tag"), str):
        raise ValueError("repository and tag must be strings")
    arguments: dict[str, Any] = dict(asked)
    if "created" in asked:
        arguments["created"] = datetime.fromisoformat(str(asked["created"]))
    if "platforms" in asked:
        arguments["platforms"] = tuple(map(str, asked["platforms"]))
    if "labels" in asked and not isinstance(asked["labels"], dict):
        raise ValueError("labels must be an object")
    return arguments
