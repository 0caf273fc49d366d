"""What the doctor finds on this machine, without making anything."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from bot.adapters.machine import LocalMachine, filesystem_of
from bot.adapters.store.store import open_store
from bot.adapters.store.tables import SCHEMA
from bot.adapters.terraform.tool import Tool
from bot.adapters.vault import KeyFileVault

MOUNTS = """\
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw - proc proc rw
30 22 0:40 / /srv/my\\040data rw shared:5 - nfs4 server:/export rw
31 22 0:41 / /srv rw - xfs /dev/sdb rw
32 31 0:42 / /srv/local rw - tmpfs tmpfs rw
33 31 0:43 / /srv/local rw - btrfs /dev/sdc rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/x", "ext4"),
        ("/srv/my data/lockstep", "nfs4"),
        ("/srv/my dat", "xfs"),
        ("/srv/local/deep/er", "btrfs"),
    ],
    ids=[
        "the root",
        "a point with a space",
        "a name that only begins like a point",
        "the last of two mounts",
    ],
)
def test_the_file_system_of_a_path(path: str, kind: str) -> None:
    assert filesystem_of(Path(path), MOUNTS) == kind


def machine(data: Path, binary: str = "terraform") -> LocalMachine:
    return LocalMachine(data, f"sqlite:///{data / 'lock step.db'}", Tool(binary=binary))


async def test_before_the_first_start_nothing_is_there_and_nothing_is_made(tmp_path: Path) -> None:
    found = machine(tmp_path / "data")
    assert (await found.directory()).exists is False
    assert (await found.key()).exists is False
    database = await found.database()
    assert (database.schema, database.problem) == (None, "")
    assert list(tmp_path.iterdir()) == []


async def test_a_database_in_use_is_read_beside_its_writer(tmp_path: Path) -> None:
    vault = KeyFileVault(tmp_path / "vault.key")
    found = machine(tmp_path)
    store = open_store(found.database_url, vault)
    facts = await found.database()
    store.close()
    assert (facts.schema, facts.same_key, facts.problem) == (SCHEMA, True, "")
    (tmp_path / "vault.key").unlink()
    assert (await found.database()).same_key is None
    KeyFileVault(tmp_path / "vault.key")
    assert (await found.database()).same_key is False


async def test_what_is_no_database_is_named(tmp_path: Path) -> None:
    found = machine(tmp_path)
    (tmp_path / "lock step.db").write_bytes(b"no database at all" * 100)
    assert "not a database" in (await found.database()).problem
    (tmp_path / "lock step.db").unlink()
    sqlite3.connect(tmp_path / "lock step.db").close()
    assert (await found.database()).schema is None


async def test_a_password_is_not_in_what_is_shown(tmp_path: Path) -> None:
    address = "postgresql://lockstep:hush@127.0.0.1:9/lockstep"
    facts = await LocalMachine(tmp_path, address, Tool()).database()
    assert "cannot be read" in facts.problem
    assert "127.0.0.1:9" in facts.address
    assert "hush" not in repr(facts)
    wrong = await LocalMachine(tmp_path, "mysql://lockstep:hush@db", Tool()).database()
    assert "must begin with" in wrong.problem
    assert "hush" not in repr(wrong)


async def test_programs_of_this_machine(tmp_path: Path) -> None:
    found = machine(tmp_path)
    assert (await found.git()).version.startswith("git version 2.")
    assert (await found.terraform()).version.split()[0] in ("terraform", "tofu")
    assert "not found on PATH" in (await machine(tmp_path, "no-such-terraform").terraform()).problem
    script = tmp_path / "old"
    script.write_text("#!/bin/sh\necho 'Terraform v1.5.7'\n")
    script.chmod(0o755)
    assert "install 1.6 or newer" in (await machine(tmp_path, str(script)).terraform()).problem


async def test_a_key_file_for_everybody_is_a_problem(tmp_path: Path) -> None:
    KeyFileVault(tmp_path / "vault.key")
    assert (await machine(tmp_path).key()).problem == ""
    (tmp_path / "vault.key").chmod(0o644)
    assert "mode 0644" in (await machine(tmp_path).key()).problem
