"""An open page follows what happens without taking anything from the person who reads and writes there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.sandbox.github.conftest import Stage, stage

pytestmark = pytest.mark.browser

LONG = "<details><summary>Plan</summary>\n\nto create\n\n</details>\n\n" + "filler\n\n" * 60
HOSTILE = (
    '<img src=x onerror="document.title=1"><script>document.title=2</script><div id="mergebox">gone</div>'
)


@pytest.fixture
async def github(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path / "github") as made:
        yield made


async def test_news_come_in_while_somebody_reads_and_writes(github: Stage, browser: Browser) -> None:
    await github.pull()
    actions = github.github.actions
    actions.comment("olivia", "acme/shop", 1, LONG)
    async with await browser.new_context() as context:
        page = await context.new_page()
        await page.goto(f"{github.base}/acme/shop/pull/1")
        await page.get_by_text("Plan", exact=True).click()
        box = page.get_by_label("Comment as rafael")
        await box.fill("half a thou")
        actions.comment("olivia", "acme/shop", 1, "**news** " + HOSTILE)
        await expect(page.locator("article.comment strong").filter(has_text="news")).to_be_visible()
        await expect(page.get_by_text("to create")).to_be_visible()
        await expect(box).to_have_value("half a thou")
        await expect(box).to_be_focused()
        await expect(page.locator("#mergebox")).to_have_count(1)
        assert "promote dev" in await page.title()
        await the_review_is_of_what_is_shown(github, page)


async def the_review_is_of_what_is_shown(github: Stage, page: Page) -> None:
    """A push comes in too; once the page shows it, an approval is of the new head."""
    head = await github.branch("promote", {"env/dev/values.yaml": b"image:\n  tag: 1.2.0\n"})
    await expect(page.get_by_role("link", name="Commits 2")).to_be_visible()
    await expect(page.locator("#discuss input[name=head]")).to_have_value(head)
    await page.get_by_role("button", name="Approve").click()
    await expect(page.locator("article.review")).to_contain_text("half a thou")


async def test_without_javascript_everything_works(github: Stage, browser: Browser) -> None:
    await github.pull()
    async with await browser.new_context(java_script_enabled=False) as context:
        page = await context.new_page()
        await page.goto(f"{github.base}/acme/shop/pull/1")
        await page.locator("details.menu summary").click()
        await page.locator("details.menu").get_by_role("button", name="olivia").click()
        await page.get_by_label("Comment as olivia").fill("Fine.")
        await page.get_by_role("button", name="Approve").click()
        await page.get_by_role("button", name="Merge pull request").click()
        await expect(page.locator("#merged")).to_contain_text("olivia merged this into main")


async def test_it_can_be_read_on_a_phone_in_the_dark(github: Stage, browser: Browser) -> None:
    await github.pull()
    wide = (
        "| "
        + " | ".join(["column"] * 20)
        + " |\n|"
        + " --- |" * 20
        + f"\n\n`{'x' * 300}`\n\n```\n{'y' * 300}\n```"
    )
    github.github.actions.comment("olivia", "acme/shop", 1, wide)
    async with await browser.new_context(
        viewport={"width": 390, "height": 800}, color_scheme="dark"
    ) as context:
        page = await context.new_page()
        for path in ("", "/acme/shop", "/acme/shop/pulls", "/acme/shop/pull/1", "/acme/shop/pull/1/files"):
            await page.goto(github.base + path)
            assert await page.evaluate("document.documentElement.scrollWidth") <= 390, path
        colour = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert colour == "rgb(17, 21, 27)"
