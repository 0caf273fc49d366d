"""One GitHub as our App sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

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

    async def list_commit_authors(
        self, repository: Repository, number: PullNumber
    ) -> Mapping[CommitId, Sequence[str]]:
        """The commits of a pull request, each with the logins of author and committer that GitHub knows."""

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
