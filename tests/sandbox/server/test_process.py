"""`python -m bot.sandbox` prints what a bot needs, stops when told to, and goes on later."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

import httpx
import pytest


async def start(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bot.sandbox",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def read_line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(30):
        return (await process.stdout.readline()).decode()


async def stop(process: asyncio.subprocess.Process, number: signal.Signals) -> tuple[bytes, bytes]:
    process.send_signal(number)
    async with asyncio.timeout(15):
        return await process.communicate()


async def test_it_serves_until_it_is_told_to_stop_and_goes_on(tmp_path: Path) -> None:
    directory, file = tmp_path / "sandbox", tmp_path / "ready.json"
    hooks = ["--webhook-url", "http://127.0.0.1:1/w", "--registry-webhook-url", "http://127.0.0.1:1/r"]
    lines = []
    for number in (signal.SIGTERM, signal.SIGINT):
        process = await start(
            "--dir",
            str(directory),
            "--port-file",
            str(file),
            *hooks,
            "--registry-webhook-header",
            "X-Secret=a=b",
        )
        lines.append(await read_line(process))
        assert file.read_text() == lines[-1]
        assert file.stat().st_mode & 0o077 == 0
        demo = json.loads(lines[-1])
        async with httpx.AsyncClient(trust_env=False) as client:
            for url in (demo["argocd_url"] + "/api/version", f"http://{demo['registry_host']}/v2/"):
                assert (await client.get(url)).status_code == 200
        assert await stop(process, number) == (b"", b"")
        assert process.returncode == 0
    assert lines[0] == lines[1]
    [endpoint] = json.loads((directory / "registry" / "endpoints.json").read_text())
    assert (endpoint["url"], endpoint["headers"]) == ("http://127.0.0.1:1/r", {"X-Secret": "a=b"})


@pytest.mark.crash
async def test_a_sync_that_was_under_way_when_it_was_killed_is_finished_after_the_start(
    tmp_path: Path,
) -> None:
    first = await start("--dir", str(tmp_path))
    demo = json.loads(await read_line(first))
    headers = {"Authorization": f"Bearer {demo['argocd_token']}"}
    path = f"{demo['argocd_url']}/api/v1/applications/otel-app-dev"
    async with httpx.AsyncClient(headers=headers, trust_env=False) as client:
        await client.post(f"{path}/sync", json={"name": "otel-app-dev", "project": "acme"})
    await stop(first, signal.SIGKILL)
    second = await start("--dir", str(tmp_path), "--quick")
    assert json.loads(await read_line(second)) == demo
    async with httpx.AsyncClient(headers=headers, trust_env=False) as client, asyncio.timeout(20):
        app = (await client.get(path)).json()
        assert "operation" in app
        while "operation" in app:
            await asyncio.sleep(0.05)
            app = (await client.get(path)).json()
    assert app["status"]["operationState"]["phase"] == "Succeeded"
    assert len(app["status"]["history"]) == 2
    await stop(second, signal.SIGTERM)


async def test_a_second_one_on_the_same_directory_says_why_it_cannot_start(tmp_path: Path) -> None:
    first = await start("--dir", str(tmp_path))
    await read_line(first)
    second = await start("--dir", str(tmp_path))
    output, problem = await second.communicate()
    assert (second.returncode, output) == (2, b"")
    assert b"stop the other process that uses this port" in problem
    assert problem.count(b"\n") == 1
    await stop(first, signal.SIGTERM)


@pytest.mark.parametrize(
    "arguments", [[], ["--dir", "x", "--registry-webhook-header", "X"]], ids=["no dir", "no value"]
)
async def test_wrong_arguments(arguments: list[str]) -> None:
    process = await start(*arguments)
    _, problem = await process.communicate()
    assert process.returncode == 2
    assert b"usage: python -m bot.sandbox" in problem
