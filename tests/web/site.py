"""The bot's pages on a simulated GitHub: real sign-in, real permissions, a real store, promotions made by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from starlette.applications import Starlette

from bot.adapters.config import DirectorySource
from bot.adapters.git import GitMirror
from bot.adapters.github.app import GitHubApp
from bot.adapters.github.connection import GitHubSettings
from bot.adapters.github.sign_in import GitHubSignIn, OAuthClient
from bot.adapters.http import HttpClient
from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.app import load
from bot.domain.github import Repository
from bot.domain.promotion import Promotion, Target
from bot.domain.review import Preview
from bot.sandbox.github.app import GitHub
from bot.sandbox.github.provisioning import AppCredentials, NewApp
from bot.sandbox.serving import Listener
from bot.web.access import Access
from bot.web.api import Api
from bot.web.dashboard import Dashboard
from bot.web.reading import Reading
from bot.web.rendering import Renderer
from bot.web.server import make_app
from bot.web.session import Cookies
from bot.web.sign_in import SigningIn
from bot.web.webhooks import Webhooks
from bot.workflow.configuration import Configuration
from bot.workflow.snapshots import Gatherer
from tests.reports import views

OPERATIONS = "acme/operations"
_ROOT = Path(__file__).parents[2]


@dataclass
class Hands:
    """A clock that is turned by hand."""

    time: datetime

    def now(self) -> datetime:
        return self.time

    def turn(self, **by: float) -> None:
        self.time += timedelta(**by)


@dataclass
class Site:
    """The pages at `url`, and everything behind them."""

    url: str
    app: Starlette
    github: GitHub
    github_url: str
    store: DatabaseStore
    clock: Hands
    credentials: AppCredentials
    dashboard: Dashboard

    @property
    def target(self) -> Target:
        """Where the promotions of the operations repository go."""
        return Target(f"{self.github_url}/{OPERATIONS}.git", "main")

    def browser(self) -> httpx.AsyncClient:
        """A new browser for the bot's pages, with cookies of its own."""
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url=self.url)

    async def agree(self, address: str, login: str) -> str:
        """What a person does at GitHub: be somebody and press the button; the address that leads back."""
        async with httpx.AsyncClient() as browser:
            await browser.post(f"{self.github_url}/_pages/user", data={"user": login})
            answer = await browser.post(address)
        return answer.headers["location"]

    async def sign_in(self, browser: httpx.AsyncClient, login: str, path: str = "/") -> httpx.Response:
        """Open a page, sign in as somebody, and come back to where that leads."""
        asked = await browser.get(path)
        begun = await browser.get(asked.headers["location"])
        back = await browser.get(await self.agree(begun.headers["location"], login))
        return back if back.status_code != 302 else await browser.get(back.headers["location"])

    async def put(self, promotion: Promotion, preview: Preview | None = None) -> Promotion:
        """Remember a promotion with its Freight and preview; it goes to the operations repository."""
        for freight in (views.OLD, views.NEW):
            await self.store.add_freight(freight)
        target = self.target if promotion.target is not None else None
        kept = replace(promotion, target=target)
        assert await self.store.create_promotion(kept)
        if preview is not None:
            await self.store.save_preview(kept.id, kept.preview, replace(preview, target=self.target))
        return kept


@asynccontextmanager
async def open_site(directory: Path, url: str = "http://bot.example") -> AsyncIterator[Site]:
    """GitHub on a loopback port with the demo's people, and the pages of a bot that is its App."""
    listener = Listener()
    github = GitHub(directory / "github", base_url=listener.url)
    await listener.start(github.asgi)
    await github.start()
    try:
        credentials = _set_up(github, f"{url}/sign-in/callback")
        async with _open_pages(directory, url, listener.url, credentials) as (store, clock, dashboard):
            pages = make_site_app(store, dashboard)
            yield Site(url, pages, github, listener.url, store, clock, credentials, dashboard)
    finally:
        await github.stop()
        await listener.stop()


@asynccontextmanager
async def _open_pages(
    directory: Path, url: str, github_url: str, credentials: AppCredentials
) -> AsyncIterator[tuple[DatabaseStore, Hands, Dashboard]]:
    """The pages over real adapters; the clock alone is turned by hand."""
    api, web, key = f"{github_url}/api/v3/", f"{github_url}/", credentials.private_key_pem
    clock, vault = Hands(datetime.now(UTC)), KeyFileVault(directory / "vault.key")
    store = open_store(f"sqlite:///{directory / 'lockstep.db'}", vault)
    settings = GitHubSettings(credentials.app_id, key, api, web)
    async with GitHubApp(settings, clock) as app, HttpClient() as http:
        configuration = Configuration(DirectorySource(_ROOT / "config"), store, load)
        await configuration.start()
        git = GitMirror(directory / "mirrors", app.token_for)
        gatherer = Gatherer(store, git, app, clock, configuration)
        cookies = Cookies(vault, clock, secure=url.startswith("https://"))
        renderer = Renderer("")
        callback = f"{url}/sign-in/callback"
        client = OAuthClient(credentials.client_id, credentials.client_secret, callback, api, web)
        yield (
            store,
            clock,
            Dashboard(
                Reading(store, app, clock, configuration, gatherer, Repository("acme", "operations")),
                Access(app, clock),
                cookies,
                SigningIn(GitHubSignIn(client, http), cookies, renderer, ""),
                renderer,
            ),
        )
    store.close()


def make_site_app(store: DatabaseStore, dashboard: Dashboard | None) -> Starlette:
    """The bot's web application with, or without, pages."""

    async def ready() -> str:
        return ""

    return make_app(Webhooks(store, lambda: None, ()), Api(store, ""), ready, dashboard)


def _set_up(github: GitHub, callback: str) -> AppCredentials:
    permissions: Mapping[str, str] = {"contents": "write", "pull_requests": "write", "metadata": "read"}
    github.create_organisation("acme", "Acme")
    github.create_repository("acme", "operations", {"README.md": b"# operations\n"})
    github.demo_cast("acme", ["operations"])
    app = NewApp("Lockstep", "acme", permissions, (), "", "hush", callback_urls=(callback,))
    credentials = github.register_app(app)
    github.install_app(credentials.app_id, "acme", ["operations"])
    return credentials
