"""The command line: what it prints, where, and its exit status."""

from __future__ import annotations

import hashlib
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
    commands = "demo serve setup doctor validate preview explain receivers schema rebuild backup audit"
    for command in commands.split():
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


RECEIVERS = """
apiVersion: kargo.akuity.io/v1alpha1
kind: ProjectConfig
metadata: {name: shop, namespace: shop}
spec:
  webhookReceivers:
    - {name: hub, dockerhub: {secretRef: {name: hub}}}
    - {name: quay, quay: {secretRef: {name: quay}}}
"""


def test_the_address_of_every_receiver_is_printed(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    path = tmp_path / "config" / "a.yaml"
    path.write_text(RECEIVERS)
    environment = {
        "LOCKSTEP_CONFIG": str(path.parent),
        "LOCKSTEP_DATA": str(tmp_path / "data"),
        "LOCKSTEP_URL": "https://bot.example/",
        "LOCKSTEP_APP_ID": "7",
        "LOCKSTEP_PRIVATE_KEY": "not needed",
        "LOCKSTEP_WEBHOOK_SECRET": "not needed",
        "LOCKSTEP_SECRET_SHOP_HUB_SECRET": "s3cret",
    }
    done = run("receivers", **environment)
    assert (done.returncode, done.stderr) == (0, "")
    digest = hashlib.sha256(b"shophubs3cret").hexdigest()
    first, second = done.stdout.splitlines()
    assert first == f"shop/hub (dockerhub): https://bot.example/dockerhub/{digest}"
    assert second.startswith("shop/quay (quay): closed, the Secret 'quay' has no value")
    path.write_text(RECEIVERS.replace("name: quay, quay", "name: hub, quay"))
    broken = run("receivers", **environment)
    assert (broken.returncode, broken.stdout) == (1, "")
    assert "lockstep validate says where" in broken.stderr


def test_the_doctor_names_every_missing_setting_and_what_to_do() -> None:
    done = run("doctor")
    assert (done.returncode, done.stderr) == (1, "")
    for name in ("LOCKSTEP_CONFIG", "LOCKSTEP_PRIVATE_KEY", "LOCKSTEP_WEBHOOK_SECRET", "LOCKSTEP_APP_ID"):
        assert f"failure  settings         {name}" in done.stdout
    assert done.stdout.count("run `lockstep setup`") == 3
    assert json.loads(run("doctor", "--json").stdout)["ok"] is False


def test_setup_says_what_it_needs() -> None:
    done = run("setup")
    assert (done.returncode, done.stdout) == (2, "")
    assert "LOCKSTEP_URL is missing" in done.stderr


@pytest.mark.parametrize("command", [("serve",), ("preview", "dev"), ("receivers",)])
def test_every_missing_setting_is_named(command: tuple[str, ...]) -> None:
    done = run(*command)
    assert done.returncode == 2
    for name in ("LOCKSTEP_CONFIG", "LOCKSTEP_PRIVATE_KEY", "LOCKSTEP_WEBHOOK_SECRET", "LOCKSTEP_APP_ID"):
        assert name in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("audit", "--since", "yesterday"), "'yesterday' is no date or time such as 2026-05-31T12:00"),
        (("rebuild", "--pulls", "0"), "'0' is no number from 1 to 6000"),
        (("rebuild", "--commits", "many"), "'many' is no number from 1 to 6000"),
        (("backup",), "FILE"),
        (("explain",), "STAGE"),
        (("backup", "x.tar"), "the environment is not complete"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_gets_one_error_and_status_2(arguments: tuple[str, ...], says: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


APP = {
    "LOCKSTEP_CONFIG": "config",
    "LOCKSTEP_APP_ID": "1",
    "LOCKSTEP_PRIVATE_KEY": "x",
    "LOCKSTEP_WEBHOOK_SECRET": "x",
}


@pytest.mark.parametrize(
    ("arguments", "database", "says"),
    [
        (("backup", "x.tar"), "postgresql://nobody@127.0.0.1:1/x", "pg_dump"),
        (("backup", "x.tar"), "", "lockstep.db is missing"),
        (("rebuild",), "", "without it none is believed"),
        (("audit",), "", "no bot ever ran"),
    ],
    ids=["a backup of PostgreSQL", "a backup of nothing", "a rebuild without the key", "the log of no bot"],
)
def test_what_cannot_be_done_is_said_and_makes_nothing(
    tmp_path: Path, arguments: tuple[str, ...], database: str, says: str
) -> None:
    known = {"LOCKSTEP_DATABASE": database} if database else {}
    done = run(*arguments, LOCKSTEP_DATA=str(tmp_path / "data"), **APP, **known)
    assert (done.returncode, done.stdout) == (1, "")
    assert says in done.stderr
    assert list(tmp_path.iterdir()) == []
