"""Drift is seen, shown in one issue and undone by a reviewed pull request, which closes the issue."""

from __future__ import annotations

from typing import Any

import pytest

from bot.sandbox.github.records import Comment, Issue
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import Seed
from tests.e2e.road import OPERATIONS, Road
from tests.e2e.talk import say, wait_for_reply

pytestmark = pytest.mark.e2e

READ_ONLY = """\
planEnv:
  - name: AWS_REGION
    value: eu-central-1
drift:
  schedule: 0 3 * * *
"""


def tamper(road: Road, name: str, *, memory: int = 4096) -> None:
    """Change a resource of dev behind the bot's back, as somebody does in a cloud's console."""
    state: dict[str, Any] = dict(road.sandbox.cloud.read_state("acme/dev") or {})
    resource = next(r for r in state["resources"] if r["name"] == name)
    attributes = resource["instances"][0]["attributes"]
    for key in ("input", "output"):
        attributes[key]["value"]["memory_mb" if name == "function" else "name"] = (
            memory if name == "function" else "somebody-elses-role"
        )
    road.sandbox.cloud.write_state("acme/dev", {**state, "serial": state["serial"] + 1})


def issues(road: Road) -> list[Issue]:
    """The issues that are no pull requests."""
    found = road.sandbox.github.world.store.find(Issue, repo_id=road.repository.id)
    return [issue for issue in found if not issue.is_pull]


def told(road: Road, number: int) -> list[str]:
    """What the App said on an issue by itself, in order."""
    found = road.sandbox.github.world.store.find(Comment, repo_id=road.repository.id, number=number)
    return [comment.body for comment in found if "lockstep:drift-said:" in comment.body]


async def ask(road: Road, number: int) -> str:
    """The answer to `/drift`."""
    return await wait_for_reply(road, await road.comment(number, "/drift"))


async def set_state(road: Road, number: int, state: str) -> None:
    """Close an issue, or open it again, as rafael."""
    answer = await road.client.patch(
        f"{road.demo.github_api_url}/repos/{OPERATIONS}/issues/{number}",
        headers={"Authorization": f"token {road.demo.people['rafael']}"},
        json={"state": state},
    )
    answer.raise_for_status()


async def test_drift_is_shown_in_one_issue_and_undone_by_a_reviewed_pull_request(
    start_road: StartRoad,
) -> None:
    road = await start_road(Seed(review=READ_ONLY), released=True)
    pull = (await road.pulls())[-1].number
    assert "has not drifted" in await ask(road, pull)
    assert issues(road) == []

    tamper(road, "function")
    road.forget_terraform()
    versions = road.versions()
    assert "drifted: 1 resource" in await ask(road, pull)
    # A look writes nothing and takes no lock.
    assert set(road.terraform()) == {"GET"}
    assert road.versions() == versions
    (issue,) = issues(road)
    assert issue.labels == ("drift",)
    assert "terraform_data.function" in (issue.body or "")
    assert "4096" in (issue.body or "")
    explained = await wait_for_reply(road, await road.comment(pull, "/explain"))
    assert "**Drift**: drift of 1 resource" in explained

    # The same drift again: one issue, and nothing more is said.
    await ask(road, issue.number)
    assert [i.number for i in issues(road)] == [issue.number]
    assert told(road, issue.number) == []

    tamper(road, "execution_role")
    await ask(road, issue.number)
    await road.wait_until_quiet()
    (edited,) = issues(road)
    assert "terraform_data.execution_role" in (edited.body or "")
    (said,) = told(road, issue.number)
    assert "New: `terraform_data.execution_role`" in said

    # Who closes it is not bothered again for the same drift.
    await set_state(road, issue.number, "closed")
    assert "drifted: 2 resources" in await ask(road, pull)
    assert [i.state for i in issues(road)] == ["closed"]
    await set_state(road, issue.number, "open")

    after = await road.last_event()
    tip = await road.tip()
    await say(road, issue.number, "/drift fix", "olivia")
    fix = await road.wait_for_pull(after=pull)
    body = road.issue(fix.number).body or ""
    assert "Undoes drift in **dev**" in body
    assert "terraform_data.function" in road.comments(fix.number, "plan")[0].body
    assert await road.files(fix.number) == {}
    again = await road.comment(issue.number, "/drift fix dev")
    assert f"pull request {fix.number} undoes the drift of dev already" in await wait_for_reply(road, again)
    assert road.versions() == versions + 1
    await road.approve(fix.number)
    await road.wait_until_mergeable(fix.number)
    await road.merge(fix.number)
    await road.wait_for_success(after=after)

    async def closed() -> bool:
        return issues(road)[0].state == "closed"

    await road.until("the issue to be closed", closed)
    await road.wait_until_quiet()
    assert "The drift is gone" in told(road, issue.number)[-1]
    assert len(await road.commits_since(tip)) <= 2
    state = road.sandbox.cloud.read_state("acme/dev") or {}
    assert "somebody-elses-role" not in str(state)
    assert "4096" not in str(state)
    assert await road.leaks() == []
