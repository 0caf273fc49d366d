"""Plain HTTP underneath registries and chart repositories: bounded, with its failures told apart by status."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType

import httpx

from bot.adapters.oci.manifests import MANIFEST_TYPES
from bot.ports import TerminalError, TransientError

_RETRY = 30.0
_RATE_RETRY = 60.0
_LONGEST_WAIT = 3600.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A response whose body was read within its cap; `url` is where it came from after redirects."""

    status: int
    headers: httpx.Headers
    body: bytes
    url: str


class Wire:
    """Sends requests, with and without verification of certificates; used within `async with`."""

    def __init__(self, *, concurrent: int, timeout: float) -> None:
        self._places = asyncio.Semaphore(concurrent)
        self._timeout = timeout
        self._stack = AsyncExitStack()
        self._clients: dict[bool, httpx.AsyncClient] = {}

    async def __aenter__(self) -> Wire:
        for insecure in (False, True):
            client = httpx.AsyncClient(
                timeout=self._timeout, verify=not insecure, follow_redirects=True, max_redirects=5
            )
            self._clients[insecure] = await self._stack.enter_async_context(client)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        self._clients = {}
        await self._stack.aclose()

    async def send(
        self,
        method: str,
        url: str,
        *,
        cap: int,
        insecure: bool,
        headers: Mapping[str, str],
        content: bytes | AsyncIterator[bytes] | None = None,
    ) -> Answer:
        """One answer of any status below 500 but 429; `content` is the body that is sent.

        Raises TransientError for the others and for a broken line, TerminalError for a body larger than `cap` bytes.
        httpx takes the `Authorization` header off when a registry redirects to the host of its blobs.
        """
        body = bytearray()
        try:
            async with (
                self._places,
                self._clients[insecure].stream(method, url, headers=headers, content=content) as response,
            ):
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > cap:
                        raise TerminalError(f"the answer to {method} {url} is larger than {cap} bytes")
        except httpx.HTTPError as error:
            what = str(error) or type(error).__name__
            raise TransientError(f"{method} {url} failed: {what}", retry_after=_RETRY) from error
        answer = Answer(response.status_code, response.headers, bytes(body), str(response.url))
        if answer.status == 429 or answer.status >= 500:
            default = _RATE_RETRY if answer.status == 429 else _RETRY
            raise TransientError(
                f"the server answered {answer.status} to {method} {url}",
                retry_after=_read_wait(answer.headers.get("retry-after", ""), default),
            )
        return answer

    @asynccontextmanager
    async def stream(
        self, url: str, *, insecure: bool, headers: dict[str, str]
    ) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """The status and the body of a GET, piece by piece; it takes no place, since what it is for takes one.

        Raises TransientError for a broken line.
        """
        try:
            async with self._clients[insecure].stream("GET", url, headers=headers) as response:
                yield response.status_code, response.aiter_bytes()
        except httpx.HTTPError as error:
            what = str(error) or type(error).__name__
            raise TransientError(f"GET {url} failed: {what}", retry_after=_RETRY) from error


def manifest_headers() -> dict[str, str]:
    """Headers of a request for a manifest of any type that we can read."""
    return {"Accept": ", ".join(MANIFEST_TYPES)}


def _read_wait(text: str, default: float) -> float:
    """Seconds of a `Retry-After`: a number, or a date (RFC 9110), but never more than an hour."""
    if text.isascii() and text.isdigit():
        return min(float(text), _LONGEST_WAIT)
    try:
        wait = (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return default
    return min(max(wait, 0.0), _LONGEST_WAIT)
