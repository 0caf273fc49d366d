"""Webhook events: who gets which, with which payload, stored as deliveries in the caller's transaction."""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from bot.sandbox.github.accounts import App, Installation, User
from bot.sandbox.github.auth import Actor
from bot.sandbox.github.git import ZERO, Commit, RefChange
from bot.sandbox.github.records import Delivery, Json, Repository
from bot.sandbox.github.views.checks import simple_commit
from bot.sandbox.github.views.lens import Lens, node_id
from bot.sandbox.github.views.people import user
from bot.sandbox.github.views.repositories import full_repository
from bot.sandbox.github.world import BASE_MARK, World

Build = Callable[[Lens], Json]
# Events that reach an App whether it subscribed or not.
ALWAYS = ("installation", "installation_repositories", "ping")
LONGEST_COMMIT_LIST = 2048


@dataclass(frozen=True, slots=True)
class Notice:
    """That something happened: `only_app` limits it to one App, subscribed or not."""

    event: str
    action: str | None
    actor: Actor
    only_app: int | None = None


def emit(world: World, repo: Repository, notice: Notice, build: Build) -> None:
    """Store one delivery for every App that is installed on the repository and wants the event."""
    lens = Lens(world, BASE_MARK)
    body: Json | None = None
    for app, installation in world.installations_on(repo):
        if notice.only_app is not None:
            if app.id != notice.only_app:
                continue
        elif notice.event not in app.events:
            continue
        if body is None:
            body = _body(lens, repo, notice, build)
        _store(world, app, installation, notice, {**body, **_installation(installation)})


def _body(lens: Lens, repo: Repository, notice: Notice, build: Build) -> Json:
    owner = lens.world.owner(repo)
    body: Json = {} if notice.action is None else {"action": notice.action}
    body |= {"repository": full_repository(lens, repo, "none"), **build(lens)}
    if owner.type == "Organization":
        body["organization"] = organisation(lens, owner)
    body["sender"] = user(lens, notice.actor.account)
    return body


def organisation(lens: Lens, account: User) -> Json:
    """An organisation as webhooks name it."""
    url = f"{lens.api}/orgs/{account.login}"
    return {
        "login": account.login,
        "id": account.id,
        "node_id": node_id("O", account.id),
        "url": url,
        "repos_url": url + "/repos",
        "events_url": url + "/events",
        "hooks_url": url + "/hooks",
        "issues_url": url + "/issues",
        "members_url": url + "/members{/member}",
        "public_members_url": url + "/public_members{/member}",
        "avatar_url": f"{lens.base}/avatars/{account.id}",
        "description": "",
    }


def _installation(installation: Installation) -> Json:
    return {"installation": {"id": installation.id, "node_id": node_id("MDI", installation.id)}}


def emit_to_app(
    world: World, app: App, installation: Installation | None, notice: Notice, body: Json
) -> None:
    """Store one delivery that concerns the App itself, such as `installation` or `ping`."""
    full = {**({} if notice.action is None else {"action": notice.action}), **body}
    if notice.actor.user:
        full["sender"] = user(Lens(world, BASE_MARK), notice.actor.user)
    _store(world, app, installation, notice, full)


def _store(
    world: World,
    app: App,
    installation: Installation | None,
    notice: Notice,
    body: Json,
) -> None:
    if not app.webhook_url:
        return
    world.store.add(
        Delivery(
            guid=str(uuid.uuid4()),
            app_id=app.id,
            event=notice.event,
            action=notice.action,
            payload=json.dumps(body, ensure_ascii=False, separators=(",", ":")),
            installation_id=installation.id if installation else None,
            repo_id=body["repository"]["id"] if "repository" in body else None,
            delivered_at=world.now(),
        )
    )
    world.wake()


def push_payload(lens: Lens, repo: Repository, change: RefChange, actor: Actor) -> Json:
    """The body of a `push` event; both sides ZERO never happens."""
    git, old, new = lens.world.git(repo), change.old, change.new
    created, deleted = old == ZERO, new == ZERO
    web = lens.repo_web(repo)
    commits: list[Commit] = []
    if created:
        # Of a new branch only those commits are told that no other branch has.
        known = [f"^{sha}" for name, sha, _ in git.refs("refs/heads/") if name != change.ref]
        commits = git.commits("--reverse", f"-{LONGEST_COMMIT_LIST}", new, *known)
    elif not deleted:
        commits = git.commits("--reverse", f"-{LONGEST_COMMIT_LIST}", f"{old}..{new}")
    listed = [_push_commit(lens, repo, item) for item in commits]
    head = _push_commit(lens, repo, git.commit(new)) if not deleted else None
    name = actor.account.login
    return {
        "ref": change.ref,
        "before": old,
        "after": new,
        "base_ref": None,
        "created": created,
        "deleted": deleted,
        "forced": not created and not deleted and not git.is_ancestor(old, new),
        "compare": f"{web}/compare/{old[:12]}...{new[:12]}",
        "commits": listed,
        "head_commit": head,
        "pusher": {"name": name, "email": actor.account.email},
        "repository": _push_repository(lens, repo),
    }


def _push_repository(lens: Lens, repo: Repository) -> Json:
    """The repository as only `push` shows it: the organisation by name, its owner with name and address."""
    owner = lens.world.owner(repo)
    view = full_repository(lens, repo, "none")
    view["owner"] |= {"name": owner.login, "email": owner.email}
    if owner.type == "Organization":
        view["organization"] = owner.login
    return {**view, "master_branch": repo.default_branch}


def _push_commit(lens: Lens, repo: Repository, item: Commit) -> Json:
    git = lens.world.git(repo)
    files = git.text("diff-tree", "-r", "--no-commit-id", "--name-status", "--root", "-m", item.sha)
    lists: dict[str, list[str]] = {"A": [], "D": [], "M": []}
    for line in files.splitlines():
        letter, _, name = line.partition("\t")
        lists.get(letter[0], lists["M"]).append(name)
    return {
        **simple_commit(item),
        "distinct": True,
        "url": f"{lens.repo_web(repo)}/commit/{item.sha}",
        "added": lists["A"],
        "removed": lists["D"],
        "modified": list(dict.fromkeys(lists["M"])),
    }
