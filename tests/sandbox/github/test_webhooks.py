"""Webhooks: signed, stored, in order, never repeated unasked, and redelivered under the same GUID."""

import asyncio
import hashlib
import hmac
import json
import time

import httpx

from bot.sandbox.github import installing, provisioning
from bot.sandbox.github.packages import Package
from bot.sandbox.github.webhooks import sign
from tests.sandbox.github.conftest import Stage

NAME = "acme/shop"


async def faults(github: Stage, *rules: dict[str, object]) -> None:
    async with httpx.AsyncClient(verify=False) as client:
        answer = await client.post(f"{github.base}/_sandbox/faults", json=list(rules))
    assert answer.status_code == 204, answer.text


async def test_deliveries_carry_githubs_headers_and_a_true_signature(github: Stage) -> None:
    github.github.actions.open_issue("uma", NAME, "t")
    await github.github.settled()
    headers, body = github.receiver.got[-1]
    assert headers["x-github-event"] == "issues"
    assert headers["x-hub-signature-256"] == "sha256=" + hmac.new(b"hush", body, hashlib.sha256).hexdigest()
    assert headers["x-github-hook-installation-target-type"] == "integration"
    assert headers["x-github-hook-installation-target-id"] == str(github.credentials.app_id)
    assert headers["user-agent"].startswith("GitHub-Hookshot/")
    assert len(headers["x-github-delivery"]) == 36
    event = json.loads(body)
    assert event["issue"]["url"].startswith(f"{github.base}/api/v3/repos/acme/shop/issues/")
    assert event["organization"]["login"] == "acme"


async def test_the_signature_is_githubs_published_example() -> None:
    digest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert sign("It's a Secret to Everybody", b"Hello, World!") == f"sha256={digest}"


async def test_a_failed_delivery_is_not_repeated_but_can_be_asked_for(github: Stage) -> None:
    await github.github.settled()
    github.receiver.status = 500
    github.github.actions.open_issue("uma", NAME, "t")
    await github.github.settled()
    assert len(github.receiver.events("issues")) == 1
    failed = (await github.app.ok("GET", "/app/hook/deliveries?status=failure"))[0]
    assert (failed["event"], failed["status_code"]) == ("issues", 500)
    github.receiver.status = 202
    await github.app.ok("POST", f"/app/hook/deliveries/{failed['id']}/attempts")
    await github.github.settled()
    assert len(github.receiver.events("issues")) == 2
    found = await github.app.ok("GET", "/app/hook/deliveries")
    assert [(item["guid"], item["redelivery"]) for item in found[:2]] == [
        (failed["guid"], True),
        (failed["guid"], False),
    ]
    one = await github.app.ok("GET", f"/app/hook/deliveries/{found[0]['id']}")
    assert one["request"]["headers"]["X-GitHub-Delivery"] == failed["guid"]
    assert one["request"]["payload"]["issue"]["title"] == "t"


async def test_deliveries_are_listed_by_cursor(github: Stage) -> None:
    for at in range(3):
        github.github.actions.open_issue("uma", NAME, f"t{at}")
    await github.github.settled()
    seen = []
    path = "/app/hook/deliveries?per_page=2"
    while path:
        answer = await github.app("GET", path)
        seen += [item["id"] for item in answer.json()]
        path = answer.links["next"]["url"].partition("/api/v3")[2] if "next" in answer.links else ""
    assert len(seen) == len(set(seen)) == len(github.receiver.got)
    assert seen == sorted(seen, reverse=True)
    assert (await github.app("GET", "/app/hook/deliveries?cursor=x")).status_code == 400


async def test_a_receiver_that_is_away_leaves_a_failed_delivery(github: Stage) -> None:
    await github.github.settled()
    await github.app.ok("PATCH", "/app/hook/config", {"url": "http://127.0.0.1:9/hook"})
    github.github.actions.open_issue("uma", NAME, "t")
    await github.github.settled()
    newest = (await github.app.ok("GET", "/app/hook/deliveries"))[0]
    assert newest["status"] == "failed to connect to host"


async def test_events_are_lost_doubled_late_and_reordered_on_demand(github: Stage) -> None:
    await github.github.settled()
    await faults(
        github,
        {"kind": "lost", "event": "issues", "action": "opened"},
        {"kind": "doubled", "event": "issue_comment"},
        {"kind": "reordered", "event": "push"},
        {"kind": "vanished", "event": "pull_request"},
        {"kind": "late", "event": "pull_request_review", "delay": 0.4},
    )
    before = len(github.receiver.got)
    issue = github.github.actions.open_issue("uma", NAME, "t")
    github.github.actions.comment("uma", NAME, issue.number, "c")
    pull = await github.pull()
    started = time.monotonic()
    github.github.actions.approve("rafael", NAME, pull["number"])
    await github.github.settled()
    assert time.monotonic() - started >= 0.4
    names = github.receiver.names()[before:]
    assert "issues.opened" not in names
    assert names.count("issue_comment.created") == 2
    guids = [
        headers["x-github-delivery"]
        for headers, _ in github.receiver.got
        if headers["x-github-event"] == "issue_comment"
    ]
    assert len(set(guids)) == 1
    assert names.index("push") > names.index("check_suite.requested")
    assert "pull_request.opened" not in names
    lost = [item for item in await github.app.ok("GET", "/app/hook/deliveries") if item["event"] == "issues"]
    assert (lost[0]["status_code"], len(lost)) == (502, 1)
    events = [item["event"] for item in await github.app.ok("GET", "/app/hook/deliveries")]
    assert "pull_request" not in events


async def test_only_subscribed_events_arrive(github: Stage) -> None:
    other = github.github.register_app(
        provisioning.NewApp("Quiet", "acme", {"contents": "read"}, (), github.receiver.url, "x")
    )
    github.github.install_app(other.app_id, "acme", ["shop"])
    await github.branch("promote")
    await github.github.settled()
    targets = {
        headers["x-github-hook-installation-target-id"]
        for headers, _ in github.receiver.got
        if headers["x-github-event"] == "push"
    }
    assert targets == {str(github.credentials.app_id)}


async def test_packages_pings_and_repositories_are_told(github: Stage) -> None:
    github.github.actions.publish_package("olivia", NAME, Package("web", "1.2.3", "sha256:" + "a" * 64))
    github.github.create_repository("acme", "vault", {"a": b"1"})
    github.github.install_app(github.credentials.app_id, "acme", ["shop", "vault"])
    app = github.github.app("lockstep")
    assert app is not None
    installing.ping(github.github.world, app)
    await github.github.settled()
    version = github.receiver.events("registry_package")[0]["registry_package"]["package_version"]
    assert version["container_metadata"]["tag"] == {"name": "1.2.3", "digest": "sha256:" + "a" * 64}
    added = github.receiver.events("installation_repositories")[0]
    assert [item["full_name"] for item in added["repositories_added"]] == ["acme/vault"]
    assert github.receiver.events("ping")[0]["hook_id"] == app.id


async def test_a_rotated_secret_signs_what_is_sent_after(github: Stage) -> None:
    await github.github.settled()
    provisioning.rotate_webhook_secret(github.github.world, github.credentials.app_id, "new")
    github.github.actions.open_issue("uma", NAME, "t")
    await github.github.settled()
    headers, body = github.receiver.got[-1]
    assert headers["x-hub-signature-256"] == "sha256=" + hmac.new(b"new", body, hashlib.sha256).hexdigest()


async def test_a_slow_receiver_does_not_hold_the_api_up(github: Stage) -> None:
    await github.github.settled()
    await faults(github, {"kind": "late", "event": "*", "count": 0, "delay": 0.3})
    github.github.actions.open_issue("uma", NAME, "t")
    await asyncio.wait_for(github.bot.ok("GET", "/repos/acme/shop"), 5)
    assert github.receiver.events("issues") == []
    await github.github.settled()
    assert len(github.receiver.events("issues")) == 1


async def test_an_installation_that_takes_over_new_permissions_says_so(github: Stage) -> None:
    new = provisioning.NewApp(
        "Lockstep", "acme", {"contents": "write"}, ("push",), github.receiver.url, "hush"
    )
    github.github.register_app(new)
    assert github.github.install_app(github.credentials.app_id, "acme", ["shop"]) == github.installation
    await github.github.settled()
    assert github.receiver.names() == ["installation.created", "installation.new_permissions_accepted"]
    assert (await github.bot("GET", "/repos/acme/shop/pulls")).status_code == 403
