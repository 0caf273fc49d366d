"""Every webhook that the server can send is sent once and held against GitHub's description."""

import json

from bot.sandbox.github import installing
from bot.sandbox.github.accounts import Installation
from bot.sandbox.github.packages import Package
from bot.sandbox.github.rules import BranchRules
from tests.contract.openapi import check_webhook
from tests.sandbox.github.conftest import Stage

REPO = "/repos/acme/shop"
NAME = "acme/shop"
EXPECTED = {
    "check-run-completed",
    "check-run-created",
    "check-run-requested-action",
    "check-run-rerequested",
    "check-suite-completed",
    "check-suite-requested",
    "check-suite-rerequested",
    "deployment-created",
    "deployment-status-created",
    "installation-created",
    "installation-repositories-added",
    "installation-repositories-removed",
    "installation-suspend",
    "installation-unsuspend",
    "issue-comment-created",
    "issue-comment-deleted",
    "issue-comment-edited",
    "issues-closed",
    "issues-opened",
    "merge-group-checks-requested",
    "merge-group-destroyed",
    "ping",
    "pull-request-closed",
    "pull-request-edited",
    "pull-request-labeled",
    "pull-request-opened",
    "pull-request-reopened",
    "pull-request-review-dismissed",
    "pull-request-review-requested",
    "pull-request-review-submitted",
    "pull-request-synchronize",
    "push",
    "registry-package-published",
    "status",
}


async def test_every_webhook_conforms(github: Stage) -> None:
    await _pull_request(github)
    await _repository(github)
    await _installation(github)
    await github.github.settled()
    seen = {
        check_webhook(headers["x-github-event"], json.loads(body)) for headers, body in github.receiver.got
    }
    assert sorted(EXPECTED - seen) == []


async def _pull_request(github: Stage) -> None:
    acts, bot = github.github.actions, github.bot
    pull = await github.pull()
    number, sha = pull["number"], pull["head"]["sha"]
    button = {"label": "a", "description": "b", "identifier": "c"}
    body = {"name": "lockstep", "head_sha": sha, "conclusion": "failure", "actions": [button]}
    run = await bot.ok("POST", f"{REPO}/check-runs", {**body, "output": {"title": "t", "summary": "s"}})
    acts.press("rafael", NAME, run["id"], "c")
    acts.rerun_check("rafael", NAME, run["id"])
    acts.rerun_all_checks("rafael", NAME, run["check_suite"]["id"])
    comment = acts.comment("rafael", NAME, number, "hi")
    acts.edit_comment("rafael", NAME, comment.id, "ho")
    acts.delete_comment("rafael", NAME, comment.id)
    review = acts.approve("rafael", NAME, number)
    acts.dismiss_review("dana", NAME, review.id, "m")
    acts.edit("rafael", NAME, number, {"title": "x", "body": "y"})
    acts.close("rafael", NAME, number)
    acts.reopen("rafael", NAME, number)
    await bot.ok("POST", f"{REPO}/issues/{number}/labels", {"labels": ["a"]})
    asked = {"reviewers": ["rafael"], "team_reviewers": ["platform"]}
    await bot.ok("POST", f"{REPO}/pulls/{number}/requested_reviewers", asked)
    await github.branch("promote", {"m.txt": b"1"})
    await bot.ok("PUT", f"{REPO}/pulls/{number}/merge", {})
    await bot.ok("DELETE", f"{REPO}/git/refs/heads/promote")


async def _repository(github: Stage) -> None:
    acts, bot = github.github.actions, github.bot
    issue = acts.open_issue("uma", NAME, "t")
    await bot.ok("PATCH", f"{REPO}/issues/{issue.number}", {"state": "closed"})
    acts.publish_package("olivia", NAME, Package("web", "1", "sha256:" + "a" * 64))
    made = await bot.ok("POST", f"{REPO}/deployments", {"ref": "main", "required_contexts": []})
    await bot.ok("POST", f"{REPO}/deployments/{made['id']}/statuses", {"state": "success"})
    main = github.git().ref("refs/heads/main")
    await bot.ok("POST", f"{REPO}/statuses/{main}", {"state": "success"})
    await bot.ok("POST", f"{REPO}/git/refs", {"ref": "refs/tags/v1", "sha": main})
    github.github.set_rules(NAME, "main", BranchRules(required_checks=(("other", None),), merge_queue=True))
    await github.branch("queued", {"q": b"1"})
    pull = await bot.ok("POST", f"{REPO}/pulls", {"title": "t", "head": "queued", "base": "main"})
    await bot.ok("POST", f"{REPO}/statuses/{pull['head']['sha']}", {"state": "success", "context": "other"})
    acts.enqueue("rafael", NAME, pull["number"])
    await github.github.settled()
    acts.close("rafael", NAME, pull["number"])
    group = github.receiver.events("merge_group")[0]["merge_group"]["head_sha"]
    await bot.ok("POST", f"{REPO}/statuses/{group}", {"state": "failure", "context": "other"})
    await github.until(lambda: len(github.receiver.events("merge_group")) == 2)


async def _installation(github: Stage) -> None:
    world = github.github.world
    github.github.create_repository("acme", "vault", {"a": b"1"})
    github.github.install_app(github.credentials.app_id, "acme", ["shop", "vault"])
    found = world.store.need(Installation, github.installation)
    installing.remove_repositories(world, found, ["vault"])
    found = installing.set_suspended(world, found, suspended=True)
    installing.set_suspended(world, found, suspended=False)
    app = github.github.app("lockstep")
    assert app is not None
    installing.ping(world, app)
