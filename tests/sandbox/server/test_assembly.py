"""The assembled sandbox serves one demo, whoever starts it and however often."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import jwt
import pytest

from bot.sandbox.argocd import Timing
from bot.sandbox.seed.demo import BotEndpoints, Demo
from bot.sandbox.server import Sandbox, SandboxOptions
from bot.sandbox.serving import Listener, PortTaken

FAST = SandboxOptions(Timing(interval=3600, queue=0, operation=0.01, stale=0.01, rollout=0.01))


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with Sandbox(tmp_path / "sandbox", FAST) as opened:
        yield opened


@pytest.fixture
async def demo(sandbox: Sandbox) -> Demo:
    return await sandbox.seed_demo()


async def mint_installation_token(demo: Demo) -> str:
    """What the bot does first: its key's signature for a token of the installation."""
    now = int(time.time())
    claims = {"iss": str(demo.app_id), "iat": now - 30, "exp": now + 300}
    signed = jwt.encode(claims, Path(demo.private_key_path).read_text(), algorithm="RS256")
    async with httpx.AsyncClient(base_url=demo.github_api_url, trust_env=False) as client:
        path = f"/app/installations/{demo.installation_id}/access_tokens"
        answer = await client.post(path, headers={"Authorization": f"Bearer {signed}"})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["token"])


async def git(folder: Path, *arguments: str, token: str = "") -> str:
    pair = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "http.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {pair}",
        **{
            f"GIT_{who}_{what}": "bot@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }
    process = await asyncio.create_subprocess_exec(
        "git",
        *arguments,
        cwd=folder,
        env=environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode().strip()


async def test_everything_is_there_for_a_bot(sandbox: Sandbox, demo: Demo) -> None:
    assert demo.applications == ["otel-app-dev", "otel-app-prod", "otel-app-staging"]
    assert list(sandbox.registry.tags("otel-app")) == ["0.9.0", "1.0.0"]
    assert sandbox.cloud.counts() == {}
    for stage in ("dev", "staging", "prod"):
        app = sandbox.argocd.application(f"otel-app-{stage}")
        assert (app["status"]["sync"]["status"], app["status"]["health"]["status"]) == ("Synced", "Healthy")
        assert app["metadata"]["annotations"]["kargo.akuity.io/authorized-stage"] == f"acme:{stage}"
        images, env = sandbox.argocd.live(f"otel-app-{stage}")
        assert images == [f"{demo.registry_host}/otel-app:0.9.0"]
        assert env["LAMBDA_URL"] == ""
    assert Path(demo.private_key_path).stat().st_mode & 0o077 == 0
    assert (sandbox.directory / "demo.json").stat().st_mode & 0o077 == 0
    assert json.loads(demo.as_json())["repository"] == "acme/operations"


async def test_no_placeholder_is_left_in_the_repository(sandbox: Sandbox, demo: Demo, tmp_path: Path) -> None:
    url = f"{demo.github_url}/{demo.repository}.git"
    await git(tmp_path, "clone", "--quiet", url, "clone", token=demo.people["uma"])
    clone = tmp_path / "clone"
    files = [file for file in clone.rglob("*") if file.is_file() and ".git" not in file.parts]
    assert len(files) >= 30
    assert [file for file in files if "sandbox.example" in file.read_text()] == []
    assert f"repoURL: {demo.registry_host}/otel-app" in (clone / "config" / "warehouse.yaml").read_text()
    assert f"value: {url}" in (clone / "config" / "stages.yaml").read_text()


async def test_the_app_may_push_a_release_and_argocd_rolls_it_out(
    sandbox: Sandbox, demo: Demo, tmp_path: Path
) -> None:
    token = await mint_installation_token(demo)
    url = f"{demo.github_url}/{demo.repository}.git"
    await git(tmp_path, "clone", "--quiet", url, "clone", token=token)
    file = tmp_path / "clone" / "env" / "dev" / "helm" / "values.yaml"
    text = file.read_text().replace('tag: "0.9.0"', 'tag: "1.0.0"')
    file.write_text(re.sub(r'LAMBDA_URL: ""', 'LAMBDA_URL: "https://new.example"', text))
    await git(tmp_path / "clone", "commit", "--quiet", "--all", "--message=Release 1.0.0")
    await git(tmp_path / "clone", "push", "--quiet", "origin", "HEAD:main", token=token)
    tip = await git(tmp_path / "clone", "rev-parse", "HEAD")
    headers = {"Authorization": f"Bearer {demo.argocd_token}"}
    async with httpx.AsyncClient(base_url=demo.argocd_url, headers=headers, trust_env=False) as client:
        path = "/api/v1/applications/otel-app-dev"
        app = (await client.get(path, params={"refresh": "normal", "project": "acme"})).json()
        assert (app["status"]["sync"]["status"], app["status"]["sync"]["revision"]) == ("OutOfSync", tip)
        await client.post(f"{path}/sync", json={"name": "otel-app-dev", "project": "acme", "revision": tip})
        async with asyncio.timeout(10):
            while (
                app["status"]["sync"]["status"] != "Synced" or app["status"]["health"]["status"] != "Healthy"
            ):
                app = (await client.get(path, params={"project": "acme"})).json()
    images, env = sandbox.argocd.live("otel-app-dev")
    assert images == [f"{demo.registry_host}/otel-app:1.0.0"]
    assert env["LAMBDA_URL"] == "https://new.example"
    assert sandbox.argocd.live("otel-app-prod")[0] == [f"{demo.registry_host}/otel-app:0.9.0"]


async def test_it_goes_on_at_the_same_addresses_with_the_same_credentials(tmp_path: Path) -> None:
    directory = tmp_path / "sandbox"
    async with Sandbox(directory, FAST) as first:
        before = await first.seed_demo()
        first.registry.publish("otel-app", "1.1.0")
        first.cloud.write_state("acme/dev", {"serial": 7})
    async with Sandbox(directory, FAST) as second:
        assert await second.seed_demo() == before
        assert second.github_url == before.github_url
        assert "1.1.0" in second.registry.tags("otel-app")
        assert second.cloud.read_state("acme/dev") == {"serial": 7}
        await mint_installation_token(before)
        headers = {"Authorization": f"Bearer {before.argocd_token}"}
        async with httpx.AsyncClient(base_url=before.argocd_url, headers=headers, trust_env=False) as client:
            answer = await client.get("/api/v1/applications", params={"projects": "acme"})
        assert len(answer.json()["items"]) == 3


async def test_seeding_that_was_cut_short_is_finished(tmp_path: Path) -> None:
    directory = tmp_path / "sandbox"
    async with Sandbox(directory, FAST) as first:
        await first.seed_demo()
        first.argocd.delete_application("otel-app-prod")
        # The last thing that seeding writes: without it the next one must look at everything again.
        (directory / "demo.json").unlink()
    async with Sandbox(directory, FAST) as second:
        demo = await second.seed_demo()
        assert demo.applications == ["otel-app-dev", "otel-app-prod", "otel-app-staging"]
        assert list(second.registry.tags("lambda-app")) == ["0.9.0", "1.0.0"]
        await mint_installation_token(demo)


async def test_registry_notifications_reach_the_bot_that_is_connected_last(sandbox: Sandbox) -> None:
    endpoints = BotEndpoints(
        registry="http://127.0.0.1:1/hook", registry_headers={"Authorization": "Bearer x"}
    )
    await sandbox.seed_demo(endpoints)
    [endpoint] = sandbox.registry.endpoints
    assert (endpoint.url, endpoint.headers) == ("http://127.0.0.1:1/hook", {"Authorization": "Bearer x"})
    await sandbox.seed_demo()
    assert sandbox.registry.endpoints == ()


async def test_two_sandboxes_on_one_directory_do_not_mix(sandbox: Sandbox) -> None:
    with pytest.raises(PortTaken, match="stop the other process that uses this port"):
        await Sandbox(sandbox.directory, FAST).start()


async def test_a_start_that_fails_frees_the_ports_it_took(tmp_path: Path) -> None:
    async with Sandbox(tmp_path, FAST) as first:
        ports = json.loads((tmp_path / "ports.json").read_text())
        assert first.cloud_url.endswith(f":{ports['cloud']}")
    other = Listener(ports["cloud"])
    with pytest.raises(PortTaken):
        await Sandbox(tmp_path, FAST).start()
    await other.stop()
    async with Sandbox(tmp_path, FAST) as again:
        assert again.github_url.endswith(f":{ports['github']}")
