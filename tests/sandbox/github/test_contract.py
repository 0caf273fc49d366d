"""Every operation is called once and held against GitHub's description in both directions."""

import asyncio
import base64
from typing import Any

from bot.sandbox.github.packages import Package
from bot.sandbox.github.rest.server import ROUTES
from bot.sandbox.github.rules import BranchRules
from tests.contract.openapi import contract
from tests.sandbox.github.conftest import Stage

REPO = "/repos/acme/shop"
# Operations that the description does not have, or that `_walk` cannot reach with an App's token.
UNDESCRIBED = {"GET /repos/{owner}/{repo}/contents", "GET /repos/{owner}/{repo}/contents/"}


async def test_every_operation_conforms_in_both_directions(github: Stage) -> None:
    judge = contract()
    judge.seen.clear()
    await _apps(github)
    await _repositories(github)
    await _git_data(github)
    number = await _pulls(github)
    await _issues(github, number)
    await _checks(github)
    await _deployments(github)
    await _workflows(github)
    await _people(github)
    missing = []
    for route in ROUTES:
        name = f"{route.method} {route.path}"
        if name in UNDESCRIBED:
            continue
        operation = judge.operation(route.method, _example(route.path))
        if f"{operation.method} {operation.template}" not in judge.seen:
            missing.append(name)
    assert missing == []


def _example(path: str) -> str:
    return path.replace("{", "").replace("}", "")


async def _apps(github: Stage) -> None:
    app, bot = github.app, github.bot
    await app.ok("GET", "/app")
    await app.ok("GET", "/apps/lockstep")
    await app.ok("GET", "/app/installations")
    await app.ok("GET", f"/app/installations/{github.installation}")
    narrowed = {"repositories": ["shop"], "permissions": {"contents": "read"}}
    await app.ok("POST", f"/app/installations/{github.installation}/access_tokens", narrowed)
    await app.ok("GET", f"{REPO}/installation")
    await app.ok("GET", "/orgs/acme/installation")
    await app.ok("GET", "/users/acme/installation")
    await bot.ok("GET", "/installation/repositories")
    await app.ok("GET", "/app/hook/config")
    await app.ok("PATCH", "/app/hook/config", {"secret": "hush"})
    await github.github.settled()
    found = await app.ok("GET", "/app/hook/deliveries?per_page=1")
    await app.ok("GET", f"/app/hook/deliveries/{found[0]['id']}")
    await app.ok("POST", f"/app/hook/deliveries/{found[0]['id']}/attempts")


async def _repositories(github: Stage) -> None:
    bot = github.bot
    await github.branch("feature/one")
    await bot.ok("GET", REPO)
    dana = github.as_user("dana")
    await dana.ok("PATCH", REPO, {"delete_branch_on_merge": False})
    await bot.ok("GET", "/orgs/acme/repos")
    await bot.ok("GET", "/users/acme/repos")
    await bot.ok("GET", f"{REPO}/branches?per_page=1")
    await bot.ok("GET", f"{REPO}/branches/feature/one")
    commits = await bot.ok("GET", f"{REPO}/commits?sha=feature/one&path=env/dev/values.yaml")
    assert len(commits) == 2
    await bot.ok("GET", f"{REPO}/commits/feature/one")
    await bot.ok("GET", f"{REPO}/commits/{commits[0]['sha']}/pulls")
    compared = await bot.ok("GET", f"{REPO}/compare/main...feature/one")
    assert (compared["status"], compared["ahead_by"]) == ("ahead", 1)
    file = await bot.ok("GET", f"{REPO}/contents/env/dev/values.yaml?ref=feature/one")
    assert b"1.1.0" in base64.b64decode(file["content"])
    folder = await bot.ok("GET", f"{REPO}/contents/env/dev")
    assert [entry["name"] for entry in folder] == ["values.yaml"]


async def _git_data(github: Stage) -> None:
    bot = github.bot
    blob = await bot.ok("POST", f"{REPO}/git/blobs", {"content": "hi", "encoding": "utf-8"})
    await bot.ok("GET", f"{REPO}/git/blobs/{blob['sha']}")
    head = await bot.ok("GET", f"{REPO}/git/ref/heads/main")
    commit = await bot.ok("GET", f"{REPO}/git/commits/{head['object']['sha']}")
    entries = [
        {"path": "a/b.txt", "mode": "100755", "type": "blob", "sha": blob["sha"]},
        {"path": "README.md", "mode": "100644", "type": "blob", "sha": None},
        {"path": "c.txt", "mode": "100644", "type": "blob", "content": "inline"},
    ]
    tree = await bot.ok("POST", f"{REPO}/git/trees", {"base_tree": commit["tree"]["sha"], "tree": entries})
    seen = await bot.ok("GET", f"{REPO}/git/trees/{tree['sha']}?recursive=1")
    assert {entry["path"]: entry["mode"] for entry in seen["tree"] if entry["type"] == "blob"} == {
        "a/b.txt": "100755",
        "c.txt": "100644",
        "env/dev/values.yaml": "100644",
    }
    made = await bot.ok(
        "POST",
        f"{REPO}/git/commits",
        {"message": "by REST", "tree": tree["sha"], "parents": [commit["sha"]]},
    )
    assert made["verification"]["verified"]
    await bot.ok("POST", f"{REPO}/git/refs", {"ref": "refs/heads/rest", "sha": commit["sha"]})
    await bot.ok("PATCH", f"{REPO}/git/refs/heads/rest", {"sha": made["sha"], "force": False})
    await bot.ok("GET", f"{REPO}/git/matching-refs/heads/re")
    await bot.ok("DELETE", f"{REPO}/git/refs/heads/rest")


async def _pulls(github: Stage) -> int:
    bot, rafael = github.bot, github.as_user("rafael")
    pull = await github.pull()
    number = pull["number"]
    one = f"{REPO}/pulls/{number}"
    await bot.ok("GET", f"{REPO}/pulls?head=acme:promote&state=open")
    await bot.ok("GET", one)
    await bot.ok("PATCH", one, {"title": "other", "body": "text"})
    await bot.ok("GET", f"{one}/files")
    await bot.ok("GET", f"{one}/commits")
    await bot.ok(
        "POST", f"{one}/requested_reviewers", {"reviewers": ["rafael"], "team_reviewers": ["platform"]}
    )
    await bot.ok("GET", f"{one}/requested_reviewers")
    await bot.ok("DELETE", f"{one}/requested_reviewers", {"reviewers": ["rafael"]})
    review = await rafael.ok("POST", f"{one}/reviews", {"event": "APPROVE", "commit_id": pull["head"]["sha"]})
    await bot.ok("GET", f"{one}/reviews")
    await bot.ok("GET", f"{one}/reviews/{review['id']}")
    await rafael.ok("PUT", f"{one}/reviews/{review['id']}/dismissals", {"message": "late"})
    await github.branch("main", {"other.txt": b"moved on\n"})
    await bot.ok("PUT", f"{one}/update-branch", {"expected_head_sha": pull["head"]["sha"]})
    head = (await bot.ok("GET", one))["head"]["sha"]
    await bot.ok("PUT", f"{one}/merge", {"sha": head, "merge_method": "squash"})
    await bot.ok("GET", f"{one}/merge")
    return int(number)


async def _issues(github: Stage, number: int) -> None:
    bot = github.bot
    issue = await bot.ok("POST", f"{REPO}/issues", {"title": "drift", "body": "x", "labels": ["drift"]})
    await bot.ok("GET", f"{REPO}/issues?state=all")
    await bot.ok("GET", f"{REPO}/issues/{number}")
    await bot.ok(
        "PATCH", f"{REPO}/issues/{issue['number']}", {"state": "closed", "state_reason": "completed"}
    )
    made = await bot.ok("POST", f"{REPO}/issues/{number}/comments", {"body": "plan"})
    comment = f"{REPO}/issues/comments/{made['id']}"
    await bot.ok("GET", f"{REPO}/issues/{number}/comments")
    await bot.ok("GET", f"{REPO}/issues/comments?sort=updated&direction=desc")
    await bot.ok("GET", comment)
    await bot.ok("PATCH", comment, {"body": "plan 2"})
    reaction = await bot.ok("POST", f"{comment}/reactions", {"content": "eyes"})
    await bot.ok("POST", f"{comment}/reactions", {"content": "eyes"})
    await bot.ok("GET", f"{comment}/reactions")
    await bot.ok("DELETE", f"{comment}/reactions/{reaction['id']}")
    await bot.ok("POST", f"{REPO}/issues/{number}/reactions", {"content": "rocket"})
    await bot.ok("GET", f"{REPO}/issues/{number}/reactions")
    await bot.ok("DELETE", comment)
    await bot.ok("POST", f"{REPO}/labels", {"name": "stage/dev", "color": "00ff00", "description": "d"})
    await bot.ok("GET", f"{REPO}/labels")
    await bot.ok("POST", f"{REPO}/issues/{number}/labels", {"labels": ["stage/dev", "infra"]})
    await bot.ok("PUT", f"{REPO}/issues/{number}/labels", {"labels": ["stage/dev", "destroys"]})
    await bot.ok("GET", f"{REPO}/issues/{number}/labels")
    await bot.ok("DELETE", f"{REPO}/issues/{number}/labels/stage/dev")


async def _workflows(github: Stage) -> None:
    bot = github.bot
    found = await bot.ok("GET", "/search/issues?q=repo:acme/shop+is:issue+drift")
    assert [item["title"] for item in found["items"]] == ["drift"]
    text = b"on: {workflow_dispatch: {inputs: {tag: {required: true}}}}\njobs: {}\n"
    await github.branch("main", {".github/workflows/smoke.yml": text})
    smoke = f"{REPO}/actions/workflows/smoke.yml"
    body = {"ref": "main", "inputs": {"tag": "1.2.3"}}
    assert await bot.ok("POST", f"{smoke}/dispatches", body) is None
    told = await bot.ok("POST", f"{smoke}/dispatches", {**body, "return_run_details": True})
    runs = await bot.ok("GET", f"{smoke}/runs?event=workflow_dispatch&actor=lockstep[bot]")
    assert runs["workflow_runs"][0]["id"] == told["workflow_run_id"]
    run = await bot.ok("GET", f"{REPO}/actions/runs/{told['workflow_run_id']}")
    assert (run["status"], run["conclusion"]) == ("queued", None)


def _output() -> dict[str, Any]:
    note = {
        "path": "env/dev/values.yaml",
        "start_line": 1,
        "end_line": 2,
        "annotation_level": "warning",
        "message": "m",
    }
    return {"title": "Plan", "summary": "1 to add", "text": "more", "annotations": [note]}


async def _checks(github: Stage) -> None:
    bot = github.bot
    sha = (await bot.ok("GET", f"{REPO}/git/ref/heads/feature/one"))["object"]["sha"]
    actions = [{"label": "Apply", "description": "Apply it", "identifier": "apply"}]
    body = {
        "name": "lockstep",
        "head_sha": sha,
        "status": "in_progress",
        "external_id": "7",
        "output": _output(),
    }
    run = await bot.ok("POST", f"{REPO}/check-runs", {**body, "actions": actions})
    one = f"{REPO}/check-runs/{run['id']}"
    await bot.ok("PATCH", one, {"conclusion": "success", "output": _output()})
    await bot.ok("GET", one)
    assert len(await bot.ok("GET", f"{one}/annotations")) == 2
    await bot.ok("POST", f"{one}/rerequest")
    await bot.ok("GET", f"{REPO}/commits/feature/one/check-runs?check_name=lockstep")
    await bot.ok("GET", f"{REPO}/commits/{sha}/check-suites")
    suite = f"{REPO}/check-suites/{run['check_suite']['id']}"
    await bot.ok("GET", suite)
    await bot.ok("GET", f"{suite}/check-runs")
    await bot.ok("POST", f"{suite}/rerequest")
    await bot.ok("POST", f"{REPO}/check-suites", {"head_sha": sha})
    setting = [{"app_id": github.credentials.app_id, "setting": False}]
    await bot.ok("PATCH", f"{REPO}/check-suites/preferences", {"auto_trigger_checks": setting})
    await bot.ok("POST", f"{REPO}/statuses/{sha}", {"state": "success", "context": "ci", "description": "ok"})
    await bot.ok("GET", f"{REPO}/commits/feature/one/status")


async def _deployments(github: Stage) -> None:
    bot = github.bot
    body = {
        "ref": "main",
        "environment": "dev",
        "auto_merge": False,
        "required_contexts": [],
        "payload": {"f": 1},
    }
    made = await bot.ok("POST", f"{REPO}/deployments", body)
    one = f"{REPO}/deployments/{made['id']}"
    await bot.ok("GET", f"{REPO}/deployments?environment=dev")
    await bot.ok("GET", one)
    await bot.ok(
        "POST", f"{one}/statuses", {"state": "success", "description": "done", "log_url": "http://x/y"}
    )
    await bot.ok("GET", f"{one}/statuses")


async def _people(github: Stage) -> None:
    bot, app = github.bot, github.app
    await asyncio.to_thread(
        github.github.set_rules,
        "acme/shop",
        "main",
        BranchRules(
            required_checks=(("lockstep", github.credentials.app_id),),
            required_reviews=1,
            linear_history=True,
            merge_queue=True,
        ),
    )
    await bot.ok("GET", "/users/olivia")
    await github.as_user("uma").ok("GET", "/user")
    permission = await bot.ok("GET", f"{REPO}/collaborators/olivia/permission")
    assert (permission["permission"], permission["role_name"]) == ("write", "maintain")
    await bot.ok("GET", "/orgs/acme/teams")
    await bot.ok("GET", "/orgs/acme/members/olivia")
    await bot.ok("GET", "/orgs/acme/teams/platform/memberships/olivia")
    await bot.ok("GET", "/orgs/acme/teams/platform/members")
    assert len(await bot.ok("GET", f"{REPO}/rules/branches/main")) == 6
    found = await bot.ok("GET", f"{REPO}/rulesets")
    await bot.ok("GET", f"{REPO}/rulesets/{found[0]['id']}")
    await github.as_user("dana").ok("GET", f"{REPO}/rulesets/{found[0]['id']}")
    await bot.ok("GET", "/rate_limit")
    await bot.ok("GET", "/meta")
    await _manifest(github)
    await asyncio.to_thread(
        github.github.actions.publish_package,
        "olivia",
        "acme/shop",
        Package("web", "1.0", "sha256:" + "0" * 64),
    )
    del app


async def _manifest(github: Stage) -> None:
    manifest = {
        "name": "Second App",
        "url": "http://127.0.0.1/bot",
        "hook_attributes": {"url": github.receiver.url},
        "redirect_url": "http://127.0.0.1/setup/done",
        "default_permissions": {"contents": "read"},
        "default_events": ["push"],
        "public": False,
    }
    code = await github.create_app("acme", manifest, "xyz")
    await github.bot.ok("POST", f"/app-manifests/{code}/conversions")
    again = await github.bot("POST", f"/app-manifests/{code}/conversions")
    assert again.status_code == 404
