"""The command line: what it prints, where, and its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot import __version__

ROOT = Path(__file__).parents[1]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m bot` from the repository, with nothing in the environment but PATH and what is given."""
    command = [sys.executable, "-m", "bot", *arguments]
    environ = {"PATH": os.environ["PATH"], **environment}
    return subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=60
    )


def test_without_a_command_the_help_is_shown() -> None:
    done = run()
    assert done.returncode == 2
    for command in ("demo", "serve", "validate", "preview", "schema"):
        assert command in done.stdout


def test_the_version() -> None:
    assert run("--version").stdout == f"lockstep {__version__}\n"


def test_the_shipped_pipeline_is_valid() -> None:
    done = run("validate", "config")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "3 Stage(s), 1 Warehouse(s), 0 error(s), 0 warning(s)\n"


def test_every_problem_is_printed_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: [\n")
    (tmp_path / "b.yaml").write_text(
        "apiVersion: kargo.akuity.io/v1alpha1\nkind: Warehouse\nmetadata: {name: w, namespace: p}\nspec: {}\n"
    )
    done = run("validate", str(tmp_path))
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert any(line.startswith("a.yaml:") and ": error: " in line for line in lines)
    assert any(line.startswith("b.yaml:4: error: spec") for line in lines)
    assert lines[-1].startswith("0 Stage(s)")


def test_the_schema_of_every_kind_or_of_one_is_printed_as_json() -> None:
    every, one = run("schema"), run("schema", "Stage")
    assert (every.returncode, every.stderr, one.returncode, one.stderr) == (0, "", 0, "")
    assert json.loads(every.stdout)["title"] == "Lockstep configuration"
    assert json.loads(one.stdout)["properties"]["kind"] == {"const": "Stage"}


def test_a_kind_without_a_schema_is_named_with_the_nearest_one() -> None:
    done = run("schema", "stages")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "lockstep schema: there is no schema of a kind 'stages'; did you mean 'Stage'?\n"


@pytest.mark.parametrize("name", ["nowhere", "binary"])
def test_a_directory_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    if name == "binary":
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.yaml").write_bytes(b"\xff\xfe\x00")
    done = run("validate", str(tmp_path / name))
    assert done.returncode == 2
    assert "lockstep validate: " in done.stderr
    assert name if name == "nowhere" else "x.yaml is not UTF-8" in done.stderr


@pytest.mark.parametrize("command", [("serve",), ("preview", "dev")])
def test_every_missing_setting_is_named(command: tuple[str, ...]) -> None:
    done = run(*command)
    assert done.returncode == 2
    for name in ("LOCKSTEP_CONFIG", "LOCKSTEP_PRIVATE_KEY", "LOCKSTEP_WEBHOOK_SECRET", "LOCKSTEP_APP_ID"):
        assert name in done.stderr
    assert "Traceback" not in done.stderr
