"""The HTTP API of the OCI distribution specification, with Distribution's habits where the specification is silent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from bot.sandbox.registry.errors import Code, RegistryError
from bot.sandbox.registry.manifests import (
    LARGEST,
    OCI_INDEX,
    OCI_MANIFEST,
    check_references,
    read_manifest,
    references,
)
from bot.sandbox.registry.notifications import Notifier, Origin, describe_event
from bot.sandbox.registry.storage import DIGEST, NAME, TAG, Manifest, Storage, digest_of
from bot.sandbox.registry.tokens import Tokens

_VERSION: Final = {"Docker-Distribution-Api-Version": "registry/2.0"}
_ACTIONS: Final = {"GET": "pull", "HEAD": "pull", "DELETE": "delete"}
Handler = Callable[[Request], Awaitable[Response]]


class Api:
    """The `/v2/` routes over one storage; pushes and pulls become notifications."""

    def __init__(self, storage: Storage, tokens: Tokens, notifier: Notifier) -> None:
        self._storage = storage
        self._tokens = tokens
        self._notifier = notifier
        self.counts: Counter[str] = Counter()
        """Requests by method and kind, such as `GET manifests`."""

    def routes(self) -> list[Route]:
        """Every route, most special first: repository names contain slashes."""
        kinds: list[tuple[str, str, Handler, list[str]]] = [
            ("base", "/v2/", self._base, ["GET"]),
            ("catalog", "/v2/_catalog", self._catalog, ["GET"]),
            ("tags", "/v2/{name:path}/tags/list", self._list_tags, ["GET"]),
            ("uploads", "/v2/{name:path}/blobs/uploads/", self._start_upload, ["POST"]),
            (
                "uploads",
                "/v2/{name:path}/blobs/uploads/{id}",
                self._upload,
                ["GET", "PATCH", "PUT", "DELETE"],
            ),
            ("blobs", "/v2/{name:path}/blobs/{digest}", self._blob, ["GET", "DELETE"]),
            ("manifests", "/v2/{name:path}/manifests/{reference}", self._manifest, ["GET", "PUT", "DELETE"]),
        ]
        routes = [
            Route(path, self._guarded(kind, handler), methods=methods)
            for kind, path, handler, methods in kinds
        ]
        return [*routes, Route("/token", self._answered(self._tokens.endpoint), methods=["GET"])]

    def push_blob(self, repository: str, body: bytes, origin: Origin) -> str:
        """Store a blob and tell the endpoints; its digest."""
        digest = self._storage.put_blob(repository, body)
        self._emit_blob("push", repository, digest, len(body), origin)
        return digest

    def push_manifest(self, repository: str, manifest: Manifest, tag: str | None, origin: Origin) -> None:
        """Check and store a manifest, point a tag at it and tell the endpoints."""
        content = read_manifest(manifest.body, manifest.media_type)
        check_references(self._storage, repository, content, manifest.media_type)
        self._storage.put_manifest(repository, manifest, tag)
        self._emit_manifest("push", repository, manifest, tag, origin)

    def _guarded(self, kind: str, handler: Handler) -> Handler:
        async def guarded(request: Request) -> Response:
            self.counts[f"{request.method} {kind}"] += 1
            name, action = request.path_params.get("name", ""), _ACTIONS.get(request.method, "push")
            if kind == "catalog":
                name, action = "catalog", "*"
            try:
                if kind not in ("base", "catalog") and (not NAME.fullmatch(name) or len(name) > 255):
                    raise RegistryError(Code.NAME_INVALID, "invalid repository name", name=name)
                request.state.actor = self._tokens.check(request, name, action)
            except RegistryError as error:
                headers = dict(_VERSION)
                if error.code is Code.UNAUTHORIZED:
                    headers["WWW-Authenticate"] = self._tokens.challenge(request, name, action)
                return error.response(headers)
            return await self._answered(handler)(request)

        return guarded

    def _answered(self, handler: Handler) -> Handler:
        async def answered(request: Request) -> Response:
            try:
                response = await handler(request)
            except RegistryError as error:
                response = error.response()
            response.headers.update(_VERSION)
            return response

        return answered

    async def _base(self, request: Request) -> Response:  # noqa: ARG002
        return JSONResponse({})

    async def _catalog(self, request: Request) -> Response:
        return _page(request, "repositories", self._storage.repositories(), {})

    async def _list_tags(self, request: Request) -> Response:
        name = request.path_params["name"]
        if not self._storage.exists(name):
            raise RegistryError(Code.NAME_UNKNOWN, "repository name not known to registry", name=name)
        return _page(request, "tags", self._storage.tag_names(name), {"name": name})

    async def _start_upload(self, request: Request) -> Response:
        name, query = request.path_params["name"], request.query_params
        mount, source = query.get("mount"), query.get("from", "")
        if mount and self._storage.mount_blob(name, mount, source):
            size = self._storage.blob(name, mount).stat().st_size
            self._emit_blob("mount", name, mount, size, _origin(request), fromRepository=source)
            return _created(f"/v2/{name}/blobs/{mount}", mount)
        upload = self._storage.start_upload()
        if digest := query.get("digest"):
            self._storage.append(upload, await request.body())
            return self._finish(request, upload, digest)
        return self._progress(name, upload, 202)

    async def _upload(self, request: Request) -> Response:
        name, upload = request.path_params["name"], request.path_params["id"]
        match request.method:
            case "PATCH":
                self._check_range(request, upload)
                self._storage.append(upload, await request.body())
                return self._progress(name, upload, 202)
            case "PUT":
                digest = request.query_params.get("digest", "")
                if body := await request.body():
                    self._check_range(request, upload)
                    self._storage.append(upload, body)
                return self._finish(request, upload, digest)
            case "DELETE":
                self._storage.cancel_upload(upload)
                return Response(status_code=204)
        return self._progress(name, upload, 204)

    def _finish(self, request: Request, upload: str, digest: str) -> Response:
        name = request.path_params["name"]
        self._storage.finish_upload(name, upload, digest)
        size = self._storage.blob(name, digest).stat().st_size
        self._emit_blob("push", name, digest, size, _origin(request))
        return _created(f"/v2/{name}/blobs/{digest}", digest)

    def _check_range(self, request: Request, upload: str) -> None:
        first = request.headers.get("content-range", "").partition("-")[0]
        if first and first != str(self._storage.upload_size(upload)):
            raise RegistryError(Code.RANGE_INVALID, "chunks must be uploaded in order")

    def _progress(self, name: str, upload: str, status: int) -> Response:
        size = self._storage.upload_size(upload)
        headers = {
            "Location": f"/v2/{name}/blobs/uploads/{upload}",
            "Docker-Upload-UUID": upload,
            "Range": f"0-{max(size - 1, 0)}",
        }
        return Response(status_code=status, headers=headers)

    async def _blob(self, request: Request) -> Response:
        name, digest = request.path_params["name"], request.path_params["digest"]
        file = self._storage.blob(name, digest)
        if request.method == "DELETE":
            self._storage.delete_blob(name, digest)
            self._emit("delete", {"digest": digest, "repository": name}, _origin(request))
            return Response(status_code=202)
        self._emit_blob("pull", name, digest, file.stat().st_size, _origin(request))
        headers = {"Docker-Content-Digest": digest}
        return FileResponse(file, media_type="application/octet-stream", headers=headers)

    async def _manifest(self, request: Request) -> Response:
        name, reference = request.path_params["name"], request.path_params["reference"]
        if not TAG.fullmatch(reference) and not DIGEST.fullmatch(reference):
            raise RegistryError(
                Code.TAG_INVALID, "manifest reference is no tag and no digest", reference=reference
            )
        match request.method:
            case "PUT":
                return await self._put_manifest(request, name, reference)
            case "DELETE":
                return self._delete_manifest(request, name, reference)
        manifest = self._storage.manifest(name, reference)
        if not _is_accepted(request, manifest.media_type):
            # Distribution does not fall back to another type; a client that forgets the header sees no image.
            what = "OCI index" if manifest.media_type == OCI_INDEX else "OCI manifest"
            raise RegistryError(
                Code.MANIFEST_UNKNOWN, f"{what} found, but accept header does not support {what}s"
            )
        tag = None if DIGEST.fullmatch(reference) else reference
        self._emit_manifest("pull", name, manifest, tag, _origin(request))
        headers = {"Docker-Content-Digest": manifest.digest, "ETag": f'"{manifest.digest}"'}
        return Response(manifest.body, media_type=manifest.media_type, headers=headers)

    async def _put_manifest(self, request: Request, name: str, reference: str) -> Response:
        if int(request.headers.get("content-length", "0")) > LARGEST:
            raise RegistryError(Code.SIZE_INVALID, f"manifests may have at most {LARGEST} bytes")
        body = await request.body()
        digest = digest_of(body)
        tag = None if DIGEST.fullmatch(reference) else reference
        if tag is None and reference != digest:
            raise RegistryError(
                Code.DIGEST_INVALID, "provided digest did not match uploaded content", digest=reference
            )
        media_type = request.headers.get("content-type", "").partition(";")[0].strip()
        self.push_manifest(name, Manifest(digest, media_type, body), tag, _origin(request))
        return _created(f"/v2/{name}/manifests/{digest}", digest)

    def _delete_manifest(self, request: Request, name: str, reference: str) -> Response:
        manifest = self._storage.manifest(name, reference)
        origin = _origin(request)
        if DIGEST.fullmatch(reference):
            tags = self._storage.delete_manifest(name, reference)
            self._emit("delete", {"repository": name, "digest": manifest.digest}, origin)
        else:
            self._storage.delete_tag(name, reference)
            tags = [reference]
        for tag in tags:
            self._emit("delete", {"repository": name, "tag": tag}, origin)
        return Response(status_code=202)

    def _emit_blob(self, action: str, name: str, digest: str, size: int, origin: Origin, **more: str) -> None:
        url = f"http://{origin.host}/v2/{name}/blobs/{digest}"
        target = {"mediaType": "application/octet-stream", "size": size, "digest": digest, "length": size}
        self._emit(action, {**target, "repository": name, "url": url, **more}, origin)

    def _emit_manifest(
        self, action: str, name: str, manifest: Manifest, tag: str | None, origin: Origin
    ) -> None:
        size = len(manifest.body)
        target: dict[str, Any] = {
            "mediaType": manifest.media_type,
            "size": size,
            "digest": manifest.digest,
            "length": size,
            "repository": name,
            "url": f"http://{origin.host}/v2/{name}/manifests/{manifest.digest}",
        }
        if tag is not None:
            target["tag"] = tag
        target["references"] = references(json.loads(manifest.body))
        self._emit(action, target, origin)

    def _emit(self, action: str, target: dict[str, Any], origin: Origin) -> None:
        self._notifier.emit(describe_event(action, target, origin))


def _origin(request: Request) -> Origin:
    client = request.client
    return Origin(
        host=request.headers.get("host", ""),
        address=f"{client.host}:{client.port}" if client else "",
        method=request.method,
        user_agent=request.headers.get("user-agent", ""),
        actor=request.state.actor,
    )


def _created(location: str, digest: str) -> Response:
    return Response(status_code=201, headers={"Location": location, "Docker-Content-Digest": digest})


def _is_accepted(request: Request, media_type: str) -> bool:
    if media_type not in (OCI_MANIFEST, OCI_INDEX):
        return True
    accepted = {
        item.partition(";")[0].strip() for item in ",".join(request.headers.getlist("accept")).split(",")
    }
    return media_type in accepted


def _page(request: Request, key: str, names: list[str], more: dict[str, str]) -> Response:
    """A page of a sorted list by `n` and `last`, with a relative link to the next one when there is more."""
    asked, last = request.query_params.get("n"), request.query_params.get("last", "")
    if asked is not None and not asked.isdecimal():
        raise RegistryError(Code.PAGINATION_NUMBER_INVALID, "invalid number of results requested", n=asked)
    rest = [name for name in names if name > last]
    page = rest if asked is None else rest[: int(asked)]
    headers = {}
    if len(page) < len(rest) and page:
        query = urlencode({"last": page[-1], "n": asked})
        headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'
    return JSONResponse({**more, key: page}, headers=headers)
