"""A command of the author's own in a release: shown in the review, run once behind it, and not again after a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.test_commands import make_program
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import C, P, Seed, Y, commit

pytestmark = pytest.mark.e2e

DEFINITION = """\
apiVersion: ee.kargo.akuity.io/v1alpha1
kind: CustomPromotionStep
metadata:
  name: announce
spec:
  image: acme/announce
  command: [announce, "${{ config.stage }}"]
  env: [{name: TAG, value: "${{ config.tag }}"}]
"""
ANNOUNCE = """\
uses: announce
as: announce
config:
  stage: ${{ ctx.stage }}
  tag: ${{ quote(imageFrom(vars.image).Tag) }}
"""
RECORD = """\
uses: set-metadata
config:
  updates:
    - {kind: Stage, name: dev, values: {said: "${{ task.outputs['announce'].said }}"}}
"""
M = commit("Promote ${{ ctx.stage }}")
SCRIPT = """\
echo "$1 $TAG" >> "$0.log"
[ "$(wc -l < "$0.log")" -gt 1 ] || exec sleep 600
echo "said=$1 $TAG" > "$KARGO_OUTPUT"
"""


async def test_a_command_runs_once_behind_the_review_and_a_crash_in_it_asks_a_person(
    start_road: StartRoad, tmp_path: Path
) -> None:
    program = make_program(tmp_path / "programs", "announce", SCRIPT)
    log = program.with_name("announce.log")
    road = await start_road(
        Seed(steps=(C, Y, M, P, ANNOUNCE, RECORD), files=(("config/announce.yaml", DEFINITION),)),
        LOCKSTEP_CUSTOM_STEPS=str(program.parent),
        # What counts the runs lies beside the program, where an isolated command cannot write.
        LOCKSTEP_ISOLATION="none",
    )
    pull = await road.wait_for_pull()
    body = road.issue(pull.number).body or ""
    assert "run announce" in body
    assert "1.0.0" in body
    assert not log.exists(), "a preview runs nothing"

    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    await road.merge(pull.number)

    async def begun() -> bool:
        return log.exists()

    await road.until("the command to begin", begun)
    await road.bot.kill()
    await road.start_bot()
    await road.wait_for_event("errored", "outcome unknown: announce was begun and its end was not seen")
    assert log.read_text() == "dev 1.0.0\n", "it was not run again"

    after = await road.last_event()
    await road.comment(pull.number, "/retry")
    await road.wait_for_event("succeeded", after=after)
    assert log.read_text() == "dev 1.0.0\ndev 1.0.0\n"
