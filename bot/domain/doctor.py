"""What is wrong with an installation, and how to mend it: judgements over facts about this machine and the pipeline.

Those about GitHub are in `doctor_github`. A judgement of something that is in order says so too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bot.domain.argocd import AUTHORIZED
from bot.domain.doctor_facts import (
    ApplicationFacts,
    ConfigFacts,
    DatabaseFacts,
    DirectoryFacts,
    IsolationFacts,
    KeyFacts,
    ToolFacts,
)

_LITTLE = 100 * 1024 * 1024
_ENOUGH = 1024 * 1024 * 1024
_REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "lustre", "afs"})
"""File systems whose locks SQLite and git cannot rely on (SQLite, "How To Corrupt An SQLite Database File")."""
_OLDEST_GIT = (2, 38)
_MOST_ERRORS = 10


class Level(StrEnum):
    """How a finding is to be taken; only a failure must be mended, `unknown` is what could not be looked at."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the diagnosis: which check, of what, how it is, and what to do (empty if nothing)."""

    check: str
    subject: str
    level: Level
    message: str
    remedy: str = ""


def good(check: str, subject: str, message: str) -> Finding:
    """Nothing to do."""
    return Finding(check, subject, Level.OK, message)


def warn(check: str, subject: str, message: str, remedy: str) -> Finding:
    """Something that somebody should look at."""
    return Finding(check, subject, Level.WARNING, message, remedy)


def fail(check: str, subject: str, message: str, remedy: str) -> Finding:
    """Something that must be mended."""
    return Finding(check, subject, Level.FAILURE, message, remedy)


def unknown(check: str, subject: str, message: str, remedy: str = "") -> Finding:
    """Something that could not be looked at."""
    return Finding(check, subject, Level.UNKNOWN, message, remedy)


def must_mend(findings: Iterable[Finding]) -> bool:
    """Whether anything must be mended."""
    return any(finding.level is Level.FAILURE for finding in findings)


def judge_settings(problems: Sequence[str]) -> list[Finding]:
    """The settings, of which each problem names its variable; with any, nothing else can be looked at."""
    if not problems:
        return [good("settings", "", "complete")]
    found = []
    for problem in problems:
        of_app = re.match(r"LOCKSTEP_(APP_ID|PRIVATE_KEY|WEBHOOK_SECRET)\b.* is missing", problem)
        remedy = "set it, or run `lockstep setup`" if of_app else "correct it in the bot's environment"
        found.append(fail("settings", "", problem, remedy))
    return [*found, unknown("everything else", "", "cannot be looked at before the settings are complete")]


# -- this machine ----------------------------------------------------------------------------------------------------


def judge_directory(facts: DirectoryFacts) -> list[Finding]:
    """The data directory: ours alone, writable, on a local disk with room."""
    check, path = "data directory", facts.path
    if not facts.exists:
        return [
            warn(check, path, "does not exist yet", "nothing, if this bot never ran; else set LOCKSTEP_DATA")
        ]
    found = []
    if not facts.writable:
        found.append(
            fail(check, path, "cannot be written to", f"give it to the bot's user: chown -R USER {path}")
        )
    if facts.mode & 0o022:
        found.append(
            fail(check, path, f"can be written to by others (mode {facts.mode:04o})", f"chmod go-w {path}")
        )
    if facts.filesystem in _REMOTE:
        found.append(
            fail(check, path, f"lies on {facts.filesystem}, whose locks are not reliable", "use a local disk")
        )
    if facts.free < _ENOUGH:
        judge = fail if facts.free < _LITTLE else warn
        found.append(
            judge(check, path, f"{facts.free // 1024**2} MiB are free", "make room; 1 GiB should be free")
        )
    return found or [good(check, path, f"ours, local ({facts.filesystem or 'disk'}), with room")]


def judge_key(facts: KeyFacts) -> list[Finding]:
    """The vault's key file."""
    if facts.problem:
        return [fail("vault key", facts.path, facts.problem, "mend the file as it says, or restore it")]
    if not facts.exists:
        return [
            warn(
                "vault key", facts.path, "does not exist yet", "keep a copy once the first start has made it"
            )
        ]
    return [good("vault key", facts.path, "only we can read it")]


def judge_database(facts: DatabaseFacts) -> list[Finding]:
    """The database: reachable, of a schema that we know, written with our key."""
    check, address = "database", facts.address
    if facts.problem:
        return [fail(check, address, facts.problem, "start it, or correct LOCKSTEP_DATABASE")]
    if facts.schema is None:
        return [good(check, address, "has no tables yet; the first start makes them")]
    if facts.schema > facts.newest:
        said = f"has schema {facts.schema}, this program knows {facts.newest}"
        return [fail(check, address, said, "start the newer program that wrote it")]
    if facts.same_key is False:
        remedy = "restore the vault.key that it was written with, or name the right database"
        return [fail(check, address, "was written with another key file", remedy)]
    return [good(check, address, f"reachable, schema {facts.schema}")]


def judge_terraform(facts: ToolFacts) -> list[Finding]:
    """The Terraform or OpenTofu binary; too old a version is a problem of the facts."""
    if facts.problem:
        remedy = "install terraform or tofu 1.6 or newer, and name it by LOCKSTEP_TERRAFORM"
        return [fail("terraform", "", facts.problem, remedy)]
    return [good("terraform", "", facts.version)]


def judge_git(facts: ToolFacts) -> list[Finding]:
    """The git binary, 2.38 or newer (`merge-tree --write-tree`)."""
    match = re.search(r"(\d+)\.(\d+)", facts.version)
    if facts.problem or match is None:
        return [fail("git", "", facts.problem or f"says {facts.version!r}", "install git 2.38 or newer")]
    if (int(match[1]), int(match[2])) < _OLDEST_GIT:
        return [fail("git", "", f"{facts.version} is too old", "install git 2.38 or newer")]
    return [good("git", "", facts.version)]


def judge_isolation(facts: IsolationFacts) -> list[Finding]:
    """Whether a plan can read what the bot can read."""
    if facts.wanted == "none":
        remedy = "unset LOCKSTEP_ISOLATION" + (
            "" if facts.landlock else ", and run on Linux 5.13 or newer with Landlock on"
        )
        return [
            fail("isolation", "", "Terraform runs without any: a plan can read the bot's secrets", remedy)
        ]
    if not facts.landlock:
        remedy = (
            "run on Linux 5.13 or newer with Landlock on (in a container: its seccomp profile must allow it)"
        )
        return [fail("isolation", "", "this kernel offers no Landlock, so no plan can run", remedy)]
    return [good("isolation", "", f"Landlock, version {facts.landlock}")]


# -- what a pipeline names -------------------------------------------------------------------------------------------


def judge_config(facts: ConfigFacts) -> list[Finding]:
    """The pipeline: readable and valid."""
    check, source = "configuration", facts.source
    if facts.problem:
        return [fail(check, source, facts.problem, "correct LOCKSTEP_CONFIG, or install the App there")]
    if facts.errors:
        shown = [fail(check, source, error, "correct it there") for error in facts.errors[:_MOST_ERRORS]]
        rest = len(facts.errors) - len(shown)
        more = (
            [fail(check, source, f"{rest} more errors", "`lockstep validate DIR` shows all")] if rest else []
        )
        return shown + more
    if not facts.stages:
        return [
            warn(check, source, "has no Stage", "write a pipeline; config/ of Lockstep is one to begin with")
        ]
    if facts.warnings:
        remedy = "`lockstep validate DIR` shows them"
        return [warn(check, source, f"{facts.stages} Stage(s), {facts.warnings} warning(s)", remedy)]
    return [good(check, source, f"{facts.stages} Stage(s), valid")]


def judge_application(facts: ApplicationFacts) -> list[Finding]:
    """An Application: there, and it lets the Stage change it."""
    subject, wanted = f"{facts.server}/{facts.name}", f"{facts.project}:{facts.stage}"
    if facts.found is None:
        remedy = f"create it, or correct the name in Stage {facts.stage}"
        return [fail("application", subject, f"Stage {wanted} names it, and it does not exist", remedy)]
    allowed = [part.strip() for part in facts.found.annotations.get(AUTHORIZED, "").split(",")]
    if wanted not in allowed:
        remedy = f'its owner must set the annotation {AUTHORIZED}: "{wanted}"'
        return [fail("application", subject, f"does not let Stage {wanted} change it", remedy)]
    return [good("application", subject, f"lets Stage {wanted} change it")]
