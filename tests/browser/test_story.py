"""A person takes a release from the registry to prod with nothing but a browser."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from bot.sandbox.argocd import QUICK
from bot.sandbox.demo import Stagecraft, open_demo
from bot.sandbox.server import SandboxOptions

RELEASE = "1.1.0"
SOON = 10_000
"""Milliseconds in which the bot answers what a person did."""
ROLLED_OUT = 45_000
"""Milliseconds for Terraform, the sync, the settle time, and a Freight of the start that may be on its way."""

pytestmark = pytest.mark.browser


@dataclass
class Person:
    """Somebody at a browser, with the sandbox's pages before them."""

    page: Page
    craft: Stagecraft

    @property
    def pulls(self) -> str:
        return f"{self.craft.sandbox.github_url}/{self.craft.demo.repository}/pulls"

    @property
    def merge_box(self) -> Locator:
        return self.page.get_by_role("region", name="Merge", exact=True)

    async def be(self, login: str) -> None:
        """Choose in the header who to act as."""
        menu = self.page.locator("details.menu")
        await menu.locator("summary").click()
        await menu.get_by_role("button", name=login).click()
        await expect(menu.locator("summary")).to_contain_text(login)

    async def publish(self, image: str) -> None:
        await self.page.goto(f"http://{self.craft.sandbox.registry_host}/")
        await self.page.get_by_role("button", name=f"Publish {image} {RELEASE}").click()
        await expect(self.page.get_by_role("region", name=image)).to_contain_text(RELEASE)

    async def open_pull(self, stage: str, state: str, timeout: float) -> None:
        """Wait on the list, which keeps itself fresh, for the Stage's pull request of the release, and open it."""
        await self.page.goto(f"{self.pulls}?state={state}")
        title = re.compile(rf"{stage}\b.*otel-app {re.escape(RELEASE)}")
        link = self.page.get_by_role("link", name=title).first
        await expect(link).to_be_visible(timeout=timeout)
        await link.click()
        await expect(self.page.get_by_role("heading", level=1)).to_contain_text(stage)

    async def sees_outcome(self, stage: str) -> None:
        """The check on the merge commit turns green on the open page."""
        outcome = self.page.get_by_role("region", name="Checks on the merge commit")
        check = outcome.locator("details.check").filter(has_text=f"lockstep / {stage}")
        await expect(check.locator("summary")).to_contain_text("successful", timeout=ROLLED_OUT)
        await expect(check).to_contain_text("Apply complete")


async def test_a_release_goes_from_the_registry_to_prod(browser: Browser, tmp_path: Path) -> None:
    quick = SandboxOptions(timing=QUICK)
    async with open_demo(tmp_path, quick) as craft, await browser.new_context() as context:
        problems: list[str] = []
        context.on("weberror", lambda error: problems.append(str(error.error)))
        person = Person(await context.new_page(), craft)
        await person.publish("otel-app")
        await dev_goes_by_itself(person)
        await staging_can_be_read(person)
        await a_reader_cannot_approve(person)
        await merging_is_refused_while_the_check_waits(person)
        await approved_and_green_it_is_merged(person)
        await argo_cd_runs_it(person)
        await person.open_pull("prod", "open", ROLLED_OUT)
        await expect(person.merge_box).to_contain_text("Merging is blocked", timeout=SOON)
        assert problems == []


async def dev_goes_by_itself(person: Person) -> None:
    await person.open_pull("dev", "closed", ROLLED_OUT)
    await expect(person.page.locator("#pull-head")).to_contain_text("lockstep merged")
    await person.sees_outcome("dev")


async def staging_can_be_read(person: Person) -> None:
    """The description says what changes, the comment what Terraform will do, the files tab what is merged."""
    await person.open_pull("staging", "open", ROLLED_OUT)
    page = person.page
    description = page.locator("#description")
    artifacts = description.locator("table").filter(has_text="otel-app").first
    await expect(artifacts).to_contain_text(RELEASE)
    added = description.locator("pre.diff .line.add").filter(has_text="LAMBDA_URL")
    await expect(added).to_contain_text("<known after apply: lambda_url>")
    plan = page.locator("article.comment").filter(has_text=re.compile("Plan for .*staging"))
    await expect(plan).to_contain_text("4 to create", timeout=SOON)
    await plan.locator("details summary").first.click()
    await expect(plan.locator("pre")).to_contain_text("Plan: 4 to add, 0 to change, 0 to destroy.")
    assert "lockstep-marker" not in await description.inner_text()
    await page.set_viewport_size({"width": 390, "height": 800})
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    await page.set_viewport_size({"width": 1280, "height": 900})
    await page.get_by_role("link", name="Files changed").click()
    await expect(page.locator(".diffrows .add").filter(has_text="lambda-app")).to_be_visible()
    await page.get_by_role("link", name="Conversation").click()


async def a_reader_cannot_approve(person: Person) -> None:
    await person.be("uma")
    await expect(person.merge_box).to_contain_text("Only people with write access")
    await person.page.get_by_role("button", name="Approve").click()
    review = person.page.locator("article.review").filter(has_text="uma")
    await expect(review).to_contain_text("does not count")
    # The bot says so too, once it has looked at the review.
    await expect(person.merge_box).to_contain_text(re.compile("uma.*does not count|no write"), timeout=SOON)
    await expect(person.merge_box).to_contain_text("Merging is blocked")


async def merging_is_refused_while_the_check_waits(person: Person) -> None:
    await person.be("rafael")
    await person.page.get_by_role("button", name="Merge pull request").click()
    refusal = person.page.get_by_role("alert")
    await expect(refusal).to_contain_text('Required status check "lockstep" is in progress.')
    await expect(person.page.locator("#pull-head")).to_contain_text("Open")


async def approved_and_green_it_is_merged(person: Person) -> None:
    page = person.page
    await page.get_by_label("Comment as rafael").fill("Looks right.")
    await page.get_by_role("button", name="Approve").click()
    review = page.locator("article.review").filter(has_text="rafael")
    await expect(review).to_contain_text("Looks right.")
    await expect(person.merge_box).to_contain_text("Nothing stands in the way of merging", timeout=SOON)
    await page.get_by_role("button", name="Merge pull request").click()
    await expect(page.locator("#pull-head")).to_contain_text("Merged")
    await expect(page.locator("#merged")).to_contain_text("rafael merged this into main")
    await person.sees_outcome("staging")


async def argo_cd_runs_it(person: Person) -> None:
    await person.page.get_by_role("link", name="Argo CD").click()
    application = person.page.get_by_role("region", name="otel-app-staging")
    await expect(application).to_contain_text(RELEASE)
    await expect(application).to_contain_text("Healthy")
    await expect(application).to_contain_text("lambda-url")
