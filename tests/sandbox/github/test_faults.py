"""Faults on demand, the request log, and acting as a person over HTTP."""

import time
from typing import Any

import httpx
import pytest

from tests.sandbox.github.conftest import Stage

REPO = "/repos/acme/shop"


async def control(github: Stage, method: str, path: str, body: Any = None) -> httpx.Response:
    async with httpx.AsyncClient(verify=False) as client:
        return await client.request(method, f"{github.base}/_sandbox{path}", json=body)


async def test_an_answer_is_lost_before_or_after_the_work(github: Stage) -> None:
    rules = [
        {"kind": "5xx-before", "method": "POST", "path": "/issues$"},
        {"kind": "5xx-after", "method": "POST", "path": "/issues$", "status": 503},
    ]
    assert (await control(github, "POST", "/faults", rules)).status_code == 204
    titles = []
    for title, status in (("before", 502), ("lost", 503), ("kept", 201)):
        answer = await github.bot("POST", f"{REPO}/issues", {"title": title})
        assert answer.status_code == status
    titles = [item["title"] for item in await github.bot.ok("GET", f"{REPO}/issues")]
    assert titles == ["kept", "lost"]


async def test_limits_young_objects_and_stale_mergeability(github: Stage) -> None:
    rules = [
        {"kind": "secondary-limit", "method": "PATCH", "path": "issues", "retry_after": 7, "status": 429},
        {"kind": "primary-limit", "method": "DELETE", "path": "issues"},
        {"kind": "404-young", "method": "GET", "path": "/issues/comments/", "young_ms": 60000},
        {"kind": "stale-mergeable", "path": "/pulls/", "count": 2},
        {"kind": "slow", "path": "^/meta$", "delay": 0.3},
    ]
    assert (await control(github, "POST", "/faults", rules)).status_code == 204
    answer = await github.bot("PATCH", f"{REPO}/issues/1", {})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert "secondary rate limit" in answer.json()["message"]
    answer = await github.bot("DELETE", f"{REPO}/issues/comments/1")
    assert (answer.status_code, answer.headers["x-ratelimit-remaining"]) == (403, "0")
    pull = await github.pull()
    await github.github.settled()
    seen = [(await github.bot.ok("GET", f"{REPO}/pulls/{pull['number']}"))["mergeable"] for _ in range(3)]
    assert seen == [None, None, True]
    made = await github.bot.ok("POST", f"{REPO}/issues/{pull['number']}/comments", {"body": "b"})
    statuses = [
        (await github.bot("GET", f"{REPO}/issues/comments/{made['id']}")).status_code for _ in range(2)
    ]
    assert statuses == [404, 200]
    started = time.monotonic()
    await github.bot.ok("GET", "/meta")
    assert time.monotonic() - started >= 0.3


async def test_faults_are_cleared_and_wrong_ones_refused(github: Stage) -> None:
    await control(github, "POST", "/faults", [{"kind": "5xx-before", "count": 0}])
    assert (await github.bot("GET", REPO)).status_code == 502
    assert (await control(github, "DELETE", "/faults")).status_code == 204
    assert (await github.bot("GET", REPO)).status_code == 200


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param({"kind": "slow"}, "a JSON list", id="no list"),
        pytest.param([{"kind": "explode"}], "no fault of kind", id="an unknown kind"),
        pytest.param([{"kind": "slow", "path": "("}], "not a regular expression", id="a broken pattern"),
        pytest.param([{"kind": "slow", "event": "push"}], "knows no event", id="a field of another kind"),
        pytest.param([{"kind": "slow", "delay": "1"}], "not a number", id="a number in quotes"),
    ],
)
async def test_a_wrong_fault_is_refused_whole(github: Stage, body: Any, words: str) -> None:
    answer = await control(github, "POST", "/faults", body)
    assert (answer.status_code, words in answer.json()["message"]) == (422, True)


async def test_the_log_shows_who_changed_what_with_which_answer(github: Stage) -> None:
    before = len((await control(github, "GET", "/requests")).json())
    await github.bot.ok("POST", f"{REPO}/issues", {"title": "t"})
    await github.bot("POST", f"{REPO}/issues", {})
    await github.bot.ok("GET", REPO)
    found = (await control(github, "GET", "/requests")).json()[before:]
    assert [(item["actor"], item["method"], item["path"], item["status"]) for item in found] == [
        ("lockstep[bot]", "POST", f"{REPO}/issues", 201),
        ("lockstep[bot]", "POST", f"{REPO}/issues", 422),
    ]


async def test_people_act_over_http(github: Stage) -> None:
    async def act(user: str, name: str, id: int | None = None, status: int = 200, **body: Any) -> Any:
        path = f"/as/{user}/acme/shop/{name}" + (f"/{id}" if id else "")
        answer = await control(github, "POST", path, body)
        assert answer.status_code == status, answer.text
        return answer.json()

    files = {"a.txt": "1", "README.md": None}
    await act("olivia", "push", branch="promote", message="m", files=files)
    number = (await act("olivia", "open-pull", title="t", head="promote", base="main"))["number"]
    await act("olivia", "approve", number, status=422)
    await act("rafael", "request-changes", number, body="no")
    review = (await act("rafael", "approve", number))["id"]
    await act("dana", "dismiss-review", review, message="m")
    comment = (await act("uma", "comment", number, body="hi"))["id"]
    await act("rafael", "edit-comment", comment, body="ho")
    await act("uma", "close", number, status=403)
    await act("rafael", "edit", number, title="new")
    await act("rafael", "close", number)
    await act("rafael", "reopen", number)
    await act("uma", "merge", number, status=403)
    sha = (await act("rafael", "merge", number, method="squash"))["sha"]
    assert github.git().ref("refs/heads/main") == sha
    assert (await act("rafael", "revert", number))["number"] == number + 1
    await act("rafael", "delete-branch", branch="promote")
    assert "the acts are" in (await act("rafael", "dance", status=404))["message"]
    await act("nobody", "comment", number, status=404, body="b")
    await act("uma", "comment", number, status=422, text="b")


@pytest.mark.parametrize(
    "path",
    [
        "/_sandbox/faults",
        "/_sandbox/as/dana/acme/shop/open-issue",
        "/settings/apps/create",
        "/apps/lockstep/installations/new",
    ],
)
async def test_a_page_of_another_origin_cannot_act(github: Stage, path: str) -> None:
    async with httpx.AsyncClient(verify=False) as client:
        answer = await client.post(github.base + path, json=[], headers={"origin": "http://evil.example"})
    assert answer.status_code == 403
