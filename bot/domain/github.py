"""GitHub's nouns, reduced to the fields we use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

from bot.domain.files import CommitId

PullNumber = NewType("PullNumber", int)
IssueNumber = NewType("IssueNumber", int)
CommentId = NewType("CommentId", int)
RunId = NewType("RunId", int)
CheckId = NewType("CheckId", int)
DeploymentId = NewType("DeploymentId", int)


@dataclass(frozen=True, slots=True, order=True)
class Repository:
    """A repository on the GitHub that the App lives on, by its full name `owner/name`."""

    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}"

    @classmethod
    def parse(cls, full_name: str) -> Repository:
        """The repository whose full name we wrote ourselves; what comes from elsewhere is checked where it is read."""
        owner, _, name = full_name.partition("/")
        return cls(owner, name)

    def is_same(self, other: Repository | None) -> bool:
        """Whether both are one: GitHub's names are the same whatever the case of their letters."""
        return other is not None and str(self).lower() == str(other).lower()


@dataclass(frozen=True, slots=True)
class User:
    """An account; `bot` is true for Apps and machine accounts."""

    login: str
    id: int
    bot: bool = False


class Permission(StrEnum):
    """A collaborator's role on a repository, weakest first."""

    NONE = "none"
    READ = "read"
    TRIAGE = "triage"
    WRITE = "write"
    MAINTAIN = "maintain"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        """Position from weakest (0) to strongest."""
        return list(Permission).index(self)


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request as read just now; `merge_commit` is set once it is merged."""

    repository: Repository
    number: PullNumber
    title: str
    body: str
    open: bool
    merged: bool
    head: CommitId
    head_branch: str
    base_branch: str
    author: User
    url: str
    merge_commit: CommitId | None = None
    mergeable: bool | None = None
    from_fork: bool = False
    draft: bool = False
    merged_by: str = ""
    closed_by: str = ""


class ReviewState(StrEnum):
    """What a review says."""

    APPROVED = "APPROVED"
    CHANGES_REQUESTED = "CHANGES_REQUESTED"
    COMMENTED = "COMMENTED"
    DISMISSED = "DISMISSED"
    PENDING = "PENDING"


@dataclass(frozen=True, slots=True)
class Review:
    """One review; `commit` is the head that the reviewer saw (None if it is gone)."""

    id: int
    user: User
    state: ReviewState
    commit: CommitId | None
    submitted_at: datetime


@dataclass(frozen=True, slots=True)
class Comment:
    """An issue comment; `edited` tells that its body may differ from what was first said."""

    id: CommentId
    user: User
    body: str
    created_at: datetime
    edited: bool = False
    by_app: bool = False


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue, or what a pull request shares with one; `state` is `open` or `closed`, assignees are logins."""

    number: IssueNumber
    title: str
    body: str
    state: str
    labels: tuple[str, ...]
    assignees: tuple[str, ...]
    url: str


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """A run of GitHub Actions; `conclusion` is empty until `status` is `completed`."""

    id: RunId
    status: str
    conclusion: str
    url: str


class CheckStatus(StrEnum):
    """How far a check run is."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class Conclusion(StrEnum):
    """How a check run ended; neutral and skipped satisfy a required check, so a wait never uses them."""

    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"
    CANCELLED = "cancelled"
    ACTION_REQUIRED = "action_required"
    SKIPPED = "skipped"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True, slots=True)
class Annotation:
    """A remark at a line of a file, shown on the check run."""

    path: str
    line: int
    level: str
    message: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Button:
    """A button on a completed check run: at most three, label ≤ 20, description ≤ 40, identifier ≤ 20 characters."""

    label: str
    description: str
    identifier: str


@dataclass(frozen=True, slots=True)
class CheckRun:
    """What a check run shows; texts are already within GitHub's limits. Completed if it has a conclusion."""

    name: str
    head: CommitId
    title: str
    summary: str
    text: str = ""
    conclusion: Conclusion | None = None
    external_id: str = ""
    details_url: str = ""
    annotations: tuple[Annotation, ...] = ()
    buttons: tuple[Button, ...] = ()


@dataclass(frozen=True, slots=True)
class PostedCheck:
    """A check run as GitHub has it; `app_id` is the App that made it."""

    id: CheckId
    name: str
    head: CommitId
    app_id: int
    status: CheckStatus
    conclusion: Conclusion | None
    external_id: str
    title: str = ""


class DeploymentState(StrEnum):
    """States of a deployment status."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"
    INACTIVE = "inactive"
