"""What the App is told of the rules of a branch, by the simulated GitHub."""

from __future__ import annotations

import httpx
import pytest
import respx

from bot.adapters.github import GitHubApp
from bot.ports import BranchRules as Port
from bot.sandbox.github.rules import BranchRules, Bypass
from tests.adapters.github.conftest import REPOSITORY, SHOP, World

BRANCH = "release/1.x"


def protect(world: World, rules: BranchRules, *, mode: str = "") -> None:
    """Set the rules of a branch whose name has a slash; with a mode our App is on the bypass list."""
    ours = (Bypass("Integration", world.stage.credentials.app_id, mode),) if mode else ()
    bound = BranchRules(
        rules.required_checks,
        required_reviews=rules.required_reviews,
        linear_history=rules.linear_history,
        merge_queue=rules.merge_queue,
        merge_methods=rules.merge_methods,
        bypass=ours,
    )
    world.stage.github.set_rules("acme/shop", BRANCH, bound)


CHECKED = BranchRules(required_checks=(("lockstep", None),))
REVIEWED = BranchRules(required_checks=(("lockstep", None),), required_reviews=0)


@pytest.mark.parametrize(
    ("rules", "mode", "kinds"),
    [
        pytest.param(REVIEWED, "", "pull_request, required_status_checks", id="rules that bind the App"),
        pytest.param(
            REVIEWED, "pull_request", "pull_request, required_status_checks", id="pushes alone are bound"
        ),
        pytest.param(REVIEWED, "always", "", id="an App that may pass them"),
        pytest.param(CHECKED, "", "required_status_checks", id="a required check, since the commit is new"),
        pytest.param(BranchRules(merge_queue=True), "", "merge_queue", id="a merge queue"),
        pytest.param(BranchRules(linear_history=True), "", "", id="rules that our pushes satisfy"),
    ],
)
async def test_which_rules_refuse_the_apps_pushes(
    world: World, rules: BranchRules, mode: str, kinds: str
) -> None:
    port: Port = world.app.branch_rules
    assert await port.why_no_push(SHOP, BRANCH) == ""
    protect(world, rules, mode=mode)
    assert await port.why_no_push(SHOP, BRANCH) == kinds
    assert await port.why_no_push(SHOP, "main") == ""


@pytest.mark.parametrize(
    ("rules", "methods"),
    [
        pytest.param(CHECKED, {"merge", "squash", "rebase"}, id="nothing is said"),
        pytest.param(
            BranchRules(required_reviews=0, merge_methods=("squash", "rebase")),
            {"squash", "rebase"},
            id="a list",
        ),
        pytest.param(BranchRules(linear_history=True), {"squash", "rebase"}, id="a linear history"),
    ],
)
async def test_which_ways_of_merging_are_allowed(world: World, rules: BranchRules, methods: set[str]) -> None:
    protect(world, rules)
    assert await world.app.branch_rules.merge_methods(SHOP, BRANCH) == methods


async def test_a_server_without_rule_sets_tells_nothing(wire: respx.Router, github: GitHubApp) -> None:
    wire.get("/repos/acme/ops/rules/branches/main").mock(httpx.Response(404, json={"message": "Not Found"}))
    assert await github.branch_rules.why_no_push(REPOSITORY, "main") == ""
