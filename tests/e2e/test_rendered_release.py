"""A release whose manifests are rendered behind the apply, pushed with signed commits, and tracked in an issue."""

from __future__ import annotations

import pytest

from bot.sandbox.github.records import Issue, VerifiedCommit
from tests.e2e import claims
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import YU, A, C, H, M, O, P, S, Seed
from tests.e2e.road import Road

pytestmark = pytest.mark.e2e

RENDERED = "env/dev/rendered.yaml"
KUSTOMIZATION = """\
configMapGenerator:
- name: settings
  files: [values.yaml=../helm/values.yaml]
generatorOptions: {disableNameSuffixHash: true}
"""
BUILD = f"""\
uses: kustomize-build
config:
  path: ./src/env/${{{{ ctx.stage }}}}/k
  outPath: ./src/{RENDERED}
"""
ISSUE = """\
uses: gh-create-issue
as: issue
config:
  repoURL: ${{ vars.repoURL }}
  title: Release ${{ imageFrom(vars.image).Tag }}
  body: It is in ${{ ctx.stage }}.
"""
COMMENT = """\
uses: gh-issue-add-comment
config:
  repoURL: ${{ vars.repoURL }}
  issueNumber: ${{ task.outputs['issue'].number }}
  body: Commit ${{ task.outputs['push'].commit }}
"""


async def test_what_is_rendered_with_an_output_is_reviewed_with_a_hole(start_road: StartRoad) -> None:
    # GitHub makes the commit anew, so the one to be released is known from the push.
    push = P.replace("uses: git-push", "uses: github-push\nas: push")
    sync = S.replace("outputs['commit']", "outputs['push']")
    road = await start_road(
        Seed(
            steps=(C, H, A, O, YU, BUILD, M, push, ISSUE, COMMENT, sync),
            files=(("env/dev/k/kustomization.yaml", KUSTOMIZATION),),
        )
    )
    pull = await road.wait_for_pull()
    await road.wait_until_quiet()
    assert "+      LAMBDA_URL: <known after apply: lambda_url>  # exists after Terraform's first apply" in (
        claims.deferred(road, pull.number)
    )
    assert issues(road) == []

    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    await road.merge(pull.number)
    await road.wait_for_success()
    url = road.outputs()["lambda_url"]
    assert f"LAMBDA_URL: {url}" in await road.read(RENDERED)

    tip = await road.tip()
    store = road.sandbox.github.world.store
    assert store.first(VerifiedCommit, sha=tip) is not None
    (issue,) = issues(road)
    assert (issue.title, (issue.body or "").splitlines()[1:]) == ("Release 1.0.0", ["It is in dev."])
    (comment,) = road.comments(issue.number)
    assert comment.body.splitlines()[1:] == [f"Commit {tip}"]


def issues(road: Road) -> list[Issue]:
    """The issues that are no pull requests."""
    found = road.sandbox.github.world.store.find(Issue, repo_id=road.repository.id)
    return [item for item in found if not item.is_pull]
