"""Publishing pushes a small real image, from Python, over HTTP and from the page."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from bot.sandbox.registry import Registry
from bot.sandbox.registry.versions import next_versions, sort_newest_first

ACCEPT = {"Accept": "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json"}


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "registry", host="registry.example")


@pytest.fixture
async def client(registry: Registry) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=registry.asgi)
    async with httpx.AsyncClient(transport=transport, base_url="http://registry.example") as opened:
        yield opened


async def test_an_image_has_a_config_and_a_layer_that_can_be_unpacked(
    registry: Registry, client: httpx.AsyncClient
) -> None:
    created = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    published = registry.publish("acme/app", "1.0.0", created=created, labels={"team": "otel"})
    manifest = (await client.get("/v2/acme/app/manifests/1.0.0", headers=ACCEPT)).json()
    config = (await client.get(f"/v2/acme/app/blobs/{manifest['config']['digest']}")).json()
    assert (config["os"], config["architecture"], config["created"]) == (
        "linux",
        "amd64",
        "2026-02-03T04:05:06Z",
    )
    assert config["config"]["Labels"]["team"] == "otel"
    assert config["config"]["Labels"]["org.opencontainers.image.version"] == "1.0.0"
    layer = (await client.get(f"/v2/acme/app/blobs/{manifest['layers'][0]['digest']}")).content
    raw = gzip.decompress(layer)
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(raw).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        file = archive.extractfile("app/version.txt")
        assert file is not None
        assert file.read() == b"acme/app 1.0.0 for linux/amd64\n"
    assert registry.publish("acme/app", "1.0.0", created=created, labels={"team": "otel"}) == published


async def test_several_platforms_give_an_index(registry: Registry, client: httpx.AsyncClient) -> None:
    published = registry.publish("app", "1.0.0", platforms=("linux/amd64", "linux/arm/v7"))
    index = (await client.get("/v2/app/manifests/1.0.0", headers=ACCEPT)).json()
    assert published.media_type == index["mediaType"] == "application/vnd.oci.image.index.v1+json"
    assert [entry["platform"] for entry in index["manifests"]] == [
        {"os": "linux", "architecture": "amd64"},
        {"os": "linux", "architecture": "arm", "variant": "v7"},
    ]
    for entry in index["manifests"]:
        part = await client.get(f"/v2/app/manifests/{entry['digest']}", headers=ACCEPT)
        assert part.headers["content-length"] == str(entry["size"])


@pytest.mark.parametrize(
    ("repository", "tag", "platforms"),
    [
        ("App", "1.0.0", ("linux/amd64",)),
        ("app/../other", "1.0.0", ("linux/amd64",)),
        ("app", "-1", ("linux/amd64",)),
        ("app", "a/b", ("linux/amd64",)),
        ("app", "1.0.0", ()),
        ("app", "1.0.0", ("linux",)),
    ],
    ids=[
        "upper case",
        "a path that climbs",
        "a tag with a dash",
        "a tag with a slash",
        "no platform",
        "half a platform",
    ],
)
def test_what_no_registry_would_take_is_refused(
    registry: Registry, repository: str, tag: str, platforms: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match=r"is no |needs at least|must be os/arch"):
        registry.publish(repository, tag, platforms=platforms)
    assert registry.repositories() == []


async def test_publishing_over_http(registry: Registry, client: httpx.AsyncClient) -> None:
    body = {
        "repository": "app",
        "tag": "2.0.0",
        "created": "2026-01-01T00:00:00Z",
        "platforms": ["linux/arm64"],
    }
    answer = await client.post("/_sandbox/publish", json=body)
    assert answer.status_code == 201
    assert answer.json()["digest"] == registry.tags("app")["2.0.0"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"repository": "app"}',
        b'{"repository": "app", "tag": "1", "extra": 1}',
        b'{"repository": 1, "tag": "1"}',
    ],
    ids=["cut short", "a list", "no tag", "an unknown field", "a number for a name"],
)
async def test_a_wrong_request_publishes_nothing(
    registry: Registry, client: httpx.AsyncClient, body: bytes
) -> None:
    answer = await client.post("/_sandbox/publish", content=body)
    assert answer.status_code == 400
    assert answer.json()["message"]
    assert registry.repositories() == []


async def test_the_page_offers_the_next_versions_and_publishes_them(
    registry: Registry, client: httpx.AsyncClient
) -> None:
    assert "There is no image yet" in (await client.get("/")).text
    registry.publish("otel-app", "1.4.2")
    page = (await client.get("/")).text
    for version in ("1.4.3", "1.5.0", "2.0.0"):
        assert f"Publish otel-app {version}" in page
    answer = await client.post("/_sandbox/publish", data={"repository": "otel-app", "tag": "1.5.0"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "1.5.0" in registry.tags("otel-app")


async def test_another_sites_page_may_not_publish(registry: Registry, client: httpx.AsyncClient) -> None:
    form = {"repository": "otel-app", "tag": "6.6.6"}
    answer = await client.post(
        "/_sandbox/publish", data=form, headers={"Origin": "https://elsewhere.example"}
    )
    assert answer.status_code == 403
    own = await client.post("/_sandbox/publish", data=form, headers={"Origin": "http://registry.example"})
    assert own.status_code == 303
    assert list(registry.tags("otel-app")) == ["6.6.6"]


async def test_the_page_shows_artifacts_that_are_no_images(
    registry: Registry, client: httpx.AsyncClient
) -> None:
    config = b"not json"
    digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
    await client.post("/v2/chart/blobs/uploads/", params={"digest": digest}, content=config)
    body = {"schemaVersion": 2, "config": {"digest": digest, "mediaType": "a/b", "size": 8}, "layers": []}
    headers = {"Content-Type": "application/vnd.oci.image.manifest.v1+json"}
    await client.put("/v2/chart/manifests/0.1.0", content=json.dumps(body), headers=headers)
    assert "0.1.0" in (await client.get("/")).text


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ([], ["1.0.0"]),
        (["latest"], ["1.0.0"]),
        (["1.9.0", "1.10.0"], ["1.10.1", "1.11.0", "2.0.0"]),
        (["v1.2.3", "edge"], ["v1.2.4", "v1.3.0", "v2.0.0"]),
    ],
    ids=["none", "no version", "numbers are not words", "the spelling is kept"],
)
def test_next_versions(tags: list[str], expected: list[str]) -> None:
    assert next_versions(tags) == expected


def test_versions_are_listed_newest_first() -> None:
    assert sort_newest_first(["1.9.0", "edge", "1.10.0", "a"]) == ["1.10.0", "1.9.0", "a", "edge"]
