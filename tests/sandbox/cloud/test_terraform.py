"""The seeded Terraform behaves as its comments say, run by the real binary against the state backend."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.sandbox.cloud import Cloud, CloudFaults
from bot.sandbox.seed import ACCOUNT_STATE, Addresses, account_state, read_operations
from bot.sandbox.serving import Listener

BINARY = shutil.which("terraform") or shutil.which("tofu") or "terraform"
URL = re.compile(r"https://[0-9a-f-]{36}\.lambda-url\.eu-central-1\.on\.example/")


class Workspace:
    """A checkout of env/dev/terraform and the commands that a promotion runs in it."""

    def __init__(self, folder: Path, cloud: Cloud) -> None:
        self.folder = folder
        self.cloud = cloud

    async def run(self, *arguments: str) -> tuple[int, str]:
        """Run the binary; its exit code and all it printed."""
        rc = self.folder / "cli.rc"
        rc.write_text("disable_checkpoint = true\n")
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
        }
        process = await asyncio.create_subprocess_exec(
            BINARY,
            *arguments,
            "-no-color",
            cwd=self.folder,
            env=environ | {"TF_CLI_CONFIG_FILE": str(rc), "CHECKPOINT_DISABLE": "1"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode()

    async def plan(self) -> tuple[int, dict[str, Any]]:
        """Plan into `saved`; the detailed exit code and, unless it failed, the plan as JSON."""
        code, _ = await self.run("plan", "-detailed-exitcode", "-out=saved")
        if code == 1:
            return code, {}
        _, shown = await self.run("show", "-json", "saved")
        return code, json.loads(shown)

    async def apply(self) -> tuple[int, str]:
        """Apply what `plan` saved."""
        return await self.run("apply", "saved")

    async def settle(self) -> None:
        """Plan and apply, which must succeed."""
        await self.plan()
        code, output = await self.apply()
        assert code == 0, output

    def set(self, name: str, value: str) -> None:
        """Give a variable another literal value in env.auto.tfvars."""
        file = self.folder / "env.auto.tfvars"
        lines = [line for line in file.read_text().splitlines() if not line.startswith(f"{name} ")]
        file.write_text("\n".join([*lines, f"{name} = {value}", ""]))

    def url(self) -> str:
        """The output that the release writes into the values."""
        return str(self.cloud.outputs("acme/dev")["lambda_url"])


def actions(plan: dict[str, Any]) -> dict[str, list[str]]:
    """What a plan does to each managed resource that it touches."""
    return {
        change["address"]: change["change"]["actions"]
        for change in plan["resource_changes"]
        if change["mode"] == "managed" and change["change"]["actions"] != ["no-op"]
    }


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    cloud = Cloud(tmp_path / "cloud")
    cloud.write_state(ACCOUNT_STATE, account_state())
    listener = Listener()
    await listener.start(cloud.asgi)
    folder = tmp_path / "checkout"
    folder.mkdir()
    for path, body in read_operations(
        Addresses("http://github.example", "registry.example", listener.url)
    ).items():
        if path.startswith("env/dev/terraform/"):
            (folder / Path(path).name).write_bytes(body)
    opened = Workspace(folder, cloud)
    code, output = await opened.run("init")
    assert code == 0, output
    yield opened
    await listener.stop()


async def test_the_url_exists_only_after_the_first_apply(workspace: Workspace) -> None:
    code, plan = await workspace.plan()
    assert code == 2
    assert plan["output_changes"]["lambda_url"]["after_unknown"] is True
    assert set(actions(plan)) == {
        f"terraform_data.{n}" for n in ("execution_role", "function", "function_url", "smoke_test")
    }
    assert (await workspace.apply())[0] == 0
    assert URL.fullmatch(workspace.url())
    assert (await workspace.plan())[0] == 0


async def test_a_new_image_is_an_update_that_keeps_the_url(workspace: Workspace) -> None:
    await workspace.settle()
    before = workspace.url()
    workspace.set("image_uri", '"registry.example/lambda-app:1.0.0"')
    code, plan = await workspace.plan()
    assert code == 2
    assert actions(plan) == {"terraform_data.function": ["update"], "terraform_data.smoke_test": ["update"]}
    assert plan["output_changes"]["lambda_url"]["actions"] == ["no-op"]
    assert (await workspace.apply())[0] == 0
    assert workspace.url() == before


async def test_a_change_of_outputs_alone_touches_no_resource(workspace: Workspace) -> None:
    await workspace.settle()
    workspace.set("url_path", '"/v2/"')
    code, plan = await workspace.plan()
    assert code == 2
    assert actions(plan) == {}
    assert plan["output_changes"]["lambda_url"]["actions"] == ["update"]
    assert (await workspace.apply())[0] == 0
    assert workspace.url().endswith("/v2/")


async def test_another_url_generation_replaces_the_url(workspace: Workspace) -> None:
    await workspace.settle()
    workspace.set("url_generation", "2")
    _, plan = await workspace.plan()
    assert actions(plan) == {"terraform_data.function_url": ["delete", "create"]}
    assert plan["output_changes"]["lambda_url"]["after_unknown"] is True


async def test_a_broken_release_fails_half_done_and_a_fixed_one_does_the_rest(workspace: Workspace) -> None:
    await workspace.settle()
    workspace.set("image_uri", '"registry.example/lambda-app:1.0.0"')
    workspace.set("broken", "true")
    assert (await workspace.plan())[0] == 2
    code, output = await workspace.apply()
    assert code == 1
    assert "answered 502 Bad Gateway" in output
    assert (await workspace.plan())[0] == 1
    workspace.set("broken", "false")
    code, plan = await workspace.plan()
    assert (code, actions(plan)) == (2, {"terraform_data.smoke_test": ["update"]})
    assert (await workspace.apply())[0] == 0


async def test_an_apply_that_failed_for_the_account_can_be_retried_unchanged(workspace: Workspace) -> None:
    await workspace.settle()
    workspace.set("image_uri", '"registry.example/lambda-app:1.0.0"')
    assert (await workspace.plan())[0] == 2
    workspace.cloud.faults = CloudFaults(refuse=(ACCOUNT_STATE,))
    assert (await workspace.apply())[0] == 1
    workspace.cloud.faults = CloudFaults()
    code, plan = await workspace.plan()
    assert (code, actions(plan)) == (2, {"terraform_data.smoke_test": ["update"]})
    assert (await workspace.apply())[0] == 0


async def test_a_held_lock_stops_a_plan_and_leaves_the_state_alone(workspace: Workspace) -> None:
    await workspace.settle()
    before = workspace.cloud.versions("acme/dev")
    workspace.cloud.faults = CloudFaults(hold=("acme/dev",))
    code, output = await workspace.run("plan")
    assert code == 1
    assert "Error acquiring the state lock" in output
    assert workspace.cloud.versions("acme/dev") == before


async def test_each_stage_has_its_own_state_and_every_file_is_formatted(
    workspace: Workspace, tmp_path: Path
) -> None:
    addresses = Addresses("http://github.example", "registry.example", "http://state.example")
    files = read_operations(addresses)
    for stage in ("dev", "staging", "prod"):
        main = files[f"env/{stage}/terraform/main.tf"].decode()
        assert set(re.findall(r'"http://state\.example/state/acme/(\w+)"', main)) == {stage, "account"}
    for path, body in files.items():
        if path.endswith((".tf", ".tfvars")):
            target = tmp_path / "all" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(body)
    code, output = await workspace.run("fmt", "-check", "-recursive", str(tmp_path / "all"))
    assert code == 0, output
