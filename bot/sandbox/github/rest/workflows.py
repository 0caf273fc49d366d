"""GitHub Actions: dispatching a workflow, and its runs."""

import zlib

from bot.sandbox.github import workflows
from bot.sandbox.github.accounts import User
from bot.sandbox.github.errors import not_found
from bot.sandbox.github.records import Json, WorkflowRun
from bot.sandbox.github.rest.call import Answer, Call, Route
from bot.sandbox.github.views.lens import node_id
from bot.sandbox.github.views.people import user_by_id
from bot.sandbox.github.views.repositories import repository


def dispatch(call: Call) -> Answer:
    """Queue a run; with `return_run_details` the answer says which."""
    fields = call.fields
    run = workflows.dispatch(
        call.world,
        call.actor,
        call.repo,
        call.params["workflow_id"],
        fields["ref"],
        fields.get("inputs", {}),
    )
    if not fields.get("return_run_details"):
        return Answer(204)
    shown = _run(call, run)
    told = {"workflow_run_id": run.id, "run_url": shown["url"], "html_url": shown["html_url"]}
    return Answer(200, told)


def list_runs(call: Call) -> Answer:
    """The runs of one workflow, newest first; `actor`, `branch`, `event`, `status` and `created` select."""
    file, query = call.params["workflow_id"], call.query
    if workflows.find(call.world, call.repo, file, f"refs/heads/{call.repo.default_branch}") is None:
        raise not_found()
    actor = call.world.user(query["actor"]) if "actor" in query else None
    since = query.get("created", "").removeprefix(">=")
    found = [
        run
        for run in reversed(call.world.store.find(WorkflowRun, repo_id=call.repo.id))
        if run.path.endswith(f"/{file}")
        and query.get("event", "workflow_dispatch") == "workflow_dispatch"
        and query.get("branch", run.head_branch) == run.head_branch
        and query.get("status", run.status) in (run.status, run.conclusion)
        and ("actor" not in query or (actor is not None and actor.id == run.actor_id))
        and run.created_at >= since
    ]
    return call.page(found, lambda run: _run(call, run), wrap="workflow_runs")


def get_run(call: Call) -> Answer:
    """One run."""
    found = call.world.store.get(WorkflowRun, call.number("run_id"))
    if found is None or found.repo_id != call.repo.id:
        raise not_found()
    return Answer(200, _run(call, found))


def _run(call: Call, run: WorkflowRun) -> Json:
    lens, repo = call.lens, call.repo
    url = f"{lens.repo_api(repo)}/actions/runs/{run.id}"
    workflow = zlib.crc32(run.path.encode())
    actor = user_by_id(lens, run.actor_id)
    shown = repository(lens, repo)
    return {
        "id": run.id,
        "name": run.name,
        "node_id": node_id("WFR", run.id),
        "check_suite_id": run.id,
        "check_suite_node_id": node_id("CS", run.id),
        "head_branch": run.head_branch,
        "head_sha": run.head_sha,
        "path": f"{run.path}@{run.head_branch}",
        "run_number": run.number,
        "run_attempt": 1,
        "referenced_workflows": [],
        "event": "workflow_dispatch",
        "display_title": run.name,
        "status": run.status,
        "conclusion": run.conclusion,
        "workflow_id": workflow,
        "url": url,
        "html_url": f"{lens.repo_web(repo)}/actions/runs/{run.id}",
        "pull_requests": [],
        "created_at": run.created_at,
        "updated_at": run.updated_at,
        "run_started_at": run.created_at,
        "actor": actor,
        "triggering_actor": actor,
        "jobs_url": f"{url}/jobs",
        "logs_url": f"{url}/logs",
        "check_suite_url": f"{lens.repo_api(repo)}/check-suites/{run.id}",
        "artifacts_url": f"{url}/artifacts",
        "cancel_url": f"{url}/cancel",
        "rerun_url": f"{url}/rerun",
        "previous_attempt_url": None,
        "workflow_url": f"{lens.repo_api(repo)}/actions/workflows/{workflow}",
        "head_commit": _commit(call, run),
        "repository": shown,
        "head_repository": shown,
    }


def _commit(call: Call, run: WorkflowRun) -> Json:
    commit = call.git.commit(run.head_sha)
    owner = call.world.store.need(User, call.repo.owner_id)
    person = {"name": owner.login, "email": f"{owner.login}@users.noreply.github.com"}
    return {
        "id": run.head_sha,
        "tree_id": commit.tree,
        "message": commit.message,
        "timestamp": run.created_at,
        "author": person,
        "committer": person,
    }


_ACTIONS = "/repos/{owner}/{repo}/actions"
_WORKFLOW = _ACTIONS + "/workflows/{workflow_id}"

ROUTES = [
    Route(
        "POST",
        _WORKFLOW + "/dispatches",
        dispatch,
        "actions:write",
        "write",
        {"ref!": "string", "inputs": "object", "return_run_details": "boolean"},
    ),
    Route("GET", _WORKFLOW + "/runs", list_runs, "actions:read"),
    Route("GET", _ACTIONS + "/runs/{run_id}", get_run, "actions:read"),
]
