"""What people read when their configuration is wrong: every message, in the order and place it is told.

`REWRITE_GOLDEN=1` writes the answers anew; read the diff before committing it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.pipeline import STEP_SCHEMAS, Loaded, load_pipeline

FOLDER = Path(__file__).parent
GOLDEN = sorted((FOLDER / "golden").glob("*.yaml"))
EXAMPLES = sorted((FOLDER / "examples").glob("*.yaml"))


def load(*paths: Path) -> Loaded:
    files = {path.name: path.read_text(encoding="utf-8") for path in paths}
    return load_pipeline(files, revision="abc", step_schemas=STEP_SCHEMAS)


def render(loaded: Loaded) -> str:
    lines = []
    for item in loaded.problems:
        whose = f" [{item.project}/{item.stage}]" if item.stage else ""
        lines.append(f"{item.path}:{item.line}: {item.severity}{whose}: {item.key}: {item.message}")
    return "\n".join(lines) + "\n"


def check(path: Path, loaded: Loaded) -> None:
    told, answer = render(loaded), path.with_suffix(".txt")
    if os.environ.get("REWRITE_GOLDEN"):
        answer.write_text(told, encoding="utf-8")
    assert told == answer.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_mistake_is_told_at_its_line(path: Path) -> None:
    check(path, load(path))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_pipelines_of_the_usual_shapes_load_with_these_warnings(path: Path) -> None:
    loaded = load(path)
    assert not [item for item in loaded.problems if item.severity == "error"]
    assert not loaded.is_broken
    assert loaded.pipeline.revision == "abc"
    check(path, loaded)


def test_several_files_are_one_configuration() -> None:
    loaded = load(*EXAMPLES)
    assert not loaded.is_broken
    assert loaded.pipeline.projects == ("advanced", "helm", "simple")
    assert [item.path for item in loaded.problems] == sorted(item.path for item in loaded.problems)
