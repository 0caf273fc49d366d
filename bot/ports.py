"""What we need of the world, as Protocols, and the errors that it may raise.

Every method that is asked twice with the same arguments ends in the same state of the world, or says in its
docstring why not. Errors are of two kinds only, by what the caller can do about them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bot.domain.argocd import Application
from bot.domain.files import CommitId, Entry, File, TreeId
from bot.domain.github import (
    CheckRun,
    Comment,
    CommentId,
    DeploymentId,
    DeploymentState,
    Permission,
    PostedCheck,
    PullNumber,
    PullRequest,
    Repository,
    Review,
)
from bot.domain.terraform import ApplyOutcome, OutputOutcome, PlanOutcome
from bot.domain.values import Json


class TransientError(Exception):
    """The world may answer later; `retry_after` is in seconds, None if it did not say."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TerminalError(Exception):
    """No retry can help; the message says what was tried, on what, what came back and what to do."""


class Clock(Protocol):
    """The time, as an aware datetime in UTC."""

    def now(self) -> datetime: ...


# -- git -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Signature:
    """Who made a commit and when."""

    name: str
    email: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as git has it; `trailers` are the last paragraph's, keys as written."""

    id: CommitId
    tree: TreeId
    parents: tuple[CommitId, ...]
    message: str
    author: Signature
    committer: Signature
    trailers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Merged:
    """The tree of a merge without conflicts."""

    tree: TreeId


@dataclass(frozen=True, slots=True)
class Conflicted:
    """The merge has conflicts in these paths."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pushed:
    """The branch now points at the commit."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The branch was not where it was expected; it is at `tip` now (None: it does not exist)."""

    tip: CommitId | None


@dataclass(frozen=True, slots=True)
class Refused:
    """The server's rules refuse the push; `message` is what it said."""

    message: str


PushOutcome = Pushed | Moved | Refused


class Git(Protocol):
    """Git by a bare mirror per repository; no work tree. `url` is an https (or loopback http) address.

    Raises TransientError if the server cannot be reached, TerminalError if access is refused or it does not exist.
    """

    async def fetch(self, url: str, *refs: str) -> None:
        """Bring branches and tags up to date; `refs` adds single refs such as `refs/pull/7/head`."""

    async def resolve(self, url: str, revision: str) -> CommitId | None:
        """The commit of a branch, tag, ref or id in the mirror (a branch first); empty means the default branch."""

    async def default_branch(self, url: str) -> str:
        """The name of the branch that the server's HEAD points to, asked now."""

    async def list_files(self, url: str, tree: CommitId | TreeId) -> Mapping[str, Entry]:
        """Every path of a tree, submodules included."""

    async def read_files(self, url: str, entries: Mapping[str, Entry]) -> Mapping[str, File]:
        """The contents of these entries in one go (submodules are left out)."""

    async def write_tree(
        self, url: str, base: CommitId | TreeId | None, changes: Mapping[str, File | None]
    ) -> TreeId:
        """The tree that `base` becomes with these paths written (or removed where None)."""

    async def commit(
        self, url: str, tree: TreeId, parents: Sequence[CommitId], message: str, signature: Signature
    ) -> CommitId:
        """A commit object; the same arguments give the same id."""

    async def read_commit(self, url: str, commit: CommitId) -> Commit:
        """What a commit says."""

    async def log(
        self, url: str, base: CommitId | None, head: CommitId, *, limit: int = 250
    ) -> Sequence[Commit]:
        """Commits that `head` has and `base` has not, newest first."""

    async def merge_trees(self, url: str, ours: CommitId, theirs: CommitId) -> Merged | Conflicted:
        """The tree of merging two commits, as `git merge-tree --write-tree` gives it."""

    async def diff(
        self, url: str, before: CommitId | TreeId | None, after: CommitId | TreeId
    ) -> Sequence[tuple[str, Entry | None, Entry | None]]:
        """Paths that differ between two trees, renames not followed."""

    async def is_ancestor(self, url: str, ancestor: CommitId, descendant: CommitId) -> bool:
        """Whether `descendant` contains `ancestor`."""

    async def push(
        self, url: str, commit: CommitId | None, branch: str, *, expected: CommitId | None
    ) -> PushOutcome:
        """Move a branch with a lease; `commit` None deletes it, `expected` None means that it must not exist."""

    async def push_tag(self, url: str, commit: CommitId, tag: str, *, force: bool) -> PushOutcome:
        """Create or move a tag."""


# -- Terraform -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TerraformRun:
    """One directory of Terraform to be run, hermetically.

    `key` names the run's absolute work path and its lock among our own runs: the same for plan and apply of one
    state. `files` are paths relative to the checkout; `directory` and variable files lie inside it.
    `environment` and `secrets` reach the process; of `secrets` (name to value) every value is masked in all texts.
    """

    key: str
    files: Mapping[str, File]
    directory: str
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[tuple[str, str], ...] = ()
    variable_files: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    lock: bool = True
    lock_timeout: float = 0.0
    timeout: float = 3600.0


class Terraform(Protocol):
    """The real terraform or tofu binary, isolated.

    Raises TerminalError if it is missing, too old, or the tree is refused.
    """

    async def plan(self, run: TerraformRun) -> PlanOutcome:
        """Init and plan; writes nothing but, with `lock`, the state lock for the time of the run."""

    async def apply(self, run: TerraformRun, bundle: bytes) -> ApplyOutcome:
        """Apply a saved plan. Not repeatable: the caller records that it begins, and never begins twice."""

    async def output(self, run: TerraformRun) -> OutputOutcome:
        """Init and read the outputs from the state."""

    async def version(self) -> str:
        """Tool and version, such as `terraform 1.11.4`."""


# -- GitHub --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MergeDone:
    """The pull request is merged."""

    commit: CommitId


@dataclass(frozen=True, slots=True)
class MergeRefused:
    """GitHub does not merge it; `head_moved` tells that the expected SHA was not the head."""

    message: str
    head_moved: bool = False


class GitHub(Protocol):
    """One GitHub as our App sees it. Tokens are minted per call and narrowed.

    Raises TransientError (network, 5xx, rate limits with `retry_after`) and TerminalError (permission, not installed).
    A write that may have been done although the answer was lost is looked for before it is repeated.
    """

    def clone_url(self, repository: Repository) -> str:
        """The https address of a repository on this GitHub, for `Git`."""

    def repository_of(self, url: str) -> Repository | None:
        """The repository that a git address names, None if it lies elsewhere."""

    async def app_id(self) -> int: ...

    async def find_pull_request(
        self, repository: Repository, *, head_branch: str, state: str = "open"
    ) -> PullRequest | None:
        """The newest pull request of that head branch in our repository; state is open, closed or all."""

    async def find_pull_requests_of(self, repository: Repository, head: CommitId) -> Sequence[PullRequest]:
        """Open pull requests whose head is that commit."""

    async def get_pull_request(self, repository: Repository, number: PullNumber) -> PullRequest: ...

    async def list_pull_requests(self, repository: Repository) -> Sequence[PullRequest]:
        """All open pull requests."""

    async def list_pull_request_files(self, repository: Repository, number: PullNumber) -> Sequence[str]: ...

    async def open_pull_request(
        self, repository: Repository, *, head_branch: str, base_branch: str, title: str, body: str
    ) -> PullRequest:
        """Open it, or return the open one of that head and base."""

    async def update_pull_request(
        self,
        repository: Repository,
        number: PullNumber,
        *,
        title: str | None = None,
        body: str | None = None,
        state: str | None = None,
    ) -> None: ...

    async def set_labels(self, repository: Repository, number: PullNumber, labels: Sequence[str]) -> None: ...

    async def list_reviews(self, repository: Repository, number: PullNumber) -> Sequence[Review]:
        """All reviews, oldest first."""

    async def merge_pull_request(
        self,
        repository: Repository,
        number: PullNumber,
        *,
        head: CommitId,
        method: str,
        title: str,
        message: str,
    ) -> MergeDone | MergeRefused:
        """Merge with the expected head; already merged counts as done."""

    async def list_checks(self, repository: Repository, head: CommitId) -> Sequence[PostedCheck]:
        """Our App's newest check run of each name on a commit."""

    async def post_check(self, repository: Repository, check: CheckRun) -> PostedCheck:
        """Make the newest run of that name on that commit show this; a completed one is followed by a new run."""

    async def list_comments(self, repository: Repository, number: PullNumber) -> Sequence[Comment]: ...

    async def get_comment(self, repository: Repository, comment: CommentId) -> Comment | None: ...

    async def post_comment(
        self, repository: Repository, number: PullNumber, body: str, *, marker: str
    ) -> CommentId:
        """Make our comment with this hidden marker (put in front of the body) show the body; edit it if it is there."""

    async def react(self, repository: Repository, comment: CommentId, content: str) -> None:
        """Add a reaction such as `eyes`, `rocket`, `-1`, `confused`."""

    async def get_permission(self, repository: Repository, login: str) -> Permission: ...

    async def is_team_member(self, organisation: str, team: str, login: str) -> bool: ...

    async def create_deployment(
        self,
        repository: Repository,
        *,
        ref: CommitId,
        environment: str,
        production: bool,
        payload: Mapping[str, Json],
    ) -> DeploymentId: ...

    async def set_deployment_state(
        self,
        repository: Repository,
        deployment: DeploymentId,
        state: DeploymentState,
        *,
        description: str,
        log_url: str,
    ) -> None: ...

    async def list_repositories(self) -> Sequence[Repository]:
        """Every repository of every installation."""

    async def list_failed_deliveries(self, since: datetime) -> Sequence[tuple[int, str]]:
        """Webhook deliveries without a successful attempt: id for redelivery and delivery GUID."""

    async def redeliver(self, delivery: int) -> None: ...


# -- Argo CD, registries, secrets ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SyncStarted:
    """Argo CD accepted the operation."""


@dataclass(frozen=True, slots=True)
class SyncRefused:
    """It did not; `busy` tells that another operation is running, else the message says why."""

    message: str
    busy: bool = False


class ArgoCD(Protocol):
    """One Argo CD server by its REST API.

    Raises TransientError, and TerminalError for a refused token, a missing permission or an unknown server.
    """

    async def get_application(
        self, server: str, name: str, *, namespace: str = "", project: str = "", refresh: str = ""
    ) -> Application | None:
        """Read an Application; refresh is empty, `normal` or `hard`. None if it does not exist."""

    async def list_applications(
        self, server: str, selector: str, *, namespace: str = "", project: str = ""
    ) -> Sequence[Application]:
        """Applications whose labels match a Kubernetes selector."""

    async def sync(
        self, server: str, application: Application, *, revision: str, infos: Mapping[str, str]
    ) -> SyncStarted | SyncRefused:
        """Start an operation that carries `infos`; look for a running one of ours before asking."""

    async def patch_sources(self, server: str, application: Application, sources: Sequence[Json]) -> None:
        """Replace the sources of an Application by these."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What a registry tells of one tag; `digest` is that of the index where the tag is one."""

    tag: str
    digest: str
    created_at: datetime | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    platforms: tuple[str, ...] = ()


class Registry(Protocol):
    """OCI registries. Raises TransientError (network, 429 with `retry_after`, 5xx) and TerminalError (refused)."""

    async def list_tags(self, repository: str, *, insecure: bool = False) -> Sequence[str]:
        """All tags of `host/path`, in the registry's order; an unknown repository has none."""

    async def find_image(self, repository: str, tag: str, *, insecure: bool = False) -> ImageFacts | None:
        """Digest and metadata of one tag, None if it does not exist; metadata is cached by digest."""


class Secrets(Protocol):
    """Secrets and ConfigMaps by project and name: documents, a directory of files, environment variables."""

    def secret(self, project: str, name: str) -> Mapping[str, str] | None: ...

    def config_map(self, project: str, name: str) -> Mapping[str, str] | None: ...


class Vault(Protocol):
    """Encryption and keyed hashes with keys that are not in the database."""

    def seal(self, data: bytes, purpose: str) -> bytes:
        """Encrypt and authenticate; `purpose` must be the same when it is opened."""

    def open(self, sealed: bytes, purpose: str) -> bytes:
        """Raises TerminalError if it was sealed with another key or for another purpose."""

    def digest(self, data: bytes) -> str:
        """A keyed hash, 64 hex digits; equal for equal data as long as the key is kept."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request of the `http` step; times are seconds."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    timeout: float = 10.0
    insecure: bool = False
    proxy: str = ""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What came back; header names are as received, the body is bounded by the adapter."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Http(Protocol):
    """Requests to addresses that a pipeline names; link-local targets are refused.

    Raises TransientError and TerminalError.
    """

    async def send(self, request: HttpRequest) -> HttpResponse: ...


class Dns(Protocol):
    """Names to addresses and aliases."""

    async def resolve(self, name: str) -> tuple[str, ...]:
        """Canonical name and addresses, empty if it does not resolve."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that steps and workflows may ask of the world; each takes only what it declares."""

    clock: Clock
    git: Git
    terraform: Terraform
    github: GitHub
    argocd: ArgoCD
    registry: Registry
    secrets: Secrets
    vault: Vault
    http: Http
    dns: Dns


__all__ = [
    "ArgoCD",
    "Clock",
    "Commit",
    "Conflicted",
    "Dns",
    "Git",
    "GitHub",
    "Http",
    "HttpRequest",
    "HttpResponse",
    "ImageFacts",
    "MergeDone",
    "MergeRefused",
    "Merged",
    "Moved",
    "Ports",
    "PushOutcome",
    "Pushed",
    "Refused",
    "Registry",
    "Secrets",
    "Signature",
    "SyncRefused",
    "SyncStarted",
    "TerminalError",
    "Terraform",
    "TerraformRun",
    "TransientError",
    "Vault",
]
