"""Scenarios 20 to 25 and 42: requests, answers, waits and numbers in a task, without any infrastructure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from starlette.types import Receive, Scope, Send

from bot.sandbox.serving import Listener
from tests.e2e import claims
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import TAG, C, P, Seed, Y, commit, values
from tests.e2e.talk import say

pytestmark = pytest.mark.e2e

VALUES = "env/dev/helm/values.yaml"
TFVARS = "env/dev/terraform/env.auto.tfvars"
BRANCH = "lockstep/acme/dev"
M = commit("Promote ${{ ctx.stage }}")


@dataclass
class Service:
    """Something that a pipeline asks: `answer` is its present answer, `hangs` that a POST is not answered at all."""

    answer: str = "one"
    hangs: bool = False
    posts: list[str] = field(default_factory=list)
    url: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        if scope["method"] == "POST":
            named = dict(scope["headers"]).get(b"idempotency-key", b"")
            self.posts.append(named.decode())
            if self.hangs:
                await asyncio.Event().wait()
        body = f'{{"state": "{self.answer}"}}'.encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    made, listener = Service(), Listener()
    made.url = listener.url
    await listener.start(made)
    yield made
    await listener.stop()


def get(service: Service, *, until: str = "") -> str:
    """An `http` step that reads the service's state, or waits until it is something."""
    wanted = f"  successExpression: response.body.state == '{until}'\n" if until else ""
    polled = "  pollInterval: 1s\n" if until else ""
    return f"""\
uses: http
as: ask
config:
  url: {service.url}/state
  outputs:
    - name: state
      fromExpression: response.body.state
{wanted}{polled}"""


def post(service: Service) -> str:
    return f"uses: http\nas: migrate\nconfig:\n  url: {service.url}/migrate\n  method: POST\n"


def level(value: str) -> str:
    return values(("env.LOG_LEVEL", value))


async def test_a_request_goes_out_once_behind_the_review_and_a_crash_in_it_asks_a_person(
    start_road: StartRoad, service: Service
) -> None:
    road = await start_road(Seed(steps=(C, post(service), Y, M, P)), bot=False)
    before = await claims.look_before(road)
    await road.start_bot()
    pull = await road.wait_for_pull()
    await road.wait_until_quiet()
    await claims.claim_nothing_happened_but_the_outbox(road, before)
    assert await claims.lane(road) == "effects"
    assert (await road.files(pull.number), service.posts) == ({}, [])
    assert claims.deferred(road, pull.number) == [
        '-  tag: "0.9.0"  # written by a promotion',
        "+  tag: 1.0.0  # written by a promotion",
    ]

    service.hangs = True
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    merge = await road.merge(pull.number)

    async def sent() -> bool:
        return bool(service.posts)

    await road.until("the request to be sent", sent)
    await road.bot.kill()
    service.hangs = False
    await road.start_bot()
    await road.wait_for_event("errored", "outcome unknown")
    await road.wait_until_quiet()
    assert (len(service.posts), await road.tip()) == (1, merge)

    after = await road.last_event()
    await say(road, pull.number, "/retry")
    await road.wait_for_success(after=after)
    assert len(service.posts) == 2
    assert len(set(service.posts)) == 1, "the service can tell that it is the same request"
    assert "tag: 1.0.0" in await road.read(VALUES)


async def test_an_answer_is_kept_as_it_was_approved(start_road: StartRoad, service: Service) -> None:
    written = level("${{ task.outputs['ask'].state }}")
    road = await start_road(Seed(steps=(C, get(service), written, M, P)))
    pull = await road.wait_for_pull()
    assert "+  LOG_LEVEL: one" in claims.patch_lines((await road.files(pull.number))[VALUES])
    service.answer = "two"
    await road.release()
    assert "LOG_LEVEL: one\n" in await road.read(VALUES)


TEAM = """\
uses: wait-for-approval
as: dba
config:
  approvers:
    - {claim: groups, value: database, required: true}
"""


async def test_a_team_that_the_task_names_must_approve(start_road: StartRoad) -> None:
    road = await start_road(Seed(steps=(C, TEAM, Y, M, P)), bot=False)
    road.sandbox.github.create_team("acme", "database", ["dana"])
    await road.start_bot()
    pull = await road.wait_for_pull()
    await road.approve(pull.number)
    await road.wait_for_event("waits", "waits for approval by team database")
    await road.wait_until_quiet()
    assert (await road.wait_for_check(pull.number, "lockstep", None)).status == "in_progress"
    # Nobody has to say more: the preview is made again by itself, half a minute after the last one.
    await road.approve(pull.number, "dana")
    await road.release()
    assert "tag: 1.0.0" in await road.read(VALUES)


async def test_a_wait_holds_the_merge_and_is_named(start_road: StartRoad, service: Service) -> None:
    road = await start_road(Seed(steps=(C, get(service, until="two"), Y, M, P)), bot=False)
    before = await claims.look_before(road)
    await road.start_bot()
    pull = await road.wait_for_pull()
    await road.approve(pull.number)
    await road.wait_for_event("waits", "/state does not answer as wanted yet")
    await road.wait_until_quiet()
    await claims.claim_nothing_happened_but_the_outbox(road, before)
    assert (await road.wait_for_check(pull.number, "lockstep", None)).status == "in_progress"
    assert claims.patch_lines((await road.files(pull.number))[VALUES]) == [
        '-  tag: "0.9.0"  # written by a promotion',
        "+  tag: 1.0.0  # written by a promotion",
    ]
    service.answer = "two"
    await say(road, pull.number, "/plan")
    await road.release()
    assert "tag: 1.0.0" in await road.read(VALUES)


async def test_a_merge_past_a_wait_goes_on_by_itself_once_it_holds(
    start_road: StartRoad, service: Service
) -> None:
    road = await start_road(Seed(steps=(C, get(service, until="two"), Y, M, P, post(service))))
    pull = await road.wait_for_pull()
    await road.approve(pull.number)
    await road.wait_until_quiet()
    await road.merge(pull.number, "dana", bypass=True)
    await road.wait_for_event("held", "/state does not answer as wanted yet")
    await road.wait_until_quiet()
    assert service.posts == []
    service.answer = "two"
    await road.wait_for_success()
    assert len(service.posts) == 1


async def test_a_second_release_of_the_same_task_waits_for_what_stands_between(
    start_road: StartRoad, service: Service
) -> None:
    second = get(service, until="two").replace("as: ask", "as: healthy")
    push = P.replace("uses: git-push", "uses: git-push\nas: again")
    message = M.replace("as: commit", "as: recommit")
    road = await start_road(Seed(steps=(C, Y, M, P, second, level("info"), message, push)))
    pull = await road.wait_for_pull()
    assert claims.patch_lines((await road.files(pull.number))[VALUES]) == [
        '-  tag: "0.9.0"  # written by a promotion',
        "+  tag: 1.0.0  # written by a promotion",
    ]
    assert claims.deferred(road, pull.number) == ["-  LOG_LEVEL: debug", "+  LOG_LEVEL: info"]
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    merge = await road.merge(pull.number)
    await road.wait_for_event("fulfilling", "200")
    assert await road.tip() == merge
    service.answer = "two"
    await road.wait_for_success()
    assert "LOG_LEVEL: info" in await road.read(VALUES)
    assert len(await road.commits_since(merge)) == 1


async def test_a_number_that_grows_with_each_release_grows_once(start_road: StartRoad) -> None:
    read = """\
uses: yaml-parse
as: read
config:
  path: ./src/env/${{ ctx.stage }}/helm/values.yaml
  outputs:
    - name: replicas
      fromExpression: replicaCount
"""
    grown = values(TAG, ("replicaCount", "${{ task.outputs['read'].replicas + 1 }}"))
    road = await start_road(Seed(steps=(C, read, grown, M, P)))
    pull = await road.wait_for_pull()
    assert "+replicaCount: 2" in claims.patch_lines((await road.files(pull.number))[VALUES])

    # A reviewer's commit beside it: the number has grown in the branch, and does not grow on top of that.
    pushed = await road.edit(TFVARS, "memory_mb = 128", "memory_mb = 256", branch=BRANCH, user="rafael")

    async def previewed() -> bool:
        head = road.git.commit(road.pull(pull.number).head_sha)
        return list(head.parents) == [pushed] and "Lockstep-Preview:" in head.message

    await road.until("a new head on the reviewer's commit", previewed)
    assert "+replicaCount: 2" in claims.patch_lines((await road.files(pull.number))[VALUES])
    await road.release(reviewer="olivia")
    text = await road.read(VALUES)
    assert ("replicaCount: 2" in text, "tag: 1.0.0" in text) == (True, True)
    assert "memory_mb = 256" in await road.read(TFVARS)
