"""What one project may read by its login, another may not by that."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.adapters.oci import ProjectArtifacts, ProjectRegistries
from bot.ports import Registries, TerminalError
from bot.ports.artifacts import ArtifactsOfProjects
from tests.adapters.oci.registries import PASSWORD, USER, push_artifact, run_sandbox


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[str]:
    async with run_sandbox(tmp_path) as running:
        yield running


async def login(project: str, repository: str) -> tuple[str, str] | None:
    """Only the project shop knows the password; `other` knows a wrong one."""
    return {"shop": (USER, PASSWORD), "other": (USER, "wrong")}.get(project)


async def test_each_project_asks_with_its_own_login(host: str) -> None:
    await push_artifact(host, "acme/files", "1", ("text/plain", b"one"))
    async with ProjectRegistries(login) as opened:
        registries: Registries = opened
        artifacts: ArtifactsOfProjects = ProjectArtifacts(opened)
        own = await registries.of("shop")
        assert tuple(await own.list_tags(f"{host}/acme/files")) == ("1",)
        assert await (await artifacts.of("shop")).resolve(f"{host}/acme/files:1") is not None
        # Neither the token nor what is known by now helps somebody else.
        for project in ("other", "nobody"):
            with pytest.raises(TerminalError):
                await (await registries.of(project)).list_tags(f"{host}/acme/files")
            with pytest.raises(TerminalError):
                await (await artifacts.of(project)).resolve(f"{host}/acme/files:1")
        assert await registries.of("shop") is own
