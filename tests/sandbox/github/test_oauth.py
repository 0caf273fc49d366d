"""Signing in with GitHub: the flow of a browser, and every wrong turn of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from bot.sandbox.github.accounts import App
from bot.sandbox.github.provisioning import NewApp
from tests.contract.openapi import contract
from tests.sandbox.github.conftest import EVENTS, PERMISSIONS, Caller, Stage

CALLBACK = "http://127.0.0.1:1/signed-in"


@pytest.fixture
def app(github: Stage) -> App:
    new = NewApp("Lockstep", "acme", PERMISSIONS, EVENTS, github.receiver.url, "hush")
    github.github.register_app(replace(new, callback_urls=(CALLBACK,)))
    found = github.github.app("lockstep")
    assert found is not None
    return found


async def code(github: Stage, app: App, user: str) -> str:
    """The code that the browser of a person brings back."""
    path = f"{github.base}/login/oauth/authorize?client_id={app.client_id}&redirect_uri={CALLBACK}&state=s1"
    async with httpx.AsyncClient(verify=False) as browser:
        await browser.post(f"{github.base}/_pages/user", data={"user": user})
        assert f"Authorize as {user}" in (await browser.get(path)).text
        done = await browser.post(path)
    target = httpx.URL(done.headers["location"])
    assert (str(target).partition("?")[0], target.params["state"]) == (CALLBACK, "s1")
    return target.params["code"]


async def exchange(github: Stage, **fields: str) -> dict[str, str]:
    async with httpx.AsyncClient(verify=False) as client:
        answer = await client.post(
            f"{github.base}/login/oauth/access_token", data=fields, headers={"accept": "application/json"}
        )
    found: dict[str, str] = answer.json()
    return found


async def test_a_person_signs_in_and_the_token_only_reads(github: Stage, app: App) -> None:
    keys = {"client_id": app.client_id, "client_secret": app.client_secret}
    once = await code(github, app, "uma")
    token = (await exchange(github, **keys, code=once))["access_token"]
    user = Caller(github.base, token, contract())
    assert (await user.ok("GET", "/user"))["login"] == "uma"
    await user.ok("GET", "/repos/acme/shop")
    assert (await user("POST", "/repos/acme/shop/issues", {"title": "t"})).status_code == 403
    assert (await exchange(github, **keys, code=once))["error"] == "bad_verification_code"


async def test_wrong_secrets_codes_and_addresses_are_refused(github: Stage, app: App) -> None:
    keys = {"client_id": app.client_id, "client_secret": app.client_secret}
    wrong = await exchange(github, client_id=app.client_id, client_secret="x", code="y")
    assert wrong["error"] == "incorrect_client_credentials"
    other = await exchange(github, **keys, code=await code(github, app, "olivia"), redirect_uri="http://x/")
    assert other["error"] == "redirect_uri_mismatch"
    late = await code(github, app, "olivia")
    github.github.world.clock = lambda: datetime.now(UTC) + timedelta(minutes=11)
    assert (await exchange(github, **keys, code=late))["error"] == "bad_verification_code"
    async with httpx.AsyncClient(verify=False) as browser:
        for query in ("client_id=none", f"client_id={app.client_id}&redirect_uri=http://evil/"):
            answer = await browser.get(f"{github.base}/login/oauth/authorize?{query}")
            assert answer.status_code == 404
