"""Issues and workflows of the GitHub that our App is installed on, for the steps that work with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bot.domain.github import CommentId, Issue, IssueNumber, Repository, RunId, WorkflowRun


@dataclass(frozen=True, slots=True)
class NewIssue:
    """An issue to be made; `marker` is hidden in front of its body, so that it is found again."""

    title: str
    body: str
    marker: str
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IssueChange:
    """What an issue shall be; None leaves a part as it is. A label that is added and removed is removed (Kargo)."""

    title: str | None = None
    body: str | None = None
    state: str | None = None
    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] | None = None


class Issues(Protocol):
    """Issues and their comments.

    Raises TransientError and TerminalError (permission, no such issue, a body that is too long). A write that may have
    been done although the answer was lost is looked for before it is repeated.
    """

    async def get_issue(self, repository: Repository, number: IssueNumber) -> Issue | None:
        """An issue or pull request, None if it does not exist."""

    async def search_issues(self, repository: Repository, query: str) -> Sequence[Issue]:
        """The first 30 issues of this repository that GitHub's search finds; it lags behind by about a minute."""

    async def find_own_issue(self, repository: Repository, marker: str, *, label: str) -> Issue | None:
        """The newest issue that our App made with this marker, open or closed; one of somebody else is never ours.

        Only issues that have the label are looked through.
        """

    async def create_issue(self, repository: Repository, issue: NewIssue, *, since: datetime) -> Issue:
        """Make it, or give back the one of ours with this marker that was made or changed since then."""

    async def update_issue(self, repository: Repository, number: IssueNumber, change: IssueChange) -> None:
        """Set what differs; nothing is sent if it is so already. A marker of ours in the body stays."""

    async def update_comment(self, repository: Repository, comment: CommentId, body: str) -> bool:
        """Set the body, keeping a marker of ours; False if the comment is gone."""

    async def delete_comment(self, repository: Repository, comment: CommentId) -> bool:
        """Remove it; False if it was gone."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A `workflow_dispatch`: file name in `.github/workflows`, branch or tag, and inputs."""

    workflow: str
    ref: str
    inputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dispatched:
    """GitHub took it; `run` is None if it does not tell which run that is."""

    run: RunId | None


@dataclass(frozen=True, slots=True)
class DispatchLost:
    """It may have been taken, but the answer was lost."""

    message: str


class Workflows(Protocol):
    """GitHub Actions. Raises TransientError (nothing was done) and TerminalError (permission, no such workflow)."""

    async def dispatch(self, repository: Repository, wanted: Dispatch) -> Dispatched | DispatchLost:
        """Ask for a run. Not repeatable: every call that is taken makes another one."""

    async def find_dispatched(
        self, repository: Repository, wanted: Dispatch, since: datetime
    ) -> Sequence[WorkflowRun]:
        """Runs of that workflow and ref that our App has asked for since then, newest first."""

    async def get_run(self, repository: Repository, run: RunId) -> WorkflowRun | None:
        """A run, None if it does not exist."""
