"""Deployments and their statuses, with the defaults of GitHub's API that surprise most callers."""

import json
from dataclasses import dataclass

from bot.sandbox.github.auth import Actor
from bot.sandbox.github.errors import Refused, invalid
from bot.sandbox.github.events import Notice, emit
from bot.sandbox.github.git import RefChange
from bot.sandbox.github.pushes import move_ref
from bot.sandbox.github.records import (
    CheckRun,
    CommitStatus,
    Deployment,
    DeploymentStatus,
    Json,
    Repository,
)
from bot.sandbox.github.rules import check_state
from bot.sandbox.github.signing import Draft, person_of, server_commit
from bot.sandbox.github.views.checks import deployment as deployment_view
from bot.sandbox.github.views.checks import deployment_status as status_view
from bot.sandbox.github.world import World

DESCRIPTION_LIMIT = 140


@dataclass(frozen=True, slots=True)
class AutoMerged:
    """The deployment was not made: the default branch was merged into the ref first, as `auto_merge` asks."""

    message: str


def create(world: World, actor: Actor, repo: Repository, fields: Json) -> Deployment | AutoMerged:
    """Create a deployment; 409 if a required context has not passed or the merge conflicts."""
    git = world.git(repo)
    sha = git.resolve(fields["ref"])
    if sha is None:
        raise Refused(422, f"No ref found for: {fields['ref']}")
    if fields.get("auto_merge", True):
        merged = _auto_merge(world, actor, repo, fields["ref"], sha)
        if merged:
            return merged
    _check_contexts(world, repo, sha, fields.get("required_contexts"))
    environment = fields.get("environment") or "production"
    payload = fields.get("payload", {})
    now = world.now()
    with world.store.transaction():
        made = world.store.add(
            Deployment(
                repo.id,
                fields["ref"],
                sha,
                fields.get("task") or "deploy",
                environment,
                json.dumps(payload),
                actor.account.id,
                fields.get("description"),
                bool(fields.get("transient_environment")),
                bool(fields.get("production_environment", environment == "production")),
                actor.app_id,
                now,
                now,
            )
        )
        emit(
            world,
            repo,
            Notice("deployment", "created", actor),
            lambda lens: {
                "deployment": deployment_view(lens, repo, made),
                "workflow": None,
                "workflow_run": None,
            },
        )
        return made


def _auto_merge(world: World, actor: Actor, repo: Repository, ref: str, sha: str) -> AutoMerged | None:
    """Merge the default branch into the branch `ref` if it is behind."""
    git = world.git(repo)
    base = git.ref(f"refs/heads/{repo.default_branch}")
    head = git.ref(f"refs/heads/{ref}")
    if base is None or head is None or ref == repo.default_branch or git.is_ancestor(base, sha):
        return None
    tree = git.merge_tree(head, base)
    if tree is None:
        raise Refused(409, f"Conflict merging {repo.default_branch} into {ref}.")
    message = f"Merge branch '{repo.default_branch}' into {ref}"
    new = server_commit(world, repo, Draft(tree, [head, base], message, person_of(world, actor.account)))
    move_ref(world, actor, repo, RefChange(f"refs/heads/{ref}", head, new))
    return AutoMerged(f"Auto-merged {repo.default_branch} into {ref} on deployment.")


def _check_contexts(world: World, repo: Repository, sha: str, wanted: list[str] | None) -> None:
    """Without a list, every status and check on the commit has to have passed."""
    if wanted is None:
        runs = world.store.find(CheckRun, repo_id=repo.id, head_sha=sha)
        statuses = world.store.find(CommitStatus, repo_id=repo.id, sha=sha)
        wanted = sorted({run.name for run in runs} | {item.context for item in statuses})
    states = {name: check_state(world, repo, sha, name, None) for name in wanted}
    if any(state != "success" for state in states.values()):
        error = {
            "contexts": [{"context": name, "state": state} for name, state in states.items()],
            "resource": "Deployment",
            "field": "required_contexts",
            "code": "invalid",
        }
        raise Refused(409, "Conflict: Commit status checks failed for " + repo.name + ".", errors=[error])


def add_status(
    world: World, actor: Actor, repo: Repository, item: Deployment, fields: Json
) -> DeploymentStatus:
    """Add a status; a `success` turns older deployments of the environment inactive unless told otherwise."""
    description = fields.get("description") or ""
    if len(description) > DESCRIPTION_LIMIT:
        raise invalid(
            "DeploymentStatus",
            "description",
            message=f"description is too long (maximum is {DESCRIPTION_LIMIT} characters)",
        )
    environment = fields.get("environment") or item.environment
    with world.store.transaction():
        if (
            fields["state"] == "success"
            and fields.get("auto_inactive", True)
            and not item.transient_environment
        ):
            _retire(world, actor, repo, item, environment)
        made = world.store.add(
            DeploymentStatus(
                item.id,
                fields["state"],
                actor.account.id,
                environment,
                description,
                fields.get("log_url") or fields.get("target_url") or "",
                fields.get("environment_url") or "",
                actor.app_id,
                world.now(),
            )
        )
        world.store.change(item, updated_at=world.now(), environment=environment)
        _tell(world, actor, repo, item, made)
        return made


def _tell(world: World, actor: Actor, repo: Repository, item: Deployment, status: DeploymentStatus) -> None:
    emit(
        world,
        repo,
        Notice("deployment_status", "created", actor),
        lambda lens: {
            "deployment_status": status_view(lens, repo, status),
            "deployment": deployment_view(lens, repo, item),
        },
    )


def _retire(world: World, actor: Actor, repo: Repository, item: Deployment, environment: str) -> None:
    for other in world.store.find(Deployment, repo_id=repo.id, environment=environment):
        newest = world.store.last(DeploymentStatus, deployment_id=other.id)
        if other.id >= item.id or other.transient_environment or newest is None or newest.state != "success":
            continue
        status = world.store.add(
            DeploymentStatus(other.id, "inactive", actor.account.id, environment, created_at=world.now())
        )
        _tell(world, actor, repo, other, status)
