"""Refs that move: what is refused, and everything that follows when one has moved.

Every change of a branch, by `git push`, by REST, by a merge or on the web, ends in `ref_changed`.
"""

from bot.sandbox.github import rules
from bot.sandbox.github.auth import Actor, level
from bot.sandbox.github.errors import Refused
from bot.sandbox.github.events import Notice, emit, push_payload
from bot.sandbox.github.git import ZERO, Git, RefChange, RefMoved
from bot.sandbox.github.pulls import base_moved, branch_deleted, head_moved
from bot.sandbox.github.records import CheckSuite, Repository
from bot.sandbox.github.views.checks import check_suite
from bot.sandbox.github.world import World


def problems(world: World, actor: Actor, repo: Repository, change: RefChange, git: Git) -> list[str]:
    """What stands against the move, in GitHub's words; empty if nothing does."""
    if change.ref.startswith("refs/pull/"):
        return ["deny updating a hidden ref"]
    if not change.ref.startswith(("refs/heads/", "refs/tags/")):
        return ["funny refname"] if not change.ref.startswith("refs/") else []
    found = _workflow_problems(actor, change, git)
    if change.branch is None:
        return found
    if change.new == ZERO and change.branch == repo.default_branch:
        return [f"refusing to delete the current branch: {change.ref}"]
    push = rules.Push(change.branch, change.old, change.new)
    return found + rules.push_problems(world, repo, actor, push, git)


def _workflow_problems(actor: Actor, change: RefChange, git: Git) -> list[str]:
    """An App without the `workflows` permission may not change workflow files."""
    if actor.kind != "installation" or change.new == ZERO or level(actor, "workflows") == "write":
        return []
    older = change.old if change.old != ZERO else _known_base(git, change.new)
    if older is None:
        return []
    names = git.text("diff", "--name-only", older, change.new, "--", ".github/workflows")
    return [
        f"refusing to allow a GitHub App to create or update workflow `{name}` without `workflows` permission"
        for name in names.splitlines()
    ]


def _known_base(git: Git, sha: str) -> str | None:
    """Where the new branch leaves the branches that exist, or None if it shares nothing with them."""
    bases = [git.merge_base(known, sha) for _, known, _ in git.refs("refs/heads/")]
    found = [base for base in bases if base]
    return min(found, key=lambda base: git.count(f"{base}..{sha}")) if found else None


def move_ref(world: World, actor: Actor, repo: Repository, change: RefChange) -> None:
    """Move the ref after all rules have been asked; 422 if they refuse, 409 if the ref was elsewhere."""
    git = world.git(repo)
    against = problems(world, actor, repo, change, git)
    if against:
        listed = "\n".join(against)
        raise Refused(422, f"Repository rule violations found\n\n{listed}\n\n")
    apply_ref(world, actor, repo, change)


def apply_ref(world: World, actor: Actor, repo: Repository, change: RefChange) -> None:
    """Move the ref without asking the rules, and let everything follow that follows."""
    git = world.git(repo)
    with world.store.transaction():
        try:
            if change.new == ZERO:
                git.delete_ref(change.ref, change.old)
            else:
                git.update_ref(change.ref, change.new, change.old)
        except RefMoved:
            raise Refused(409, "Reference cannot be updated, it was modified in the meantime") from None
        ref_changed(world, actor, repo, change)


def ref_changed(world: World, actor: Actor, repo: Repository, change: RefChange) -> None:
    """Everything that follows from a ref that has moved: events, pull requests, check suites."""
    if not change.ref.startswith(("refs/heads/", "refs/tags/")) or change.old == change.new:
        return
    with world.store.transaction():
        repo = world.store.change(repo, pushed_at=world.now(), updated_at=world.now())
        emit(
            world,
            repo,
            Notice("push", None, actor),
            lambda lens: push_payload(lens, repo, change, actor),
        )
        if change.branch is None:
            return
        if change.new == ZERO:
            branch_deleted(world, actor, repo, change.branch)
            return
        request_suites(world, actor, repo, change)
        head_moved(world, actor, repo, change.branch, change.new)
        base_moved(world, actor, repo, change.branch, change.new)


def request_suites(world: World, actor: Actor, repo: Repository, change: RefChange) -> None:
    """Open a check suite on a pushed commit for every App that writes checks, and tell the App."""
    if change.branch and change.branch.startswith("gh-readonly-queue/"):
        return
    for app, installation in world.installations_on(repo):
        if installation.permissions.get("checks") != "write" or app.id in repo.auto_trigger_off:
            continue
        suite = open_suite(world, repo, app.id, change)
        if suite is not None:
            tell_suite(world, actor, repo, suite, "requested")


def open_suite(world: World, repo: Repository, app_id: int, change: RefChange) -> CheckSuite | None:
    """A new suite of the App on the commit, or None if there is one."""
    if world.store.first(CheckSuite, repo_id=repo.id, app_id=app_id, head_sha=change.new):
        return None
    now = world.now()
    return world.store.add(
        CheckSuite(repo.id, app_id, change.new, change.branch, change.old, created_at=now, updated_at=now)
    )


def tell_suite(world: World, actor: Actor, repo: Repository, suite: CheckSuite, action: str) -> None:
    """Send `check_suite` with the action to the suite's own App."""
    emit(
        world,
        repo,
        Notice("check_suite", action, actor, only_app=suite.app_id),
        lambda lens: {"check_suite": check_suite(lens, repo, suite)},
    )
