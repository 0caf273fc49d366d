"""A git server, a mirror of it, and a bench on the repository `acme/ops`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.adapters.git import GitMirror
from tests.adapters.git_server import GitServer, commit_files, serve_git
from tests.steps.bench import Bench

VALUES = 'image:\n  tag: "1.0.0" # the version\nenv:\n  LAMBDA_URL: https://old.example\n'
TFVARS = 'fn__image = "app:1.0.0"\noutput_lambda_url = id(fn)\noutput_name = "otel"\n'
MAIN = 'terraform {\n  backend "http" {}\n}\n\nresource "toy_thing" "fn" {}\n'


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[GitServer]:
    async with serve_git(tmp_path / "server") as running:
        yield running


@pytest.fixture
def repository(server: GitServer) -> Path:
    path = server.repository("acme/ops")
    commit_files(
        path,
        "main",
        {
            "env/dev/values.yaml": VALUES,
            "env/dev/terraform/main.tf": MAIN,
            "env/dev/terraform/main.auto.tfvars": TFVARS,
            "README.md": "read me\n",
        },
        "first",
    )
    return path


async def _no_token(url: str) -> str | None:
    return None


@pytest.fixture
def mirror(tmp_path: Path) -> GitMirror:
    return GitMirror(tmp_path / "mirrors", _no_token, network_timeout=20)


@pytest.fixture
def bench(mirror: GitMirror, server: GitServer, repository: Path) -> Bench:
    return Bench(mirror, server.address("acme/ops"))
