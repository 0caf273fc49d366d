"""What an apply needs of its plan, sealed: the plan file, the lock file, and files that planning made in the tree."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.files import File, Mode
from bot.ports import TerminalError, Vault

_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Bundle:
    """A saved plan; `version` is tool and version, `files` are paths in the checkout."""

    version: str
    directory: str
    plan: bytes
    files: Mapping[str, File]


def seal_bundle(bundle: Bundle, key: str, vault: Vault) -> bytes:
    """The bundle as bytes that only this vault opens, and only for the same run key."""
    paths = sorted(bundle.files)
    manifest = {
        "schema": _SCHEMA,
        "version": bundle.version,
        "directory": bundle.directory,
        "files": [[path, bundle.files[path].mode.value] for path in paths],
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bundle.json", json.dumps(manifest))
        archive.writestr("plan", bundle.plan)
        for number, path in enumerate(paths):
            archive.writestr(f"files/{number}", bundle.files[path].data)
    return vault.seal(content.getvalue(), _purpose(key))


def open_bundle(sealed: bytes, key: str, vault: Vault) -> Bundle:
    """The bundle that was sealed for this run key. Raises TerminalError if it is not one."""
    content = vault.open(sealed, _purpose(key))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        manifest = json.loads(archive.read("bundle.json"))
        if manifest["schema"] != _SCHEMA:
            raise TerminalError(
                f"The saved plan of {key} has the format {manifest['schema']}, not {_SCHEMA}; plan it again."
            )
        files = {
            path: File(archive.read(f"files/{number}"), Mode(mode))
            for number, (path, mode) in enumerate(manifest["files"])
        }
        return Bundle(manifest["version"], manifest["directory"], archive.read("plan"), files)


def _purpose(key: str) -> str:
    return f"terraform plan of {key}"
