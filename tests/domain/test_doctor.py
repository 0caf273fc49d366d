"""Each judgement of the doctor: what is said of the facts, how grave it is, and that it says what to do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from bot.domain.app_manifest import AppManifest, fill_manifest, propose_rules
from bot.domain.argocd import AUTHORIZED, Application
from bot.domain.doctor import (
    Finding,
    Level,
    fail,
    good,
    judge_application,
    judge_config,
    judge_database,
    judge_directory,
    judge_git,
    judge_isolation,
    judge_key,
    judge_settings,
    judge_terraform,
    must_mend,
    unknown,
    warn,
)
from bot.domain.doctor_facts import (
    AppFacts,
    ApplicationFacts,
    BranchFacts,
    ConfigFacts,
    DatabaseFacts,
    DirectoryFacts,
    HookFacts,
    HostFacts,
    InstallationFacts,
    IsolationFacts,
    KeyFacts,
    RequiredCheck,
    ToolFacts,
)
from bot.domain.doctor_github import judge_app, judge_branch, judge_hook, judge_host, judge_installations
from bot.domain.github import Repository
from bot.domain.values import Json
from bot.reports.doctor import render_doctor, render_json, render_table

OK, WARNING, FAILURE, UNKNOWN = Level.OK, Level.WARNING, Level.FAILURE, Level.UNKNOWN
GIB = 1024**3
URL = "https://bot.example"
MANIFEST = AppManifest({"checks": "write", "metadata": "read"}, frozenset({"push", "check_run"}))

DATA = DirectoryFacts("/data", exists=True, mode=0o700, writable=True, free=9 * GIB, filesystem="ext4")
DATABASE = DatabaseFacts("/data/lockstep.db", newest=3, schema=3, same_key=True)
HOST = HostFacts("https://api.github.com/", is_github=True, ahead=0.0)
APP = AppFacts(7, "lockstep", "https://github.com/apps/lockstep", MANIFEST.permissions, MANIFEST.events)
INSTALLATION = InstallationFacts("acme", "https://github.com/i/1", MANIFEST.permissions, MANIFEST.events)
HOOK = HookFacts(f"{URL}/hooks/github", statuses=(202, 202))
KINDS = frozenset({"pull_request", "required_status_checks"})
BRANCH = BranchFacts(
    Repository("acme", "ops"), "main", (RequiredCheck("lockstep", 7),), bypass="always", kinds=KINDS
)
APPLICATION = Application(
    "app", "argocd", "acme", {AUTHORIZED: "acme:dev, acme:staging"}, (), "Synced", "Healthy"
)
NAMED = ApplicationFacts("default", "app", "acme", "dev", APPLICATION)


def case(name: str, findings: Sequence[Finding], *wanted: tuple[Level, str]) -> object:
    return pytest.param(findings, wanted, id=name)


def app(facts: AppFacts) -> list[Finding]:
    return judge_app(facts, MANIFEST)


def installed(*facts: InstallationFacts) -> list[Finding]:
    return judge_installations(APP, facts, MANIFEST)


def hook(facts: HookFacts, url: str = URL) -> list[Finding]:
    return judge_hook(facts, url)


def branch(facts: BranchFacts) -> list[Finding]:
    return judge_branch(facts, 7)


@pytest.mark.parametrize(
    ("findings", "wanted"),
    [
        case("complete settings are in order", judge_settings([]), (OK, "complete")),
        case(
            "each problem of the settings is one, and the rest is not looked at",
            judge_settings(["LOCKSTEP_APP_ID is missing: x", "LOCKSTEP_PORT must be a whole number"]),
            (FAILURE, "APP_ID"),
            (FAILURE, "PORT"),
            (UNKNOWN, "cannot be looked at"),
        ),
        case("a directory of ours is in order", judge_directory(DATA), (OK, "local (ext4)")),
        case(
            "a directory that is not there yet is no failure",
            judge_directory(DirectoryFacts("/data", exists=False)),
            (WARNING, "does not exist yet"),
        ),
        case(
            "a directory that we cannot write to",
            judge_directory(replace(DATA, writable=False)),
            (FAILURE, "cannot be written"),
        ),
        case(
            "a directory that others write to", judge_directory(replace(DATA, mode=0o770)), (FAILURE, "0770")
        ),
        case(
            "a directory that others may read is in order, its secrets are files of mode 0600",
            judge_directory(replace(DATA, mode=0o755)),
            (OK, "ours"),
        ),
        case(
            "a directory on a network's disk",
            judge_directory(replace(DATA, filesystem="nfs4")),
            (FAILURE, "nfs4, whose locks"),
        ),
        case(
            "a disk that fills up",
            judge_directory(replace(DATA, free=GIB - 1)),
            (WARNING, "1023 MiB are free"),
        ),
        case("a disk that is full", judge_directory(replace(DATA, free=0)), (FAILURE, "0 MiB are free")),
        case("a key file of ours", judge_key(KeyFacts("/k", exists=True)), (OK, "only we")),
        case("a key file to be made", judge_key(KeyFacts("/k", exists=False)), (WARNING, "does not exist")),
        case("a key file for everybody", judge_key(KeyFacts("/k", True, "mode 0644")), (FAILURE, "0644")),
        case("a database of ours", judge_database(DATABASE), (OK, "schema 3")),
        case(
            "a database before its first use",
            judge_database(replace(DATABASE, schema=None)),
            (OK, "no tables"),
        ),
        case(
            "a database that a newer program wrote",
            judge_database(replace(DATABASE, schema=4)),
            (FAILURE, "has schema 4, this program knows 3"),
        ),
        case(
            "a database of another key",
            judge_database(replace(DATABASE, same_key=False)),
            (FAILURE, "key file"),
        ),
        case(
            "a database that does not answer",
            judge_database(replace(DATABASE, problem="connection refused")),
            (FAILURE, "refused"),
        ),
        case("a Terraform that we can use", judge_terraform(ToolFacts("tofu 1.8.0")), (OK, "tofu 1.8.0")),
        case("no Terraform", judge_terraform(ToolFacts(problem="not found")), (FAILURE, "not found")),
        case("the oldest git", judge_git(ToolFacts("git version 2.38.0")), (OK, "2.38")),
        case("a git that is too old", judge_git(ToolFacts("git version 2.37.9")), (FAILURE, "too old")),
        case("a git of a vendor", judge_git(ToolFacts("git version 2.39.5 (Apple Git-154)")), (OK, "Apple")),
        case("something else called git", judge_git(ToolFacts("hello")), (FAILURE, "hello")),
        case("Landlock", judge_isolation(IsolationFacts("landlock", 4)), (OK, "version 4")),
        case(
            "a kernel without Landlock",
            judge_isolation(IsolationFacts("landlock", 0)),
            (FAILURE, "no Landlock"),
        ),
        case(
            "no isolation, although there could be",
            judge_isolation(IsolationFacts("none", 4)),
            (FAILURE, "can read the bot's secrets"),
        ),
        case("a pipeline", judge_config(ConfigFacts("config", 3)), (OK, "3 Stage(s)")),
        case("an empty pipeline", judge_config(ConfigFacts("config")), (WARNING, "no Stage")),
        case(
            "a pipeline with warnings",
            judge_config(ConfigFacts("c", 1, warnings=2)),
            (WARNING, "2 warning(s)"),
        ),
        case(
            "of many errors the first ten are shown",
            judge_config(ConfigFacts("c", 1, tuple(f"a.yaml:{n}: bad" for n in range(12)))),
            *((FAILURE, f"a.yaml:{n}: bad") for n in range(10)),
            (FAILURE, "2 more errors"),
        ),
        case("a pipeline out of reach", judge_config(ConfigFacts("c", problem="404")), (FAILURE, "404")),
        case("an Application that permits", judge_application(NAMED), (OK, "acme:dev")),
        case(
            "an Application that permits another Stage alone",
            judge_application(replace(NAMED, stage="prod")),
            (FAILURE, "does not let Stage acme:prod"),
        ),
        case(
            "an Application that is not there",
            judge_application(replace(NAMED, found=None)),
            (FAILURE, "does not exist"),
        ),
        case("GitHub and our clock", judge_host(HOST), (OK, "answers"), (OK, "agrees")),
        case("an answer without a time", judge_host(replace(HOST, ahead=None)), (OK, ""), (UNKNOWN, "time")),
        case(
            "a clock that is a bit off",
            judge_host(replace(HOST, ahead=-21.0)),
            (OK, ""),
            (WARNING, "21 s behind"),
        ),
        case(
            "a clock that is wrong",
            judge_host(replace(HOST, ahead=60.0)),
            (OK, ""),
            (FAILURE, "60 s ahead of"),
        ),
        case(
            "a web page in place of GitHub",
            judge_host(replace(HOST, is_github=False)),
            (FAILURE, "does not answer as"),
        ),
        case("no network", judge_host(replace(HOST, problem="no route")), (FAILURE, "no route")),
        case("an App with what it needs", app(APP), (OK, "id 7")),
        case("an App that is refused", app(AppFacts(7, problem="401")), (FAILURE, "401")),
        case(
            "an App without a right and an event",
            app(replace(APP, permissions={"checks": "read"}, events=frozenset({"push"}))),
            (FAILURE, "checks: write, metadata: read"),
            (FAILURE, "check_run"),
        ),
        case(
            "an App with a stronger and a further right",
            app(replace(APP, permissions={"checks": "admin", "metadata": "read", "secrets": "read"})),
            (OK, "complete"),
            (WARNING, "checks: admin, secrets: read"),
        ),
        case("an installation with everything", installed(INSTALLATION), (OK, "granted")),
        case("no installation", installed(), (FAILURE, "installed nowhere")),
        case("a suspended one", installed(replace(INSTALLATION, suspended=True)), (FAILURE, "suspended")),
        case(
            "two, of which one has not accepted a right",
            installed(INSTALLATION, replace(INSTALLATION, account="beta", permissions={"metadata": "read"})),
            (OK, "granted"),
            (FAILURE, "checks: write"),
        ),
        case("webhooks that arrive", hook(HOOK), (OK, "last 2 deliveries arrived")),
        case("webhooks before the first", hook(replace(HOOK, statuses=())), (OK, "nothing was sent")),
        case("no webhook", hook(HookFacts("")), (FAILURE, "no webhook URL")),
        case(
            "webhooks for another bot", hook(HOOK, "https://other.example"), (FAILURE, "not where"), (OK, "")
        ),
        case("webhooks without our address", hook(HOOK, ""), (WARNING, "LOCKSTEP_URL"), (OK, "")),
        case(
            "webhooks as forms", hook(replace(HOOK, content_type="form")), (FAILURE, "content type"), (OK, "")
        ),
        case(
            "webhooks to anybody's certificate",
            hook(replace(HOOK, verifies=False)),
            (WARNING, "certificate"),
            (OK, ""),
        ),
        case(
            "webhooks that failed before",
            hook(replace(HOOK, statuses=(202, 0))),
            (WARNING, "1 of the last 2"),
        ),
        case(
            "webhooks that fail now", hook(replace(HOOK, statuses=(401, 202))), (FAILURE, "newest with 401")
        ),
        case("a bot that is down", hook(replace(HOOK, statuses=(0,))), (FAILURE, "no answer")),
        case("a protected branch", branch(BRANCH), (OK, "required of this App")),
        case("no required check", branch(replace(BRANCH, checks=())), (FAILURE, "not required")),
        case(
            "the check of anybody",
            branch(replace(BRANCH, checks=(RequiredCheck("lockstep", None),))),
            (FAILURE, "any source"),
        ),
        case(
            "the check of another App",
            branch(replace(BRANCH, checks=(RequiredCheck("lockstep", 8), RequiredCheck("test", 7)))),
            (FAILURE, "from 8, not from this App"),
        ),
        case("required reviews", branch(replace(BRANCH, reviews=1)), (FAILURE, "1 approving review(s)")),
        case("up to date", branch(replace(BRANCH, strict=True)), (FAILURE, "up to date")),
        case(
            "squash alone",
            branch(replace(BRANCH, merge_methods=frozenset({"squash"}))),
            (FAILURE, "merge commits"),
        ),
        case(
            "linear history",
            branch(replace(BRANCH, kinds=KINDS | {"required_linear_history"})),
            (FAILURE, "merge commits"),
        ),
        case("an App that cannot push", branch(replace(BRANCH, bypass="never")), (WARNING, "follow-up")),
        case(
            "signed commits, and the App cannot push either",
            branch(replace(BRANCH, bypass="pull_requests_only", kinds=KINDS | {"required_signatures"})),
            (FAILURE, "signed"),
            (WARNING, "cannot push"),
        ),
        case(
            "an App that need not push",
            branch(replace(BRANCH, bypass="never", pushes=False)),
            (OK, "required of this App"),
        ),
        case(
            "an App that need not push but could",
            branch(replace(BRANCH, pushes=False)),
            (WARNING, "although no policy"),
        ),
        case("a bypass that is not told", branch(replace(BRANCH, bypass="")), (UNKNOWN, "does not tell")),
        case(
            "an old protection",
            branch(replace(BRANCH, bypass="", kinds=frozenset(), classic=True)),
            (UNKNOWN, "classic"),
        ),
    ],
)
def test_a_judgement(findings: list[Finding], wanted: tuple[tuple[Level, str], ...]) -> None:
    assert [finding.level for finding in findings] == [level for level, _ in wanted]
    for finding, (_, text) in zip(findings, wanted, strict=True):
        assert text in finding.message
        # Whatever must be mended comes with the way to do it.
        assert finding.remedy or finding.level in (OK, UNKNOWN)
    assert must_mend(findings) == (FAILURE in [level for level, _ in wanted])


FINDINGS = [
    good("git", "", "git version 2.39"),
    fail("database", "/srv/data", "refused", "start it"),
    fail("branch rules", "acme/ops main", "`lockstep` is not required, @all", "import the rules"),
    warn("webhook", "https://bot.example", "1 of the last 2 failed", "wait"),
    unknown("clock", "", "GitHub did not say its time"),
]


def test_the_table_has_a_line_for_each_and_what_to_do_under_it() -> None:
    lines = render_table(FINDINGS).splitlines()
    assert lines[0] == "ok       git           git version 2.39"
    assert lines[1:3] == [
        "failure  database      /srv/data: refused",
        "                       to do: start it",
    ]
    assert lines[-1] == "2 things to mend, 1 warning, 1 could not be looked at; 1 in order"


def test_programs_get_the_same() -> None:
    shown = json.loads(render_json(FINDINGS))
    assert shown["ok"] is False
    assert [item["level"] for item in shown["findings"]] == ["ok", "failure", "failure", "warning", "unknown"]
    assert json.loads(render_json(FINDINGS[:1]))["ok"] is True


def test_a_comment_keeps_the_machine_to_itself_and_mentions_nobody() -> None:
    shown = render_doctor(FINDINGS)
    assert "/srv/data" not in shown
    assert "**database**: see" in shown
    assert "acme/ops main" in shown
    assert " @all" not in shown
    assert "git version" not in shown


def test_the_manifest_leads_to_the_bot_and_keeps_within_githubs_limits() -> None:
    shipped: dict[str, Json] = {
        "name": "Lockstep",
        "url": "x",
        "public": False,
        "hook_attributes": {"url": "x"},
    }
    filled = fill_manifest(shipped, url=URL, redirect_url="http://127.0.0.1:1/cb", organisation="a" * 39)
    assert filled["name"] == f"Lockstep {'a' * 25}"
    assert filled["hook_attributes"] == {"url": f"{URL}/hooks/github", "active": True}
    assert filled["callback_urls"] == [f"{URL}/sign-in/callback"]
    assert filled["public"] is False


@pytest.mark.parametrize("pushes", [True, False])
def test_the_proposed_rules_are_those_that_the_doctor_wants(*, pushes: bool) -> None:
    proposed = propose_rules(7, pushes=pushes)
    assert bool(proposed["bypass_actors"]) == pushes
    rules = proposed["rules"]
    assert isinstance(rules, list)
    by_type = {rule["type"]: rule.get("parameters") for rule in rules if isinstance(rule, dict)}
    checks, reviews = by_type["required_status_checks"], by_type["pull_request"]
    assert isinstance(checks, dict)
    assert isinstance(reviews, dict)
    assert checks["required_status_checks"] == [{"context": "lockstep", "integration_id": 7}]
    assert checks["strict_required_status_checks_policy"] is False
    assert reviews["required_approving_review_count"] == 0
