"""Checks, comments and deployments: GitHub's limits and defaults, each with the wrong call refused."""

import asyncio
from typing import Any

import httpx
import pytest

from bot.sandbox.github.errors import Refused
from bot.sandbox.github.provisioning import NewApp
from tests.sandbox.github.conftest import Stage

REPO = "/repos/acme/shop"
NAME = "acme/shop"


def note(**changes: Any) -> dict[str, Any]:
    return {
        "path": "a",
        "start_line": 1,
        "end_line": 1,
        "annotation_level": "notice",
        "message": "m",
        **changes,
    }


def button(**changes: str) -> dict[str, str]:
    return {"label": "Apply", "description": "Apply it", "identifier": "apply", **changes}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param({"name": None}, "is not a string", id="no name"),
        pytest.param({"head_sha": "1" * 40}, "No commit found", id="an unknown commit"),
        pytest.param({"status": "done"}, "not a member", id="an unknown status"),
        pytest.param({"conclusion": "fine"}, "not a member", id="an unknown conclusion"),
        pytest.param({"status": "completed"}, "conclusion", id="completed without a conclusion"),
        pytest.param({"output": {"title": "t"}}, "summary", id="an output without a summary"),
        pytest.param({"output": {"summary": "s"}}, "title", id="an output without a title"),
        pytest.param({"output": {"title": "t", "summary": "é" * 32768}}, "65535", id="a summary by bytes"),
        pytest.param(
            {"output": {"title": "t", "summary": "s", "text": "x" * 65536}}, "65535", id="a long text"
        ),
        pytest.param({"output": {"title": "t" * 256, "summary": "s"}}, "255", id="a long title"),
        pytest.param(
            {"output": {"title": "t", "summary": "s", "annotations": [note()] * 51}},
            "50",
            id="51 annotations",
        ),
        pytest.param(
            {"output": {"title": "t", "summary": "s", "annotations": [note(message="x" * 65537)]}},
            "64 KB",
            id="a long annotation",
        ),
        pytest.param(
            {"output": {"title": "t", "summary": "s", "annotations": [note(start_line=3)]}},
            "end_line",
            id="an annotation that ends before it begins",
        ),
        pytest.param({"actions": [button()] * 4}, "more than 3", id="four buttons"),
        pytest.param({"actions": [button(label="x" * 21)]}, "Only 20", id="a long label"),
        pytest.param({"actions": [button(description="x" * 41)]}, "Only 40", id="a long description"),
        pytest.param({"actions": [button(identifier="x" * 21)]}, "Only 20", id="a long identifier"),
        pytest.param({"pull_request": 1}, "not a permitted key", id="an unknown field"),
    ],
)
async def test_bad_check_runs_are_refused(github: Stage, body: dict[str, Any], words: str) -> None:
    sha = github.git().ref("refs/heads/main")
    answer = await github.bot("POST", f"{REPO}/check-runs", {"name": "lockstep", "head_sha": sha, **body})
    assert answer.status_code == 422
    assert words in answer.text


async def a_run(github: Stage, **body: Any) -> dict[str, Any]:
    sha = github.git().ref("refs/heads/main")
    made: dict[str, Any] = await github.bot.ok(
        "POST", f"{REPO}/check-runs", {"name": "lockstep", "head_sha": sha, **body}
    )
    return made


async def test_only_apps_make_check_runs_and_only_their_own_do_they_change(github: Stage) -> None:
    run = await a_run(github)
    body = {"name": "lockstep", "head_sha": run["head_sha"]}
    assert (await github.as_user("dana")("POST", f"{REPO}/check-runs", body)).status_code == 403
    other = github.github.register_app(NewApp("Other", "acme", {"checks": "write"}, (), "", ""))
    caller = await github.as_app(other, github.github.install_app(other.app_id, "acme", ["shop"]))
    answer = await caller("PATCH", f"{REPO}/check-runs/{run['id']}", {"conclusion": "success"})
    assert answer.status_code == 403
    assert (await github.bot("PATCH", f"{REPO}/check-runs/999999", {})).status_code == 404


async def test_a_completed_run_stays_completed(github: Stage) -> None:
    run = await a_run(github, conclusion="failure")
    again = await github.bot.ok("PATCH", f"{REPO}/check-runs/{run['id']}", {"status": "in_progress"})
    assert (again["status"], again["conclusion"]) == ("completed", "failure")
    changed = await github.bot.ok("PATCH", f"{REPO}/check-runs/{run['id']}", {"conclusion": "success"})
    assert changed["conclusion"] == "success"


async def test_annotations_are_added_over_several_updates(github: Stage) -> None:
    run = await a_run(github)
    for _ in range(2):
        output = {"title": "t", "summary": "s", "annotations": [note()] * 50}
        seen = await github.bot.ok("PATCH", f"{REPO}/check-runs/{run['id']}", {"output": output})
    assert seen["output"]["annotations_count"] == 100


async def test_buttons_and_reruns_reach_only_the_app_and_need_write(github: Stage) -> None:
    run = await a_run(github, conclusion="failure", actions=[button()], external_id="run-7")
    acts = github.github.actions
    acts.press("rafael", NAME, run["id"], "apply")
    acts.rerun_check("rafael", NAME, run["id"])
    acts.rerun_all_checks("rafael", NAME, run["check_suite"]["id"])
    with pytest.raises(Refused, match="push access"):
        acts.press("uma", NAME, run["id"], "apply")
    with pytest.raises(Refused, match="push access"):
        acts.rerun_check("uma", NAME, run["id"])
    with pytest.raises(Refused, match="no button"):
        acts.press("rafael", NAME, run["id"], "destroy")
    await github.github.settled()
    pressed = next(
        event for event in github.receiver.events("check_run") if event["action"] == "requested_action"
    )
    assert pressed["requested_action"] == {"identifier": "apply"}
    assert (pressed["check_run"]["external_id"], pressed["sender"]["login"]) == ("run-7", "rafael")
    assert "check_run.rerequested" in github.receiver.names()
    assert "check_suite.rerequested" in github.receiver.names()


async def test_a_running_check_has_no_buttons(github: Stage) -> None:
    run = await a_run(github, status="in_progress", actions=[button()])
    with pytest.raises(Refused):
        github.github.actions.press("rafael", NAME, run["id"], "apply")
    with pytest.raises(Refused):
        github.github.actions.rerun_check("rafael", NAME, run["id"])


async def test_suites_are_not_opened_where_they_are_switched_off(github: Stage) -> None:
    setting = [{"app_id": github.credentials.app_id, "setting": False}]
    await github.bot.ok("PATCH", f"{REPO}/check-suites/preferences", {"auto_trigger_checks": setting})
    await github.branch("quiet")
    await github.github.settled()
    assert github.receiver.events("check_suite") == []
    found = await github.bot.ok("GET", f"{REPO}/commits/quiet/check-suites")
    assert found["total_count"] == 0


# ---- comments


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param({"body": "x" * 65537}, "Body is too long (maximum is 65536 characters)", id="too long"),
        pytest.param({"body": "  "}, "missing_field", id="empty"),
        pytest.param({}, "wasn't supplied", id="missing"),
        pytest.param({"body": 7}, "is not a string", id="a number"),
        pytest.param({"body": "x", "in_reply_to": 1}, "not a permitted key", id="an unknown field"),
    ],
)
async def test_bad_comments_are_refused(github: Stage, body: dict[str, Any], words: str) -> None:
    number = (await github.pull())["number"]
    answer = await github.bot("POST", f"{REPO}/issues/{number}/comments", body)
    assert (answer.status_code, words in answer.text) == (422, True)


async def test_a_comment_of_the_full_length_is_taken(github: Stage) -> None:
    number = (await github.pull())["number"]
    await github.bot.ok("POST", f"{REPO}/issues/{number}/comments", {"body": "é" * 65536})


async def test_writers_may_edit_anybodys_comment_and_readers_only_their_own(github: Stage) -> None:
    number = (await github.pull())["number"]
    acts = github.github.actions
    comment = acts.comment("olivia", NAME, number, "/apply")
    with pytest.raises(Refused):
        acts.edit_comment("uma", NAME, comment.id, "/freeze")
    acts.edit_comment("rafael", NAME, comment.id, "/freeze")
    own = acts.comment("uma", NAME, number, "hi")
    acts.edit_comment("uma", NAME, own.id, "hello")
    acts.delete_comment("uma", NAME, own.id)
    await github.github.settled()
    edited = next(event for event in github.receiver.events("issue_comment") if event["action"] == "edited")
    assert edited["changes"]["body"]["from"] == "/apply"
    assert edited["comment"]["user"]["login"] == "olivia"
    assert edited["sender"]["login"] == "rafael"
    seen = await github.bot.ok("GET", f"{REPO}/issues/comments/{comment.id}")
    assert seen["body"] == "/freeze"


async def test_pull_request_permission_is_enough_for_comments_on_pull_requests_only(github: Stage) -> None:
    number = (await github.pull())["number"]
    issue = await github.bot.ok("POST", f"{REPO}/issues", {"title": "t"})
    narrow = await github.token(permissions={"pull_requests": "write"})
    await narrow.ok("POST", f"{REPO}/issues/{number}/comments", {"body": "b"})
    answer = await narrow("POST", f"{REPO}/issues/{issue['number']}/comments", {"body": "b"})
    assert answer.status_code == 403


async def test_reactions_are_one_of_a_kind_per_person(github: Stage) -> None:
    number = (await github.pull())["number"]
    comment = github.github.actions.comment("olivia", NAME, number, "/plan")
    path = f"{REPO}/issues/comments/{comment.id}/reactions"
    assert (await github.bot("POST", path, {"content": "eyes"})).status_code == 201
    assert (await github.bot("POST", path, {"content": "eyes"})).status_code == 200
    assert (await github.bot("POST", path, {"content": "wow"})).status_code == 422
    other = await github.as_user("rafael").ok("POST", path, {"content": "eyes"})
    assert (await github.bot("DELETE", f"{path}/{other['id']}")).status_code == 403


async def test_reviews_need_a_body_and_a_commit_of_the_pull_request(github: Stage) -> None:
    number = (await github.pull())["number"]
    rafael = github.as_user("rafael")
    path = f"{REPO}/pulls/{number}/reviews"
    assert (await rafael("POST", path, {"event": "REQUEST_CHANGES"})).status_code == 422
    assert (await rafael("POST", path, {"event": "APPROVE", "commit_id": "1" * 40})).status_code == 422
    assert (await rafael("POST", path, {"event": "LGTM"})).status_code == 422
    review = await rafael.ok("POST", path, {"event": "COMMENT", "body": "b"})
    answer = await rafael("PUT", f"{path}/{review['id']}/dismissals", {"message": "m"})
    assert answer.status_code == 422
    answer = await github.bot("POST", path, {"event": "APPROVE"})
    assert answer.status_code == 422


async def test_reviewers_have_to_see_the_repository_and_not_be_the_author(github: Stage) -> None:
    github.github.create_user("eve")
    await github.branch("promote")
    body = {"title": "t", "head": "promote", "base": "main"}
    number = (await github.as_user("olivia").ok("POST", f"{REPO}/pulls", body))["number"]
    path = f"{REPO}/pulls/{number}/requested_reviewers"
    for login in ("eve", "olivia", "nobody"):
        assert (await github.bot("POST", path, {"reviewers": [login]})).status_code == 422
    await github.bot.ok("POST", path, {"reviewers": ["rafael"]})
    github.github.actions.approve("rafael", NAME, number)
    assert (await github.bot.ok("GET", path))["users"] == []


# ---- deployments


async def test_a_deployment_merges_the_default_branch_unless_told_not_to(github: Stage) -> None:
    await github.branch("promote")
    await github.branch("main", {"other.txt": b"o"})
    answer = await github.bot("POST", f"{REPO}/deployments", {"ref": "promote"})
    assert (answer.status_code, "Auto-merged main into promote" in answer.text) == (202, True)
    made = await github.bot.ok("POST", f"{REPO}/deployments", {"ref": "promote"})
    assert (made["environment"], made["production_environment"]) == ("production", True)


async def test_a_deployment_that_conflicts_is_refused(github: Stage) -> None:
    await github.branch("promote")
    await github.branch("main", {"env/dev/values.yaml": b"image:\n  tag: 9\n"})
    answer = await github.bot("POST", f"{REPO}/deployments", {"ref": "promote"})
    assert (answer.status_code, "Conflict merging main" in answer.text) == (409, True)


async def test_a_deployment_wants_every_check_to_pass_unless_told_not_to(github: Stage) -> None:
    await a_run(github, status="in_progress")
    answer = await github.bot("POST", f"{REPO}/deployments", {"ref": "main"})
    assert answer.status_code == 409
    assert answer.json()["errors"][0]["contexts"] == [{"context": "lockstep", "state": "pending"}]
    answer = await github.bot("POST", f"{REPO}/deployments", {"ref": "main", "required_contexts": ["other"]})
    assert answer.status_code == 409
    await github.bot.ok("POST", f"{REPO}/deployments", {"ref": "main", "required_contexts": []})
    assert (await github.bot("POST", f"{REPO}/deployments", {"ref": "none"})).status_code == 422


async def test_a_success_makes_older_deployments_inactive(github: Stage) -> None:
    paths = []
    for _ in range(2):
        made = await github.bot.ok("POST", f"{REPO}/deployments", {"ref": "main", "environment": "dev"})
        paths.append(f"{REPO}/deployments/{made['id']}/statuses")
        await github.bot.ok("POST", paths[-1], {"state": "success"})
    states = [item["state"] for item in await github.bot.ok("GET", paths[0])]
    assert states == ["inactive", "success"]
    long = {"state": "success", "description": "x" * 141}
    answer = await github.bot("POST", paths[1], long)
    assert (answer.status_code, "140" in answer.text) == (422, True)
    await github.github.settled()
    assert "deployment_status.created" in github.receiver.names()


async def test_statuses_have_limits(github: Stage) -> None:
    path = f"{REPO}/statuses/{github.git().ref('refs/heads/main')}"
    for body in (
        {"state": "green"},
        {"state": "success", "description": "x" * 141},
        {"state": "success", "context": "x" * 256},
    ):
        assert (await github.bot("POST", path, body)).status_code == 422
    await github.bot.ok("POST", path, {"state": "pending", "context": "a"})
    await github.bot.ok("POST", path, {"state": "success", "context": "a"})
    await github.bot.ok("POST", path, {"state": "error", "context": "b"})
    seen = await github.bot.ok("GET", f"{REPO}/commits/main/status")
    assert (seen["state"], seen["total_count"]) == ("failure", 2)


# ---- lists and caching


async def test_lists_are_paged_with_links_and_unchanged_answers_are_free(github: Stage) -> None:
    number = (await github.pull())["number"]
    await asyncio.to_thread(
        lambda: [github.github.actions.comment("uma", NAME, number, f"c{at}") for at in range(5)]
    )
    path = f"{REPO}/issues/{number}/comments"
    first = await github.bot("GET", f"{path}?per_page=2")
    assert [item["body"] for item in first.json()] == ["c0", "c1"]
    assert f"{github.base}/api/v3{path}?per_page=2&page=2" in first.links["next"]["url"]
    assert "page=3" in first.links["last"]["url"]
    last = await github.bot("GET", f"{path}?per_page=2&page=3")
    assert ([item["body"] for item in last.json()], "next" in last.links) == (["c4"], False)
    assert len((await github.bot("GET", f"{path}?per_page=1000")).json()) == 5
    left = int((await github.bot("GET", path)).headers["x-ratelimit-remaining"])
    again = await github.bot(
        "GET", path, **{"if-none-match": (await github.bot("GET", path)).headers["etag"]}
    )
    assert (again.status_code, again.content) == (304, b"")
    assert int(again.headers["x-ratelimit-remaining"]) == left - 1
    github.github.actions.comment("uma", NAME, number, "new")
    changed = await github.bot("GET", path, **{"if-none-match": again.headers["etag"]})
    assert changed.status_code == 200
    assert "date" in changed.headers


async def test_broken_json_is_refused(github: Stage) -> None:
    async with httpx.AsyncClient(verify=False) as client:
        answer = await client.post(
            f"{github.base}/api/v3{REPO}/issues",
            content=b"{",
            headers={"authorization": f"Bearer {github.bot.token}"},
        )
    assert (answer.status_code, answer.json()["message"]) == (400, "Problems parsing JSON")
