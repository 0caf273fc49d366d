"""The port `Artifacts` on the OCI distribution API: layers, and copies between repositories.

A copy is written from its parts to the whole: blobs, manifests by digest, and last the tag, so that a tag never leads
to something incomplete. Blobs that are there are not sent; within one registry they are mounted where it allows that.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from urllib.parse import urljoin

import httpx

from bot.adapters.oci.client import OciRegistries, problem_of, read_reason, sign
from bot.adapters.oci.manifests import DOCKER_LIST, MANIFEST_TYPES, OCI_INDEX, verify_digest
from bot.adapters.oci.references import Reference, is_digest, is_tag, parse_reference
from bot.adapters.oci.signing import Purpose, refuse_credentials
from bot.adapters.oci.wire import Answer
from bot.domain.values import Json
from bot.payloads.reading import Node, read_json, to_json
from bot.ports import TerminalError
from bot.ports.artifacts import Copy, Layer

_MANIFEST_CAP = 4 * 1024 * 1024
_DOWNLOAD_CAP = 100 * 1024 * 1024
"""Kargo's limit of a download."""
_COPY_CAP = 1024 * 1024 * 1024
"""Kargo's limit for what a copy between repositories transfers."""
_MOST_CHILDREN = 64
_REFERENCE = "vnd.docker.reference.digest"
"""By this annotation an index says which image an attestation is of."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A repository and a tag or digest in it."""

    repository: Reference
    name: str

    def __str__(self) -> str:
        return f"{self.repository}{'@' if is_digest(self.name) else ':'}{self.name}"


@dataclass(frozen=True, slots=True)
class _Blob:
    digest: str
    size: int
    elsewhere: bool


@dataclass(frozen=True, slots=True)
class _Manifest:
    """A manifest as it will be at the destination: its bytes, what it is made of, and the manifests below it."""

    data: bytes
    media_type: str
    blobs: tuple[_Blob, ...] = ()
    children: tuple[_Manifest, ...] = ()

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"


class OciArtifacts:
    """The port `Artifacts`; `registries` is open for as long as this is used."""

    def __init__(self, registries: OciRegistries, transfers: asyncio.Semaphore | None = None) -> None:
        self._registries = registries
        # Large transfers one after the other leave the line to everything else.
        self._transfers = transfers or asyncio.Semaphore(2)

    async def resolve(self, reference: str, *, insecure: bool = False) -> str | None:
        """See `Artifacts.resolve`."""
        place = _parse(reference)
        answer = await self._ask_manifest(place, insecure=insecure)
        return None if answer is None else _digest_of(answer)

    async def download(self, reference: str, *, media_type: str = "", insecure: bool = False) -> Layer | None:
        """See `Artifacts.download`."""
        place = _parse(reference)
        root = await self._read(place, insecure=insecure)
        if root.has("manifests"):
            root = await self._read(_Place(place.repository, _choose(root, place)), insecure=insecure)
        for layer in root.items("layers"):
            kind, digest = layer.text("mediaType", default=""), layer.text("digest")
            if media_type in ("", kind):
                if layer.number("size", default=0) > _DOWNLOAD_CAP:
                    raise TerminalError(
                        f"the layer {digest} of {place} is larger than {_DOWNLOAD_CAP >> 20} MiB, the most that is read"
                    )
                return Layer(await self._blob(place, digest, insecure=insecure), kind, digest)
        return None

    async def foresee(self, copy: Copy) -> str:
        """See `Artifacts.foresee`."""
        return (await self._plan(copy)).digest

    async def copy(self, copy: Copy) -> str:
        """See `Artifacts.copy`."""
        source, destination = _parse(copy.source), _parse(copy.destination)
        wanted = await self._plan(copy)
        if await self.resolve(copy.destination, insecure=copy.insecure) == wanted.digest:
            return wanted.digest
        if source.repository != destination.repository:
            blobs = {blob.digest: blob for blob in _all_blobs(wanted) if not blob.elsewhere}
            size = sum(blob.size for blob in blobs.values())
            if size > _COPY_CAP:
                raise TerminalError(
                    f"{source} has {size} bytes; at most {_COPY_CAP} are copied to another repository"
                )
            for blob in blobs.values():
                await self._copy_blob(source, destination, blob, insecure=copy.insecure)
        await self._put(destination, wanted, insecure=copy.insecure)
        return wanted.digest

    # -- reading -----------------------------------------------------------------------------------------------

    async def _ask_manifest(self, place: _Place, *, insecure: bool) -> Answer | None:
        url = f"{self._registries.base(place.repository)}/manifests/{place.name}"
        return await self._registries.ask(place.repository, url, cap=_MANIFEST_CAP, insecure=insecure)

    async def _manifest(self, place: _Place, *, insecure: bool) -> Answer:
        answer = await self._ask_manifest(place, insecure=insecure)
        if answer is None:
            raise TerminalError(f"{place} does not exist, or may not be read")
        if is_digest(place.name):
            verify_digest(answer.body, place.name, f"the manifest of {place}")
        return answer

    async def _read(self, place: _Place, *, insecure: bool) -> Node:
        answer = await self._manifest(place, insecure=insecure)
        return read_json(answer.body, problem_of(answer.url))

    async def _blob(self, place: _Place, digest: str, *, insecure: bool) -> bytes:
        if not is_digest(digest):
            raise TerminalError(f"{place} names the layer {digest[:100]!r}, which is no digest")
        url = f"{self._registries.base(place.repository)}/blobs/{digest}"
        answer = await self._registries.ask(place.repository, url, cap=_DOWNLOAD_CAP, insecure=insecure)
        if answer is None:
            raise TerminalError(f"{place} has no layer {digest}, although its manifest names it")
        verify_digest(answer.body, digest, f"a layer of {place}")
        return answer.body

    # -- what a copy is made of --------------------------------------------------------------------------------

    async def _plan(self, copy: Copy) -> _Manifest:
        source = _parse(copy.source)
        answer = await self._manifest(source, insecure=copy.insecure)
        root = read_json(answer.body, problem_of(answer.url))
        if not root.has("manifests"):
            return _image(answer, root, _for_manifests(copy.annotations))
        entries = list(root.items("manifests"))
        if len(entries) > _MOST_CHILDREN:
            raise TerminalError(f"{source} has {len(entries)} images; at most {_MOST_CHILDREN} are copied")
        children = []
        for entry in entries:
            place = _Place(source.repository, _known_digest(entry, source))
            below = await self._manifest(place, insecure=copy.insecure)
            node = read_json(below.body, problem_of(below.url))
            # An attestation is about an image, and is none itself.
            is_image = entry.text("platform", "os", default="") != "unknown"
            children.append(_image(below, node, _for_manifests(copy.annotations) if is_image else {}))
        return _index(answer, root, tuple(children), copy.annotations)

    # -- writing -----------------------------------------------------------------------------------------------

    async def _copy_blob(self, source: _Place, destination: _Place, blob: _Blob, *, insecure: bool) -> None:
        base = self._registries.base(destination.repository)
        there = await self._registries.send(
            destination.repository,
            "HEAD",
            f"{base}/blobs/{blob.digest}",
            {},
            purpose=Purpose.PUSH,
            insecure=insecure,
        )
        if there.status == 200:
            return
        url = f"{base}/blobs/uploads/"
        if source.repository.host == destination.repository.host:
            url = str(
                httpx.URL(url).copy_merge_params({"mount": blob.digest, "from": source.repository.path})
            )
        started = await self._registries.send(
            destination.repository, "POST", url, {}, purpose=Purpose.PUSH, insecure=insecure
        )
        if started.status == 201:
            return
        self._check(started, destination, 202)
        location = started.headers.get("location", "")
        target = httpx.URL(urljoin(url, location)).copy_merge_params({"digest": blob.digest})
        if not location or (target.scheme, target.netloc) != (httpx.URL(url).scheme, httpx.URL(url).netloc):
            raise TerminalError(f"{destination.repository.host} names no place of its own to upload to")
        async with self._transfers:
            await self._transfer(source, destination, blob, str(target), insecure=insecure)

    async def _transfer(
        self, source: _Place, destination: _Place, blob: _Blob, target: str, *, insecure: bool
    ) -> None:
        """Send a blob on piece by piece; the registry that takes it checks its digest."""
        signer, wire = self._registries.signer, self._registries.wire
        url = f"{self._registries.base(source.repository)}/blobs/{blob.digest}"
        # The manifest was read before, so what signs for the source is known.
        reading = sign({"Accept-Encoding": "identity"}, signer.header(source.repository, Purpose.PULL))
        async with wire.stream(url, insecure=insecure, headers=reading) as (status, pieces):
            if status != 200:
                raise TerminalError(f"{source.repository.host} answered {status} to GET {url}")
            headers = sign(
                {"Content-Type": "application/octet-stream", "Content-Length": str(blob.size)},
                signer.header(destination.repository, Purpose.PUSH),
            )
            answer = await wire.send(
                "PUT",
                target,
                cap=_MANIFEST_CAP,
                insecure=insecure,
                headers=headers,
                content=_exactly(pieces, blob, source),
            )
        self._check(answer, destination, 201)

    async def _put(self, destination: _Place, manifest: _Manifest, *, insecure: bool) -> None:
        for child in manifest.children:
            await self._put(_Place(destination.repository, child.digest), child, insecure=insecure)
        url = f"{self._registries.base(destination.repository)}/manifests/{destination.name}"
        headers = {"Content-Type": manifest.media_type}
        answer = await self._registries.send(
            destination.repository,
            "PUT",
            url,
            headers,
            purpose=Purpose.PUSH,
            insecure=insecure,
            content=manifest.data,
        )
        self._check(answer, destination, 201)

    def _check(self, answer: Answer, destination: _Place, wanted: int) -> None:
        if answer.status in {401, 403}:
            raise TerminalError(
                f"{destination.repository.host} does not let us push to {destination.repository.path}; check that the "
                "user of its Secret may push there"
            ) from refuse_credentials(destination.repository)
        if answer.status != wanted:
            raise TerminalError(
                f"{destination.repository.host} answered {answer.status} to a push of {destination}: "
                f"{read_reason(answer)}"
            )


async def _exactly(pieces: AsyncIterator[bytes], blob: _Blob, source: _Place) -> AsyncIterator[bytes]:
    left = blob.size
    async for piece in pieces:
        left -= len(piece)
        if left < 0:
            break
        yield piece
    if left:
        raise TerminalError(
            f"the layer {blob.digest} of {source} has another length than its manifest says ({blob.size})"
        )


def _parse(reference: str) -> _Place:
    text = reference.removeprefix("oci://")
    repository, at, digest = text.partition("@")
    head, colon, tag = repository.rpartition(":")
    has_tag = bool(colon) and "/" not in tag
    name = digest if at else tag
    place = _Place(parse_reference(head if has_tag else repository), name)
    if not (is_digest(name) if at else has_tag and is_tag(name)):
        raise TerminalError(
            f"{reference!r} names no artifact; it is written HOST/PATH:TAG or HOST/PATH@sha256:DIGEST"
        )
    return place


def _digest_of(answer: Answer) -> str:
    return f"sha256:{hashlib.sha256(answer.body).hexdigest()}"


def _known_digest(entry: Node, place: _Place) -> str:
    digest = entry.text("digest")
    if not is_digest(digest):
        raise TerminalError(f"{place} names {digest[:100]!r}, which is no digest")
    return digest


def _choose(index: Node, place: _Place) -> str:
    entries = list(index.items("manifests"))
    for entry in entries:
        platform = (
            entry.text("platform", "os", default=""),
            entry.text("platform", "architecture", default=""),
        )
        if platform == ("linux", "amd64") or len(entries) == 1:
            return _known_digest(entry, place)
    raise TerminalError(
        f"{place} is an index without an image for linux/amd64; name one of its images by digest"
    )


def _media_type(answer: Answer, root: Node) -> str:
    kind = root.text("mediaType", default="") or answer.headers.get("content-type", "").partition(";")[0]
    if kind not in MANIFEST_TYPES:
        raise TerminalError(f"{answer.url} is a manifest of the type {kind[:100]!r}, which cannot be copied")
    return kind


def _image(answer: Answer, root: Node, annotations: Mapping[str, str]) -> _Manifest:
    blobs = []
    for node in [*([root.find("config")] if root.has("config") else []), *root.items("layers")]:
        if node is not None:
            digest, size = node.text("digest"), int(node.number("size"))
            if not is_digest(digest):
                raise TerminalError(f"{answer.url} names {digest[:100]!r}, which is no digest")
            blobs.append(_Blob(digest, size, elsewhere=node.has("urls")))
    return _Manifest(_annotated(answer.body, root, annotations), _media_type(answer, root), tuple(blobs))


def _index(
    answer: Answer, root: Node, children: tuple[_Manifest, ...], annotations: Mapping[str, str]
) -> _Manifest:
    kind = _media_type(answer, root)
    if kind not in (OCI_INDEX, DOCKER_LIST):
        raise TerminalError(f"{answer.url} lists images, but calls itself {kind}")
    own = {
        key.removeprefix("index:"): value for key, value in annotations.items() if key.startswith("index:")
    }
    entries = [entry.text("digest") for entry in root.items("manifests")]
    renamed = {old: child.digest for old, child in zip(entries, children, strict=True)}
    if not own and all(old == new for old, new in renamed.items()):
        return _Manifest(answer.body, kind, children=children)
    document = to_json(root)
    listed = document.get("manifests") if isinstance(document, dict) else None
    for entry, child in zip(listed if isinstance(listed, list) else [], children, strict=True):
        if isinstance(entry, dict):
            entry["digest"], entry["size"] = child.digest, len(child.data)
            notes = entry.get("annotations")
            if isinstance(notes, dict) and notes.get(_REFERENCE) in renamed:
                notes[_REFERENCE] = renamed[str(notes[_REFERENCE])]
    return _Manifest(_dump(document, own), kind, children=children)


def _for_manifests(annotations: Mapping[str, str]) -> dict[str, str]:
    return {
        key.removeprefix("manifest:"): value
        for key, value in annotations.items()
        if not key.startswith("index:")
    }


def _annotated(data: bytes, root: Node, annotations: Mapping[str, str]) -> bytes:
    """The manifest with these annotations added; without any, the very bytes."""
    return _dump(to_json(root), annotations) if annotations else data


def _dump(document: Json, annotations: Mapping[str, str]) -> bytes:
    if isinstance(document, dict) and annotations:
        known = document.get("annotations")
        document = {**document, "annotations": {**(known if isinstance(known, dict) else {}), **annotations}}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def _all_blobs(manifest: _Manifest) -> tuple[_Blob, ...]:
    return (*manifest.blobs, *(blob for child in manifest.children for blob in _all_blobs(child)))
