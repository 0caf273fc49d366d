"""Registries to run the contract on, and pushing to them as any client would."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from bot.adapters.oci.manifests import OCI_INDEX, OCI_MANIFEST
from bot.adapters.oci.signing import Credentials
from bot.sandbox.registry.registry import Registry as SandboxRegistry
from bot.sandbox.serving import Listener

CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
USER, PASSWORD = "robot", "s3cret"
BCRYPT = "$2b$04$8LU.yEEJYPpYI8G4IhB/f.wYxYH2vnodk1.dUMQc.7sSCAelunoQe"


def signed_in(user: tuple[str, str] | None) -> Credentials:
    """Credentials that are the same for every repository."""

    async def find(repository: str) -> tuple[str, str] | None:
        return user

    return find


@asynccontextmanager
async def run_sandbox(directory: Path) -> AsyncIterator[str]:
    """The sandbox's own registry, which wants Bearer tokens; gives its host and port."""
    listener = Listener()
    registry = SandboxRegistry(
        directory / "data", host=listener.host, accounts={USER: PASSWORD}, anonymous_pull=False
    )
    await listener.start(registry.asgi)
    try:
        yield listener.host
    finally:
        await listener.stop()


@asynccontextmanager
async def run_distribution(directory: Path) -> AsyncIterator[str]:
    """Debian's `docker-registry` (Distribution 2.8) with Basic authentication; gives its host and port."""
    program = shutil.which("docker-registry")
    assert program, "the Debian package docker-registry is missing: apt-get install -y docker-registry"
    htpasswd = directory / "htpasswd"
    # Distribution takes bcrypt alone.
    htpasswd.write_text(f"{USER}:{BCRYPT}\n")
    port = _free_port()
    config = directory / "config.yml"
    config.write_text(
        f"""version: 0.1
log: {{level: warn}}
storage: {{filesystem: {{rootdirectory: {directory}/data}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:{port}", secret: for-this-test-only}}
auth: {{htpasswd: {{realm: basic-realm, path: {htpasswd}}}}}
"""
    )
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen([program, "serve", str(config)], stdout=log, stderr=log)
    try:
        await _wait_until_served(f"http://127.0.0.1:{port}/v2/", process)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=10)


async def push_image(
    host: str,
    path: str,
    tag: str,
    *,
    created: str = "2026-01-02T03:04:05.678901234Z",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    platform: tuple[str, str, str] = ("linux", "amd64", ""),
) -> str:
    """Push one image without layers; gives the manifest's digest. An empty tag pushes by digest alone."""
    system, architecture, variant = platform
    config: dict[str, object] = {
        "os": system,
        "architecture": architecture,
        "config": {"Labels": labels or {}},
    }
    if created:
        config["created"] = created
    if variant:
        config["variant"] = variant
    blob = json.dumps(config | {"rootfs": {"type": "layers", "diff_ids": []}}).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": {"mediaType": CONFIG_TYPE, "digest": digest_of(blob), "size": len(blob)},
        "layers": [],
        "annotations": annotations or {},
    }
    async with _pusher(host, path) as client:
        await _push_blob(client, path, blob)
        return await _push_manifest(client, path, tag, manifest)


async def push_index(
    host: str,
    path: str,
    tag: str,
    children: dict[str, dict[str, str]],
    annotations: dict[str, str] | None = None,
) -> str:
    """Push an index over manifests that are there: digest to platform object."""
    async with _pusher(host, path) as client:
        sizes = {
            digest: len(
                (await client.get(f"/v2/{path}/manifests/{digest}", headers={"Accept": OCI_MANIFEST})).content
            )
            for digest in children
        }
        entries = [
            {"mediaType": OCI_MANIFEST, "digest": digest, "size": sizes[digest], "platform": platform}
            for digest, platform in children.items()
        ]
        index = {
            "schemaVersion": 2,
            "mediaType": OCI_INDEX,
            "manifests": entries,
            "annotations": annotations or {},
        }
        return await _push_manifest(client, path, tag, index)


async def push_artifact(host: str, path: str, tag: str, *layers: tuple[str, bytes]) -> str:
    """Push an artifact of these layers (media type and content); gives the manifest's digest."""
    config = b"{}"
    blobs = [(CONFIG_TYPE, config), *layers]
    described = [{"mediaType": kind, "digest": digest_of(blob), "size": len(blob)} for kind, blob in blobs]
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": described[0],
        "layers": described[1:],
        "annotations": {"kept": "as it was"},
    }
    async with _pusher(host, path) as client:
        for _, blob in blobs:
            await _push_blob(client, path, blob)
        return await _push_manifest(client, path, tag, manifest)


def digest_of(content: bytes) -> str:
    """The digest of these bytes."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@asynccontextmanager
async def _pusher(host: str, path: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"http://{host}") as client:
        challenge = (await client.get("/v2/")).headers["www-authenticate"]
        if challenge.lower().startswith("bearer"):
            realm = challenge.split('realm="')[1].split('"')[0]
            service = challenge.split('service="')[1].split('"')[0]
            query = {"service": service, "scope": f"repository:{path}:pull,push"}
            answer = await client.get(realm, params=query, auth=(USER, PASSWORD))
            client.headers["Authorization"] = f"Bearer {answer.json()['token']}"
        else:
            client.auth = httpx.BasicAuth(USER, PASSWORD)
        yield client


async def _push_blob(client: httpx.AsyncClient, path: str, blob: bytes) -> None:
    started = await client.post(f"/v2/{path}/blobs/uploads/")
    assert started.status_code == 202, started.text
    url = httpx.URL(str(client.base_url)).join(started.headers["location"])
    done = await client.put(url.copy_merge_params({"digest": digest_of(blob)}), content=blob)
    assert done.status_code == 201, done.text


async def _push_manifest(client: httpx.AsyncClient, path: str, tag: str, manifest: dict[str, object]) -> str:
    content = json.dumps(manifest).encode()
    digest = digest_of(content)
    done = await client.put(
        f"/v2/{path}/manifests/{tag or digest}",
        content=content,
        headers={"Content-Type": str(manifest["mediaType"])},
    )
    assert done.status_code == 201, done.text
    return digest


def _free_port() -> int:
    # docker-registry cannot tell which port it was given, so it is not started on port 0.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _wait_until_served(url: str, process: subprocess.Popen[bytes]) -> None:
    async with httpx.AsyncClient() as client:
        for _ in range(200):
            assert process.poll() is None, "docker-registry ended instead of serving"
            try:
                if (await client.get(url)).status_code in {200, 401}:
                    return
            except httpx.TransportError:
                await asyncio.sleep(0.05)
    raise AssertionError("docker-registry did not serve within ten seconds")
