"""The vault: what it seals, who may read its keys, and how a key is rotated."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bot.adapters.vault import KeyFileVault
from bot.ports import TerminalError

OLD = f"old {'11' * 32}\n"
NEW = f"new {'22' * 32}\n"


def write_keys(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_what_is_sealed_can_be_opened_again(tmp_path: Path) -> None:
    vault = KeyFileVault(tmp_path / "a/key")
    sealed = vault.seal(b"a plan", "plan of x")
    assert b"a plan" not in sealed
    assert vault.open(sealed, "plan of x") == b"a plan"
    assert KeyFileVault(tmp_path / "a/key").open(sealed, "plan of x") == b"a plan"
    assert vault.seal(b"a plan", "plan of x") != sealed
    assert vault.open(vault.seal(b"", ""), "") == b""


def test_the_key_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "key"
    KeyFileVault(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["key"]


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o644, 0o660])
def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = write_keys(tmp_path / "key", OLD, mode)
    with pytest.raises(TerminalError, match=f"chmod 600 {path}"):
        KeyFileVault(path)


def test_another_purpose_or_a_changed_byte_does_not_open(tmp_path: Path) -> None:
    vault = KeyFileVault(tmp_path / "key")
    sealed = vault.seal(b"a plan", "plan of x")
    with pytest.raises(TerminalError, match="cannot be opened"):
        vault.open(sealed, "plan of y")
    for position in range(len(sealed)):
        changed = sealed[:position] + bytes([sealed[position] ^ 1]) + sealed[position + 1 :]
        with pytest.raises(TerminalError):
            vault.open(changed, "plan of x")
    for length in range(len(sealed)):
        with pytest.raises(TerminalError):
            vault.open(sealed[:length], "plan of x")


def test_a_rotated_key_seals_and_the_old_one_still_opens(tmp_path: Path) -> None:
    path = write_keys(tmp_path / "key", OLD)
    before = KeyFileVault(path)
    sealed, digest = before.seal(b"x", "p"), before.digest(b"x")
    write_keys(path, "# newest first\n" + NEW + OLD)
    after = KeyFileVault(path)
    assert after.open(sealed, "p") == b"x"
    assert after.digest(b"x") == digest, "what was compared before can still be compared"
    with pytest.raises(TerminalError, match="'new'"):
        before.open(after.seal(b"x", "p"), "p")
    with pytest.raises(TerminalError, match="'old'"):
        KeyFileVault(write_keys(path, NEW)).open(sealed, "p")


def test_a_digest_is_keyed(tmp_path: Path) -> None:
    one, two = KeyFileVault(tmp_path / "one"), KeyFileVault(tmp_path / "two")
    assert one.digest(b"x") == one.digest(b"x")
    assert one.digest(b"x") != one.digest(b"y")
    assert one.digest(b"x") != two.digest(b"x")
    assert len(one.digest(b"x")) == 64


@pytest.mark.parametrize(
    "text", ["", "\n", "only-a-name", "a 1234", f"a {'zz' * 32}", OLD + OLD, f"ä {'11' * 32}"]
)
def test_a_file_that_is_not_a_key_file_is_refused(tmp_path: Path, text: str) -> None:
    path = write_keys(tmp_path / "key", text)
    with pytest.raises(TerminalError) as caught:
        KeyFileVault(path)
    assert "11" * 32 not in str(caught.value)


def test_starts_at_the_same_time_end_with_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        vaults = list(pool.map(lambda _: KeyFileVault(tmp_path / "key"), range(16)))
    assert len({vault.digest(b"x") for vault in vaults}) == 1
