"""The doctor on a whole installation: one where all is well, and one where much is not."""

from __future__ import annotations

import asyncio
import json

import pytest

from bot.app import load
from bot.doctor import examine
from bot.domain.doctor import Finding, Level
from bot.sandbox.github.accounts import App, Installation
from bot.sandbox.github.installing import set_suspended
from bot.sandbox.github.rules import BranchRules
from bot.settings import Settings
from tests.e2e.beside import lockstep
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import Seed
from tests.e2e.road import OPERATIONS, Road
from tests.e2e.talk import say, wait_for_reply

pytestmark = pytest.mark.e2e

WAREHOUSE = """\
apiVersion: kargo.akuity.io/v1alpha1
kind: Warehouse
metadata: {name: elsewhere, namespace: acme}
spec:
  subscriptions:
    - image: {repoURL: "127.0.0.1:9/nowhere"}
"""
BROKEN = (
    "apiVersion: kargo.akuity.io/v1alpha1\nkind: Warehouse\nmetadata: {name: w, namespace: acme}\nspec: {}\n"
)


async def doctor(road: Road, *arguments: str) -> tuple[int, str]:
    """What the command says of this bot; status and output."""
    status, output, _ = await lockstep(road, "doctor", *arguments)
    return status, output


async def read_metrics(road: Road) -> dict[str, float]:
    """What the bot tells monitoring."""
    answer = await road.client.get(f"{road.bot.url}/metrics")
    answer.raise_for_status()
    lines = [line.rpartition(" ") for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


async def test_a_healthy_installation_has_nothing_to_mend(start_road: StartRoad) -> None:
    road = await start_road()
    status, shown = await doctor(road, "--json")
    found = json.loads(shown)
    # How much room the machine of the tests has is not ours to say.
    elsewhere = [item for item in found["findings"] if item["check"] != "data directory"]
    assert [item for item in elsewhere if item["level"] != "ok"] == []
    assert (status, found["ok"]) == (0, True)
    checks = {item["check"] for item in found["findings"]}
    assert checks == {
        *("settings", "data directory", "vault key", "database", "git", "terraform", "isolation"),
        *("github", "clock", "app", "installation", "webhook"),
        *("configuration", "branch rules", "argocd", "application", "registry"),
    }
    secrets = (road.demo.webhook_secret, road.demo.argocd_token, road.demo.client_secret)
    assert not any(secret in shown for secret in secrets)
    # The same by a comment, for those who may have a plan made.
    pull = await road.wait_for_pull()
    comment = await road.comment(pull.number, "/doctor")
    assert "nothing to mend" in await wait_for_reply(road, comment)
    metrics = await read_metrics(road)
    assert metrics['lockstep_promotions{state="Review"}'] == 1
    assert metrics['lockstep_terraform_runs_total{operation="plan"}'] >= 1
    assert metrics["lockstep_last_sweep_timestamp_seconds"] > 0
    assert metrics[f'lockstep_github_requests_left{{installation="{road.demo.installation_id}"}}'] > 0
    assert "may not do this" in await say(road, pull.number, "/doctor", "uma", answer="-1")


def level_of(findings: list[Finding], check: str, said: str) -> Level:
    """The level of the one finding of a check that says something."""
    found = [item for item in findings if item.check == check and said in f"{item.subject}: {item.message}"]
    shown = "\n".join(f"{item.level} {item.check} {item.subject}: {item.message}" for item in findings)
    assert len(found) == 1, f"{check} with {said!r} in:\n{shown}"
    return found[0].level


def _spoil(road: Road) -> None:
    """Break what can be broken while the pipeline can still be read."""
    world, app_id = road.sandbox.github.world, road.demo.app_id
    app = world.store.need(App, app_id)
    lacking = {name: level for name, level in app.permissions.items() if name != "deployments"}
    world.store.change(app, permissions=lacking, events=tuple(e for e in app.events if e != "merge_group"))
    installation = world.store.need(Installation, road.demo.installation_id)
    world.store.change(installation, permissions={**installation.permissions, "checks": "read"})
    rules = BranchRules(required_checks=(("lockstep", None),), strict=True, required_reviews=1)
    road.sandbox.github.set_rules(OPERATIONS, "main", rules)
    road.sandbox.argocd.delete_application("otel-app-dev")
    data = road.bot.directory / "data"
    data.mkdir(parents=True)
    data.chmod(0o777)
    (data / "vault.key").write_text("no key at all\n")


async def test_everything_that_is_wrong_is_named_at_once(start_road: StartRoad) -> None:
    files = (("config/elsewhere.yaml", WAREHOUSE), ("config/broken.yaml", BROKEN))
    road = await start_road(Seed(files=files), bot=False)
    await asyncio.to_thread(_spoil, road)
    environ = road.bot.environment(road.demo) | {
        "LOCKSTEP_ISOLATION": "none",
        "LOCKSTEP_TERRAFORM": "no-such-terraform",
        "LOCKSTEP_URL": "https://bot.example",
        "LOCKSTEP_ARGOCD_OTHER_URL": road.demo.argocd_url,
        "LOCKSTEP_ARGOCD_OTHER_TOKEN": "a.wrong.token",
        "LOCKSTEP_DATABASE": "postgresql://lockstep:hush@127.0.0.1:9/lockstep",
    }
    found = await examine(Settings.from_env(environ), load)
    for check, said in (
        ("data directory", "can be written to by others (mode 0777)"),
        ("vault key", "vault.key"),
        ("database", "127.0.0.1:9"),
        ("terraform", "no-such-terraform"),
        ("isolation", "can read the bot's secrets"),
        ("app", "rights are missing: deployments: write"),
        ("app", "events are missing: merge_group"),
        ("installation", "acme: rights are missing: checks: write"),
        ("webhook", "is not where this bot listens"),
        ("configuration", "broken.yaml:4"),
        ("branch rules", "from any source, not from this App"),
        ("branch rules", "1 approving review(s)"),
        ("branch rules", "must be up to date"),
        ("argocd", "other"),
        ("application", "otel-app-dev"),
        ("registry", "127.0.0.1:9/nowhere"),
    ):
        assert level_of(found, check, said) is Level.FAILURE
    assert level_of(found, "branch rules", "cannot push its release commit") is Level.WARNING
    assert level_of(found, "argocd", "default") is Level.OK
    assert level_of(found, "git", "git version") is Level.OK
    assert "hush" not in str(found)
    await _suspend(road)
    found = await examine(Settings.from_env(environ), load)
    assert level_of(found, "installation", "acme: is suspended") is Level.FAILURE
    assert level_of(found, "configuration", "suspended") is Level.FAILURE
    assert level_of(found, "pipeline", "cannot be looked at") is Level.UNKNOWN


async def _suspend(road: Road) -> None:
    world = road.sandbox.github.world
    row = world.store.need(Installation, road.demo.installation_id)
    await asyncio.to_thread(set_suspended, world, row, suspended=True)
    await road.sandbox.github.settled()
