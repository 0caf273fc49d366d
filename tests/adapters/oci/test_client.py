"""Paging, tokens, limits and hostile answers, on responses written down here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
import respx

from bot.adapters.oci import OciRegistries
from bot.adapters.oci.references import Reference, is_loopback, parse_reference
from bot.adapters.oci.signing import parse_challenge
from bot.ports import TerminalError, TransientError
from tests.adapters.oci.registries import digest_of, signed_in

BASE = "https://reg.example/v2/acme/app"
REPOSITORY = "reg.example/acme/app"


@pytest.fixture
def wire() -> Iterator[respx.Router]:
    with respx.mock(assert_all_called=False) as router:
        yield router


@pytest.fixture
async def registry(wire: respx.Router) -> AsyncIterator[OciRegistries]:
    async with OciRegistries(signed_in(("bot", "pw"))) as registries:
        yield registries


def page(*tags: str, link: str = "") -> httpx.Response:
    headers = {"Link": f'<{link}>; rel="next"'} if link else {}
    return httpx.Response(200, json={"name": "acme/app", "tags": list(tags)}, headers=headers)


@pytest.mark.parametrize(
    "link",
    [
        pytest.param("/v2/acme/app/tags/list?last=b&n=1000", id="relative link"),
        pytest.param("https://reg.example/v2/acme/app/tags/list?last=b&n=1000", id="absolute link"),
        pytest.param("list?last=b&n=1000", id="link relative to the list"),
    ],
)
async def test_pages_are_followed_in_order(registry: OciRegistries, wire: respx.Router, link: str) -> None:
    wire.get(f"{BASE}/tags/list", params={"last": "b"}).mock(return_value=page("a"))
    wire.get(f"{BASE}/tags/list", params={"n": "1000"}).mock(return_value=page("c", "b", link=link))
    assert await registry.list_tags(REPOSITORY) == ("c", "b", "a")


async def test_an_empty_last_page_ends_the_list(registry: OciRegistries, wire: respx.Router) -> None:
    wire.get(f"{BASE}/tags/list", params={"last": "a"}).respond(json={"name": "acme/app", "tags": None})
    wire.get(f"{BASE}/tags/list").mock(return_value=page("a", link="?last=a"))
    assert await registry.list_tags(REPOSITORY) == ("a",)


async def test_null_tags_are_no_tags(registry: OciRegistries, wire: respx.Router) -> None:
    wire.get(f"{BASE}/tags/list").respond(json={"name": "acme/app", "tags": None})
    assert await registry.list_tags(REPOSITORY) == ()


@pytest.mark.parametrize(
    "link", ["https://evil.example/v2/x", "http://reg.example/v2/x", "https://reg.example:444/v2/x"]
)
async def test_a_link_to_another_host_is_not_followed(
    registry: OciRegistries, wire: respx.Router, link: str
) -> None:
    wire.get(f"{BASE}/tags/list").mock(return_value=page("a", link=link))
    with pytest.raises(TerminalError, match="is not followed"):
        await registry.list_tags(REPOSITORY)
    assert len(wire.calls) == 1


async def test_a_list_that_leads_back_to_itself_ends(registry: OciRegistries, wire: respx.Router) -> None:
    wire.get(f"{BASE}/tags/list").mock(return_value=page("a", link="/v2/acme/app/tags/list?n=1000"))
    with pytest.raises(TerminalError, match="does not end"):
        await registry.list_tags(REPOSITORY)


@pytest.mark.parametrize(("headers", "wait"), [({"Retry-After": "7"}, 7.0), ({}, 60.0)])
async def test_too_many_requests_say_when_to_come_back(
    registry: OciRegistries, wire: respx.Router, headers: dict[str, str], wait: float
) -> None:
    wire.get(f"{BASE}/tags/list").respond(429, headers=headers)
    with pytest.raises(TransientError) as caught:
        await registry.list_tags(REPOSITORY)
    assert caught.value.retry_after == wait


@pytest.mark.parametrize(
    "failure", [httpx.Response(502), httpx.ConnectError("refused"), httpx.ReadTimeout("slow")]
)
async def test_a_registry_that_is_away_is_transient(
    registry: OciRegistries, wire: respx.Router, failure: httpx.Response | Exception
) -> None:
    route = wire.get(f"{BASE}/tags/list")
    if isinstance(failure, Exception):
        route.mock(side_effect=failure)
    else:
        route.mock(return_value=failure)
    with pytest.raises(TransientError, match="tags/list"):
        await registry.list_tags(REPOSITORY)


def challenge(realm: str) -> httpx.Response:
    header = f'Bearer realm="{realm}",service="reg",scope="repository:acme/app:pull"'
    return httpx.Response(401, headers={"WWW-Authenticate": header})


async def test_concurrent_requests_share_one_token(registry: OciRegistries, wire: respx.Router) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        is_signed = request.headers.get("authorization") == "Bearer t1"
        return page("a") if is_signed else challenge("https://auth.example/token")

    wire.get(f"{BASE}/tags/list").mock(side_effect=answer)
    tokens = wire.get("https://auth.example/token").respond(json={"token": "t1", "expires_in": 300})
    lists = await asyncio.gather(*(registry.list_tags(REPOSITORY) for _ in range(10)))
    assert lists == [("a",)] * 10
    assert tokens.call_count == 1
    request = tokens.calls[0].request
    assert dict(request.url.params) == {"service": "reg", "scope": "repository:acme/app:pull"}
    assert request.headers["authorization"] == httpx.BasicAuth("bot", "pw")._auth_header


async def test_a_token_that_the_registry_no_longer_takes_is_replaced(
    registry: OciRegistries, wire: respx.Router
) -> None:
    accepted = {"Bearer t1"}

    def answer(request: httpx.Request) -> httpx.Response:
        is_signed = request.headers.get("authorization") in accepted
        return page("a") if is_signed else challenge("https://auth.example/token")

    wire.get(f"{BASE}/tags/list").mock(side_effect=answer)
    wire.get("https://auth.example/token").mock(
        side_effect=[
            httpx.Response(200, json={"token": "t1"}),
            httpx.Response(200, json={"access_token": "t2"}),
        ]
    )
    assert await registry.list_tags(REPOSITORY) == ("a",)
    accepted.clear()
    accepted.add("Bearer t2")
    assert await registry.list_tags(REPOSITORY) == ("a",)


async def test_a_registry_that_wants_a_token_for_each_purpose_gets_two(
    registry: OciRegistries, wire: respx.Router
) -> None:
    """As Azure's: `metadata_read` for tags, `pull` for manifests."""
    manifest = json.dumps({"schemaVersion": 2}).encode()
    digest = digest_of(manifest)

    def answer(request: httpx.Request) -> httpx.Response:
        action = "metadata_read" if "/tags/" in request.url.path else "pull"
        if request.headers.get("authorization") != f"Bearer {action}":
            header = f'Bearer realm="https://reg.example/t",service="reg.example",scope="repository:acme/app:{action}"'
            return httpx.Response(401, headers={"WWW-Authenticate": header})
        if action == "metadata_read":
            return page("1")
        return httpx.Response(200, content=manifest, headers={"Docker-Content-Digest": digest})

    def token(request: httpx.Request) -> httpx.Response:
        action = request.url.params["scope"].rpartition(":")[2]
        return httpx.Response(200, json={"access_token": action, "expires_in": 300})

    wire.route(url__startswith=BASE).mock(side_effect=answer)
    tokens = wire.get("https://reg.example/t").mock(side_effect=token)
    for _ in range(3):
        assert await registry.list_tags(REPOSITORY) == ("1",)
        assert await registry.find_image(REPOSITORY, "1") is not None
    assert tokens.call_count == 2


async def test_a_login_that_was_renewed_is_tried_where_the_old_one_is_refused(wire: respx.Router) -> None:
    """As Amazon's: a password for Basic that ends after half a day."""
    passwords = iter(["old", "new"])

    async def login(repository: str) -> tuple[str, str]:
        return "AWS", next(passwords)

    taken = {"old"}

    def answer(request: httpx.Request) -> httpx.Response:
        signed = [httpx.BasicAuth("AWS", password)._auth_header for password in taken]
        if request.headers.get("authorization") in signed:
            return page("a")
        return httpx.Response(401, headers={"WWW-Authenticate": 'Basic realm="ecr"'})

    wire.get(f"{BASE}/tags/list").mock(side_effect=answer)
    async with OciRegistries(login) as registry:
        assert await registry.list_tags(REPOSITORY) == ("a",)
        taken = {"new"}
        assert await registry.list_tags(REPOSITORY) == ("a",)


async def test_a_registry_that_has_enough_says_until_when(
    registry: OciRegistries, wire: respx.Router
) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(minutes=10), usegmt=True)
    route = wire.get(f"{BASE}/tags/list")
    for header, least, most in (
        ("17", 17, 17),
        (later, 500, 600),
        ("soon", 60, 60),
        ("99999999", 3600, 3600),
    ):
        route.mock(return_value=httpx.Response(429, headers={"Retry-After": header}))
        with pytest.raises(TransientError) as caught:
            await registry.list_tags(REPOSITORY)
        assert caught.value.retry_after is not None
        assert least <= caught.value.retry_after <= most


@pytest.mark.parametrize("realm", ["http://auth.example/token", "ftp://auth.example/", "/token", ""])
async def test_credentials_go_to_https_realms_only(
    registry: OciRegistries, wire: respx.Router, realm: str
) -> None:
    wire.get(f"{BASE}/tags/list").mock(return_value=challenge(realm))
    with pytest.raises(TerminalError, match="https addresses only"):
        await registry.list_tags(REPOSITORY)
    assert len(wire.calls) == 1


async def test_a_manifest_that_is_not_its_digest_is_refused(
    registry: OciRegistries, wire: respx.Router
) -> None:
    digest = digest_of(b"what was promised")
    wire.head(f"{BASE}/manifests/1").respond(headers={"Docker-Content-Digest": digest})
    wire.get(f"{BASE}/manifests/{digest}").respond(json={"schemaVersion": 2})
    with pytest.raises(TerminalError, match="is not what its digest says"):
        await registry.find_image(REPOSITORY, "1")


async def test_all_four_manifest_types_are_asked_for(registry: OciRegistries, wire: respx.Router) -> None:
    head = wire.head(f"{BASE}/manifests/1").respond(404)
    assert await registry.find_image(REPOSITORY, "1") is None
    accepted = head.calls[0].request.headers["accept"]
    assert all(
        word in accepted for word in ("index.v1", "image.manifest.v1", "manifest.list.v2", "manifest.v2")
    )


async def test_a_known_digest_costs_one_head(registry: OciRegistries, wire: respx.Router) -> None:
    manifest = json.dumps({"schemaVersion": 2, "annotations": {"a": "b"}}).encode()
    digest = digest_of(manifest)
    wire.head(url__startswith=f"{BASE}/manifests/").respond(headers={"Docker-Content-Digest": digest})
    read = wire.get(f"{BASE}/manifests/{digest}").respond(content=manifest)
    for tag in ("1", "2", "1"):
        facts = await registry.find_image(REPOSITORY, tag)
        assert facts is not None
        assert (facts.tag, facts.digest) == (tag, digest)
    assert read.call_count == 1


async def test_tags_that_are_never_moved_are_asked_for_once(
    registry: OciRegistries, wire: respx.Router
) -> None:
    manifest = json.dumps({"schemaVersion": 2}).encode()
    digest = digest_of(manifest)
    head = wire.head(f"{BASE}/manifests/1").respond(headers={"Docker-Content-Digest": digest})
    wire.get(f"{BASE}/manifests/{digest}").respond(content=manifest)
    first = await registry.find_image(REPOSITORY, "1", cache_by_tag=True)
    assert await registry.find_image(REPOSITORY, "1", cache_by_tag=True) == first
    assert head.call_count == 1
    assert await registry.find_image(REPOSITORY, "1") == first
    assert head.call_count == 2


async def test_a_registry_without_the_digest_header_is_read_whole(
    registry: OciRegistries, wire: respx.Router
) -> None:
    manifest = json.dumps({"schemaVersion": 2}).encode()
    wire.head(f"{BASE}/manifests/1").respond(200)
    wire.get(f"{BASE}/manifests/1").respond(content=manifest)
    wire.get(f"{BASE}/manifests/{digest_of(manifest)}").respond(content=manifest)
    facts = await registry.find_image(REPOSITORY, "1")
    assert facts is not None
    assert facts.digest == digest_of(manifest)


async def test_a_digest_that_is_none_never_becomes_an_address(
    registry: OciRegistries, wire: respx.Router
) -> None:
    manifest = json.dumps(
        {"config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": "../../x"}}
    )
    digest = digest_of(manifest.encode())
    wire.head(f"{BASE}/manifests/1").respond(headers={"Docker-Content-Digest": digest})
    wire.get(f"{BASE}/manifests/{digest}").respond(text=manifest)
    with pytest.raises(TerminalError, match=r"config\.digest: a digest was expected"):
        await registry.find_image(REPOSITORY, "1")


async def test_an_endless_manifest_is_given_up(registry: OciRegistries, wire: respx.Router) -> None:
    digest = digest_of(b"")
    wire.head(f"{BASE}/manifests/1").respond(headers={"Docker-Content-Digest": digest})
    wire.get(f"{BASE}/manifests/{digest}").respond(content=b" " * (4 * 1024 * 1024 + 1))
    with pytest.raises(TerminalError, match="larger than"):
        await registry.find_image(REPOSITORY, "1")


@pytest.mark.parametrize(
    ("text", "host", "path"),
    [
        ("nginx", "registry-1.docker.io", "library/nginx"),
        ("acme/app", "registry-1.docker.io", "acme/app"),
        ("index.docker.io/acme/app", "registry-1.docker.io", "acme/app"),
        ("ghcr.io/Acme-Corp/App", "ghcr.io", "acme-corp/app"),
        ("localhost/app", "localhost", "app"),
        ("reg.example:5000/a/b/c", "reg.example:5000", "a/b/c"),
        ("oci://reg.example/charts/app", "reg.example", "charts/app"),
        ("[::1]:5000/app", "[::1]:5000", "app"),
    ],
)
def test_where_a_name_leads(text: str, host: str, path: str) -> None:
    assert parse_reference(text) == Reference(host, path)


@pytest.mark.parametrize(
    "text", ["", "https://reg.example/app", "reg.example/", "reg.example/app:1", "a//b", "../x", "a@b/c"]
)
def test_what_names_no_repository(text: str) -> None:
    with pytest.raises(TerminalError, match="names no image repository"):
        parse_reference(text)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1:5000", True),
        ("localhost", True),
        ("[::1]:5000", True),
        ("10.0.0.1", False),
        ("127.0.0.1.evil.example", False),
    ],
)
def test_which_hosts_are_this_machine(host: str, *, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_a_challenge_is_read_with_quotes_and_without() -> None:
    parsed = parse_challenge('Bearer realm="https://a/t?x=1,2",service=reg, scope="repository:a/b:pull,push"')
    assert parsed.scheme == "bearer"
    assert parsed.parameters == {
        "realm": "https://a/t?x=1,2",
        "service": "reg",
        "scope": "repository:a/b:pull,push",
    }
