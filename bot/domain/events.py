"""What happened in the world, as far as it tells us where to look; truth is read by API afterwards.

An event is a hint: a lost, late or doubled one must end the same. Only `Commented` and `ButtonPressed` carry what a
person asked for, since that exists nowhere else in that exact form.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from bot.domain.files import CommitId
from bot.domain.github import CheckId, CommentId, PullNumber, Repository, User


@dataclass(frozen=True, slots=True)
class AppIdentity:
    """Who we are on GitHub: the App's id and the id of its bot account; 0 means not known yet."""

    app_id: int = 0
    user_id: int = 0


@dataclass(frozen=True, slots=True)
class Pushed:
    """A branch or tag moved; `before` or `after` is None where it was created or deleted.

    `ref` is whole, such as `refs/heads/main`. `by_app` tells that our App pushed. `paths` are those that the pushed
    commits changed, None if the delivery does not tell all of them. `default_branch` is the repository's, empty if it
    is not told.
    """

    repository: Repository
    ref: str
    before: CommitId | None
    after: CommitId | None
    sender: User
    by_app: bool = False
    paths: tuple[str, ...] | None = None
    default_branch: str = ""

    @property
    def branch(self) -> str:
        """The branch's name, empty if a tag moved."""
        return self.ref.removeprefix("refs/heads/") if self.ref.startswith("refs/heads/") else ""

    @property
    def tag(self) -> str:
        """The tag's name, empty if a branch moved."""
        return self.ref.removeprefix("refs/tags/") if self.ref.startswith("refs/tags/") else ""


@dataclass(frozen=True, slots=True)
class PullRequestChanged:
    """A pull request was opened, changed, closed or merged; `action` is GitHub's word."""

    repository: Repository
    number: PullNumber
    action: str
    head: CommitId
    head_branch: str
    base_branch: str
    sender: User
    merged: bool = False
    from_fork: bool = False
    by_app: bool = False


@dataclass(frozen=True, slots=True)
class ReviewChanged:
    """A review was submitted, edited or dismissed."""

    repository: Repository
    number: PullNumber
    action: str
    sender: User


@dataclass(frozen=True, slots=True)
class Commented:
    """A new comment with its exact body; edits and deletions are no events.

    `by_app` tells that our own App wrote it, `on_pull_request` that it is not on a plain issue.
    """

    repository: Repository
    number: PullNumber
    comment: CommentId
    author: User
    body: str
    created_at: datetime
    on_pull_request: bool = True
    by_app: bool = False

    @property
    def first_line(self) -> str:
        """The body's first line without trailing blanks."""
        return self.body.split("\n", 1)[0].rstrip()


@dataclass(frozen=True, slots=True)
class CheckRerun:
    """Somebody asked for one of our checks again; an empty name means all checks on that commit."""

    repository: Repository
    head: CommitId
    name: str
    sender: User
    external_id: str = ""


@dataclass(frozen=True, slots=True)
class ButtonPressed:
    """Somebody pressed a button on one of our completed check runs."""

    repository: Repository
    head: CommitId
    check: CheckId
    name: str
    identifier: str
    sender: User
    external_id: str = ""


@dataclass(frozen=True, slots=True)
class MergeGroupRequested:
    """A merge queue waits for our check on this commit; `base_branch` is where it would go."""

    repository: Repository
    head: CommitId
    head_ref: str
    base_branch: str


@dataclass(frozen=True, slots=True)
class InstallationChanged:
    """The App was installed, removed, suspended, or its repositories or permissions changed.

    `added` and `removed` name repositories as far as the delivery lists them.
    """

    installation: int
    account: str
    action: str
    added: tuple[Repository, ...] = ()
    removed: tuple[Repository, ...] = ()


@dataclass(frozen=True, slots=True)
class RepositoryChanged:
    """A repository was renamed, transferred, archived or deleted; `before` is its former name if that changed."""

    repository: Repository
    action: str
    before: Repository | None = None


@dataclass(frozen=True, slots=True)
class ImagePushed:
    """A registry received an image; `repository` is `host/path` in lower case, `digest` may be empty."""

    repository: str
    tag: str
    digest: str = ""


Event = (
    Pushed
    | PullRequestChanged
    | ReviewChanged
    | Commented
    | CheckRerun
    | ButtonPressed
    | MergeGroupRequested
    | InstallationChanged
    | RepositoryChanged
    | ImagePushed
)
