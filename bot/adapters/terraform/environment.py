"""The environment and the command-line configuration of a Terraform child: an allow-list, nothing inherited."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.ports import TerminalError, TerraformRun

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_RESERVED = re.compile(
    r"TF_CLI_ARGS.*|TF_CLI_CONFIG_FILE|TERRAFORM_CONFIG|TF_DATA_DIR|TF_PLUGIN_CACHE.*|TF_REATTACH_PROVIDERS"
    r"|TF_LOG.*|TF_INPUT|TF_IN_AUTOMATION|TF_APPEND_USER_AGENT|CHECKPOINT_DISABLE|PATH|HOME|TMPDIR|PWD|SHELL"
    r"|LD_.*|BASH_ENV|ENV|IFS|PYTHON.*|LOCKSTEP_.*"
)
"""Names that a pipeline may not set: they would change which program runs, or how."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

READABLE = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt/homebrew",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/localtime",
    "/etc/alternatives",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
)
"""What a run may read and execute besides its own directory: system programs, libraries, certificates, resolver."""


@dataclass(frozen=True, slots=True)
class Place:
    """The directories of one run: `work` is the tree, `scratch` all that Terraform needs beside it."""

    work: Path
    scratch: Path

    @property
    def data(self) -> Path:
        """`TF_DATA_DIR`, outside the tree so that nothing committed there is ever executed."""
        return self.scratch / "data"

    @property
    def plan(self) -> Path:
        """The plan file."""
        return self.scratch / "plan"

    @property
    def configuration(self) -> Path:
        """The command-line configuration."""
        return self.scratch / "cli.tfrc"


def environment_of(run: TerraformRun, place: Place, passed: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a child; `passed` is what the operator passes to every run.

    Raises TerminalError for a name that a pipeline may not set.
    """
    given = {**run.environment, **run.secrets}
    for name, value in given.items():
        if _RESERVED.fullmatch(name) or not _NAME.fullmatch(name) or "\0" in value:
            raise TerminalError(
                f"The environment variable {name!r} cannot be set for Terraform; remove it from `env`."
            )
    return {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ALLOW_PROTOCOL": "https:ssh",
        "GIT_LFS_SKIP_SMUDGE": "1",
        **passed,
        **given,
        "PATH": _PATH,
        "LANG": "C.UTF-8",
        "HOME": str(place.scratch / "home"),
        "TMPDIR": str(place.scratch / "tmp"),
        "TF_CLI_CONFIG_FILE": str(place.configuration),
        "TF_DATA_DIR": str(place.data),
        "TF_IN_AUTOMATION": "1",
        "TF_INPUT": "0",
        "CHECKPOINT_DISABLE": "1",
    }


def configuration_text(mirror: Path | None, cache: Path | None) -> str:
    """The command-line configuration; providers come from the mirror if it has them, else from their registry.

    Naming the installation methods switches the implied ones off, among them the tree's own `terraform.d/plugins`.
    """
    lines = ["disable_checkpoint = true"]
    if cache is not None:
        lines.append(f"plugin_cache_dir = {json.dumps(str(cache))}")
    lines.append("provider_installation {")
    exclude = ""
    if mirror is not None:
        lines += ["  filesystem_mirror {", f"    path = {json.dumps(str(mirror))}", "  }"]
        # Terraform asks every method that may have a provider, and fails if one of them cannot answer.
        names = sorted("/".join(path.parts[-3:]) for path in mirror.glob("*/*/*") if path.is_dir())
        exclude = f" exclude = {json.dumps(names)} " if names else ""
    lines += [f"  direct {{{exclude}}}", "}", ""]
    return "\n".join(lines)
