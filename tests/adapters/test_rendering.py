"""The runs of helm and kustomize: what they can reach, how they end, and what is left of them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.adapters.rendering import CommandRenderer, RenderTools
from bot.adapters.rendering.repositories import find_repositories
from bot.domain.files import File, Mode
from bot.ports import TerminalError
from bot.ports.rendering import ChartRun, DependencyRun, KustomizeRun, Rendered, RenderFailed, RenderTool
from tests.adapters.rendering_bed import make_renderer

DEPENDENT = (
    "name: web\ndependencies:\n- {name: a, repository: 'https://private.example', version: 1.0.0}\n"
    "- {name: b, repository: 'oci://registry.example/private', version: 2.0.0}\n"
)


def tree(files: Mapping[str, str]) -> dict[str, File]:
    return {path: File(text.encode()) for path, text in files.items()}


def script(directory: Path, text: str) -> str:
    path = directory / "kustomize"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def build(renderer: CommandRenderer, **more: str) -> asyncio.Task[Rendered | RenderFailed]:
    files = tree({"k/kustomization.yaml": "", **more})
    return asyncio.create_task(renderer.build(KustomizeRun(files, "k")))


def left(directory: Path) -> list[str]:
    return [path.name for path in (directory / "runs").glob("*")]


async def test_a_run_sees_its_tree_and_system_programs_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_PRIVATE_KEY", "the-apps-private-key")
    secret = tmp_path / "secret"
    secret.write_text("a secret of another part")
    program = script(
        tmp_path,
        f"cat {secret} /etc/passwd /proc/$PPID/environ; env; touch {tmp_path}/made; cat k/kustomization.yaml",
    )
    outcome = await build(make_renderer(tmp_path, kustomize=program))
    assert isinstance(outcome, Rendered)
    assert "secret" not in outcome.text
    assert "root:" not in outcome.text
    assert "LOCKSTEP" not in outcome.text
    assert not (tmp_path / "made").exists()
    assert left(tmp_path) == []


async def test_what_a_program_says_names_no_path_of_the_machine(tmp_path: Path) -> None:
    program = script(tmp_path, "echo Error: $PWD/k/kustomization.yaml is bad >&2; exit 1")
    outcome = await build(make_renderer(tmp_path, kustomize=program))
    assert outcome == RenderFailed(
        "kustomize build k failed: Error: k/kustomization.yaml is bad", "Error: k/kustomization.yaml is bad"
    )
    assert left(tmp_path) == []


async def test_a_cancelled_run_ends_and_leaves_nothing(tmp_path: Path) -> None:
    program = script(tmp_path, "trap 'exit 3' INT; touch out; exec sleep 60")
    task = build(make_renderer(tmp_path, kustomize=program))
    while not left(tmp_path):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left(tmp_path) == []


async def test_a_link_out_of_the_tree_is_refused(tmp_path: Path) -> None:
    files = {"k/kustomization.yaml": File(b""), "k/x": File(b"../../etc/passwd", Mode.SYMLINK)}
    with pytest.raises(TerminalError, match="points out of the tree"):
        await make_renderer(tmp_path).build(KustomizeRun(files, "k"))


async def test_what_a_killed_bot_left_is_cleared_once_it_is_old(tmp_path: Path) -> None:
    renderer = make_renderer(tmp_path)
    for name, age in (("old", 7200), ("new", 0)):
        (tmp_path / "runs" / name / "work").mkdir(parents=True)
        os.utime(tmp_path / "runs" / name, (time.time() - age,) * 2)
    await renderer.sweep()
    assert left(tmp_path) == ["new"]


def test_missing_programs_are_named_with_what_to_do(tmp_path: Path) -> None:
    tools = RenderTools("helm-of-nobody", "kustomize-of-nobody")
    missing = CommandRenderer(tmp_path, tools).find_missing()
    assert set(missing) == {RenderTool.HELM, RenderTool.KUSTOMIZE}
    assert "'helm-of-nobody' was not found; install helm" in missing[RenderTool.HELM]
    assert "LOCKSTEP_KUSTOMIZE" in missing[RenderTool.KUSTOMIZE]


async def test_a_missing_program_is_said_when_it_is_needed(tmp_path: Path) -> None:
    renderer = CommandRenderer(tmp_path, RenderTools("helm-of-nobody", "kustomize-of-nobody"))
    with pytest.raises(TerminalError, match="LOCKSTEP_HELM"):
        await renderer.template(ChartRun({}, "c", "r", "n"))
    with pytest.raises(TerminalError, match="LOCKSTEP_KUSTOMIZE"):
        await renderer.build(KustomizeRun({}, "k"))


async def test_helm_signs_in_where_the_dependencies_come_from(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    async def login(project: str, url: str) -> tuple[str, str] | None:
        asked.append((project, url))
        return "robot", 'it\'s "quoted"'

    files = tree({"c/Chart.yaml": DEPENDENT})
    outcome = await make_renderer(tmp_path, login).update_dependencies(DependencyRun(files, "c", "acme"))
    assert isinstance(outcome, Rendered), outcome
    assert sorted(outcome.files) == ["Chart.lock", "charts/a-1.0.0.tgz", "charts/b-2.0.0.tgz"]
    assert asked == [
        ("acme", "https://private.example"),
        ("acme", "oci://registry.example/private"),
    ]


async def test_without_a_login_helm_says_what_the_repository_answered(tmp_path: Path) -> None:
    files = tree({"c/Chart.yaml": DEPENDENT})
    outcome = await make_renderer(tmp_path).update_dependencies(DependencyRun(files, "c", "acme"))
    assert isinstance(outcome, RenderFailed)
    assert "401 Unauthorized" in outcome.message


async def test_dependencies_are_built_before_the_chart_is_rendered(tmp_path: Path) -> None:
    files = tree(
        {
            "c/Chart.yaml": DEPENDENT.replace("private", "public"),
            "c/templates/t.yaml": "a: {{ release }}",
        }
    )
    renderer = make_renderer(tmp_path)
    without = await renderer.template(ChartRun(files, "c", "shop", "ns"))
    assert isinstance(without, RenderFailed)
    assert "missing in charts/ directory" in without.message
    outcome = await renderer.template(ChartRun(files, "c", "shop", "ns", build=True))
    assert outcome == Rendered("---\n# Source: web/templates/t.yaml\na: shop\n")


def test_repositories_are_those_of_declaration_and_lock() -> None:
    files = tree(
        {
            "c/Chart.yaml": "dependencies:\n- repository: https://a\n- repository: file://../b\n- repository: '@x'\n",
            "c/Chart.lock": "dependencies:\n- repository: oci://c/d\n",
            "other/Chart.yaml": "dependencies:\n- repository: https://e\n",
        }
    )
    assert find_repositories(files, "c") == ("https://a", "oci://c/d")
