"""The ports `Http` and `Dns`: requests to addresses that a pipeline names, and names to addresses.

Kargo's `http` step refuses link-local targets only (where cloud metadata services live), and so does this one, with
the metadata service's IPv6 address beside them. What is checked is the address that is connected to, not the name, so
that a name cannot change its meaning between check and use.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from types import TracebackType

import httpx

from bot.ports import HttpRequest, HttpResponse, TerminalError, TransientError

_BODY_CAP = 2 * 1024 * 1024
"""Kargo's limit for the body of a response."""

_MOST_REDIRECTS = 10
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})
_METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("fd00:ec2::254", "100.100.100.200", "192.0.0.192")
)
"""Metadata services outside of the link-local range: AWS by IPv6, Alibaba Cloud, Oracle Cloud."""
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
"""Addresses by which a network with NAT64 reaches IPv4 (RFC 6052); the last 32 bits are the IPv4 address."""
_PRIVATE_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})


class SystemDns:
    """Names by the resolver of this machine."""

    async def resolve(self, name: str) -> tuple[str, ...]:
        """Canonical name, then the addresses; empty if there are none. Raises TransientError if no server answers."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                name, None, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME
            )
        except socket.gaierror as error:
            if error.errno in {socket.EAI_NONAME, socket.EAI_NODATA}:
                return ()
            raise TransientError(f"{name[:253]!r} could not be resolved: {error.strerror}") from error
        except UnicodeError:
            # A label that is empty or too long is no name at all.
            return ()
        canonical = next((entry[3] for entry in found if entry[3]), name)
        return tuple(dict.fromkeys((canonical, *(str(entry[4][0]) for entry in found))))


class HttpClient:
    """Sends single requests; used within `async with`, on one event loop.

    `proxy` is used where a request names none; empty means that targets are connected to directly.
    """

    def __init__(self, *, proxy: str = "") -> None:
        self._proxy = proxy
        self._dns = SystemDns()
        self._clients: dict[tuple[bool, str], httpx.AsyncClient] = {}

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.aclose()

    async def send(self, request: HttpRequest) -> HttpResponse:
        """One response of any status, redirects followed; `timeout` is for all of it.

        Raises TransientError if the target cannot be reached in time, TerminalError for an address that is refused
        and for a body larger than 2 MiB.
        """
        if request.method.upper() not in _METHODS:
            raise TerminalError(f"{request.method[:20]!r} is no HTTP method")
        try:
            url = httpx.URL(request.url).copy_with(fragment=None)
        except (httpx.InvalidURL, UnicodeError) as error:
            # The address itself may hold a password, so only what is wrong with it is said.
            raise TerminalError(f"the address of the request cannot be read: {error}") from error
        for key, value in request.query:
            url = url.copy_add_param(key, value)
        try:
            async with asyncio.timeout(request.timeout):
                return await self._follow(request, url)
        except TimeoutError as error:
            raise TransientError(
                f"{request.method} {_show(url)} did not end within {request.timeout:g} s"
            ) from error

    async def _follow(self, request: HttpRequest, url: httpx.URL) -> HttpResponse:
        method, body, headers = request.method.upper(), request.body, request.headers
        for _ in range(_MOST_REDIRECTS):
            response = await self._send_once(request, method, url, headers, body)
            location = httpx.Headers(response.headers).get("location", "")
            if response.status not in {301, 302, 303, 307, 308} or not location:
                return response
            try:
                target = url.join(location)
            except (httpx.InvalidURL, UnicodeError) as error:
                raise TerminalError(
                    f"{_show(url)} redirects to {location[:200]!r}, which is no address"
                ) from error
            if (target.scheme, target.netloc) != (url.scheme, url.netloc):
                headers = tuple(item for item in headers if item[0].lower() not in _PRIVATE_HEADERS)
            if response.status in {301, 302, 303} and method not in {"GET", "HEAD"}:
                method, body = "GET", b""
            url = target
        raise TerminalError(
            f"{request.method} {_show(url)} was redirected more than {_MOST_REDIRECTS - 1} times"
        )

    async def _send_once(
        self,
        request: HttpRequest,
        method: str,
        url: httpx.URL,
        headers: tuple[tuple[str, str], ...],
        body: bytes,
    ) -> HttpResponse:
        if url.scheme not in {"http", "https"} or not url.host:
            raise TerminalError(f"{_show(url)} is no http or https address")
        proxy = request.proxy or self._proxy
        client = self._client(insecure=request.insecure, proxy=proxy)
        addresses = await self._addresses(url, resolve=not proxy)
        failure: httpx.HTTPError | None = None
        for address in addresses:
            built = client.build_request(
                method,
                url.copy_with(host=address) if address else url,
                headers=[
                    ("Host", url.netloc.decode()),
                    *(item for item in headers if item[0].lower() != "host"),
                ],
                content=body or None,
                # Certificates are still checked against the name that the pipeline gives.
                extensions={"sni_hostname": url.host} if address else {},
            )
            try:
                return await self._read(client, built, url)
            except httpx.ConnectError as error:
                failure = error
            except httpx.HTTPError as error:
                failure = error
                break
        what = str(failure) or type(failure).__name__
        raise TransientError(f"{method} {_show(url)} failed: {what}") from failure

    async def _read(self, client: httpx.AsyncClient, built: httpx.Request, url: httpx.URL) -> HttpResponse:
        response = await client.send(built, stream=True)
        try:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _BODY_CAP:
                    raise TerminalError(f"the body from {_show(url)} is larger than {_BODY_CAP} bytes")
        finally:
            await response.aclose()
        return HttpResponse(response.status_code, tuple(response.headers.multi_items()), bytes(body))

    async def _addresses(self, url: httpx.URL, *, resolve: bool) -> tuple[str, ...]:
        """Where to connect to, all of it allowed; an empty text means that the proxy finds out by the name."""
        literal = _parse_address(url.host)
        if literal is not None:
            found: tuple[str, ...] = (str(literal),)
        elif not resolve:
            return ("",)
        else:
            answers = await self._dns.resolve(url.host)
            found = tuple(text for text in answers if _parse_address(text) is not None)
            if not found:
                raise TransientError(f"{url.host!r} does not resolve to an address")
        for text in found:
            if _is_refused(text):
                raise TerminalError(
                    f"{_show(url)} leads to the link-local address {text}, where machines keep their own credentials;"
                    " such targets are refused"
                )
        return found

    def _client(self, *, insecure: bool, proxy: str) -> httpx.AsyncClient:
        client = self._clients.get((insecure, proxy))
        if client is None:
            try:
                client = httpx.AsyncClient(
                    # A private CA is named by SSL_CERT_FILE; proxies of the environment are left to the settings.
                    verify=False if insecure else httpx.create_ssl_context(trust_env=True),
                    proxy=proxy or None,
                    trust_env=False,
                    timeout=None,
                    # Connections are pooled by address; another name behind the same one needs its own handshake.
                    limits=httpx.Limits(max_keepalive_connections=0, max_connections=20),
                )
            except (ValueError, httpx.InvalidURL) as error:
                raise TerminalError(f"the proxy {proxy[:200]!r} is no address: {error}") from error
            self._clients[(insecure, proxy)] = client
        return client


def _parse_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


def _is_refused(text: str) -> bool:
    address = _parse_address(text)
    if address is None:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _TRANSLATED:
            inner = ipaddress.IPv4Address(address.packed[-4:])
        if inner is not None and (inner.is_link_local or inner in _METADATA):
            return True
    return address.is_link_local or address in _METADATA


def _show(url: httpx.URL) -> str:
    """An address without user, password and query, which may be secret."""
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))[:300]
