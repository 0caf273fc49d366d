"""What a hostile tree can reach: the rows T1 to T5, T17 and T20 of the threat model, with the real binary."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import signal
import stat
import sys
import textwrap
import zipfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.adapters.terraform import landlock
from bot.adapters.terraform.process import Command, Limits, Stop, execute
from bot.domain.files import File, Mode
from bot.domain.terraform import Applied, Failed, Interrupted, Outputs
from bot.domain.values import Json, Sensitive
from bot.ports import TerminalError
from tests.adapters.state_server import StateServer, serve_states
from tests.adapters.terraform_bed import make_run, make_runner, planned, until


@pytest.fixture
async def states() -> AsyncIterator[StateServer]:
    async with serve_states() as server:
        yield server


def outputs_of(outcome: object) -> dict[str, Json]:
    made = planned(outcome)  # type: ignore[arg-type]
    return {o.name: o.after.value if isinstance(o.after, Sensitive) else o.after for o in made.plan.outputs}  # type: ignore[misc]


def in_runs(directory: Path, folder: str, pattern: str) -> list[Path]:
    """What runs have in one of their two folders, `work` (the tree) or `scratch`."""
    return [path for run in (directory / "data").glob("runs/*") for path in (run / folder).glob(pattern)]


def test_the_kernel_of_the_tests_has_landlock() -> None:
    assert landlock.version() >= 1


async def test_a_plan_cannot_read_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_APP_KEY", "the-apps-private-key")
    secret = tmp_path / "secret-file"
    secret.write_text("a secret of another part")
    paths = {
        "passwd": "/etc/passwd",
        "shadow": "/etc/shadow",
        "parent": f"/proc/{os.getpid()}/environ",
        "own": "/proc/self/environ",
        "key": str(tmp_path / "key"),
        "file": str(secret),
        "lock": str(tmp_path / "data/runs"),
    }
    text = "".join(
        f'output "{name}" {{ value = try(filebase64("{path}"), "denied") }}\n' for name, path in paths.items()
    )
    runner = make_runner(tmp_path)
    after = outputs_of(await runner.plan(make_run({"main.tf": text})))
    assert after == dict.fromkeys(paths, "denied")
    open_runner = make_runner(tmp_path, isolation="none")
    after = outputs_of(await open_runner.plan(make_run({"main.tf": text})))
    assert after["passwd"] != "denied", "the test can fail: without isolation the file is there"


async def test_a_provisioner_cannot_write_or_signal_outside(tmp_path: Path, states: StateServer) -> None:
    target = tmp_path / "outside"
    target.mkdir()
    text = f"""
resource "terraform_data" "a" {{
  provisioner "local-exec" {{
    command = "touch {target}/x; cat /proc/{os.getpid()}/environ; kill -0 {os.getpid()} && echo reached''; echo done"
  }}
}}
"""
    runner = make_runner(tmp_path)
    run = make_run({"main.tf": text, "backend.tf": states.backend("dev")})
    outcome = await runner.apply(run, planned(await runner.plan(run)).bundle)
    assert isinstance(outcome, Applied), outcome
    assert not list(target.iterdir())
    assert "Permission denied" in outcome.text
    if landlock.version() >= 6:
        assert "(local-exec): reached" not in outcome.text


async def test_nothing_of_the_bots_environment_is_inherited(
    tmp_path: Path, states: StateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "LOCKSTEP_APP_KEY",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "TF_CLI_ARGS_plan",
        "TF_VAR_x",
        "TF_LOG",
    ):
        monkeypatch.setenv(name, "-invalid-from-the-bot")
    text = 'resource "terraform_data" "a" {\n  provisioner "local-exec" {\n    command = "env"\n  }\n}\n'
    runner = make_runner(
        tmp_path, environment={"HTTPS_PROXY": "http://proxy.example:3128", "NO_PROXY": "127.0.0.1"}
    )
    run = make_run(
        {"main.tf": text, "backend.tf": states.backend("dev")}, environment={"AWS_REGION": "eu-west-1"}
    )
    outcome = await runner.apply(run, planned(await runner.plan(run)).bundle)
    assert isinstance(outcome, Applied), outcome
    assert "invalid-from-the-bot" not in outcome.text
    assert "AWS_REGION=eu-west-1" in outcome.text
    assert "HTTPS_PROXY=http://proxy.example:3128" in outcome.text
    assert f"HOME={tmp_path}" in outcome.text


STEERING = "TF_CLI_ARGS TF_CLI_ARGS_apply TF_CLI_CONFIG_FILE TF_DATA_DIR TF_REATTACH_PROVIDERS PATH LD_PRELOAD HOME a=b"


@pytest.mark.parametrize("name", [*STEERING.split(), "TF_PLUGIN_CACHE_DIR", "BASH_ENV", "TF_LOG_PATH", ""])
async def test_variables_that_steer_the_tool_are_refused(tmp_path: Path, name: str) -> None:
    runner = make_runner(tmp_path)
    for field in ("environment", "secrets"):
        with pytest.raises(TerminalError, match="cannot be set"):
            await runner.plan(make_run({"main.tf": ""}, **{field: {name: "x"}}))


@pytest.mark.parametrize(
    "path",
    [
        "infra/terraform.d/plugins/example.com/a/b/1.0.0/linux_amd64/terraform-provider-b_v1.0.0",
        "terraform.d/x",
        "infra/.terraform/providers/x",
        ".terraform/modules/modules.json",
        "infra/.terraformrc",
        "terraform.rc",
        "infra/my.tfrc",
        ".tofurc",
        "../outside",
        "/etc/x",
        "infra//x",
    ],
)
async def test_trees_that_steer_the_tool_are_refused_by_path(tmp_path: Path, path: str) -> None:
    run = make_run({"main.tf": ""})
    run = replace(run, files={**run.files, path: File(b"x", Mode.EXECUTABLE)})
    with pytest.raises(TerminalError) as caught:
        await make_runner(tmp_path).plan(run)
    assert path in str(caught.value)


@pytest.mark.parametrize("target", ["/etc/passwd", "../../etc/passwd", "../..", "a/../../../x"])
async def test_links_out_of_the_tree_are_refused(tmp_path: Path, target: str) -> None:
    run = make_run({"main.tf": ""})
    run = replace(run, files={**run.files, "infra/link": File(target.encode(), Mode.SYMLINK)})
    with pytest.raises(TerminalError, match="points out of the tree"):
        await make_runner(tmp_path).plan(run)


async def test_links_inside_the_tree_work(tmp_path: Path) -> None:
    run = make_run({"main.tf": 'output "a" { value = file("link") }'})
    tree = {**run.files, "shared/text": File(b"shared"), "infra/link": File(b"../shared/text", Mode.SYMLINK)}
    assert outputs_of(await make_runner(tmp_path).plan(replace(run, files=tree))) == {"a": "shared"}


def provider_binary(mark: Path) -> bytes:
    return f"#!/bin/sh\ntouch {mark}\nexit 1\n".encode()


async def test_a_committed_provider_binary_is_never_started(tmp_path: Path) -> None:
    # Even where the check of paths would miss it: the explicit installation and the fresh data directory do not look.
    mark = tmp_path / "data" / "started"
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    name = f"terraform-provider-evil_v1.0.0_{architecture}"
    required = 'required_providers {\n    evil = { source = "127.0.0.1/acme/evil" }\n  }'
    text = f'terraform {{\n  {required}\n}}\ndata "evil_x" "a" {{}}\n'
    run = make_run({"main.tf": text})
    folder = f"infra/plugins/127.0.0.1/acme/evil/1.0.0/linux_{architecture}"
    run = replace(run, files={**run.files, f"{folder}/{name}": File(provider_binary(mark), Mode.EXECUTABLE)})
    failed = await make_runner(tmp_path).plan(run)
    assert isinstance(failed, Failed)
    assert not mark.exists()


async def test_a_question_ends_instead_of_waiting(tmp_path: Path) -> None:
    failed = await make_runner(tmp_path).plan(make_run({"main.tf": 'variable "must" { type = string }'}))
    assert isinstance(failed, Failed)
    assert failed.summary.startswith("No value for required variable")


async def test_a_missing_or_foreign_binary_is_said(tmp_path: Path) -> None:
    with pytest.raises(TerminalError, match="was not found"):
        await make_runner(tmp_path, binary="no-such-terraform").version()
    with pytest.raises(TerminalError, match="did not answer like"):
        await make_runner(tmp_path, binary="/bin/true").version()
    old = tmp_path / "terraform"
    old.write_text("#!/bin/sh\necho 'Terraform v1.5.7'\n")
    old.chmod(0o755)
    with pytest.raises(TerminalError, match=r"1\.6 or newer"):
        await make_runner(tmp_path, binary=str(old)).version()
    old.write_text("#!/bin/sh\necho 'OpenTofu v1.10.0'\necho on linux\n")
    assert await make_runner(tmp_path, binary=str(old)).version() == "tofu 1.10.0"


async def test_too_much_output_ends_a_run(tmp_path: Path) -> None:
    command = Command(["/bin/sh", "-c", "yes"], tmp_path, {"PATH": "/bin"}, None, Limits(30, 1, 100_000))
    ended = await execute(command, Stop())
    assert ended.stopped == "it wrote more than 100000 bytes"
    assert len(ended.output) == 100_000


async def test_what_ignores_the_interrupt_is_killed_with_its_children(tmp_path: Path) -> None:
    script = "trap '' INT; sleep 600 & echo $!; wait; sleep 600"
    command = Command(["/bin/sh", "-c", script], tmp_path, {"PATH": "/bin:/usr/bin"}, None, Limits(0.5, 0.5))
    ended = await execute(command, Stop())
    assert ended.stopped == "the time limit was reached"
    assert ended.code == -signal.SIGKILL
    child = int(ended.output)
    await until(lambda: is_gone(child))


async def test_a_grandchild_that_keeps_the_pipe_open_does_not_hold_the_run(tmp_path: Path) -> None:
    command = Command(
        ["/bin/sh", "-c", "setsid sleep 30 & echo $!"],
        tmp_path,
        {"PATH": "/bin:/usr/bin"},
        None,
        Limits(20, 1),
    )
    ended = await asyncio.wait_for(execute(command, Stop()), 15)
    assert ended.code == 0
    os.kill(int(ended.output), signal.SIGKILL)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
    except FileNotFoundError:
        return True


def group_members(leader: int) -> list[int]:
    """Living processes of a group."""
    members = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and os.getpgid(int(name)) == leader and not is_gone(int(name)):
                members.append(int(name))
    return members


BOT = """
import asyncio, sys
from pathlib import Path
from tests.adapters.terraform_bed import make_run, make_runner, planned

async def main() -> None:
    root, backend, text = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    runner = make_runner(root)
    run = make_run({"main.tf": text, "backend.tf": backend})
    made = planned(await runner.plan(run))
    print("planned", flush=True)
    await runner.apply(run, made.bundle)

asyncio.run(main())
"""

SLOW = """
resource "terraform_data" "first" {}
resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" {
    command = "echo $$ > $HOME/pid; sleep 600"
  }
}
"""


async def test_terraform_ends_in_good_order_when_the_bot_is_killed(
    tmp_path: Path, states: StateServer
) -> None:
    bot = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        textwrap.dedent(BOT),
        str(tmp_path),
        states.backend("dev"),
        SLOW,
        cwd=os.getcwd(),
    )
    await until(lambda: bool(in_runs(tmp_path, "scratch", "home/pid")))
    bot.send_signal(signal.SIGKILL)
    await bot.wait()
    # The next bot waits for what the dead one left running, and then finds its state complete and unlocked.
    runner = make_runner(tmp_path)
    run = make_run({"main.tf": SLOW, "backend.tf": states.backend("dev")})
    made = planned(await runner.plan(run))
    assert not states.locks
    assert b'"first"' in states.states["dev"]
    assert [c.address for c in made.plan.changes] == ["terraform_data.slow"]


async def test_a_state_in_the_tree_outlives_a_killed_bot(tmp_path: Path) -> None:
    bot = await asyncio.create_subprocess_exec(
        sys.executable, "-c", textwrap.dedent(BOT), str(tmp_path), "", SLOW, cwd=os.getcwd()
    )
    await until(lambda: bool(in_runs(tmp_path, "scratch", "home/pid")))
    bot.send_signal(signal.SIGKILL)
    await bot.wait()
    with pytest.raises(TerminalError, match="is kept in"):
        await make_runner(tmp_path).plan(make_run({"main.tf": SLOW}))
    assert len(list((tmp_path / "data/rescued").iterdir())) == 1


async def test_a_sweep_clears_what_a_killed_bot_left(tmp_path: Path, states: StateServer) -> None:
    bot = await asyncio.create_subprocess_exec(
        sys.executable, "-c", textwrap.dedent(BOT), str(tmp_path), "", SLOW, cwd=os.getcwd()
    )
    await until(lambda: bool(in_runs(tmp_path, "scratch", "home/pid")))
    runner = make_runner(tmp_path)
    await runner.sweep()
    assert in_runs(tmp_path, "work", "infra/main.tf"), "a run that goes on is left alone"
    bot.send_signal(signal.SIGKILL)
    await bot.wait()
    terraform = int(next((tmp_path / "data").glob("runs/*/child")).read_text())
    await until(lambda: is_gone(terraform))
    # Terraform ends its provisioner's shell, but not what that had started.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(terraform, signal.SIGKILL)
    await until(lambda: not group_members(terraform))
    # A process counts as ended when its first thread has, and keeps its files until the last one.
    for _ in range(100):
        await runner.sweep()
        if not in_runs(tmp_path, "work", "*"):
            break
        await asyncio.sleep(0.02)
    assert not in_runs(tmp_path, "work", "*")
    assert not in_runs(tmp_path, "scratch", "*")
    (kept,) = (tmp_path / "data/rescued").iterdir()
    assert b'"first"' in runner.read_rescued("demo/dev", kept)


async def test_a_plan_that_is_stopped_changes_nothing(tmp_path: Path, states: StateServer) -> None:
    run = make_run({"main.tf": "", "backend.tf": states.backend("dev")}, timeout=0.0)
    assert await make_runner(tmp_path).plan(run) == Interrupted("the time limit was reached")
    assert not states.states


async def test_outputs_of_a_directory_without_a_state_are_none(tmp_path: Path, states: StateServer) -> None:
    run = make_run({"main.tf": "", "backend.tf": states.backend("dev")})
    assert await make_runner(tmp_path).output(run) == Outputs({})


def operators_mirror(root: Path, script: str) -> Path:
    """A provider mirror with one packed provider, which is a script."""
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    package = root / f"example.com/acme/tool/terraform-provider-tool_1.0.0_linux_{architecture}.zip"
    package.parent.mkdir(parents=True)
    program = zipfile.ZipInfo("terraform-provider-tool_v1.0.0")
    program.external_attr = (stat.S_IFREG | 0o755) << 16
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr(program, script)
    return root


USES_TOOL = """
terraform {
  required_providers {
    tool = { source = "example.com/acme/tool" }
  }
}
provider "tool" {}
resource "tool_x" "a" {}
"""


async def test_providers_come_from_the_operators_mirror_and_run_confined(tmp_path: Path) -> None:
    # The script is no provider, so the plan fails; what it could do before that is the question.
    outside, cache = tmp_path / "outside", tmp_path / "cache"
    outside.mkdir()
    script = (
        "#!/bin/sh\n"
        f"if echo x > {outside}/x; then R=wrote; else R=kept-inside; fi\n"
        f"if echo x > {cache}/x; then R=$R-poisoned; else R=$R-cache-whole; fi\n"
        "if cat /etc/shadow; then R=$R-read; else R=$R-blind; fi\n"
        'echo "marker-$R"\nexit 1\n'
    )
    mirror = operators_mirror(tmp_path / "mirror", script)
    runner = make_runner(tmp_path, mirror=mirror, cache=cache)
    failed = await runner.plan(make_run({"main.tf": USES_TOOL}))
    assert isinstance(failed, Failed)
    assert "marker-kept-inside-cache-whole-blind" in failed.text
    assert not list(outside.iterdir())
    assert list(cache.rglob("terraform-provider-tool*")), "it was kept for the next run"
    assert not (cache / "x").exists()


async def test_inits_with_a_shared_cache_follow_each_other(tmp_path: Path) -> None:
    mirror = operators_mirror(tmp_path / "mirror", "#!/bin/sh\nexit 1\n")
    runner = make_runner(tmp_path, mirror=mirror, cache=tmp_path / "cache")
    outcomes = await asyncio.gather(
        *(runner.plan(make_run({"main.tf": USES_TOOL}, key=f"demo/{number}")) for number in range(4))
    )
    for outcome in outcomes:
        assert isinstance(outcome, Failed)
        assert "successfully initialized" in outcome.text
