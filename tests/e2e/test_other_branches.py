"""Scenarios 26, 28 and 29: releases that go to a branch of rendered files, to two repositories, to a new branch."""

from __future__ import annotations

import pytest

from tests.e2e import claims
from tests.e2e.conftest import StartRoad
from tests.e2e.own_tasks import own_tasks
from tests.e2e.pipelines import TAG, C, P, Y, commit, values
from tests.e2e.road import Road

pytestmark = pytest.mark.e2e

RENDERED, NEW = "rendered/dev", "live/staging"
KUSTOMIZATION = """\
configMapGenerator:
- name: settings
  files: [values.yaml=../helm/values.yaml]
generatorOptions: {disableNameSuffixHash: true}
"""
BOTH = f"""\
uses: git-clone
config:
  repoURL: ${{{{ vars.repoURL }}}}
  checkout:
    - {{branch: main, path: ./src}}
    - {{branch: {RENDERED}, path: ./out}}
"""
BUILD = """\
uses: kustomize-build
config:
  path: ./src/env/${{ ctx.stage }}/k
  outPath: ./out/rendered.yaml
"""
M = commit("Promote ${{ ctx.stage }}")
OUT = ("uses: git-clear\nconfig:\n  path: ./out\n", Y, BUILD, M.replace("./src", "./out"))
RENDER = (BOTH, *OUT, "uses: git-push\nconfig:\n  path: ./out\n")
WHOLE = (C, Y, M, P.replace("${{ vars.branch }}", NEW))
SETTINGS = """\
uses: git-clone
config:
  repoURL: https://github.sandbox.example/acme/settings.git
  checkout:
    - {branch: main, path: ./conf}
"""
TOLD = values(("release", TAG[1])).replace("./src/env/${{ ctx.stage }}/helm/values.yaml", "./conf/prod.yaml")
TWO = (
    *(C, SETTINGS, Y, TOLD, M, M.replace("./src", "./conf").replace("as: commit", "as: tell"), P),
    "uses: git-push\nas: publish\nconfig:\n  path: ./conf\n",
)


async def _start(start_road: StartRoad) -> Road:
    tasks = {"dev": RENDER, "staging": WHOLE, "prod": TWO}
    road = await start_road(own_tasks(tasks, ("env/dev/k/kustomization.yaml", KUSTOMIZATION)), bot=False)
    hub = road.sandbox.github
    hub.create_repository("acme", "settings", {"prod.yaml": b'release: "0.9.0"\n'})
    hub.install_app(road.demo.app_id, "acme", ["operations", "settings"])
    await road.push({"stale.yaml": "a: 1\n", "env/dev/helm/Chart.yaml": None}, "Begin", branch=RENDERED)
    await road.start_bot()
    return road


async def _paths(road: Road, branch: str) -> list[str]:
    return road.git.text("ls-tree", "-r", "--name-only", f"refs/heads/{branch}").splitlines()


async def _settings(road: Road) -> str:
    hub = road.sandbox.github
    return hub.world.git(hub.repository("acme/settings")).text("show", "main:prod.yaml")


async def test_releases_reach_rendered_branches_new_branches_and_other_repositories(
    start_road: StartRoad,
) -> None:
    road = await _start(start_road)
    main = await road.tip()

    # A branch of rendered files: the diff is what is rendered, and nothing else is left there.
    pull = await road.wait_for_pull("dev")
    assert pull.base_ref == RENDERED
    files = await road.files(pull.number)
    assert "+      tag: 1.0.0  # written by a promotion" in claims.patch_lines(files["rendered.yaml"])
    assert "stale.yaml" in files
    await road.release("dev")
    assert await _paths(road, RENDERED) == ["rendered.yaml"]

    # A branch that does not exist begins with an empty commit; the diff is the whole tree.
    pull = await road.wait_for_pull("staging")
    seed = road.git.commit(await road.tip(NEW))
    assert (list(seed.parents), await _paths(road, NEW)) == ([], [])
    assert (pull.base_ref, pull.base_sha) == (NEW, seed.sha)
    wanted = road.git.text("ls-tree", "-r", "--name-only", "refs/heads/main").splitlines()
    assert sorted(await road.files(pull.number)) == sorted(wanted)
    await road.release("staging")
    assert await _paths(road, NEW) == wanted
    assert "tag: 1.0.0" in await road.read("env/staging/helm/values.yaml", NEW)
    assert await road.tip() == main

    # Two repositories: the first is reviewed, of the other names and counts are shown.
    pull = await road.wait_for_pull("prod")
    body = road.issue(pull.number).body or ""
    assert list(await road.files(pull.number)) == ["env/prod/helm/values.yaml"]
    assert ("acme/settings" in body, "release:" in body) == (True, False)
    assert await _settings(road) == 'release: "0.9.0"'
    await road.release("prod")
    assert "tag: 1.0.0" in await road.read("env/prod/helm/values.yaml")
    assert await _settings(road) == "release: 1.0.0"

    # The next release: only what it changes differs, and what main got meanwhile where the whole tree goes.
    before = await road.tip(NEW)
    last = max([(await road.pulls(stage))[-1].number for stage in ("dev", "staging", "prod")])
    await road.publish(otel="1.1.0")
    pull = await road.wait_for_pull("dev", after=last)
    assert list(await road.files(pull.number)) == ["rendered.yaml"]
    await road.wait_for_pull("staging", after=last)
    await road.release("staging")
    assert await road.changed(before, NEW) == [
        'env/prod/helm/values.yaml:-  tag: "0.9.0"  # written by a promotion',
        "env/prod/helm/values.yaml:+  tag: 1.0.0  # written by a promotion",
        "env/staging/helm/values.yaml:-  tag: 1.0.0  # written by a promotion",
        "env/staging/helm/values.yaml:+  tag: 1.1.0  # written by a promotion",
    ]
    await claims.claim_no_leak(road)
