"""Check runs, check suites, commit statuses and deployments as JSON."""

import json

from bot.sandbox.github.git import Commit
from bot.sandbox.github.records import (
    CheckRun,
    CheckSuite,
    CommitStatus,
    Deployment,
    DeploymentStatus,
    Json,
    Repository,
)
from bot.sandbox.github.views.lens import Lens, node_id
from bot.sandbox.github.views.people import app_by_id, user_by_id
from bot.sandbox.github.views.pulls import pulls_of_commit
from bot.sandbox.github.views.repositories import repository


def check_run(lens: Lens, repo: Repository, run: CheckRun) -> Json:
    """A check run."""
    url = f"{lens.repo_api(repo)}/check-runs/{run.id}"
    web = f"{lens.repo_web(repo)}/runs/{run.id}"
    return {
        "id": run.id,
        "name": run.name,
        "node_id": node_id("CR", run.id),
        "head_sha": run.head_sha,
        "external_id": run.external_id,
        "url": url,
        "html_url": web,
        "details_url": run.details_url or web,
        "status": run.status,
        "conclusion": run.conclusion,
        "started_at": run.started_at,
        "completed_at": run.completed_at,
        "output": {
            "title": run.title,
            "summary": run.summary,
            "text": run.text,
            "annotations_count": len(run.annotations),
            "annotations_url": url + "/annotations",
        },
        "check_suite": {"id": run.suite_id},
        "app": app_by_id(lens, run.app_id),
        "pull_requests": pulls_of_commit(lens, repo, run.head_sha),
    }


def annotation(lens: Lens, repo: Repository, run: CheckRun, item: Json) -> Json:
    """One annotation of a check run."""
    return {
        "path": item["path"],
        "blob_href": f"{lens.repo_web(repo)}/blob/{run.head_sha}/{item['path']}",
        "start_line": item["start_line"],
        "end_line": item["end_line"],
        "start_column": item.get("start_column"),
        "end_column": item.get("end_column"),
        "annotation_level": item["annotation_level"],
        "title": item.get("title"),
        "message": item["message"],
        "raw_details": item.get("raw_details"),
    }


def suite_state(lens: Lens, suite: CheckSuite) -> tuple[str, str | None]:
    """A suite's status and conclusion, from the newest run of each name."""
    newest = {run.name: run for run in lens.world.store.find(CheckRun, suite_id=suite.id)}.values()
    if not newest:
        return "queued", None
    if any(run.status != "completed" for run in newest):
        return ("in_progress" if any(run.status == "in_progress" for run in newest) else "queued"), None
    order = ("failure", "timed_out", "cancelled", "action_required", "stale", "success", "neutral", "skipped")
    conclusions = {run.conclusion for run in newest}
    return "completed", next((name for name in order if name in conclusions), "success")


def check_suite(lens: Lens, repo: Repository, suite: CheckSuite) -> Json:
    """A check suite."""
    url = f"{lens.repo_api(repo)}/check-suites/{suite.id}"
    status, conclusion = suite_state(lens, suite)
    return {
        "id": suite.id,
        "node_id": node_id("CS", suite.id),
        "head_branch": suite.head_branch,
        "head_sha": suite.head_sha,
        "status": status,
        "conclusion": conclusion,
        "url": url,
        "before": suite.before,
        "after": suite.head_sha,
        "pull_requests": pulls_of_commit(lens, repo, suite.head_sha),
        "app": app_by_id(lens, suite.app_id),
        "repository": repository(lens, repo),
        "created_at": suite.created_at,
        "updated_at": suite.updated_at,
        "head_commit": simple_commit(lens.world.git(repo).commit(suite.head_sha)),
        "latest_check_runs_count": lens.world.store.count(CheckRun, suite_id=suite.id),
        "check_runs_url": url + "/check-runs",
        "rerequestable": True,
        "runs_rerequestable": True,
    }


def simple_commit(item: Commit) -> Json:
    """A commit as check suites and push events show it."""
    return {
        "id": item.sha,
        "tree_id": item.tree,
        "message": item.message,
        "timestamp": item.committer.date,
        "author": {"name": item.author.name, "email": item.author.email},
        "committer": {"name": item.committer.name, "email": item.committer.email},
    }


def status(lens: Lens, repo: Repository, item: CommitStatus) -> Json:
    """A commit status."""
    return {
        **simple_status(lens, repo, item),
        "creator": user_by_id(lens, item.creator_id),
    }


def simple_status(lens: Lens, repo: Repository, item: CommitStatus) -> Json:
    """A commit status as the combined status lists it."""
    return {
        "url": f"{lens.repo_api(repo)}/statuses/{item.sha}",
        "avatar_url": f"{lens.base}/avatars/{item.creator_id}",
        "id": item.id,
        "node_id": node_id("SC", item.id),
        "state": item.state,
        "description": item.description,
        "target_url": item.target_url,
        "context": item.context,
        "created_at": item.created_at,
        "updated_at": item.created_at,
    }


def deployment(lens: Lens, repo: Repository, item: Deployment) -> Json:
    """A deployment."""
    url = f"{lens.repo_api(repo)}/deployments/{item.id}"
    return {
        "url": url,
        "id": item.id,
        "node_id": node_id("DE", item.id),
        "task": item.task,
        "original_environment": item.environment,
        "environment": item.environment,
        "description": item.description,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "statuses_url": url + "/statuses",
        "repository_url": lens.repo_api(repo),
        "creator": user_by_id(lens, item.creator_id),
        "sha": item.sha,
        "ref": item.ref,
        "payload": json.loads(item.payload),
        "transient_environment": item.transient_environment,
        "production_environment": item.production_environment,
        "performed_via_github_app": app_by_id(lens, item.app_id),
    }


def deployment_status(lens: Lens, repo: Repository, item: DeploymentStatus) -> Json:
    """One status of a deployment."""
    deployment_url = f"{lens.repo_api(repo)}/deployments/{item.deployment_id}"
    return {
        "url": f"{deployment_url}/statuses/{item.id}",
        "id": item.id,
        "node_id": node_id("DES", item.id),
        "state": item.state,
        "creator": user_by_id(lens, item.creator_id),
        "description": item.description,
        "environment": item.environment,
        "target_url": item.log_url,
        "created_at": item.created_at,
        "updated_at": item.created_at,
        "deployment_url": deployment_url,
        "repository_url": lens.repo_api(repo),
        "environment_url": item.environment_url,
        "log_url": item.log_url,
        "performed_via_github_app": app_by_id(lens, item.app_id),
    }
