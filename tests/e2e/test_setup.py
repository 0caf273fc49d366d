"""Setting up: from the terminal's address over GitHub's button to credentials in a file, and nowhere else."""

from __future__ import annotations

import asyncio
import base64
import html
import json
import os
import re
import signal
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
import yaml

from bot.adapters.app_file import AppFile, read_manifest
from bot.ports import AppCredentials, TerminalError
from bot.sandbox.github.accounts import App, Installation, ManifestCode
from bot.sandbox.github.app import GitHub
from bot.sandbox.serving import Listener
from bot.settings import NoAppError, Settings, SettingsError, SetupSettings
from bot.setup import SetupOptions, set_up
from tests.e2e.road import free_ports

ROOT = Path(__file__).parents[2]
URL = "https://bot.example"


@dataclass
class World:
    """A GitHub with an organisation, and a data directory; `said` is what the terminal showed."""

    github: GitHub
    github_url: str
    data: Path
    said: list[str] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LOCKSTEP_DATA": str(self.data),
            "LOCKSTEP_URL": URL,
            "LOCKSTEP_GITHUB_URL": f"{self.github_url}/api/v3",
            "LOCKSTEP_PORT": "0",
        }

    @asynccontextmanager
    async def setting_up(self, *, replace: bool = False) -> AsyncIterator[Browser]:
        """A setup that runs until the block ends, and a browser at its page."""
        self.said.clear()
        settings = SetupSettings.from_env(self.environment)
        running = asyncio.create_task(set_up(settings, SetupOptions("acme", replace), self.said.append))
        while not self.said and not running.done():
            await asyncio.sleep(0.01)
        if running.done():
            await running
        address = re.search(r"http://\S+", self.said[0])
        assert address is not None
        async with httpx.AsyncClient() as client:
            yield Browser(client, address[0], running)
        if not running.done():
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def codes(self) -> list[ManifestCode]:
        return self.github.world.store.find(ManifestCode)


@dataclass
class Browser:
    """Somebody who does what the pages say. `running` is the setup that serves them."""

    client: httpx.AsyncClient
    address: str
    running: asyncio.Task[AppCredentials | None]

    @property
    def origin(self) -> str:
        return self.address.partition("/setup")[0]

    async def enter(self) -> httpx.Response:
        """Open the terminal's address, and see the page with the button."""
        return await self.client.get(self.address, follow_redirects=True)

    async def register(self, page: httpx.Response) -> str:
        """Press the button here and the one on GitHub; where GitHub sends the browser back to."""
        action, manifest = form_of(page.text)
        shown = await self.client.post(action, data={"manifest": manifest})
        assert "Create GitHub App for acme" in shown.text
        create, again = form_of(shown.text)
        made = await self.client.post(httpx.URL(action).join(create), data={"manifest": again})
        return made.headers["location"]


def form_of(page: str) -> tuple[str, str]:
    """Where a page's form posts to, and the manifest in it."""
    action = re.search(r'<form method="post" action="([^"]+)"', page)
    manifest = re.search(r'name="manifest" value="([^"]*)"', page)
    assert action is not None
    assert manifest is not None
    return html.unescape(action[1]), html.unescape(manifest[1])


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    listener = Listener()
    github = GitHub(tmp_path / "github", base_url=listener.url)
    await listener.start(github.asgi)
    await github.start()
    github.create_organisation("acme")
    github.create_repository("acme", "operations", {"README.md": b"# operations\n"})
    github.demo_cast("acme", ["operations"])
    yield World(github, listener.url, tmp_path / "data")
    await github.stop()
    await listener.stop()


async def test_one_click_makes_an_app_whose_credentials_the_settings_read(world: World) -> None:
    async with world.setting_up() as browser:
        page = await browser.enter()
        assert page.url == f"{browser.origin}/setup"
        done = await browser.client.get(await browser.register(page))
        assert done.status_code == 200
        assert await asyncio.wait_for(browser.running, 10) is not None
    file = world.data / "github-app.json"
    kept = AppFile(world.data).read()
    app = world.github.world.store.first(App, name="Lockstep acme")
    assert kept is not None
    assert app is not None
    assert (kept.app_id, kept.private_key, kept.webhook_secret) == (
        app.id,
        app.private_key_pem,
        app.webhook_secret,
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    shipped = yaml.safe_load((ROOT / "app.yaml").read_text())
    assert app.permissions == shipped["default_permissions"]
    assert (app.webhook_url, app.callback_urls) == (f"{URL}/hooks/github", (f"{URL}/sign-in/callback",))
    secrets = (kept.private_key, kept.webhook_secret, kept.client_secret, "PRIVATE KEY")
    for text in (page.text, done.text, *world.said, repr(kept)):
        assert not any(secret in text for secret in secrets)
    assert kept.install_page in done.text
    assert f"&#34;integration_id&#34;: {app.id}" in done.text
    downloaded = re.search(r'href="data:application/json;base64,([^"]+)" download', done.text)
    assert downloaded is not None
    rules = json.loads(base64.b64decode(html.unescape(downloaded[1])))
    assert rules == json.loads((world.data / "github-ruleset.json").read_text())
    assert rules["bypass_actors"][0]["actor_id"] == app.id
    settings = Settings.from_env(world.environment | {"LOCKSTEP_CONFIG": "config"})
    assert (settings.app_id, settings.private_key, settings.client_secret) == (
        kept.app_id,
        kept.private_key,
        kept.client_secret,
    )
    assert settings.webhook_secrets == (kept.webhook_secret,)


async def test_a_second_setup_refuses_unless_it_shall_replace(world: World) -> None:
    AppFile(world.data).prepare()
    AppFile(world.data).write(CREDENTIALS)
    with pytest.raises(TerminalError, match=r"credentials of the App Lockstep .*--replace"):
        async with world.setting_up():
            pass
    async with world.setting_up(replace=True) as browser:
        back = await browser.register(await browser.enter())
        assert AppFile(world.data).read() == CREDENTIALS
        assert (await browser.client.get(back)).status_code == 200
    kept = AppFile(world.data).read()
    assert kept is not None
    assert kept.app_id == world.codes()[0].app_id


async def test_two_setups_at_once_are_one(world: World) -> None:
    async with world.setting_up():
        with pytest.raises(TerminalError, match="another `lockstep setup` runs"):
            await set_up(SetupSettings.from_env(world.environment), SetupOptions(), print)


@pytest.mark.parametrize(
    "change",
    [lambda _: "", lambda state: state[:-1] + ("0" if state[-1] != "0" else "1"), lambda _: "e30.00"],
    ids=["no state", "a state that was tampered with", "a state of somebody else's making"],
)
async def test_a_wrong_state_exchanges_no_code(world: World, change: Callable[[str], str]) -> None:
    async with world.setting_up() as browser:
        back = httpx.URL(await browser.register(await browser.enter()))
        wrong = back.copy_set_param("state", change(back.params["state"]))
        answer = await browser.client.get(wrong)
        assert (answer.status_code, "was not begun in this browser" in answer.text) == (400, True)
        assert not world.codes()[0].used
        assert AppFile(world.data).read() is None
        # The right one still works afterwards.
        assert (await browser.client.get(back)).status_code == 200


async def test_another_browser_can_neither_enter_nor_complete(world: World) -> None:
    async with world.setting_up() as browser:
        back = await browser.register(await browser.enter())
        async with httpx.AsyncClient() as other:
            assert (await other.get(f"{browser.origin}/setup")).status_code == 403
            assert (await other.get(browser.address)).status_code == 403
            assert (await other.get(f"{browser.origin}/setup?token=guess")).status_code == 403
            assert (await other.get(back)).status_code == 400
            # A name that an attacker's page was given leads here too, but is not ours.
            rebound = await other.get(browser.address, headers={"Host": "evil.example"})
            assert rebound.status_code == 421
        assert not world.codes()[0].used


@pytest.mark.parametrize("spoilt", ["used already", "older than an hour"])
async def test_a_code_is_good_once_and_for_an_hour(world: World, spoilt: str) -> None:
    async with world.setting_up() as browser:
        back = httpx.URL(await browser.register(await browser.enter()))
        if spoilt == "used already":
            exchange = f"{world.github_url}/api/v3/app-manifests/{back.params['code']}/conversions"
            assert (await browser.client.post(exchange)).status_code == 201
        else:
            world.github.world.store.change(world.codes()[0], expires_at="2020-01-01T00:00:00Z")
        answer = await browser.client.get(back)
        assert (answer.status_code, "used before, or is older than an hour" in answer.text) == (502, True)
        odd = await browser.client.get(back.copy_set_param("code", "../../app"))
        assert (odd.status_code, "is no code" in odd.text) == (502, True)
        assert AppFile(world.data).read() is None


async def test_an_answer_that_was_lost_before_github_worked_is_asked_for_again(world: World) -> None:
    async with world.setting_up() as browser:
        back = await browser.register(await browser.enter())
        rule = {"kind": "5xx-before", "method": "POST", "path": "/app-manifests", "count": 1, "status": 502}
        world.github.faults.add([rule])
        first = await browser.client.get(back)
        assert (first.status_code, "Load this page again" in first.text) == (503, True)
        assert (await browser.client.get(back)).status_code == 200


async def test_a_file_that_a_crash_left_is_removed_and_hurts_nobody(world: World) -> None:
    world.data.mkdir()
    left = world.data / "github-app.json.0badf00d.new"
    left.write_text('{"private_key": "half of')
    with pytest.raises(NoAppError):
        Settings.from_env(world.environment | {"LOCKSTEP_CONFIG": "config"})
    async with world.setting_up() as browser:
        assert not left.exists()
        assert (await browser.client.get(await browser.register(await browser.enter()))).status_code == 200
        await asyncio.wait_for(browser.running, 10)
    assert AppFile(world.data).read() is not None
    assert sorted(path.name for path in world.data.iterdir()) == [
        "github-app.json",
        "github-ruleset.json",
        "setup.lock",
        "vault.key",
    ]


@pytest.mark.parametrize("replace", [False, True])
async def test_where_nothing_can_be_written_github_is_not_asked(world: World, *, replace: bool) -> None:
    world.data.write_text("a file, not a directory")
    with pytest.raises(TerminalError, match=str(world.data)):
        async with world.setting_up(replace=replace):
            pass
    assert world.codes() == []


@pytest.mark.e2e
async def test_serve_sets_up_and_then_serves_without_a_restart(world: World) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        **world.environment,
        "LOCKSTEP_CONFIG": str(ROOT / "config"),
        "LOCKSTEP_PORT": str(free_ports(1)[0]),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", "serve"),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        await process.stdout.readline()
        await process.stdout.readline()
        address = (await asyncio.wait_for(process.stdout.readline(), 20)).decode().strip()
        async with httpx.AsyncClient() as client:
            browser = Browser(client, address, asyncio.create_task(asyncio.sleep(0, None)))
            assert (await client.get(f"{browser.origin}/readyz")).status_code == 503
            page = await client.get(f"{address}", follow_redirects=True)
            chosen = await client.get(f"{page.url}?organisation=acme")
            assert (await client.get(await browser.register(chosen))).status_code == 200
            await until_ready(client, browser.origin)
            unsigned = await client.post(f"{browser.origin}/hooks/github", content=b"{}")
            assert unsigned.status_code == 401
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


async def until_ready(client: httpx.AsyncClient, origin: str) -> None:
    """Wait until the bot itself answers there."""
    async with asyncio.timeout(30):
        while True:
            try:
                if (await client.get(f"{origin}/readyz")).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.05)


CREDENTIALS = AppCredentials(
    7, "lockstep", "Lockstep", "https://github.com/apps/lockstep", "Iv1.a", "client", "hook", "PEM"
)
COMPLETE = {"LOCKSTEP_CONFIG": "config", "LOCKSTEP_URL": URL}


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    AppFile(tmp_path).write(CREDENTIALS)
    environ = COMPLETE | {"LOCKSTEP_DATA": str(tmp_path)}
    assert Settings.from_env(environ | {"LOCKSTEP_WEBHOOK_SECRET": "other"}).webhook_secrets == ("other",)
    assert Settings.from_env(environ | {"LOCKSTEP_APP_ID": "7"}).private_key == "PEM"
    # The key of one App is never used for another.
    with pytest.raises(SettingsError, match="LOCKSTEP_PRIVATE_KEY"):
        Settings.from_env(environ | {"LOCKSTEP_APP_ID": "8"})


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        (b"{}", 0o600, "is damaged"),
        (b'{"app_id": "PEM"', 0o600, "is damaged"),
        (b"{}", 0o644, "can be read by others"),
    ],
    ids=["a file without what belongs in it", "a file that is cut off", "a file that everybody can read"],
)
def test_a_damaged_file_is_named_and_not_shown(tmp_path: Path, content: bytes, mode: int, said: str) -> None:
    file = tmp_path / "github-app.json"
    file.write_bytes(content)
    file.chmod(mode)
    with pytest.raises(SettingsError, match=said) as caught:
        Settings.from_env(COMPLETE | {"LOCKSTEP_DATA": str(tmp_path)})
    assert not isinstance(caught.value, NoAppError)
    assert "PEM" not in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({}, "LOCKSTEP_URL is missing"),
        ({"LOCKSTEP_URL": URL, "LOCKSTEP_APP_ID": "7"}, "names an App already"),
        ({"LOCKSTEP_URL": URL, "PRIVATE_KEY_PATH": "/key"}, "names an App already"),
    ],
    ids=["no address from outside", "an App in the environment", "a key under another name"],
)
def test_setting_up_says_what_does_not_fit(environ: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        SetupSettings.from_env(environ)


def test_the_shipped_manifest_is_the_one_at_the_top() -> None:
    assert read_manifest() == yaml.safe_load((ROOT / "app.yaml").read_text())


REFUSED = {
    "an unknown permission": {"default_permissions": {"telepathy": "read"}},
    "an unknown level": {"default_permissions": {"metadata": "write"}},
    "an event without its permission": {"default_events": ["registry_package"]},
    "no address": {"url": None},
    "a key that manifests do not have": {"webhook_secret": "mine"},
    "a redirect that is no address": {"redirect_url": "javascript:alert(1)"},
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
async def test_the_sandbox_refuses_what_github_would(world: World, change: dict[str, object]) -> None:
    good: dict[str, object] = {"name": "Mine", "url": URL, "default_permissions": {"contents": "read"}}
    async with httpx.AsyncClient() as client:
        page = f"{world.github_url}/organizations/acme/settings/apps/new"
        answer = await client.post(page, data={"manifest": json.dumps(good | change)})
        assert answer.status_code == 422
        assert (await client.post(page, data={"manifest": json.dumps(good)})).status_code == 200
        nobodys = page.replace("acme", "nobody")
        assert (await client.post(nobodys, data={"manifest": json.dumps(good)})).status_code == 404
    assert world.github.world.store.find(Installation) == []
