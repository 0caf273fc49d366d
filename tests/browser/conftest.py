"""A real Chromium, driven by playwright; a test that cannot have one fails and says what to install."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, async_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# In containers there is no sandbox for Chromium to use; the others keep it from calling home.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium() -> str:
    """The path of a Chromium; the test fails if there is none."""
    found = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        pytest.fail(
            f"There is no Chromium to drive: none of {', '.join(PROGRAMS)} is on PATH."
            " Install one, on Debian with `apt-get install --no-install-recommends chromium`,"
            ' or leave these tests out with `-m "not browser"`.'
        )
    return found


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    """A Chromium of its own for the test."""
    program = find_chromium()
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield running
        await running.close()
