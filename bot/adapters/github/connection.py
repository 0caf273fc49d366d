"""Requests to GitHub's REST API: who signs them, how they are paced, paged, and what their failures mean."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TypeVar
from urllib.parse import parse_qsl, quote, urlsplit

import httpx
from githubkit import AppAuthStrategy, GitHub, UnauthAuthStrategy
from githubkit.cache import MemCacheStrategy
from githubkit.config import get_config
from githubkit.exception import RequestError, RequestFailed, RequestTimeout

from bot.adapters.github.errors import NotFound, RateLimited, Unanswered, Unauthorized, describe, translate
from bot.adapters.github.pacer import Pacer
from bot.adapters.github.tokens import Scope, Tokens
from bot.payloads.reading import Node, read_json
from bot.ports import Clock, TerminalError

_API_VERSION = "2022-11-28"
_MOST_PAGES = 60
_MOST_PAGES_UNTIL = 1000
_FRESH_READS = (0.2, 0.5, 1.0, 2.0)
"""Seconds between reads of something that GitHub has just created but does not show everywhere yet."""

Query = Mapping[str, str | int]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GitHubSettings:
    """Where GitHub is and who we are there.

    `api_url` is that of the REST API (`https://api.github.com/`, for GitHub Enterprise Server
    `https://HOST/api/v3/`), `web_url` that of pages and git. `write_interval` is the pause in seconds between two
    creations of one installation.
    """

    app_id: int
    private_key: str = field(repr=False)
    api_url: str = "https://api.github.com/"
    web_url: str = "https://github.com/"
    timeout: float = 30.0
    write_interval: float = 1.0
    concurrent_writes: int = 8


def join_path(*parts: str | int) -> str:
    """A relative URL path whose parts are quoted whole, slashes included.

    Raises TerminalError for a part that would lead elsewhere: githubkit and httpx pass `..` on as it is.
    """
    for part in parts:
        if str(part) in {"", ".", ".."}:
            raise TerminalError(
                f"{'/'.join(map(str, parts))!r} cannot be asked of GitHub: a part is empty or dots"
            )
    return "/".join(quote(str(part), safe="") for part in parts)


@dataclass(frozen=True, slots=True)
class _Call:
    """One request without its signature."""

    method: str
    path: str
    query: Query | None = None
    body: object = None


class _Kept(httpx.AsyncBaseTransport):
    """Sends by one client that outlives the short ones that githubkit makes for each task context."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._client.send(request, stream=True, auth=None, follow_redirects=False)
        # githubkit reads both as whole numbers and breaks on anything else, such as a proxy's HTTP date.
        for name in ("retry-after", "x-ratelimit-reset"):
            text = response.headers.get(name, "0")
            if not (text.isascii() and text.isdigit()):
                del response.headers[name]
        return response


class Connection:
    """One GitHub, signed in as our App; used within `async with`, on one event loop."""

    def __init__(self, settings: GitHubSettings, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock
        self._base = settings.api_url.rstrip("/") + "/"
        self._client = httpx.AsyncClient(timeout=settings.timeout, limits=httpx.Limits(max_connections=50))
        config = get_config(
            base_url=self._base,
            auto_retry=False,
            http_cache=False,
            follow_redirects=True,
            timeout=settings.timeout,
            user_agent="lockstep",
            async_transport=_Kept(self._client),
            # githubkit's default cache is one for the whole process, keyed by the App's id alone.
            cache_strategy=MemCacheStrategy(),
        )
        self._as_app = GitHub(AppAuthStrategy(settings.app_id, settings.private_key), config=config)
        self._as_installation = GitHub(UnauthAuthStrategy(), config=config)
        self._pacers: dict[int, Pacer] = {}
        self.remaining: dict[str, int] = {}
        """Requests that GitHub lets us make until its next reset, by installation (`app`: as the App itself)."""
        self.tokens = Tokens(self.call_as_app, join_path, clock.now)

    async def __aenter__(self) -> Connection:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    # -- reading -------------------------------------------------------------------------------------------

    async def get(self, scope: Scope, path: str, query: Query | None = None) -> Node:
        """One answer; raises NotFound if GitHub says 404."""
        return _read(await self._send(scope, _Call("GET", path, query)))

    async def find(self, scope: Scope, path: str, query: Query | None = None) -> Node | None:
        """One answer, None if GitHub says 404."""
        try:
            return await self.get(scope, path, query)
        except NotFound:
            return None

    async def get_fresh(self, scope: Scope, path: str) -> Node:
        """One answer about something whose id GitHub has just returned: a 404 is asked again for some seconds."""
        for pause in _FRESH_READS:
            found = await self.find(scope, path)
            if found is not None:
                return found
            await asyncio.sleep(pause)
        return await self.get(scope, path)

    async def list_all(
        self,
        scope: Scope | None,
        path: str,
        query: Query | None = None,
        *,
        key: str = "",
        until: Callable[[Node], bool] | None = None,
    ) -> list[Node]:
        """All pages of a list, which stands under `key` if the answer is an object; a None scope asks as the App.

        `until` ends the reading before the first entry for which it holds. Raises TerminalError for a list of more
        than 60 pages of 100 (1,000 with `until`).
        """
        entries: list[Node] = []
        page: Query = {"per_page": 100, **(query or {})}
        pages = _MOST_PAGES if until is None else _MOST_PAGES_UNTIL
        for _ in range(pages):
            response = await self._send(scope, _Call("GET", path, page))
            root = _read(response)
            for item in root.items(key) if key else root.items():
                if until is not None and until(item):
                    return entries
                entries.append(item)
            following = response.links.get("next", {}).get("url", "")
            if not following:
                return entries
            # Only the query of GitHub's link is taken, so that a link can never lead a token elsewhere.
            page = dict(parse_qsl(urlsplit(following).query))
        raise TerminalError(f"GET {path} has more than {pages} pages; that is more than is read")

    # -- writing -------------------------------------------------------------------------------------------

    async def write(
        self, scope: Scope, method: str, path: str, body: object = None, *, creates: bool = False
    ) -> Node:
        """Send a change when it is its turn; `creates` tells GitHub's stricter limit applies.

        Raises Unanswered if it may have been done, Rejected if GitHub says no.
        """
        pacer = self._pacer(await self.tokens.installation_of(scope))
        async with pacer.turn(creates=creates):
            return _read(await self._send(scope, _Call(method, path, body=body)))

    async def write_once(
        self,
        write: Callable[[], Awaitable[T]],
        look: Callable[[], Awaitable[T | None]],
    ) -> T:
        """Do a write; if its answer is lost, what `look` finds counts as its answer."""
        try:
            return await write()
        except Unanswered:
            found = await look()
            if found is None:
                raise
            return found

    # -- as the App itself ---------------------------------------------------------------------------------

    async def call_as_app(self, method: str, path: str, body: object = None) -> Node:
        """One request signed by the App's key; these are neither paced nor repeated."""
        return _read(await self._send(None, _Call(method, path, body=body)))

    # -- underneath ----------------------------------------------------------------------------------------

    async def _send(self, scope: Scope | None, call: _Call) -> httpx.Response:
        response = await self._send_signed(scope, call)
        left = response.headers.get("x-ratelimit-remaining", "")
        if left.isascii() and left.isdigit():
            who = "app" if scope is None else str(await self.tokens.installation_of(scope))
            self.remaining[who] = int(left)
        return response

    async def _send_signed(self, scope: Scope | None, call: _Call) -> httpx.Response:
        if scope is None:
            return await self._request(self._as_app, call, token="")
        token = await self._token(scope)
        try:
            return await self._request(self._as_installation, call, token=token)
        except Unauthorized:
            # A token may be revoked before it expires; nothing was done, so a fresh one is tried once.
            await self.tokens.drop(scope, token)
        except NotFound:
            self.tokens.forget_installation(scope)
            raise
        except RateLimited as error:
            # Going on after a refusal, reading or writing, is what gets an App banned.
            self._pacer(await self.tokens.installation_of(scope)).hold(error.retry_after or 0.0)
            raise
        fresh = await self._token(scope)
        return await self._request(self._as_installation, call, token=fresh)

    def _pacer(self, installation: int) -> Pacer:
        pacer = self._pacers.get(installation)
        if pacer is None:
            pacer = Pacer(interval=self.settings.write_interval, concurrent=self.settings.concurrent_writes)
            self._pacers[installation] = pacer
        return pacer

    async def _token(self, scope: Scope) -> str:
        try:
            return await self.tokens.token_for(scope)
        except NotFound:
            self.tokens.forget_installation(scope)
            raise

    async def _request(
        self, client: GitHub[AppAuthStrategy] | GitHub[UnauthAuthStrategy], call: _Call, *, token: str
    ) -> httpx.Response:
        headers = {"X-GitHub-Api-Version": _API_VERSION, "Accept": "application/vnd.github+json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        what = f"{call.method} /{call.path}"
        try:
            answer = await client.arequest(
                call.method,
                self._base + call.path,
                params=dict(call.query or {}),
                json=call.body,
                headers=headers,
            )
        except RequestFailed as error:
            raise translate(error.response.raw_response, now=self._clock.now()) from error
        except RequestTimeout as error:
            raise Unanswered(f"GitHub did not answer {what} within {self.settings.timeout:.0f} s") from error
        except RequestError as error:
            if not isinstance(error.exc, httpx.HTTPError):
                raise
            raise Unanswered(f"{what} did not reach GitHub at {self._base}: {error.exc}") from error
        response = answer.raw_response
        if response.status_code >= 300:
            raise translate(response, now=self._clock.now())
        return response


def _read(response: httpx.Response) -> Node:
    """The JSON of an answer, of which every value that is not as documented raises TerminalError when it is read."""
    asked = describe(response.request)

    def problem(path: str, message: str) -> Exception:
        place = f" at {path}" if path else ""
        return TerminalError(f"the answer to {asked} is not what GitHub documents{place}: {message}")

    if not response.content:
        return Node({}, "", problem)
    return read_json(response.content, problem)
