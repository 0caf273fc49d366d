"""The operations repository that the sandbox starts with: real files, with the sandbox's addresses in place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent / "operations"
"""The files as they are shipped, with placeholder addresses; `config` there is the `config/` of this repository."""

STAGES: Final = ("dev", "staging", "prod")

ACCOUNT_STATE: Final = "acme/account"
"""Name of the state that the Stages' Terraform reads the account's quotas from."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the sandbox's servers are: base URLs without a slash at the end, and the registry as `host:port`."""

    github: str
    registry: str
    cloud: str

    def replacements(self) -> Mapping[str, str]:
        """What stands in the shipped files, and what to write instead."""
        return {
            "https://github.sandbox.example": self.github,
            "registry.sandbox.example": self.registry,
            "https://state.sandbox.example": self.cloud,
        }


def read_operations(addresses: Addresses) -> dict[str, bytes]:
    """The repository's files by path, addressed to a running sandbox."""
    files: dict[str, bytes] = {}
    # `config` is a link to the folder at the top of this repository, which Path.rglob would not enter.
    for folder, folders, names in os.walk(FOLDER, followlinks=True):
        folders.sort()
        for name in sorted(names):
            file = Path(folder) / name
            files[file.relative_to(FOLDER).as_posix()] = address(file.read_text(), addresses).encode()
    return files


def address(text: str, addresses: Addresses) -> str:
    """`text` with every placeholder replaced."""
    for placeholder, real in addresses.replacements().items():
        text = text.replace(placeholder, real)
    return text


def account_state() -> dict[str, Any]:
    """The state that the platform team keeps for the account: one output, `max_memory_mb`."""
    return {
        "version": 4,
        "terraform_version": "1.11.4",
        "serial": 1,
        "lineage": "5d0a6d8e-6f0a-4a52-9a4e-acc000000001",
        "outputs": {"max_memory_mb": {"value": 3008, "type": "number"}},
        "resources": [],
        "check_results": None,
    }
