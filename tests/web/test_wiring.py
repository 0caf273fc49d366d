"""The program has pages, and links to them, exactly when people can sign in."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from bot.app import open_lockstep
from bot.serving import make_dashboard
from bot.settings import Settings
from tests.reports import views
from tests.web.site import Site, make_site_app, open_site

ROOT = Path(__file__).parents[2]


def settings(site: Site, directory: Path, **more: str) -> Settings:
    return Settings.from_env(
        {
            "LOCKSTEP_DATA": str(directory),
            "LOCKSTEP_CONFIG": str(ROOT / "config"),
            "LOCKSTEP_GITHUB_URL": f"{site.github_url}/api/v3",
            "LOCKSTEP_APP_ID": str(site.credentials.app_id),
            "LOCKSTEP_PRIVATE_KEY": site.credentials.private_key_pem,
            "LOCKSTEP_WEBHOOK_SECRET": "hush",
            "LOCKSTEP_URL": "https://bot.example/lockstep",
            **more,
        }
    )


@pytest.mark.parametrize("client", [True, False], ids=["with the App's client", "without it"])
async def test_pages_and_links_come_together(tmp_path: Path, *, client: bool) -> None:
    async with open_site(tmp_path / "site") as site:
        more = {
            "LOCKSTEP_CLIENT_ID": site.credentials.client_id,
            "LOCKSTEP_CLIENT_SECRET": site.credentials.client_secret,
        }
        async with open_lockstep(settings(site, tmp_path / "data", **(more if client else {}))) as lockstep:
            page = lockstep.looks.reporter.page_of(views.promotion())
            dashboard = make_dashboard(lockstep)
            app = make_site_app(lockstep.store, dashboard)
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="https://bot.example"
            ) as browser:
                asked = await browser.get("/promotions/x")
                begun = await browser.get("/sign-in")
    if not client:
        assert (page, dashboard, asked.status_code) == ("", None, 404)
        return
    assert page == "https://bot.example/lockstep/promotions/staging.01jx.1101101"
    assert asked.headers["location"] == "/lockstep/sign-in?to=%2Fpromotions%2Fx"
    assert httpx.URL(begun.headers["location"]).params["redirect_uri"] == (
        "https://bot.example/lockstep/sign-in/callback"
    )
