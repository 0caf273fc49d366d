"""What the doctor is told of GitHub, by the simulated one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from bot.adapters.clock import SystemClock
from bot.adapters.github.connection import Connection, GitHubSettings
from bot.adapters.github.inspection import AppInspection
from bot.adapters.http import HttpClient
from bot.domain.app_manifest import propose_rules
from bot.domain.doctor import Level
from bot.domain.doctor_facts import BranchFacts, RequiredCheck
from bot.domain.doctor_github import judge_branch
from bot.ports import TerminalError
from bot.sandbox.github.accounts import App, Installation
from bot.sandbox.github.installing import set_suspended
from bot.sandbox.github.records import Delivery, Ruleset
from bot.sandbox.github.rules import BranchRules, Bypass
from tests.adapters.github.conftest import SHOP, World, judge


@asynccontextmanager
async def inspecting(world: World, **changed: object) -> AsyncIterator[AppInspection]:
    """An inspection with our App's credentials, or with others; each request is held against GitHub's description."""
    credentials = world.stage.credentials
    settings = GitHubSettings(
        credentials.app_id, credentials.private_key_pem, f"{world.stage.base}/api/v3/", world.stage.base
    )
    clock = SystemClock()
    async with (
        Connection(replace(settings, **changed), clock) as connection,  # type: ignore[arg-type]
        HttpClient() as http,
    ):
        connection._client.event_hooks["request"].append(judge)
        yield AppInspection(connection, http, clock)


async def test_the_app_and_where_it_is_installed(world: World) -> None:
    store, id = world.stage.github.world.store, world.stage.credentials.app_id
    async with inspecting(world) as inspection:
        host, app, (installed,) = (
            await inspection.host(),
            await inspection.app(),
            await inspection.installations(),
        )
        made = store.need(App, id)
        assert (host.is_github, host.problem, abs(host.ahead or 0) < 5) == (True, "", True)
        assert (app.permissions, app.events, app.slug) == (
            made.permissions,
            frozenset(made.events),
            made.slug,
        )
        assert (installed.account, installed.suspended) == ("acme", False)
        row = store.need(Installation, world.stage.installation)
        set_suspended(world.stage.github.world, row, suspended=True)
        assert [item.suspended for item in await inspection.installations()] == [True]


async def test_an_unreachable_address_is_a_fact(world: World) -> None:
    async with inspecting(world, api_url="http://127.0.0.1:9/") as inspection:
        assert "127.0.0.1:9" in (await inspection.host()).problem


async def test_what_github_refuses_is_a_fact(world: World, private_key: str) -> None:
    refused: tuple[tuple[dict[str, object], str], ...] = (
        ({"private_key": private_key}, "401"),
        ({"app_id": 99_999}, "401"),
        ({"private_key": "hush"}, "no PEM file"),
    )
    for changed, said in refused:
        async with inspecting(world, **changed) as inspection:
            facts = await inspection.app()
        assert facts.permissions is None
        assert said in facts.problem
        assert "hush" not in facts.problem


async def test_of_a_repeated_delivery_the_best_attempt_counts(world: World) -> None:
    await world.stage.github.settled()
    store = world.stage.github.world.store
    rows = store.find(Delivery, app_id=world.stage.credentials.app_id)
    for row in rows:
        store.remove(row)
    newest = None
    for guid, status in (("a", 500), ("b", 202), ("a", 202), ("c", 404), ("c", 500)):
        newest = store.add(replace(rows[0], id=0, guid=guid, status_code=status, state="done"))
    assert newest is not None
    async with inspecting(world) as inspection:
        hook = await inspection.hook()
    assert hook.url == world.stage.receiver.url
    assert (hook.content_type, hook.verifies) == ("json", True)
    assert hook.statuses == (500, 202, 202)


async def branch_with(world: World, rules: BranchRules | None) -> BranchFacts:
    if rules is not None:
        world.stage.github.set_rules("acme/shop", "main", rules)
    async with inspecting(world) as inspection:
        return await inspection.branch(SHOP, "", pushes=True)


async def test_the_rules_of_a_branch(world: World) -> None:
    ours = world.stage.credentials.app_id
    strict = BranchRules(
        required_checks=(("lockstep", ours), ("test", None)),
        strict=True,
        required_reviews=2,
        linear_history=True,
        merge_methods=("squash",),
    )
    facts = await branch_with(world, strict)
    assert (facts.branch, facts.strict, facts.reviews, facts.bypass) == ("main", True, 2, "never")
    assert facts.checks == (RequiredCheck("lockstep", ours), RequiredCheck("test", None))
    assert {"pull_request", "required_linear_history"} <= facts.kinds
    assert facts.merge_methods == {"squash"}
    open_to_us = BranchRules(required_checks=(("lockstep", ours),), bypass=(Bypass("Integration", ours),))
    assert (await branch_with(world, open_to_us)).bypass == "always"


async def test_the_rule_set_that_setup_proposes_satisfies_the_doctor(world: World) -> None:
    ours = world.stage.credentials.app_id
    proposed: Any = propose_rules(ours)
    store, repository = world.stage.github.world.store, world.stage.github.repository("acme/shop")
    rules, bypass = tuple(proposed["rules"]), tuple(proposed["bypass_actors"])
    store.add(Ruleset(repository.id, proposed["name"], "main", rules=rules, bypass=bypass))
    facts = await branch_with(world, None)
    assert [finding.level for finding in judge_branch(facts, ours)] == [Level.OK]


async def test_a_branch_without_rules(world: World) -> None:
    facts = await branch_with(world, None)
    assert (facts.checks, facts.bypass, facts.kinds, facts.classic) == ((), "", frozenset(), False)


async def test_a_repository_that_the_app_cannot_see_is_named(world: World) -> None:
    async with inspecting(world) as inspection:
        with pytest.raises(TerminalError, match="acme/none"):
            await inspection.branch(replace(SHOP, name="none"), "main", pushes=True)
