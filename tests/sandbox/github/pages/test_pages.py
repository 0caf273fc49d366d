"""The pages over HTTP: who sees what, what a form may do, and what is said when GitHub refuses."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.sandbox.github.git import git_environment
from bot.sandbox.github.pulls import NewPull
from bot.sandbox.github.rules import BranchRules
from tests.sandbox.github.conftest import Stage

REPO = "/acme/shop"


@pytest.fixture
async def web(github: Stage) -> AsyncIterator[httpx.AsyncClient]:
    """A browser without JavaScript; it is rafael until it chooses somebody else."""
    async with httpx.AsyncClient(base_url=github.base, follow_redirects=True, timeout=20) as client:
        yield client


async def be(web: httpx.AsyncClient, login: str) -> None:
    answer = await web.post("/_pages/user", data={"user": login, "next": REPO})
    assert answer.status_code == 200
    assert answer.url.path == REPO


async def check(github: Stage, sha: str, **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = await github.bot.ok(
        "POST", "/repos/acme/shop/check-runs", {"name": "lockstep", "head_sha": sha, **fields}
    )
    return made


async def run(*args: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        subprocess.run, ["git", *args], env=git_environment(), capture_output=True, text=True, check=False
    )


SHOWN = {
    "/": "acme/shop",
    REPO: "README.md",
    f"{REPO}/tree/main/env/dev": "values.yaml",
    f"{REPO}/blob/main/env/dev/values.yaml": "tag: 1.0.0",
    f"{REPO}/commits": "Initial commit",
    f"{REPO}/pulls": "promote dev",
    f"{REPO}/pulls?state=closed": "No closed pull request",
    f"{REPO}/pull/1": "promote dev",
    f"{REPO}/pull/1/files": "tag: 1.1.0",
    f"{REPO}/pull/1/commits": "change promote",
    f"{REPO}/pull/1/checks": "No check has been reported yet",
    f"{REPO}/deployments": "Nothing was deployed yet",
}
ABSENT = (
    "/acme/none",
    "/nobody/shop",
    f"{REPO}/pull/7",
    f"{REPO}/tree/none",
    f"{REPO}/blob/main/env",
    f"{REPO}/blob/main/no/file",
    f"{REPO}/commit/{'0' * 40}",
    f"{REPO}/commit/--all",
    f"{REPO}/commits/none",
    f"{REPO}/runs/1",
    "/_pages/none.css",
)


class TestLooking:
    async def test_every_page_shows(self, github: Stage, web: httpx.AsyncClient) -> None:
        await github.pull()
        for path, expected in SHOWN.items():
            answer = await web.get(path)
            assert (path, answer.status_code) == (path, 200)
            assert expected in answer.text
            assert "script-src 'self'" in answer.headers["content-security-policy"]

    async def test_what_is_not_there_is_said_so(self, web: httpx.AsyncClient) -> None:
        assert {path: (await web.get(path)).status_code for path in ABSENT} == dict.fromkeys(ABSENT, 404)

    async def test_a_private_repository_is_hidden_from_others(
        self, github: Stage, web: httpx.AsyncClient
    ) -> None:
        github.github.create_repository("dana", "secret", {"a": b"b"})
        assert "dana/secret" not in (await web.get("/")).text
        assert (await web.get("/dana/secret")).status_code == 404
        await be(web, "dana")
        assert (await web.get("/dana/secret")).status_code == 200

    async def test_the_same_page_is_not_sent_twice(self, github: Stage, web: httpx.AsyncClient) -> None:
        await github.pull()
        await github.github.settled()
        first = await web.get(f"{REPO}/pull/1")
        headers = {"If-None-Match": first.headers["etag"]}
        assert (await web.get(f"{REPO}/pull/1", headers=headers)).status_code == 304
        github.github.actions.comment("olivia", "acme/shop", 1, "news")
        assert "news" in (await web.get(f"{REPO}/pull/1", headers=headers)).text

    async def test_a_commit_shows_its_checks(self, github: Stage, web: httpx.AsyncClient) -> None:
        pull = await github.pull()
        output = {"title": "4 to create", "summary": "**bold**", "text": "- [x] done"}
        made = await check(github, pull["head"]["sha"], conclusion="failure", output=output)
        for path in (
            f"{REPO}/commit/{pull['head']['sha']}",
            f"{REPO}/runs/{made['id']}",
            f"{REPO}/pull/1/checks",
        ):
            text = (await web.get(path)).text
            for expected in ("4 to create", "<strong>bold</strong>", "checkbox", "failed"):
                assert expected in text

    async def test_a_long_description_is_shown_in_good_time(
        self, github: Stage, web: httpx.AsyncClient
    ) -> None:
        await github.pull()
        row = "| `+` | `terraform_data.role[%d]` | **create** |\n"
        body = "| a | b | c |\n| --- | --- | --- |\n" + "".join(row % number for number in range(1500))
        github.github.actions.edit("olivia", "acme/shop", 1, {"body": body[:65_000]})
        await web.get(f"{REPO}/pull/1")
        started = time.perf_counter()
        assert "role[1200]" in (await web.get(f"{REPO}/pull/1")).text
        assert time.perf_counter() - started < 2.0


class TestActing:
    async def test_a_review_a_merge_and_its_revert(self, github: Stage, web: httpx.AsyncClient) -> None:
        await github.pull()
        answer = await web.post(f"{REPO}/pull/1/approve", data={"body": "Looks\r\nright."})
        assert "approved these changes" in answer.text
        assert "Looks<br>\nright." in answer.text
        answer = await web.post(f"{REPO}/pull/1/merge", data={"method": "squash"})
        assert "merged this into main" in answer.text
        answer = await web.post(f"{REPO}/pull/1/revert", data={})
        assert answer.url.path == f"{REPO}/pull/2"
        assert "Reverts" in answer.text

    async def test_a_refused_merge_says_why_and_keeps_the_page(
        self, github: Stage, web: httpx.AsyncClient
    ) -> None:
        pull = await github.pull()
        rules = BranchRules(required_checks=(("lockstep", github.credentials.app_id),))
        github.github.set_rules("acme/shop", "main", rules)
        answer = await web.post(f"{REPO}/pull/1/merge", data={})
        assert answer.status_code == 405
        assert "Required status check &#34;lockstep&#34; is expected." in answer.text
        await check(github, pull["head"]["sha"], status="in_progress")
        answer = await web.post(f"{REPO}/pull/1/merge", data={})
        assert "Required status check &#34;lockstep&#34; is in progress." in answer.text
        assert f'data-path="{REPO}/pull/1"' in answer.text

    async def test_what_was_typed_outlives_a_refusal(self, github: Stage, web: httpx.AsyncClient) -> None:
        await github.pull()
        long = "too long " * 8000
        answer = await web.post(f"{REPO}/pull/1/comment", data={"body": long})
        assert answer.status_code == 422
        assert "Body is too long" in answer.text
        assert long in answer.text

    async def test_nobody_acts_on_a_head_they_did_not_see(
        self, github: Stage, web: httpx.AsyncClient
    ) -> None:
        pull = await github.pull()
        await github.branch("promote", {"env/dev/values.yaml": b"image:\n  tag: 6.6.6\n"})
        for act in ("approve", "request-changes", "merge"):
            answer = await web.post(f"{REPO}/pull/1/{act}", data={"head": pull["head"]["sha"], "body": "b"})
            assert (act, answer.status_code) == (act, 409)
            assert "was updated since this page was shown" in answer.text

    async def test_a_reader_may_not_merge_and_does_not_count(
        self, github: Stage, web: httpx.AsyncClient
    ) -> None:
        await github.pull()
        await be(web, "uma")
        shown = (await web.get(f"{REPO}/pull/1")).text
        assert "Only people with write access" in shown
        assert "merge-button" not in shown
        assert (await web.post(f"{REPO}/pull/1/merge", data={})).status_code == 403
        answer = await web.post(f"{REPO}/pull/1/approve", data={})
        assert "does not count: no write permission here" in answer.text

    async def test_closing_with_a_comment_and_reopening(self, github: Stage, web: httpx.AsyncClient) -> None:
        await github.pull()
        answer = await web.post(f"{REPO}/pull/1/close", data={"body": "not now"})
        assert "not now" in answer.text
        assert "closed this" in answer.text
        assert (await web.get(f"{REPO}/pulls?state=closed")).text.count("promote dev") == 1
        assert "Close pull request" in (await web.post(f"{REPO}/pull/1/reopen", data={})).text

    async def test_buttons_of_checks_reach_their_app(self, github: Stage, web: httpx.AsyncClient) -> None:
        pull = await github.pull()
        button = {"label": "Plan again", "description": "plan", "identifier": "plan"}
        made = await check(github, pull["head"]["sha"], conclusion="success", actions=[button])
        assert "Plan again" in (await web.get(f"{REPO}/pull/1")).text
        run = f"{REPO}/runs/{made['id']}"
        answer = await web.post(f"{run}/press", data={"identifier": "plan", "next": f"{REPO}/pull/1"})
        assert answer.url.path == f"{REPO}/pull/1"
        assert (await web.post(f"{run}/rerun", data={"next": "//evil.example/"})).url.path == "/"
        assert (await web.post(f"{run}/press", data={"identifier": "none"})).status_code == 422
        await github.github.settled()
        assert {"check_run.requested_action", "check_run.rerequested"} <= set(github.receiver.names())

    async def test_issues_can_be_read_and_answered(self, github: Stage, web: httpx.AsyncClient) -> None:
        github.github.actions.open_issue("olivia", "acme/shop", "What runs?", "Where *is* it?")
        answer = await web.get(f"{REPO}/issues/1")
        assert "<em>is</em>" in answer.text
        answer = await web.post(f"{REPO}/pull/1/comment", data={"body": "/status"})
        assert (answer.status_code, answer.text.count("/status</p>")) == (200, 1)

    async def test_a_fork_is_named(self, github: Stage, web: httpx.AsyncClient) -> None:
        github.github.create_fork("uma", "acme/shop")
        github.github.actions.push("uma", "uma/shop", "fix", {"a.txt": b"1"}, "fix")
        new = NewPull("fix", "uma:fix", "main")
        github.github.actions.open_pull("uma", "acme/shop", new)
        assert "uma:fix" in (await web.get(f"{REPO}/pull/1")).text

    async def test_an_unknown_act_or_person_is_refused(self, github: Stage, web: httpx.AsyncClient) -> None:
        await github.pull()
        assert (await web.post(f"{REPO}/pull/1/explode", data={})).status_code == 404
        assert (await web.post("/_pages/user", data={"user": "lockstep[bot]"})).status_code == 404
        web.cookies.set("sandbox_user", "lockstep[bot]")
        assert "You are rafael" in (await web.get("/")).text


class TestOtherSites:
    async def test_their_forms_are_refused(self, github: Stage, web: httpx.AsyncClient) -> None:
        await github.pull()
        for path in ("/_pages/user", f"{REPO}/pull/1/approve", f"{REPO}/runs/1/rerun"):
            for origin in ("https://elsewhere.example", "null"):
                answer = await web.post(path, data={"user": "dana"}, headers={"Origin": origin})
                assert (path, origin, answer.status_code) == (path, origin, 403)
                assert "sandbox_user" not in answer.cookies
        answer = await web.post(f"{REPO}/pull/1/approve", data={}, headers={"Origin": github.base})
        assert answer.status_code == 200


class TestGit:
    @pytest.mark.parametrize("ending", ["", ".git"])
    async def test_the_address_of_the_page_clones_and_pushes(
        self, github: Stage, tmp_path: Path, ending: str
    ) -> None:
        token = github.github.create_token("olivia")
        url = github.base.replace("//", f"//olivia:{token}@") + REPO + ending
        clone = str(tmp_path / "clone")
        done = await run("clone", "-q", url, clone)
        assert done.returncode == 0, done.stderr
        done = await run("-C", clone, "push", "-q", "origin", "HEAD:refs/heads/copy")
        assert done.returncode == 0, done.stderr

    async def test_the_page_of_the_clone_address_is_the_repository(self, web: httpx.AsyncClient) -> None:
        for path in (f"{REPO}.git", f"{REPO}/"):
            answer = await web.get(path)
            assert (answer.status_code, "README.md" in answer.text) == (200, True)
