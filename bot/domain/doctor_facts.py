"""What `doctor` finds out about an installation, before anything is judged.

A `problem` says why a thing is not known, or cannot be used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.argocd import Application
from bot.domain.github import Repository

# -- this machine ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DirectoryFacts:
    """The data directory: mode bits, whether we can write there, free bytes, and the type of its file system."""

    path: str
    exists: bool
    mode: int = 0
    writable: bool = False
    free: int = 0
    filesystem: str = ""


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """The key file of the vault; `problem` is what it refuses to be opened for."""

    path: str
    exists: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """The database (no password in `address`); `schema` is None before its first use.

    `same_key` tells whether it was written with our key file, None if that cannot be told.
    """

    address: str
    newest: int
    """The schema that this program knows."""
    schema: int | None = None
    same_key: bool | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """A program of this machine: what it says it is, or why it cannot be used."""

    version: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class IsolationFacts:
    """How Terraform is isolated (`landlock` or `none`), and which version of Landlock the kernel has (0: none)."""

    wanted: str
    landlock: int


# -- GitHub ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HostFacts:
    """GitHub's API: whether it answers as one, and by how many seconds our clock is ahead of its."""

    url: str
    is_github: bool = False
    ahead: float | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class AppFacts:
    """Our App with the rights and events of its settings page."""

    id: int
    slug: str = ""
    page: str = ""
    permissions: Mapping[str, str] | None = None
    events: frozenset[str] = frozenset()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class InstallationFacts:
    """The App on one account, with what that account's owner has granted."""

    account: str
    page: str
    permissions: Mapping[str, str]
    events: frozenset[str]
    suspended: bool = False


@dataclass(frozen=True, slots=True)
class HookFacts:
    """Where the App's webhooks go, and how the newest deliveries were answered (HTTP status, newest first)."""

    url: str
    content_type: str = "json"
    verifies: bool = True
    statuses: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RequiredCheck:
    """A check that must be green; `app` is None if anybody may post it."""

    name: str
    app: int | None


@dataclass(frozen=True, slots=True)
class BranchFacts:
    """The rules of a branch that promotions go to.

    `bypass` is whether the App may pass all rules (`always`, `pull_requests_only`, `never`, empty if there are none);
    `pushes` whether a policy has the App push there, `merge_commits` whether the repository allows them.
    """

    repository: Repository
    branch: str
    checks: tuple[RequiredCheck, ...] = ()
    strict: bool = False
    reviews: int = 0
    bypass: str = ""
    kinds: frozenset[str] = frozenset()
    """GitHub's names of the rules that hold."""
    merge_methods: frozenset[str] = frozenset({"merge", "squash", "rebase"})
    """Those that both the repository and its rules allow."""
    pushes: bool = True
    classic: bool = False
    """Whether the branch has the older kind of protection, which an App cannot read in full."""


# -- what a pipeline names -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConfigFacts:
    """The pipeline at its source: how much it holds, and every error as `place: message`."""

    source: str
    stages: int = 0
    errors: tuple[str, ...] = ()
    warnings: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ApplicationFacts:
    """An Application of Argo CD that a Stage names; None if it does not exist."""

    server: str
    name: str
    project: str
    stage: str
    found: Application | None
