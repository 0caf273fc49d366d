"""The bot's own pages in a browser: they keep themselves fresh, fit a phone, and run no script but ours."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from bot.domain.promotion import Promotion, State, StepStatus
from bot.sandbox.serving import Listener
from tests.reports import views
from tests.web.site import Site, open_site

pytestmark = pytest.mark.browser

SOON = 8_000
"""Milliseconds in which an open page has asked again."""


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    listener = Listener()
    async with open_site(tmp_path, listener.url) as opened:
        await listener.start(opened.app)
        yield opened
        await listener.stop()


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A page in which every error of a script and every breach of the content policy fails the test.

    Statuses other than 200 are no errors here: a session may end, and the simulated GitHub has no icon.
    """
    async with await browser.new_context() as context:
        opened = await context.new_page()
        problems: list[str] = []
        opened.on("pageerror", lambda error: problems.append(str(error)))
        opened.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        yield opened
        assert [text for text in problems if not text.startswith("Failed to load resource")] == []


async def put_running(site: Site) -> Promotion:
    running = views.promotion(
        state=State.FULFILLING,
        running="fulfil",
        merge_commit=views.MERGE,
        reason="merged with every gate open",
    )
    kept = await site.put(running, views.preview())
    begun = views.run(
        "promote::apply-network", StepStatus.RUNNING, begun_at=site.clock.now(), finished_at=None
    )
    await site.store.begin_step(kept.id, begun)
    return kept


async def sign_in(page: Page, site: Site, path: str) -> None:
    await page.goto(f"{site.url}{path}")
    await page.get_by_role("button", name="Authorize as rafael").click()
    await expect(page).to_have_url(f"{site.url}{path}")
    # The address is there before the style sheet is.
    await page.wait_for_load_state("load")


async def test_an_open_page_shows_how_a_promotion_goes_on(site: Site, page: Page) -> None:
    kept = await put_running(site)
    await sign_in(page, site, f"/promotions/{kept.id}")
    step = page.get_by_role("region", name="Steps").locator("li").filter(has_text="apply-network")
    await expect(step).to_contain_text("running")
    await page.evaluate("window.sameDocument = true")
    patch = page.get_by_role("region", name="In the pull request").locator("details")
    await patch.locator("summary").click()
    done = views.run(
        "promote::apply-network",
        StepStatus.SUCCEEDED,
        "Apply complete",
        begun_at=site.clock.now() - timedelta(seconds=4),
        finished_at=site.clock.now(),
    )
    await site.store.finish_step(kept.id, done)
    await expect(step).to_contain_text("Apply complete", timeout=SOON)
    over = replace(kept, state=State.SUCCEEDED, running="", reason="", finished_at=site.clock.now())
    assert await site.store.save_promotion(over, expected=kept)
    await expect(page.get_by_role("heading", level=1)).to_contain_text("is in staging", timeout=SOON)
    assert await page.evaluate("window.sameDocument")
    assert await patch.get_attribute("open") is not None
    assert await page.locator("#state").get_attribute("data-every") == "0"


async def test_pages_fit_a_phone(site: Site, page: Page) -> None:
    kept = await put_running(site)
    await page.set_viewport_size({"width": 390, "height": 800})
    await sign_in(page, site, f"/promotions/{kept.id}")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    await page.get_by_role("link", name="Lockstep").click()
    await expect(page.get_by_role("article", name="staging")).to_contain_text("being carried out")
    await page.wait_for_load_state("load")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390


async def test_without_scripts_the_pages_are_all_there(site: Site, browser: Browser) -> None:
    kept = await put_running(site)
    async with await browser.new_context(java_script_enabled=False) as context:
        page = await context.new_page()
        await sign_in(page, site, f"/promotions/{kept.id}")
        await expect(page.get_by_role("region", name="Steps")).to_contain_text("running")
        done = views.run("promote::apply-network", StepStatus.SUCCEEDED, "Apply complete")
        await site.store.finish_step(kept.id, done)
        await expect(page.get_by_role("region", name="Steps")).to_contain_text("Apply complete", timeout=SOON)


async def test_somebody_who_signed_out_elsewhere_is_asked_again(site: Site, page: Page) -> None:
    kept = await put_running(site)
    await sign_in(page, site, f"/promotions/{kept.id}")
    site.clock.turn(hours=9)
    await expect(page.get_by_role("button", name="Authorize as rafael")).to_be_visible(timeout=SOON)
