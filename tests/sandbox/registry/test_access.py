"""The registry's bearer tokens follow Distribution's scheme."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from bot.sandbox.registry import Registry

ACCEPT = {"Accept": "application/vnd.oci.image.manifest.v1+json"}


def open_client(registry: Registry) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app=registry.asgi), base_url="http://registry.example"
    )


@pytest.fixture(params=[True, False], ids=["anonymous pull", "private"])
def anonymous(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
async def client(tmp_path: Path, *, anonymous: bool) -> AsyncIterator[httpx.AsyncClient]:
    registry = Registry(
        tmp_path, host="registry.example", accounts={"ci": "s3cret"}, anonymous_pull=anonymous
    )
    registry.publish("acme/app", "1.0.0")
    async with open_client(registry) as opened:
        yield opened


async def answer_challenge(
    client: httpx.AsyncClient, refused: httpx.Response, auth: tuple[str, str] | None
) -> httpx.Response:
    """Ask for a token where a 401 says, as every client does."""
    assert refused.status_code == 401
    assert refused.json()["errors"][0]["code"] == "UNAUTHORIZED"
    kind, _, rest = refused.headers["www-authenticate"].partition(" ")
    assert kind == "Bearer"
    fields = dict(re.findall(r'(\w+)="([^"]*)"', rest))
    realm = fields.pop("realm")
    return await client.get(realm, params=fields, auth=httpx.BasicAuth(*auth) if auth else None)


async def test_a_pull_needs_a_token_that_is_anonymous_where_allowed(
    client: httpx.AsyncClient, *, anonymous: bool
) -> None:
    refused = await client.head("/v2/acme/app/manifests/1.0.0", headers=ACCEPT)
    assert 'scope="repository:acme/app:pull"' in refused.headers["www-authenticate"]
    refused = await client.get("/v2/acme/app/tags/list")
    granted = await answer_challenge(client, refused, None)
    token = {"Authorization": f"Bearer {granted.json()['token']}"}
    pulled = await client.get("/v2/acme/app/tags/list", headers=token)
    assert pulled.status_code == (200 if anonymous else 401)


async def test_an_account_may_pull_and_push(client: httpx.AsyncClient) -> None:
    refused = await client.post("/v2/acme/app/blobs/uploads/")
    granted = await answer_challenge(client, refused, ("ci", "s3cret"))
    token = {"Authorization": f"Bearer {granted.json()['access_token']}"}
    assert (await client.post("/v2/acme/app/blobs/uploads/", headers=token)).status_code == 202
    assert (await client.get("/v2/acme/app/tags/list", headers=token)).status_code == 200


async def test_nobody_pushes_without_an_account(client: httpx.AsyncClient) -> None:
    granted = await answer_challenge(client, await client.post("/v2/acme/app/blobs/uploads/"), None)
    token = {"Authorization": f"Bearer {granted.json()['token']}"}
    assert (await client.post("/v2/acme/app/blobs/uploads/", headers=token)).status_code == 401


async def test_a_token_for_everything_may_delete(client: httpx.AsyncClient) -> None:
    query = {"service": "sandbox-registry", "scope": "repository:acme/app:*"}
    for auth, expected in ((None, 401), (httpx.BasicAuth("ci", "s3cret"), 202)):
        granted = await client.get("/token", params=query, auth=auth)
        token = {"Authorization": f"Bearer {granted.json()['token']}"}
        assert (await client.delete("/v2/acme/app/manifests/1.0.0", headers=token)).status_code == expected


async def test_a_token_opens_only_the_repository_it_names(client: httpx.AsyncClient) -> None:
    granted = await answer_challenge(client, await client.get("/v2/acme/app/tags/list"), ("ci", "s3cret"))
    token = {"Authorization": f"Bearer {granted.json()['token']}"}
    assert (await client.get("/v2/acme/other/tags/list", headers=token)).status_code == 401
    assert (await client.get("/v2/", headers=token)).status_code == 200


@pytest.mark.parametrize(
    "header",
    ["Basic !!!", "Basic Y2k6d3Jvbmc=", "Basic bm9ib2R5OnMzY3JldA==", "Bearer x"],
    ids=["no base64", "a wrong password", "an unknown account", "not basic"],
)
async def test_wrong_credentials_get_no_token(client: httpx.AsyncClient, header: str) -> None:
    refused = await client.get("/token?scope=repository:acme/app:pull", headers={"Authorization": header})
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (401, "UNAUTHORIZED")


async def test_a_forged_token_is_no_token(client: httpx.AsyncClient) -> None:
    header = {"Authorization": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJjaSJ9."}
    assert (await client.get("/v2/acme/app/tags/list", headers=header)).status_code == 401


async def test_the_catalog_needs_an_account(client: httpx.AsyncClient) -> None:
    refused = await client.get("/v2/_catalog")
    assert 'scope="registry:catalog:*"' in refused.headers["www-authenticate"]
    granted = await answer_challenge(client, refused, ("ci", "s3cret"))
    token = {"Authorization": f"Bearer {granted.json()['token']}"}
    assert (await client.get("/v2/_catalog", headers=token)).json() == {"repositories": ["acme/app"]}


async def test_without_accounts_no_token_is_asked_for(tmp_path: Path) -> None:
    registry = Registry(tmp_path, host="registry.example")
    registry.publish("app", "1.0.0")
    async with open_client(registry) as client:
        assert (await client.get("/v2/")).status_code == 200
        assert (await client.post("/v2/app/blobs/uploads/")).status_code == 202
