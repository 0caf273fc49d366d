"""Deployments and their statuses."""

from bot.sandbox.github import deployments
from bot.sandbox.github.errors import not_found
from bot.sandbox.github.records import Deployment, DeploymentStatus
from bot.sandbox.github.rest.call import Answer, Call, Route
from bot.sandbox.github.views.checks import deployment, deployment_status


def create_deployment(call: Call) -> Answer:
    """Create a deployment; 202 if GitHub merged the default branch into the ref instead."""
    made = deployments.create(call.world, call.actor, call.repo, call.fields)
    if isinstance(made, deployments.AutoMerged):
        return Answer(202, {"message": made.message})
    return Answer(201, deployment(call.lens, call.repo, made))


def list_deployments(call: Call) -> Answer:
    """The deployments, newest first; `sha`, `ref`, `task` and `environment` select."""
    where = {
        name: call.query[name]
        for name in ("sha", "ref", "task", "environment")
        if call.query.get(name, "none") != "none"
    }
    found = call.world.store.find(Deployment, repo_id=call.repo.id, **where)
    return call.page(reversed(found), lambda item: deployment(call.lens, call.repo, item))


def _deployment(call: Call) -> Deployment:
    found = call.world.store.get(Deployment, call.number("deployment_id"))
    if found is None or found.repo_id != call.repo.id:
        raise not_found()
    return found


def get_deployment(call: Call) -> Answer:
    """One deployment."""
    return Answer(200, deployment(call.lens, call.repo, _deployment(call)))


def create_status(call: Call) -> Answer:
    """Add a status to a deployment."""
    made = deployments.add_status(call.world, call.actor, call.repo, _deployment(call), call.fields)
    return Answer(201, deployment_status(call.lens, call.repo, made))


def list_statuses(call: Call) -> Answer:
    """The statuses of a deployment, newest first."""
    found = call.world.store.find(DeploymentStatus, deployment_id=_deployment(call).id)
    return call.page(reversed(found), lambda item: deployment_status(call.lens, call.repo, item))


_ROOT = "/repos/{owner}/{repo}/deployments"
_STATES = ("error", "failure", "inactive", "in_progress", "queued", "pending", "success")

ROUTES = [
    Route(
        "POST",
        _ROOT,
        create_deployment,
        "deployments:write",
        "write",
        {
            "ref!": "string",
            "task": "string",
            "auto_merge": "boolean",
            "required_contexts": ["string"],
            "payload": "object/string",
            "environment": "string",
            "description?": "string",
            "transient_environment": "boolean",
            "production_environment": "boolean",
        },
    ),
    Route("GET", _ROOT, list_deployments, "deployments:read"),
    Route("GET", _ROOT + "/{deployment_id}", get_deployment, "deployments:read"),
    Route(
        "POST",
        _ROOT + "/{deployment_id}/statuses",
        create_status,
        "deployments:write",
        "write",
        {
            "state!": _STATES,
            "target_url": "string",
            "log_url": "string",
            "description": "string",
            "environment": "string",
            "environment_url": "string",
            "auto_inactive": "boolean",
        },
    ),
    Route("GET", _ROOT + "/{deployment_id}/statuses", list_statuses, "deployments:read"),
]
