"""Requests to addresses of a pipeline, against a server of this machine."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from bot.adapters.http import HttpClient, SystemDns
from bot.ports import Http, HttpRequest, TerminalError, TransientError
from bot.sandbox.serving import Listener
from tests.adapters.certificates import make_certificate


async def echo(request: Request) -> Response:
    return JSONResponse(
        {
            "method": request.method,
            "url": str(request.url),
            "headers": dict(request.headers),
            "body": (await request.body()).decode(),
        },
        headers={"X-One": "1"},
    )


async def redirect(request: Request) -> Response:
    status = int(request.query_params.get("status", "302"))
    return RedirectResponse(request.query_params["to"], status_code=status)


async def large(request: Request) -> Response:
    return Response(b"a" * (2 * 1024 * 1024 + int(request.query_params["more"])))


async def slow(request: Request) -> Response:
    await asyncio.sleep(30)
    return Response()


APP = Starlette(
    routes=[
        Route("/echo", echo, methods=["GET", "POST"]),
        Route("/redirect", redirect, methods=["GET", "POST"]),
        Route("/large", large),
        Route("/slow", slow),
    ]
)


@pytest.fixture
async def server() -> AsyncIterator[Listener]:
    listener = Listener()
    await listener.start(APP)
    yield listener
    await listener.stop()


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    async with HttpClient() as client:
        yield client


def said(body: bytes) -> dict[str, object]:
    found = json.loads(body)
    assert isinstance(found, dict)
    return found


async def test_a_request_arrives_as_it_was_written(server: Listener, http: Http) -> None:
    response = await http.send(
        HttpRequest(
            "POST",
            f"http://localhost:{server.port}/echo?a=1#part",
            headers=(("X-Token", "t"), ("Content-Type", "application/json")),
            query=(("b", "x y"), ("b", "&")),
            body=b'{"a": 1}',
        )
    )
    assert response.status == 200
    assert ("x-one", "1") in [(name.lower(), value) for name, value in response.headers]
    heard = said(response.body)
    assert heard["method"] == "POST"
    assert heard["url"] == f"http://localhost:{server.port}/echo?a=1&b=x+y&b=%26"
    assert heard["body"] == '{"a": 1}'
    headers = heard["headers"]
    assert isinstance(headers, dict)
    assert headers["x-token"] == "t"
    assert headers["host"] == f"localhost:{server.port}"


async def test_any_status_is_an_answer(server: Listener, http: Http) -> None:
    assert (await http.send(HttpRequest("GET", f"{server.url}/nothing"))).status == 404


async def test_a_redirect_is_followed_and_turns_a_post_into_a_get(server: Listener, http: Http) -> None:
    url = f"{server.url}/redirect?to=/echo"
    response = await http.send(HttpRequest("POST", url, headers=(("Authorization", "t"),), body=b"x"))
    heard = said(response.body)
    assert (heard["method"], heard["body"]) == ("GET", "")
    assert "authorization" in str(heard["headers"])


async def test_a_redirect_that_keeps_the_method_keeps_the_body(server: Listener, http: Http) -> None:
    response = await http.send(HttpRequest("POST", f"{server.url}/redirect?to=/echo&status=307", body=b"x"))
    assert said(response.body)["body"] == "x"


async def test_credentials_do_not_follow_to_another_host(server: Listener, http: Http) -> None:
    url = f"{server.url}/redirect?to=http://localhost:{server.port}/echo"
    response = await http.send(HttpRequest("GET", url, headers=(("Authorization", "t"), ("X-Kept", "k"))))
    headers = str(said(response.body)["headers"])
    assert "authorization" not in headers
    assert "x-kept" in headers


async def test_redirects_end(server: Listener, http: Http) -> None:
    with pytest.raises(TerminalError, match="redirected more than 9 times"):
        await http.send(HttpRequest("GET", f"{server.url}/redirect?to={loop(server)}"))


def loop(server: Listener) -> str:
    """A chain of redirects that is longer than anybody follows."""
    target = f"{server.url}/echo"
    for _ in range(12):
        target = f"{server.url}/redirect?to={quote(target, safe='')}"
    return quote(target, safe="")


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[fe80::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[fd00:ec2::254]/",
        "http://[64:ff9b::169.254.169.254]/",
        "http://100.100.100.200/latest/meta-data/",
        "http://192.0.0.192/opc/v2/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
    ],
)
async def test_link_local_targets_are_refused_in_every_spelling(http: Http, url: str) -> None:
    with pytest.raises(TerminalError, match="link-local"):
        await http.send(HttpRequest("GET", url))


async def test_a_redirect_to_a_link_local_target_is_refused(server: Listener, http: Http) -> None:
    with pytest.raises(TerminalError, match="link-local"):
        await http.send(HttpRequest("GET", f"{server.url}/redirect?to=http://169.254.169.254/"))


@pytest.mark.parametrize(
    "url", ["ftp://example.org/", "file:///etc/passwd", "example.org", "", "http://", "http://a:b:c/"]
)
async def test_what_is_no_address_is_refused(http: Http, url: str) -> None:
    with pytest.raises(TerminalError):
        await http.send(HttpRequest("GET", url))


async def test_an_unknown_method_is_refused(http: Http) -> None:
    with pytest.raises(TerminalError, match="is no HTTP method"):
        await http.send(HttpRequest("GET / HTTP/1.1\r\nX:", "http://localhost/"))


async def test_a_body_is_bounded(server: Listener, http: Http) -> None:
    assert len((await http.send(HttpRequest("GET", f"{server.url}/large?more=0"))).body) == 2 * 1024 * 1024
    with pytest.raises(TerminalError, match="larger than"):
        await http.send(HttpRequest("GET", f"{server.url}/large?more=1"))


async def test_a_slow_target_is_transient(server: Listener, http: Http) -> None:
    with pytest.raises(TransientError, match=r"did not end within 0\.2 s"):
        await http.send(HttpRequest("GET", f"{server.url}/slow", timeout=0.2))


async def test_a_target_that_is_not_there_is_transient_and_its_query_stays_private(http: Http) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(TransientError) as caught:
        await http.send(HttpRequest("GET", f"http://user:pw@127.0.0.1:{port}/x?token=secret"))
    assert f"http://127.0.0.1:{port}/x" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "pw" not in str(caught.value)


async def test_localhost_resolves_and_nonsense_does_not() -> None:
    found = await SystemDns().resolve("localhost")
    assert "127.0.0.1" in found[1:] or "::1" in found[1:]
    assert await SystemDns().resolve("no..such") == ()
    assert await SystemDns().resolve("a" * 300) == ()


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for localhost alone, signed by itself, and its key."""
    return make_certificate(tmp_path)


@pytest.fixture
async def tls_port(certificate: tuple[Path, Path]) -> AsyncIterator[int]:
    """A server that answers 200 to anybody over TLS."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_certificates_are_checked_against_the_name_although_an_address_is_connected_to(
    tls_port: int, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    async with HttpClient() as http:
        assert (await http.send(HttpRequest("GET", f"https://localhost:{tls_port}/"))).status == 200
        with pytest.raises(TransientError, match="certificate"):
            await http.send(HttpRequest("GET", f"https://127.0.0.1:{tls_port}/"))
        insecure = HttpRequest("GET", f"https://127.0.0.1:{tls_port}/", insecure=True)
        assert (await http.send(insecure)).status == 200


async def test_an_unknown_authority_is_not_trusted(tls_port: int) -> None:
    async with HttpClient() as http:
        with pytest.raises(TransientError, match="certificate"):
            await http.send(HttpRequest("GET", f"https://localhost:{tls_port}/"))
