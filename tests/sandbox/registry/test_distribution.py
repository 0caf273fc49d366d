"""The registry speaks the OCI distribution protocol, with the habits of a real one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.sandbox.faults import Faults
from bot.sandbox.registry import Registry

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
ACCEPT = {"Accept": f"{INDEX}, {MANIFEST}"}


def sha256(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "registry", host="registry.example")


@pytest.fixture
async def client(registry: Registry) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=registry.asgi)
    async with httpx.AsyncClient(transport=transport, base_url="http://registry.example") as opened:
        yield opened


async def push_blob(client: httpx.AsyncClient, repository: str, body: bytes) -> str:
    started = await client.post(f"/v2/{repository}/blobs/uploads/")
    assert started.status_code == 202
    done = await client.put(started.headers["location"], params={"digest": sha256(body)}, content=body)
    assert (done.status_code, done.headers["docker-content-digest"]) == (201, sha256(body))
    return sha256(body)


def manifest_of(config: str, *layers: str) -> dict[str, Any]:
    return {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": config, "size": 2},
        "layers": [{"mediaType": "application/octet-stream", "digest": layer, "size": 5} for layer in layers],
    }


def code(answer: httpx.Response) -> str:
    return str(answer.json()["errors"][0]["code"])


async def put_manifest(
    client: httpx.AsyncClient, repository: str, reference: str, body: bytes, media_type: str = MANIFEST
) -> httpx.Response:
    return await client.put(
        f"/v2/{repository}/manifests/{reference}", content=body, headers={"Content-Type": media_type}
    )


class TestPush:
    async def test_an_image_in_parts_comes_back_byte_for_byte(self, client: httpx.AsyncClient) -> None:
        config = await push_blob(client, "acme/app", b"{}")
        layer = await push_blob(client, "acme/app", b"layer")
        body = json.dumps(manifest_of(config, layer)).encode()
        pushed = await put_manifest(client, "acme/app", "1.0.0", body)
        assert (pushed.status_code, pushed.headers["docker-content-digest"]) == (201, sha256(body))
        for reference in ("1.0.0", sha256(body)):
            read = await client.get(f"/v2/acme/app/manifests/{reference}", headers=ACCEPT)
            assert (read.content, read.headers["content-type"]) == (body, MANIFEST)
            head = await client.head(f"/v2/acme/app/manifests/{reference}", headers=ACCEPT)
            assert head.headers["docker-content-digest"] == sha256(body)
            assert (head.content, head.headers["content-length"]) == (b"", str(len(body)))
        assert (await client.get(f"/v2/acme/app/blobs/{layer}")).content == b"layer"
        assert (await client.head(f"/v2/acme/app/blobs/{layer}")).headers["content-length"] == "5"

    async def test_a_blob_in_chunks(self, client: httpx.AsyncClient) -> None:
        location = (await client.post("/v2/app/blobs/uploads/")).headers["location"]
        first = await client.patch(location, content=b"lay", headers={"Content-Range": "0-2"})
        assert (first.status_code, first.headers["range"]) == (202, "0-2")
        out_of_order = await client.patch(location, content=b"er", headers={"Content-Range": "9-10"})
        assert (out_of_order.status_code, code(out_of_order)) == (416, "RANGE_INVALID")
        await client.patch(first.headers["location"], content=b"er", headers={"Content-Range": "3-4"})
        assert (await client.get(location)).headers["range"] == "0-4"
        done = await client.put(location, params={"digest": sha256(b"layer")})
        assert done.status_code == 201
        assert (await client.get(done.headers["location"])).content == b"layer"
        assert (await client.get(location)).status_code == 404

    async def test_a_blob_in_one_request(self, client: httpx.AsyncClient) -> None:
        done = await client.post("/v2/app/blobs/uploads/", params={"digest": sha256(b"x")}, content=b"x")
        assert done.status_code == 201

    async def test_a_blob_is_mounted_from_another_repository(self, client: httpx.AsyncClient) -> None:
        digest = await push_blob(client, "one", b"shared")
        mounted = await client.post("/v2/two/blobs/uploads/", params={"mount": digest, "from": "one"})
        assert mounted.status_code == 201
        assert (await client.get(f"/v2/two/blobs/{digest}")).content == b"shared"
        unknown = await client.post("/v2/two/blobs/uploads/", params={"mount": sha256(b"?"), "from": "one"})
        assert unknown.status_code == 202

    async def test_an_upload_can_be_given_up(self, client: httpx.AsyncClient) -> None:
        location = (await client.post("/v2/app/blobs/uploads/")).headers["location"]
        assert (await client.delete(location)).status_code == 204
        assert code(await client.delete(location)) == "BLOB_UPLOAD_UNKNOWN"

    async def test_content_that_does_not_match_its_digest_is_refused(self, client: httpx.AsyncClient) -> None:
        location = (await client.post("/v2/app/blobs/uploads/")).headers["location"]
        wrong = await client.put(location, params={"digest": sha256(b"other")}, content=b"layer")
        assert (wrong.status_code, code(wrong)) == (400, "DIGEST_INVALID")

    async def test_a_tag_that_is_pushed_again_moves(self, registry: Registry) -> None:
        first = registry.publish("app", "latest", labels={"build": "1"})
        second = registry.publish("app", "latest", labels={"build": "2"})
        assert first.digest != second.digest
        assert registry.tags("app") == {"latest": second.digest}


class TestRefusals:
    async def test_a_manifest_may_not_point_at_what_is_not_there(self, client: httpx.AsyncClient) -> None:
        config = await push_blob(client, "app", b"{}")
        body = json.dumps(manifest_of(config, sha256(b"missing"))).encode()
        refused = await put_manifest(client, "app", "1.0.0", body)
        assert (refused.status_code, code(refused)) == (400, "MANIFEST_BLOB_UNKNOWN")
        index = {
            "schemaVersion": 2,
            "manifests": [{"mediaType": MANIFEST, "digest": sha256(b"?"), "size": 1}],
        }
        refused = await put_manifest(client, "app", "1.0.0", json.dumps(index).encode(), INDEX)
        assert code(refused) == "MANIFEST_BLOB_UNKNOWN"

    @pytest.mark.parametrize(
        ("body", "media_type"),
        [
            (b"{", MANIFEST),
            (b"[]", MANIFEST),
            (b'{"schemaVersion": 1}', MANIFEST),
            (b'{"schemaVersion": 2}', MANIFEST),
            (b'{"schemaVersion": 2, "config": {"digest": "md5:1"}, "layers": []}', MANIFEST),
            (b'{"schemaVersion": 2, "mediaType": "text/plain", "layers": []}', MANIFEST),
            (b'{"schemaVersion": 2, "manifests": []}', "text/plain"),
        ],
        ids=[
            "cut short",
            "a list",
            "schema 1",
            "no layers",
            "no digest",
            "two media types",
            "an unknown type",
        ],
    )
    async def test_a_malformed_manifest(
        self, client: httpx.AsyncClient, body: bytes, media_type: str
    ) -> None:
        refused = await put_manifest(client, "app", "1.0.0", body, media_type)
        assert (refused.status_code, code(refused)) == (400, "MANIFEST_INVALID")

    async def test_a_manifest_under_another_digest(self, client: httpx.AsyncClient) -> None:
        refused = await put_manifest(client, "app", sha256(b"other"), b'{"schemaVersion": 2}')
        assert code(refused) == "DIGEST_INVALID"

    async def test_a_huge_manifest(self, client: httpx.AsyncClient) -> None:
        refused = await put_manifest(client, "app", "1.0.0", b" " * (4 * 1024 * 1024 + 1))
        assert (refused.status_code, code(refused)) == (413, "SIZE_INVALID")

    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("/v2/unknown/tags/list", "NAME_UNKNOWN"),
            ("/v2/unknown/manifests/1.0.0", "NAME_UNKNOWN"),
            ("/v2/app/manifests/9.9.9", "MANIFEST_UNKNOWN"),
            ("/v2/app/manifests/.hidden", "TAG_INVALID"),
            (f"/v2/app/blobs/{sha256(b'?')}", "BLOB_UNKNOWN"),
            ("/v2/app/blobs/md5:1", "DIGEST_INVALID"),
            ("/v2/UPPER/tags/list", "NAME_INVALID"),
            ("/v2/%2e%2e/%2e%2e/tags/list", "NAME_INVALID"),
            ("/v2/app/tags/list?n=-1", "PAGINATION_NUMBER_INVALID"),
        ],
        ids=str,
    )
    async def test_errors_have_the_specifications_body(
        self, client: httpx.AsyncClient, registry: Registry, path: str, expected: str
    ) -> None:
        registry.publish("app", "1.0.0")
        answer = await client.get(path)
        assert code(answer) == expected
        assert answer.status_code == (404 if expected.endswith("_UNKNOWN") else 400)
        assert answer.headers["docker-distribution-api-version"] == "registry/2.0"

    @pytest.mark.parametrize(
        "accept", ["", "application/json", "*/*", MANIFEST], ids=["none", "json", "any", "other"]
    )
    async def test_an_index_is_hidden_from_who_does_not_accept_one(
        self, client: httpx.AsyncClient, registry: Registry, accept: str
    ) -> None:
        registry.publish("app", "1.0.0", platforms=("linux/amd64", "linux/arm64"))
        head = await client.head("/v2/app/manifests/1.0.0", headers={"Accept": accept})
        assert head.status_code == 404
        assert (await client.head("/v2/app/manifests/1.0.0", headers=ACCEPT)).status_code == 200


class TestLists:
    async def test_tags_come_in_pages_with_relative_links(
        self, client: httpx.AsyncClient, registry: Registry
    ) -> None:
        for tag in ("1.0.0", "1.10.0", "1.9.0", "latest", "a+b".replace("+", "_")):
            registry.publish("acme/app", tag)
        pages, path = [], "/v2/acme/app/tags/list?n=2"
        while path:
            answer = await client.get(path)
            assert answer.json()["name"] == "acme/app"
            pages.append(answer.json()["tags"])
            link = answer.headers.get("link", "")
            assert link == "" or (link.startswith("</v2/") and link.endswith('>; rel="next"'))
            path = link.partition(">")[0].removeprefix("<")
        assert pages == [["1.0.0", "1.10.0"], ["1.9.0", "a_b"], ["latest"]]

    async def test_without_n_everything_comes_at_once(
        self, client: httpx.AsyncClient, registry: Registry
    ) -> None:
        for number in range(30):
            registry.publish("app", f"0.0.{number}")
        answer = await client.get("/v2/app/tags/list")
        assert len(answer.json()["tags"]) == 30
        assert "link" not in answer.headers
        assert (await client.get("/v2/app/tags/list?n=0")).json()["tags"] == []

    async def test_the_catalog_pages_too(self, client: httpx.AsyncClient, registry: Registry) -> None:
        for name in ("b", "acme/a", "c"):
            registry.publish(name, "1.0.0")
        first = await client.get("/v2/_catalog?n=2")
        assert first.json() == {"repositories": ["acme/a", "b"]}
        assert first.headers["link"] == '</v2/_catalog?last=b&n=2>; rel="next"'
        last = await client.get("/v2/_catalog?last=b&n=2")
        assert last.json() == {"repositories": ["c"]}
        assert "link" not in last.headers


class TestDelete:
    async def test_a_manifest_goes_with_its_tags(self, client: httpx.AsyncClient, registry: Registry) -> None:
        published = registry.publish("app", "1.0.0")
        assert (await client.delete(f"/v2/app/manifests/{published.digest}")).status_code == 202
        assert registry.tags("app") == {}
        assert code(await client.get("/v2/app/manifests/1.0.0", headers=ACCEPT)) == "MANIFEST_UNKNOWN"

    async def test_a_tag_goes_alone(self, client: httpx.AsyncClient, registry: Registry) -> None:
        published = registry.publish("app", "1.0.0")
        assert (await client.delete("/v2/app/manifests/1.0.0")).status_code == 202
        read = await client.get(f"/v2/app/manifests/{published.digest}", headers=ACCEPT)
        assert read.status_code == 200

    async def test_a_blob(self, client: httpx.AsyncClient) -> None:
        digest = await push_blob(client, "app", b"layer")
        assert (await client.delete(f"/v2/app/blobs/{digest}")).status_code == 202
        assert code(await client.get(f"/v2/app/blobs/{digest}")) == "BLOB_UNKNOWN"


async def test_it_goes_on_after_a_restart(
    client: httpx.AsyncClient, registry: Registry, tmp_path: Path
) -> None:
    published = registry.publish("acme/app", "1.0.0")
    location = (await client.post("/v2/acme/app/blobs/uploads/")).headers["location"]
    await client.patch(location, content=b"lay")
    again = Registry(tmp_path / "registry", host="registry.example")
    assert again.tags("acme/app") == {"1.0.0": published.digest}
    transport = httpx.ASGITransport(app=again.asgi)
    async with httpx.AsyncClient(transport=transport, base_url="http://registry.example") as other:
        done = await other.put(location, params={"digest": sha256(b"layer")}, content=b"er")
    assert done.status_code == 201


async def test_faults_answer_in_the_specifications_words(
    client: httpx.AsyncClient, registry: Registry
) -> None:
    registry.publish("app", "1.0.0")
    registry.faults = Faults(status=429, retry_after=3, times=1, path="/tags/")
    assert (await client.get("/v2/")).status_code == 200
    limited = await client.get("/v2/app/tags/list")
    assert (limited.status_code, code(limited), limited.headers["retry-after"]) == (
        429,
        "TOOMANYREQUESTS",
        "3",
    )
    assert (await client.get("/v2/app/tags/list")).status_code == 200
    registry.faults = Faults(down=True)
    assert code(await client.get("/v2/")) == "UNAVAILABLE"


async def test_requests_are_counted_by_kind(client: httpx.AsyncClient, registry: Registry) -> None:
    registry.publish("app", "1.0.0")
    await client.get("/v2/app/tags/list")
    await client.head("/v2/app/manifests/1.0.0", headers=ACCEPT)
    await client.head("/v2/app/manifests/1.0.0", headers=ACCEPT)
    assert registry.counts() == {"GET tags": 1, "HEAD manifests": 2}
