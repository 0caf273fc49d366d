"""A bare repository with two charts, and an Argo CD in a hurry that follows it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.sandbox.argocd import ArgoCD, NewApplication, Timing
from tests.contract.argocd import check_exchange

URL = "https://github.example/acme/operations.git"
FAST = Timing(interval=3600, queue=0.01, operation=0.05, stale=0.15, rollout=0.15, deadline=5)
ACTIONS = ("get", "sync", "update")


class Repo:
    """A bare repository that tests commit to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._git("init", "--quiet", "--bare", "--initial-branch=main", str(path), inside=False)

    def commit(self, files: dict[str, str | None], *, branch: str = "main") -> str:
        """Write files (None deletes one) in one commit on a branch; its SHA."""
        index = {"GIT_INDEX_FILE": str(self.path / "test.index")}
        known = self._git("for-each-ref", f"refs/heads/{branch}")
        parent = [self._git("rev-parse", branch)] if known else []
        self._git("read-tree", *(parent or ["--empty"]), env=index)
        for name, content in files.items():
            if content is None:
                self._git("update-index", "--index-info", stdin=f"0 {'0' * 40}\t{name}\n", env=index)
            else:
                blob = self._git("hash-object", "-w", "--stdin", stdin=content)
                self._git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", env=index)
        tree = self._git("write-tree", env=index)
        flags = [flag for each in parent for flag in ("-p", each)]
        commit = self._git("commit-tree", tree, *flags, "-m", "change")
        self._git("update-ref", f"refs/heads/{branch}", commit)
        return commit

    def _git(
        self, *arguments: str, stdin: str = "", env: dict[str, str] | None = None, inside: bool = True
    ) -> str:
        identity = {
            f"GIT_{who}_{what}": "test@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        base = {"PATH": os.environ["PATH"], "HOME": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **identity}
        place = ["-C", str(self.path)] if inside else []
        done = subprocess.run(
            ["git", *place, *arguments],
            input=stdin,
            env=base | (env or {}),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()


def values(tag: str, url: str = "", *, repository: str = "registry.example/otel-app") -> str:
    """A values file."""
    return f'image:\n  repository: {repository}\n  tag: "{tag}"\nenv:\n  LAMBDA_URL: "{url}"\n'


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    created = Repo(tmp_path / "operations.git")
    chart = "apiVersion: v2\nname: otel-app\nversion: 0.1.0\n"
    files: dict[str, str | None] = {}
    for stage in ("dev", "prod"):
        files |= {f"env/{stage}/helm/Chart.yaml": chart, f"env/{stage}/helm/values.yaml": values("1.0.0")}
    created.commit(files)
    return created


@pytest.fixture
async def argocd(tmp_path: Path, repo: Repo) -> AsyncIterator[ArgoCD]:
    opened = ArgoCD(tmp_path / "argocd", timing=FAST)
    opened.register_repository(URL, path=repo.path)
    opened.create_project("acme", roles={"lockstep": ACTIONS, "reader": ("get",)})
    for stage in ("dev", "prod"):
        await opened.create_application(
            NewApplication(
                f"otel-app-{stage}",
                project="acme",
                repo_url=URL,
                path=f"env/{stage}/helm",
                target_revision="main",
                labels={"stage": stage},
                annotations={"kargo.akuity.io/authorized-stage": f"acme:{stage}"},
            )
        )
    await opened.start()
    yield opened
    await opened.stop()


def open_client(argocd: ArgoCD, token: str | None) -> httpx.AsyncClient:
    """A client whose every exchange is checked against Argo CD's description."""
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app=argocd.asgi),
        base_url="http://argocd.example",
        headers={"Authorization": f"Bearer {token}"} if token else {},
        event_hooks={"response": [check_exchange]},
    )


@pytest.fixture
async def client(argocd: ArgoCD) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(argocd, argocd.create_role_token("acme", "lockstep")) as opened:
        yield opened


async def until(condition: Callable[[], Any]) -> None:
    """Wait until something holds, for at most ten seconds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


def phase(app: dict[str, Any]) -> str | None:
    """How far the latest operation is."""
    state = app["status"].get("operationState")
    return None if state is None else str(state["phase"])
