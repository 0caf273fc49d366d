"""What is wrong around a promotion is told once, in the right place, and nothing is lost by it."""

from __future__ import annotations

import asyncio
import sys

import httpx
import pytest

from bot.sandbox.argocd import ArgoFaults
from bot.sandbox.cloud import CloudFaults
from bot.sandbox.faults import Faults
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import STEPS, C, Seed, task
from tests.e2e.road import Road

pytestmark = pytest.mark.e2e

TFVARS = "env/dev/terraform/env.auto.tfvars"
TASK = "config/promote.yaml"


async def validate(road: Road) -> tuple[int, str]:
    """Exit status and output of `lockstep validate` on the configuration of main."""
    folder = road.bot.directory / "checked"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("project", "promote", "review", "stages", "warehouse"):
        (folder / f"{name}.yaml").write_text(await road.read(f"config/{name}.yaml"))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot", "validate", str(folder), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


async def test_an_unknown_step_is_told_with_its_line_and_holds_its_stage(start_road: StartRoad) -> None:
    broken = task(STEPS).replace("uses: hcl-update", "uses: hcl-updte")
    road = await start_road(Seed(files=((TASK, broken),)))
    status, said = await validate(road)
    line = 1 + broken.splitlines().index("    - uses: hcl-updte")
    assert status == 1
    assert f"promote.yaml:{line}: error:" in said
    assert "hcl-updte" in said
    await road.until("the timeline to tell", lambda: told(road, "hcl-updte"))
    await road.wait_until_quiet()
    assert await road.pulls() == []
    assert f"promote.yaml:{line}" in road.bot.tail(200)

    await road.push({TASK: task(STEPS)}, "Mend the task")
    await road.wait_for_pull()


async def test_broken_yaml_leaves_the_last_good_configuration_in_force(released: Road) -> None:
    road = released
    good = await road.read("config/stages.yaml")
    await road.push({"config/stages.yaml": "kind: Stage\n  name: [\n"}, "Break the configuration")
    status, said = await validate(road)
    assert status == 1
    assert "stages.yaml:2" in said
    await road.until("the timeline to tell", lambda: told(road, "stages.yaml:2"))
    assert "stages.yaml:2" in road.bot.tail(200)
    await road.publish(otel="1.1.0")
    await road.wait_for_pull(after=1)
    await road.push({"config/stages.yaml": good}, "Mend the configuration")
    await road.release()
    assert road.live()[0] == ["1.1.0"]


async def test_a_broken_configuration_at_the_start_opens_nothing_until_it_is_mended(
    start_road: StartRoad,
) -> None:
    road = await start_road(Seed(files=(("config/stages.yaml", "kind: Stage\n  name: [\n"),)))
    await road.until("the timeline to tell", lambda: told(road, "stages.yaml:2"))
    assert await road.pulls() == []
    await road.push(Seed().texts(), "Mend the configuration")
    await road.wait_for_pull()


async def told(road: Road, text: str) -> bool:
    """Whether the timeline holds a text."""
    return any(text in event.message for event in await road.events())


async def test_hcl_that_cannot_be_read_is_told_with_its_line(start_road: StartRoad) -> None:
    text = 'memory_mb = 128\nimage_uri = "half\n'
    road = await start_road(Seed(files=((TFVARS, text),)))
    event = await road.wait_for_event("failed", TFVARS)
    assert "line " in event.message
    assert "syntax error" in event.message
    await road.wait_until_quiet()
    assert await road.pulls() == []
    check = road.check(await road.tip(), "lockstep / dev")
    assert check is not None
    assert check.conclusion == "failure"


async def test_a_file_that_is_not_there_is_named(start_road: StartRoad) -> None:
    road = await start_road(Seed(files=((TFVARS, None),)))
    event = await road.wait_for_event("failed", TFVARS)
    assert "not" in event.message
    await road.wait_until_quiet()
    assert await road.pulls() == []


async def post(road: Road, **changes: object) -> httpx.Response:
    """A delivery to the bot's webhook address, unsigned unless headers say otherwise."""
    headers = {"content-type": "application/json", "x-github-event": "push", "x-github-delivery": "d-1"}
    given: dict[str, object] = {"content": b"{}", "headers": headers, **changes}
    content, sent = given["content"], given["headers"]
    assert isinstance(content, bytes)
    assert isinstance(sent, dict)
    return await road.client.post(f"{road.bot.url}/hooks/github", content=content, headers=sent)


async def test_deliveries_that_nobody_signed_are_refused_and_change_nothing(start_road: StartRoad) -> None:
    road = await start_road(Seed())
    await road.wait_for_pull()
    await road.wait_until_quiet()
    events = await road.last_event()
    requests = len(await road.requests_of_bot())
    wrong = {
        "content-type": "application/json",
        "x-github-event": "push",
        "x-github-delivery": "d-1",
        "x-hub-signature-256": f"sha256={'0' * 64}",
    }
    for answer in (await post(road), await post(road, headers=wrong)):
        assert answer.status_code == 401
        assert "webhook secret" in answer.json()["message"]
    large = await road.client.post(
        f"{road.bot.url}/hooks/github", content=b"x" * (25 * 1024 * 1024 + 1), headers=wrong
    )
    assert large.status_code == 413
    assert "26214400" in large.json()["message"]
    registry = await road.client.post(f"{road.bot.url}/hooks/distribution", content=b'{"events": []}')
    assert registry.status_code == 401
    assert (await road.client.get(f"{road.bot.url}/api/events")).status_code == 401
    await road.wait_until_quiet()
    assert await road.last_event() == events
    assert len(await road.requests_of_bot()) == requests


async def test_a_repository_that_the_app_cannot_see_is_named(start_road: StartRoad) -> None:
    wrong = C.replace("${{ vars.repoURL }}", "https://github.sandbox.example/acme/elsewhere.git")
    road = await start_road(Seed(steps=(wrong, *STEPS[1:])))
    event = await road.wait_for_event("errored", "acme/elsewhere")
    assert "install the App there, or give the project acme a Secret" in event.message
    await road.wait_until_quiet()
    assert await road.pulls() == []


async def test_a_terraform_that_is_not_there_is_named_and_found_again(start_road: StartRoad) -> None:
    road = await start_road(Seed(), LOCKSTEP_TERRAFORM="terraform-of-nobody")

    await road.until("the missing binary to be named", lambda: told(road, "terraform-of-nobody"))
    assert not [p for p in await road.pulls() if road.pull(p.number).merged]
    await road.restart_bot(LOCKSTEP_TERRAFORM="terraform")
    pulls = await road.pulls()
    if pulls:
        await road.comment(pulls[0].number, "/plan")
    await road.wait_for_event("waits", "0 of 1 approvals")


async def test_a_locked_state_names_its_holder_and_is_waited_for(start_road: StartRoad) -> None:
    road = await start_road(Seed())
    pull = await road.wait_for_pull()
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    road.sandbox.cloud.faults = CloudFaults(hold=("acme/dev",), holder="olivia@laptop")
    await road.merge(pull.number)
    # Over HTTP Terraform tells the lock's id alone; the holder's name stands in the backend.
    lock = road.sandbox.cloud.lock("acme/dev")
    assert lock is not None
    await road.wait_for_event("fulfilling", f"locked by somebody (lock {lock['ID']})")
    await road.wait_until_quiet()
    outcome = road.check(road.pull(pull.number).merge_commit_sha or "", "lockstep / dev")
    assert outcome is not None
    assert outcome.status == "in_progress"
    assert lock["ID"] in f"{outcome.title} {outcome.summary}"
    assert road.terraform().get("POST", 0) == 0
    road.sandbox.cloud.faults = CloudFaults()
    await road.wait_for_event("succeeded", patience=90.0)
    assert road.live()[0] == ["1.0.0"]


async def test_a_registry_that_does_not_answer_is_asked_again(start_road: StartRoad) -> None:
    road = await start_road(Seed(), bot=False)
    road.sandbox.registry.faults = Faults(down=True)
    await road.start_bot()

    async def logged() -> bool:
        return road.sandbox.registry_host in road.bot.tail(200)

    await road.until("the log to tell", logged)
    assert await road.pulls() == []
    road.sandbox.registry.faults = Faults()
    await road.wait_for_pull()


async def test_an_argocd_that_does_not_answer_is_asked_again(start_road: StartRoad) -> None:
    road = await start_road(Seed())
    pull = await road.wait_for_pull()
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    road.sandbox.argocd.faults = ArgoFaults(down=True)
    await road.merge(pull.number)

    async def shown() -> bool:
        merge = road.pull(pull.number).merge_commit_sha or ""
        outcome = road.check(merge, "lockstep / dev")
        return outcome is not None and "Argo CD" in f"{outcome.title} {outcome.summary}"

    await road.until("the outcome check to name Argo CD", shown)
    assert road.live()[0] == ["0.9.0"]
    road.sandbox.argocd.faults = ArgoFaults()
    await road.wait_for_success()
    assert road.live()[0] == ["1.0.0"]
    assert road.terraform()["POST"] == 1
