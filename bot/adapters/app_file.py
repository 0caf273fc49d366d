"""The files of our App: the manifest that it is registered from, and the credentials that registering it gave.

The credentials are one JSON file in the data directory, mode 0600, so that they are there whole or not at all.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import yaml

from bot.domain.values import Json
from bot.payloads.reading import read_json
from bot.ports import AppCredentials, TerminalError

NAME = "github-app.json"
_MANIFEST = Path(__file__).parents[1] / "app.yaml"


def read_manifest() -> Mapping[str, Json]:
    """The App manifest that ships with the program (`app.yaml`)."""
    loaded: Mapping[str, Json] = yaml.safe_load(_MANIFEST.read_text())
    return loaded


@dataclass(frozen=True, slots=True)
class AppFile:
    """The credentials below a data directory. Every method blocks for as long as the disk takes."""

    directory: Path

    @property
    def path(self) -> Path:
        """Where they are."""
        return self.directory / NAME

    def read(self) -> AppCredentials | None:
        """The credentials, None if there are none.

        Raises TerminalError if others can read the file, or it is not what `write` makes.
        """
        try:
            mode = stat.S_IMODE(self.path.stat().st_mode)
            if mode & 0o077:
                raise TerminalError(
                    f"{self.path} can be read by others (mode {mode:04o}); run: chmod 600 {self.path}"
                )
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise TerminalError(f"{self.path} cannot be read: {error.strerror}") from error

        def fail(path: str, _message: str) -> Exception:
            # What stands there is not repeated, since it may be a secret.
            return TerminalError(
                f"{self.path} is damaged at {path or 'its start'}; restore it, or run `lockstep setup --replace`"
            )

        node = read_json(content, fail)
        texts = {item.name: node.text(item.name) for item in fields(AppCredentials) if item.name != "app_id"}
        return AppCredentials(app_id=node.number("app_id"), **texts)

    def prepare(self) -> None:
        """Make the directory, and make sure that `write` will succeed; raises TerminalError.

        To be called before GitHub gives anything out, since its secrets are shown once.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._write_beside(b"{}").unlink()
        except OSError as error:
            raise TerminalError(
                f"nothing can be written to {self.directory}: {error.strerror}; set LOCKSTEP_DATA to another"
            ) from error

    def sweep(self) -> None:
        """Remove what a crash left of a `write`; to be called while nobody else writes."""
        for left in self.directory.glob(f"{NAME}.*.new"):
            left.unlink(missing_ok=True)

    def write(self, credentials: AppCredentials, *, replace: bool = False) -> None:
        """Keep them, readable by us alone; raises TerminalError if there are others already, unless `replace`."""
        values = {item.name: getattr(credentials, item.name) for item in fields(AppCredentials)}
        try:
            fresh = self._write_beside(json.dumps(values, indent=2).encode() + b"\n")
            try:
                if replace:
                    os.replace(fresh, self.path)
                else:
                    # A link fails where a rename would replace what a twin has just written.
                    os.link(fresh, self.path)
            finally:
                fresh.unlink(missing_ok=True)
            self._sync_directory()
        except FileExistsError as error:
            raise TerminalError(f"{self.path} holds the credentials of an App already") from error
        except OSError as error:
            raise TerminalError(f"{self.path} cannot be written: {error.strerror}") from error

    def _write_beside(self, content: bytes) -> Path:
        fresh = self.path.with_name(f"{NAME}.{secrets.token_hex(4)}.new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return fresh

    def _sync_directory(self) -> None:
        descriptor = os.open(self.directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
