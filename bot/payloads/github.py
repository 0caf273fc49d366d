"""GitHub's webhook deliveries as events, reading only the fields that we use.

Shapes follow GitHub's "Webhook events and payloads". What a delivery says is a hint; who may do what is asked by API.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from bot.domain.events import (
    AppIdentity,
    ButtonPressed,
    CheckRerun,
    Commented,
    Event,
    ImagePushed,
    InstallationChanged,
    MergeGroupRequested,
    PullRequestChanged,
    Pushed,
    RepositoryChanged,
    ReviewChanged,
)
from bot.domain.files import CommitId
from bot.domain.github import CheckId, CommentId, PullNumber, Repository, User
from bot.payloads.reading import Node, read_json

_FULL_NAME = re.compile(r"([A-Za-z0-9_.-]{1,100})/([A-Za-z0-9_.-]{1,100})")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

_MOST_COMMITS = 2048
"""As many commits as GitHub lists of one push."""

_PULL_ACTIONS = frozenset(
    {
        "opened",
        "reopened",
        "synchronize",
        "closed",
        "edited",
        "labeled",
        "unlabeled",
        "ready_for_review",
        "converted_to_draft",
        "locked",
        "unlocked",
        "enqueued",
        "dequeued",
    }
)
_REPOSITORY_ACTIONS = frozenset({"renamed", "transferred", "archived", "unarchived", "deleted"})


def parse_delivery(event: str, body: bytes, app: AppIdentity) -> Event | None:
    """The event of one delivery; `event` is the `X-GitHub-Event` header, `app` tells our own doings apart.

    None for what we take no interest in. Raises PayloadProblem for a body that GitHub would not send.
    """
    parse = PARSERS.get(event)
    return parse(read_json(body), app) if parse else None


def read_repository(full_name: Node) -> Repository:
    """The repository that `owner/name` names; raises the problem for anything that could not be one."""
    match = _FULL_NAME.fullmatch(full_name.value) if isinstance(full_name.value, str) else None
    if match is None or {match[1], match[2]} & {".", ".."}:
        raise full_name.fail("owner/name was expected")
    return Repository(match[1], match[2])


def read_user(node: Node | None) -> User:
    """An account; a deleted one (null) is `ghost` with the id 0, which no permission is ever found for."""
    if node is None:
        return User("ghost", 0)
    return User(node.text("login"), node.number("id"), bot=node.text("type", default="User") == "Bot")


def read_commit(node: Node) -> CommitId:
    """A commit id of 40 (SHA-1) or 64 (SHA-256) hex digits; raises the problem for anything else."""
    if not isinstance(node.value, str) or _COMMIT.fullmatch(node.value) is None:
        raise node.fail("a commit id was expected")
    return CommitId(node.value)


def _repository(root: Node) -> Repository:
    return read_repository(root.at("repository", "full_name"))


def _sender(root: Node) -> User:
    return read_user(root.find("sender"))


def _is_app(user: User, app: AppIdentity) -> bool:
    return app.user_id != 0 and user.id == app.user_id


def _parse_push(root: Node, app: AppIdentity) -> Event:
    before, after = read_commit(root.at("before")), read_commit(root.at("after"))
    sender = _sender(root)
    return Pushed(
        _repository(root),
        root.text("ref"),
        before if before.strip("0") else None,
        after if after.strip("0") else None,
        sender,
        by_app=_is_app(sender, app),
        paths=_changed_paths(root),
        default_branch=root.text("repository", "default_branch", default=""),
    )


def _changed_paths(root: Node) -> tuple[str, ...] | None:
    """What the commits of a push changed; None where GitHub lists none, cuts the list, or commits were taken away."""
    commits = list(root.items("commits"))
    if not commits or len(commits) >= _MOST_COMMITS or root.boolean("forced"):
        return None
    head = root.find("head_commit")
    paths: dict[str, None] = {}
    for commit in (*commits, *((head,) if head is not None else ())):
        for change in ("added", "modified", "removed"):
            paths.update((item.value, None) for item in commit.items(change) if isinstance(item.value, str))
    return tuple(paths)


def _parse_pull_request(root: Node, app: AppIdentity) -> Event | None:
    action = root.text("action")
    if action not in _PULL_ACTIONS:
        return None
    pull, sender = root.at("pull_request"), _sender(root)
    # A deleted fork leaves `head.repo` null; it must count as a fork, never as ours.
    head_repository = pull.find("head", "repo")
    ours = head_repository is not None and head_repository.number("id") == root.number("repository", "id")
    return PullRequestChanged(
        _repository(root),
        PullNumber(pull.number("number")),
        action,
        read_commit(pull.at("head", "sha")),
        pull.text("head", "ref"),
        pull.text("base", "ref"),
        sender,
        merged=pull.boolean("merged"),
        from_fork=not ours,
        by_app=_is_app(sender, app),
    )


def _parse_review(root: Node, app: AppIdentity) -> Event | None:  # noqa: ARG001
    action = root.text("action")
    if action not in {"submitted", "edited", "dismissed"}:
        return None
    return ReviewChanged(
        _repository(root), PullNumber(root.number("pull_request", "number")), action, _sender(root)
    )


def _parse_comment(root: Node, app: AppIdentity) -> Event | None:
    if root.text("action") != "created":
        return None
    comment = root.at("comment")
    author = read_user(comment.find("user"))
    made_by = comment.find("performed_via_github_app")
    return Commented(
        _repository(root),
        PullNumber(root.number("issue", "number")),
        CommentId(comment.number("id")),
        author,
        comment.text("body", default=""),
        comment.time("created_at"),
        on_pull_request=root.has("issue", "pull_request"),
        by_app=_is_app(author, app)
        or (made_by is not None and app.app_id != 0 and made_by.number("id") == app.app_id),
    )


def _parse_check_run(root: Node, app: AppIdentity) -> Event | None:
    action, run = root.text("action"), root.at("check_run")
    if action not in {"rerequested", "requested_action"} or not _is_ours(run, app):
        return None
    repository, sender = _repository(root), _sender(root)
    head, name = read_commit(run.at("head_sha")), run.text("name")
    external_id = run.text("external_id", default="")
    if action == "rerequested":
        return CheckRerun(repository, head, name, sender, external_id)
    identifier = root.text("requested_action", "identifier")
    return ButtonPressed(repository, head, CheckId(run.number("id")), name, identifier, sender, external_id)


def _parse_check_suite(root: Node, app: AppIdentity) -> Event | None:
    suite = root.at("check_suite")
    if root.text("action") != "rerequested" or not _is_ours(suite, app):
        return None
    return CheckRerun(_repository(root), read_commit(suite.at("head_sha")), "", _sender(root))


def _is_ours(check: Node, app: AppIdentity) -> bool:
    # GitHub sends these two actions to the App that owns the check alone; other hooks may still forward them.
    return app.app_id == 0 or check.number("app", "id") == app.app_id


def _parse_merge_group(root: Node, app: AppIdentity) -> Event | None:  # noqa: ARG001
    if root.text("action") != "checks_requested":
        return None
    group = root.at("merge_group")
    return MergeGroupRequested(
        _repository(root),
        read_commit(group.at("head_sha")),
        group.text("head_ref"),
        group.text("base_ref").removeprefix("refs/heads/"),
    )


def _parse_installation(root: Node, app: AppIdentity) -> Event:  # noqa: ARG001
    installation = root.at("installation")
    action = root.text("action")
    listed = tuple(read_repository(item.at("full_name")) for item in root.items("repositories"))
    gone = action in {"deleted", "suspend"}
    added = tuple(read_repository(item.at("full_name")) for item in root.items("repositories_added"))
    removed = tuple(read_repository(item.at("full_name")) for item in root.items("repositories_removed"))
    return InstallationChanged(
        installation.number("id"),
        installation.text("account", "login"),
        action,
        added=added + (() if gone else listed),
        removed=removed + (listed if gone else ()),
    )


def _parse_repository(root: Node, app: AppIdentity) -> Event | None:  # noqa: ARG001
    action = root.text("action")
    if action not in _REPOSITORY_ACTIONS:
        return None
    repository = _repository(root)
    before: Repository | None = None
    if (name := root.find("changes", "repository", "name", "from")) is not None:
        before = read_repository(Node(f"{repository.owner}/{name.value}", name.path, name.problem))
    elif (owner := root.find("changes", "owner", "from")) is not None:
        account = owner.find("user") or owner.at("organization")
        before = read_repository(
            Node(f"{account.text('login')}/{repository.name}", owner.path, owner.problem)
        )
    return RepositoryChanged(repository, action, before)


def _parse_package(root: Node, app: AppIdentity) -> Event | None:  # noqa: ARG001
    """A container image in GHCR; the same tree stands under `package` and under `registry_package`.

    Child manifests of an index come as events of their own with an empty tag; they are passed over.
    """
    package = root.find("registry_package") or root.at("package")
    container = package.find("package_version", "container_metadata")
    if container is None or root.text("action") not in {"published", "updated"}:
        return None
    tag = container.text("tag", "name", default="")
    if not tag:
        return None
    owner = package.text("namespace", default="") or package.text("owner", "login")
    return ImagePushed(f"ghcr.io/{owner}/{package.text('name')}".lower(), tag, _find_digest(package))


def _find_digest(package: Node) -> str:
    version = package.at("package_version")
    candidates = (
        version.text("container_metadata", "tag", "digest", default=""),
        version.text("container_metadata", "manifest", "digest", default=""),
        version.text("version", default=""),
    )
    return next((text for text in candidates if _DIGEST.fullmatch(text)), "")


PARSERS: Mapping[str, Callable[[Node, AppIdentity], Event | None]] = {
    "push": _parse_push,
    "pull_request": _parse_pull_request,
    "pull_request_review": _parse_review,
    "issue_comment": _parse_comment,
    "check_run": _parse_check_run,
    "check_suite": _parse_check_suite,
    "merge_group": _parse_merge_group,
    "installation": _parse_installation,
    "installation_repositories": _parse_installation,
    "repository": _parse_repository,
    "package": _parse_package,
    "registry_package": _parse_package,
}
"""How each event is read; events that are not listed (deployment, ping and the like) are of no interest."""
