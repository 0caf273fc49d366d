"""Steps that ask people: `get-user-input` before the cut and behind it, and `wait-for-approval` behind an effect."""

from __future__ import annotations

import pytest

from tests.e2e import claims
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import TAG, C, P, Seed, commit, values
from tests.e2e.talk import say

pytestmark = pytest.mark.e2e

VALUES = "env/dev/helm/values.yaml"
ASK = """\
uses: get-user-input
as: level
config:
  schema:
    type: object
    required: [level]
    properties:
      level: {title: Log level, enum: [info, debug, warn]}
      note: {type: string, maxLength: 20}
  responders:
    - {claim: email, value: rafael}
"""
ASK_LATE = """\
uses: get-user-input
as: count
config:
  schema:
    type: object
    required: [replicas]
    properties:
      replicas: {type: integer, minimum: 1, maximum: 5}
"""
AGREE = """\
uses: wait-for-approval
as: agree
config:
  minApprovals: 2
"""
FIRST = values(TAG, ("env.LOG_LEVEL", "${{ task.outputs['level'].values.level }}"))
SECOND = values(("replicaCount", "${{ task.outputs['count'].values.replicas }}"))
MESSAGE = commit("Promote ${{ ctx.stage }}")
AGAIN = commit("Scale ${{ ctx.stage }}, says ${{ task.outputs['count'].respondedBy }}")
STEPS = (
    C,
    ASK,
    FIRST,
    MESSAGE,
    P,
    ASK_LATE,
    AGREE,
    SECOND,
    AGAIN.replace("as: commit", "as: recommit"),
    P.replace("uses: git-push", "uses: git-push\nas: again"),
)


async def test_people_answer_before_the_merge_and_after_it(start_road: StartRoad) -> None:
    road = await start_road(Seed(steps=STEPS))
    pull = await road.wait_for_pull()
    await road.wait_for_event("waits", "level asks rafael: comment `/answer level level=info`")
    check = await road.wait_for_check(pull.number, "lockstep", None)
    assert check.status == "in_progress"
    head = pull.head_sha

    wrong = await say(road, pull.number, "/answer level=loud colour=red", answer="-1")
    assert "level must be one of info, debug, warn" in wrong
    assert "colour is not asked for" in wrong
    assert "it asks rafael" in await say(road, pull.number, "/answer level=warn", user="olivia", answer="-1")
    told = await road.last_event()
    await say(road, pull.number, '/answer level\nlevel=warn\nnote="too loud"\n\nthanks')
    await road.wait_for_event("preview", "digest", after=told)
    await road.wait_until_quiet()
    assert road.pull(pull.number).head_sha != head, "another answer is another head"
    assert "+  LOG_LEVEL: warn" in claims.patch_lines((await road.files(pull.number))[VALUES])
    late = await say(road, pull.number, "/answer level level=info", answer="-1")
    assert "rafael answered level already" in late

    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    merge = await road.merge(pull.number)
    await road.wait_for_event("fulfilling", "count asks whoever may `/apply`")
    await say(road, pull.number, "/answer replicas=9", answer="-1")
    await road.restart_bot()
    await say(road, pull.number, "/answer replicas=3")

    await road.wait_for_event("fulfilling", "agree has 0 of 2 approvals")
    await say(road, pull.number, "/apply")
    assert "has approved agree already" in await say(road, pull.number, "/apply", answer="-1")
    await road.wait_for_event("fulfilling", "agree has 1 of 2 approvals")
    assert await road.tip() == merge
    await say(road, pull.number, "/apply", user="olivia")
    await road.wait_for_success()
    text = await road.read(VALUES)
    assert ("replicaCount: 3" in text, "LOG_LEVEL: warn" in text, "tag: 1.0.0" in text) == (True, True, True)
    (scaled,) = await road.commits_since(merge)
    assert "says rafael" in str(scaled)
