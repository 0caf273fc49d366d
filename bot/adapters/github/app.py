"""The port `GitHub` on GitHub's REST API, signed in as our App: one class that delegates by resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from urllib.parse import SplitResult, quote, urlsplit

from bot.adapters.github.accounts import Accounts
from bot.adapters.github.branch_rules import GitHubBranchRules
from bot.adapters.github.checks import Checks
from bot.adapters.github.comments import Comments
from bot.adapters.github.connection import Connection, GitHubSettings
from bot.adapters.github.deployments import Deployments
from bot.adapters.github.errors import NotFound
from bot.adapters.github.history import GitHubHistory
from bot.adapters.github.issues import GitHubIssues
from bot.adapters.github.pulls import Pulls
from bot.adapters.github.signed_push import GitHubSignedPush
from bot.adapters.github.tokens import Scope
from bot.adapters.github.workflows import GitHubWorkflows
from bot.domain.events import AppIdentity
from bot.domain.files import CommitId
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
from bot.domain.values import Json
from bot.ports import Clock, MergeDone, MergeRefused

_PORTS = {"http": 80, "https": 443}


class GitHubApp:
    """One GitHub as our App sees it; used within `async with`, on one event loop.

    Every call mints (or shares) a token that reaches one repository with the permissions of that call alone.
    What it raises, and what happens to writes whose answer is lost, is said at the port.
    """

    def __init__(self, settings: GitHubSettings, clock: Clock) -> None:
        self._settings = settings
        self._connection = Connection(settings, clock)
        self._pulls = Pulls(self._connection)
        self._checks = Checks(self._connection)
        self._comments = Comments(self._connection)
        self._deployments = Deployments(self._connection)
        self._accounts = Accounts(self._connection)
        self.branch_rules = GitHubBranchRules(self._connection)
        self.history = GitHubHistory(self._connection, self._comments)
        self.issues = GitHubIssues(self._connection, self._comments)
        self.signed_push = GitHubSignedPush(self._connection)
        self.workflows = GitHubWorkflows(self._connection, self._comments)

    async def __aenter__(self) -> GitHubApp:
        await self._connection.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        await self._connection.__aexit__(kind, error, trace)

    @property
    def remaining(self) -> Mapping[str, int]:
        """Requests that GitHub lets us make until its next reset, by installation, as of the last answer of each."""
        return dict(self._connection.remaining)

    # -- addresses and identity --------------------------------------------------------------------------------

    def clone_url(self, repository: Repository) -> str:
        return f"{self._settings.web_url.rstrip('/')}/{quote(repository.owner)}/{quote(repository.name)}.git"

    def repository_of(self, url: str) -> Repository | None:
        ours, theirs = urlsplit(self._settings.web_url), urlsplit(url.strip())
        if theirs.scheme not in _PORTS or _origin(ours) != _origin(theirs):
            return None
        base = ours.path.rstrip("/")
        if not theirs.path.startswith(f"{base}/"):
            return None
        parts = theirs.path.removeprefix(base).strip("/").removesuffix(".git").split("/")
        if len(parts) != 2 or not all(parts) or {".", ".."} & set(parts):
            return None
        return Repository(parts[0], parts[1])

    async def app_id(self) -> int:
        return self._settings.app_id

    async def identity(self, repository: Repository) -> AppIdentity:
        """The App's id with that of its bot account; any repository where it is installed will do."""
        return AppIdentity(self._settings.app_id, await self._comments.bot_user_id(repository))

    async def token_for(self, url: str, *, write: bool = True) -> str | None:
        """A token for git with contents read or write on that repository alone, valid for five more minutes at least.

        None if the address is not on this GitHub, or the App is not installed there: then git goes without.
        """
        repository = self.repository_of(url)
        if repository is None:
            return None
        scope = Scope((("contents", "write" if write else "read"),), repository)
        try:
            return await self._connection.tokens.token_for(scope)
        except NotFound:
            return None

    # -- pull requests -------------------------------------------------------------------------------------------

    async def find_pull_request(
        self, repository: Repository, *, head_branch: str, state: str = "open"
    ) -> PullRequest | None:
        return await self._pulls.find(repository, head_branch, state)

    async def find_pull_requests_of(self, repository: Repository, head: CommitId) -> Sequence[PullRequest]:
        return await self._pulls.find_of(repository, head)

    async def get_pull_request(self, repository: Repository, number: PullNumber) -> PullRequest:
        return await self._pulls.get(repository, number)

    async def list_pull_requests(self, repository: Repository) -> Sequence[PullRequest]:
        return await self._pulls.list_open(repository)

    async def list_pull_request_files(self, repository: Repository, number: PullNumber) -> Sequence[str]:
        return await self._pulls.list_files(repository, number)

    async def open_pull_request(
        self, repository: Repository, *, head_branch: str, base_branch: str, title: str, body: str
    ) -> PullRequest:
        return await self._pulls.open(
            repository, head_branch=head_branch, base_branch=base_branch, title=title, body=body
        )

    async def update_pull_request(
        self,
        repository: Repository,
        number: PullNumber,
        *,
        title: str | None = None,
        body: str | None = None,
        state: str | None = None,
    ) -> None:
        await self._pulls.update(repository, number, title=title, body=body, state=state)

    async def set_labels(self, repository: Repository, number: PullNumber, labels: Sequence[str]) -> None:
        await self._pulls.set_labels(repository, number, labels)

    async def list_reviews(self, repository: Repository, number: PullNumber) -> Sequence[Review]:
        return await self._pulls.list_reviews(repository, number)

    async def list_commit_authors(
        self, repository: Repository, number: PullNumber
    ) -> Mapping[CommitId, Sequence[str]]:
        return await self._pulls.list_commit_authors(repository, number)

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
        return await self._pulls.merge(
            repository, number, head=head, method=method, title=title, message=message
        )

    # -- checks and comments -------------------------------------------------------------------------------------

    async def list_checks(self, repository: Repository, head: CommitId) -> Sequence[PostedCheck]:
        return await self._checks.list_newest(repository, head)

    async def post_check(self, repository: Repository, check: CheckRun) -> PostedCheck:
        return await self._checks.post(repository, check)

    async def list_comments(self, repository: Repository, number: PullNumber) -> Sequence[Comment]:
        return await self._comments.list_all(repository, number)

    async def get_comment(self, repository: Repository, comment: CommentId) -> Comment | None:
        return await self._comments.get(repository, comment)

    async def post_comment(
        self, repository: Repository, number: PullNumber, body: str, *, marker: str
    ) -> CommentId:
        return await self._comments.post(repository, number, body, marker=marker)

    async def react(self, repository: Repository, comment: CommentId, content: str) -> None:
        await self._comments.react(repository, comment, content)

    # -- people, deployments, deliveries ---------------------------------------------------------------------------

    async def get_permission(self, repository: Repository, login: str) -> Permission:
        return await self._accounts.permission_of(repository, login)

    async def is_team_member(self, organisation: str, team: str, login: str) -> bool:
        return await self._accounts.is_team_member(organisation, team, login)

    async def create_deployment(
        self,
        repository: Repository,
        *,
        ref: CommitId,
        environment: str,
        production: bool,
        payload: Mapping[str, Json],
    ) -> DeploymentId:
        return await self._deployments.create(
            repository, ref=ref, environment=environment, production=production, payload=payload
        )

    async def set_deployment_state(
        self,
        repository: Repository,
        deployment: DeploymentId,
        state: DeploymentState,
        *,
        description: str,
        log_url: str,
    ) -> None:
        await self._deployments.set_state(
            repository, deployment, state, description=description, log_url=log_url
        )

    async def list_repositories(self) -> Sequence[Repository]:
        return await self._accounts.list_repositories()

    async def list_failed_deliveries(self, since: datetime) -> Sequence[tuple[int, str]]:
        return await self._accounts.list_failed_deliveries(since)

    async def redeliver(self, delivery: int) -> None:
        await self._accounts.redeliver(delivery)


def _origin(url: SplitResult) -> tuple[str, int]:
    """Host and port of a split address, so that an explicit default port does not make it another server."""
    try:
        return (url.hostname or "").lower(), url.port or _PORTS.get(url.scheme, 0)
    except ValueError:
        # A port that is no number names no server at all.
        return "", 0
