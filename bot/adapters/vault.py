"""`KeyFileVault`: the port `Vault` with keys from one file of the operator's.

The file holds one key a line, `ID HEX` with 64 hex digits; the first seals, every one opens, so a key is rotated by
putting a new line on top and removed when nothing sealed with the old one is left. Keyed hashes always use the
**last** line: they must stay equal for as long as anything is compared with them, so a rotation leaves it in place.

A sealed value is `LKV1`, the length of the key id (one byte), the key id, a nonce of 12 bytes, and AES-256-GCM's
ciphertext; header and purpose are authenticated with it.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from bot.ports import TerminalError

_MAGIC = b"LKV1"
_NONCE = 12


class KeyFileVault:
    """The port `Vault`; the key file is made on first use, readable by its owner alone.

    Raises TerminalError if the file can be read by others or is not a key file.
    """

    def __init__(self, path: Path) -> None:
        keys = _read_keys(path) if path.exists() else _create_keys(path)
        self._sealing = next(iter(keys))
        self._keys = {name: _derive(key, b"lockstep seal") for name, key in keys.items()}
        self._digest_key = _derive(list(keys.values())[-1], b"lockstep digest")

    def seal(self, data: bytes, purpose: str) -> bytes:
        """See `Vault.seal`."""
        name = self._sealing.encode()
        header = _MAGIC + bytes([len(name)]) + name
        nonce = secrets.token_bytes(_NONCE)
        return (
            header + nonce + AESGCM(self._keys[self._sealing]).encrypt(nonce, data, _bound(header, purpose))
        )

    def open(self, sealed: bytes, purpose: str) -> bytes:
        """See `Vault.open`."""
        start = len(_MAGIC) + 1
        if len(sealed) < start or not sealed.startswith(_MAGIC):
            raise TerminalError(
                "What was to be opened was not sealed by Lockstep, or is cut off; make it again."
            )
        end = start + sealed[start - 1]
        name = sealed[start:end].decode("ascii", "replace")
        key = self._keys.get(name)
        if key is None:
            raise TerminalError(
                f"It was sealed with the key {name!r}, which is not in the key file; put it back, or make this again."
            )
        nonce, content = sealed[end : end + _NONCE], sealed[end + _NONCE :]
        try:
            return AESGCM(key).decrypt(nonce, content, _bound(sealed[:end], purpose))
        except (InvalidTag, ValueError) as error:
            raise TerminalError(
                f"It cannot be opened as {purpose!r} with the key {name!r}: it was changed or is of another purpose;"
                " make it again."
            ) from error

    def digest(self, data: bytes) -> str:
        """See `Vault.digest`: HMAC-SHA256."""
        return hmac.digest(self._digest_key, data, "sha256").hex()


def _bound(header: bytes, purpose: str) -> bytes:
    return header + b"\0" + purpose.encode()


def _derive(key: bytes, purpose: bytes) -> bytes:
    return HKDF(SHA256(), 32, None, purpose).derive(key)


def _create_keys(path: Path) -> dict[str, bytes]:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    name, key = f"k{secrets.token_hex(4)}", secrets.token_bytes(32)
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{name} {key.hex()}\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        # A link fails where a rename would replace the key that a concurrent start has just made.
        os.link(fresh, path)
    except FileExistsError:
        return _read_keys(path)
    finally:
        fresh.unlink()
    return {name: key}


def _read_keys(path: Path) -> dict[str, bytes]:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise TerminalError(
            f"The key file {path} can be read by others (mode {mode:04o}); run: chmod 600 {path}"
        )
    keys: dict[str, bytes] = {}
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        parts = line.split()
        if not parts or line.lstrip().startswith("#"):
            continue
        try:
            name, digits = parts
            key = bytes.fromhex(digits)
        except ValueError:
            name, key = "", b""
        if len(key) != 32 or not 0 < len(name) < 100 or not name.isascii() or name in keys:
            # The line itself is not repeated, since it may be a key with a slip in it.
            raise TerminalError(
                f"Line {number} of the key file {path} is not `ID HEX` (64 hex digits) with an id of its own; mend it."
            )
        keys[name] = key
    if not keys:
        raise TerminalError(
            f"The key file {path} has no key in it; restore it, or remove it to get a new one."
        )
    return keys
