"""What the simulated GitHub remembers of repositories and the work in them, one frozen dataclass per table.

Times are ISO 8601 text in UTC with whole seconds, as GitHub writes them. An `id` of 0 means "not stored yet".
No record holds an absolute URL of the server itself, so the server may come back on another port.
"""

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository; its Git objects are in a bare repository on disk named after `id`."""

    owner_id: int
    name: str
    private: bool = True
    description: str | None = None
    default_branch: str = "main"
    fork_of: int | None = None
    delete_branch_on_merge: bool = False
    allow_merge_commit: bool = True
    allow_squash_merge: bool = True
    allow_rebase_merge: bool = True
    auto_trigger_off: tuple[int, ...] = ()
    created_at: str = ""
    updated_at: str = ""
    pushed_at: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class Collaborator:
    """A user's role on a repository: `read`, `triage`, `write`, `maintain` or `admin`."""

    repo_id: int
    user_id: int
    role: str
    id: int = 0


@dataclass(frozen=True, slots=True)
class Issue:
    """What issues and pull requests share; `state` is `open` or `closed`."""

    repo_id: int
    number: int
    is_pull: bool
    title: str
    body: str | None
    author_id: int
    app_id: int | None = None
    state: str = "open"
    state_reason: str | None = None
    labels: tuple[str, ...] = ()
    assignees: tuple[int, ...] = ()
    created_at: str = ""
    updated_at: str = ""
    closed_at: str | None = None
    closed_by: int | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class PullRequest:
    """The Git side of a pull request; title, body and state are on the Issue of the same number.

    `mergeable` None means "not computed yet", `head_repo_id` 0 means "this repository" (else it is a fork's id).
    `head_sha` stays as it was when the pull request was closed.
    """

    repo_id: int
    number: int
    head_ref: str
    head_sha: str
    base_ref: str
    base_sha: str
    draft: bool = False
    merged: bool = False
    merged_at: str | None = None
    merged_by: int | None = None
    merge_commit_sha: str | None = None
    merge_method: str | None = None
    mergeable: bool | None = None
    rebaseable: bool | None = None
    reviewers: tuple[int, ...] = ()
    team_reviewers: tuple[int, ...] = ()
    last_pusher_id: int = 0
    head_repo_id: int = 0
    id: int = 0


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on an issue or pull request; `minimized_reason` is set once it is folded away."""

    repo_id: int
    number: int
    author_id: int
    body: str
    app_id: int | None = None
    created_at: str = ""
    updated_at: str = ""
    edited_by: int | None = None
    minimized_reason: str | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class Review:
    """A submitted review: `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`, `DISMISSED` or `PENDING`."""

    repo_id: int
    number: int
    author_id: int
    state: str
    body: str
    commit_id: str
    submitted_at: str = ""
    dismissal_message: str | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class Reaction:
    """An emoji under a comment (`subject` is `comment`) or an issue (`issue`)."""

    subject: str
    subject_id: int
    user_id: int
    content: str
    created_at: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class Label:
    """A label of a repository."""

    repo_id: int
    name: str
    color: str = "ededed"
    description: str | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class CheckSuite:
    """All check runs of one App on one commit."""

    repo_id: int
    app_id: int
    head_sha: str
    head_branch: str | None = None
    before: str | None = None
    created_at: str = ""
    updated_at: str = ""
    rerequested: bool = False
    id: int = 0


@dataclass(frozen=True, slots=True)
class CheckRun:
    """One check run; `annotations` and `actions` are as the App sent them."""

    repo_id: int
    suite_id: int
    app_id: int
    head_sha: str
    name: str
    status: str = "queued"
    conclusion: str | None = None
    details_url: str | None = None
    external_id: str = ""
    title: str | None = None
    summary: str | None = None
    text: str | None = None
    annotations: tuple[Json, ...] = ()
    actions: tuple[Json, ...] = ()
    started_at: str | None = None
    completed_at: str | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class CommitStatus:
    """A commit status of the older kind."""

    repo_id: int
    sha: str
    state: str
    context: str
    creator_id: int
    description: str | None = None
    target_url: str | None = None
    created_at: str = ""
    app_id: int | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment; `payload` is the JSON text that was sent."""

    repo_id: int
    ref: str
    sha: str
    task: str
    environment: str
    payload: str
    creator_id: int
    description: str | None = None
    transient_environment: bool = False
    production_environment: bool = False
    app_id: int | None = None
    created_at: str = ""
    updated_at: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class DeploymentStatus:
    """One status of a deployment."""

    deployment_id: int
    state: str
    creator_id: int
    environment: str
    description: str = ""
    log_url: str = ""
    environment_url: str = ""
    app_id: int | None = None
    created_at: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """One run of a GitHub Actions workflow; `inputs` is the JSON text that was sent."""

    repo_id: int
    path: str
    name: str
    head_branch: str
    head_sha: str
    number: int
    actor_id: int
    inputs: str = "{}"
    status: str = "queued"
    conclusion: str | None = None
    created_at: str = ""
    updated_at: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class Ruleset:
    """An active rule set for the branches that match `pattern`; `rules` and `bypass` in GitHub's own shape."""

    repo_id: int
    name: str
    pattern: str
    rules: tuple[Json, ...] = ()
    bypass: tuple[Json, ...] = ()
    created_at: str = ""
    updated_at: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A pull request in the merge queue of its base branch; `group_ref` is the temporary branch."""

    repo_id: int
    number: int
    base_ref: str
    head_sha: str
    group_sha: str
    group_ref: str
    user_id: int
    id: int = 0


@dataclass(frozen=True, slots=True)
class VerifiedCommit:
    """A commit that the server itself made, hence signed by it."""

    repo_id: int
    sha: str
    id: int = 0


@dataclass(frozen=True, slots=True)
class Intent:
    """A merge that was begun: if the base branch holds `new_sha` after a crash, the merge is finished."""

    repo_id: int
    number: int
    old_sha: str
    new_sha: str
    method: str
    user_id: int
    app_id: int | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt to send a webhook; `state` is `pending`, `done` or `lost`. `payload` has BASE_MARK for our URL."""

    guid: str
    app_id: int
    event: str
    action: str | None
    payload: str
    installation_id: int | None = None
    repo_id: int | None = None
    redelivery: bool = False
    state: str = "pending"
    not_before: float = 0.0
    status: str = ""
    status_code: int = 0
    duration: float = 0.0
    delivered_at: str = ""
    request_headers: Json = field(default_factory=dict)
    response_headers: Json = field(default_factory=dict)
    response_body: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A call that changed something or tried to; `actor` is a login, `app:<slug>` or `anonymous`."""

    at: str
    actor: str
    method: str
    path: str
    status: int
    id: int = 0
