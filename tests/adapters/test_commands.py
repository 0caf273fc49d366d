"""Custom steps' programs: which may run, what a run can reach, and what is kept of what it leaves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.adapters.commands import AllowedCommands, AllowList
from bot.domain.custom_steps import OUTPUT_LIMIT, OutputSource
from bot.domain.files import File, Mode
from bot.ports import TerminalError
from bot.ports.commands import CommandEnded, CommandRun
from tests.adapters.terraform_bed import until

TREE = {"app/values.yaml": File(b"tag: 1\n"), "app/run.sh": File(b"#!/bin/sh\n", Mode.EXECUTABLE)}


def make_program(directory: Path, name: str, script: str, mode: int = 0o755) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(mode)
    return path


async def run(
    tmp_path: Path, script: str, *arguments: str, isolated: bool = True, **changes: object
) -> CommandEnded:
    """One run of a script in the tree."""
    make_program(tmp_path / "programs", "tool", script)
    commands = AllowedCommands(tmp_path / "runs", AllowList((tmp_path / "programs",)), isolated=isolated)
    wanted: dict[str, object] = {"program": "tool", "arguments": arguments, "files": TREE, "timeout": 30.0}
    ended = await commands.run(CommandRun(**{**wanted, **changes}))  # type: ignore[arg-type]
    assert list((tmp_path / "runs").iterdir()) == [], "the run's directory is gone"
    return ended


# -- the allow-list ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "is_allowed"),
    [
        pytest.param("tool", True, id="a name in an allowed directory"),
        pytest.param("ROOT/programs/tool", True, id="a path in an allowed directory"),
        pytest.param("single", True, id="the name of an allowed program"),
        pytest.param("ROOT/other/single", True, id="the path of an allowed program"),
        pytest.param("neighbour", False, id="the name of its neighbour"),
        pytest.param("ROOT/other/neighbour", False, id="the path of its neighbour"),
        pytest.param("ROOT/programs/../other/neighbour", False, id="a path that leads out"),
        pytest.param("ROOT/programs/../programs/tool", False, id="a path that leads out and back"),
        pytest.param("../other/neighbour", False, id="a relative path"),
        pytest.param("deep/inner", False, id="a relative path inside"),
        pytest.param("ROOT/programs/deep/inner", False, id="a program in a directory below"),
        pytest.param("plain", False, id="a file that is not executable"),
        pytest.param("deep", False, id="a directory"),
        pytest.param("sh", False, id="a shell on PATH"),
        pytest.param("/bin/sh", False, id="a shell by its path"),
        pytest.param("", False, id="nothing"),
        pytest.param(".", False, id="a dot"),
    ],
)
async def test_only_what_the_operator_allows_runs(tmp_path: Path, program: str, is_allowed: bool) -> None:
    for name in ("programs/tool", "programs/deep/inner", "other/single", "other/neighbour"):
        make_program((tmp_path / name).parent, Path(name).name, "echo ran=yes > $KARGO_OUTPUT")
    make_program(tmp_path / "programs", "plain", "", 0o644)
    allowed = AllowList((tmp_path / "programs", tmp_path / "other/single"))
    commands = AllowedCommands(tmp_path / "runs", allowed)
    asked = CommandRun(program.replace("ROOT", str(tmp_path)), (), {}, 30.0)
    assert (commands.why_refused(asked.program) == "") is is_allowed
    if is_allowed:
        assert (await commands.run(asked)).output == b"ran=yes\n"
    else:
        with pytest.raises(TerminalError, match="LOCKSTEP_CUSTOM_STEPS"):
            await commands.run(asked)


# -- isolation -------------------------------------------------------------------------------------------------------


async def test_a_command_cannot_read_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_PRIVATE_KEY", "the-apps-private-key")
    (tmp_path / "vault.key").write_text("the key of the bot")
    paths = [
        str(tmp_path / "vault.key"),
        f"/proc/{os.getpid()}/environ",
        "/etc/passwd",
        str(tmp_path / "runs"),
    ]
    script = (
        'for path in "$@"; do (cat "$path" || ls "$path/") > /dev/null 2>&1 && echo "$path=read"; done; true'
    )
    ended = await run(tmp_path, script, *paths, source=OutputSource.STDOUT)
    assert (ended.code, ended.output) == (0, b"")
    free = await run(tmp_path, script, *paths, source=OutputSource.STDOUT, isolated=False)
    assert f"{tmp_path}/vault.key=read" in free.output.decode(), "the test can fail"


async def test_a_command_cannot_write_or_signal_outside(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    script = f"touch {tmp_path}/outside/x {tmp_path}/programs/x; kill -0 {os.getpid()} && echo reached; true"
    ended = await run(tmp_path, script, source=OutputSource.STDOUT)
    assert list((tmp_path / "outside").iterdir()) == []
    assert [path.name for path in (tmp_path / "programs").iterdir()] == ["tool"]
    assert "Permission denied" in ended.log


async def test_the_environment_is_what_the_definition_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "of-the-bot")
    given = {"LEVEL": "high", "PATH": "/tmp/evil", "HOME": "/root"}
    ended = await run(
        tmp_path, "env", source=OutputSource.STDOUT, environment=given, secrets={"KEY": "s3cret-value"}
    )
    found = dict(line.split("=", 1) for line in ended.output.decode().splitlines())
    assert (found["LEVEL"], found["KEY"]) == ("high", "s3cret-value")
    assert found["PATH"].startswith("/usr/local/sbin:")
    assert found["HOME"].startswith(str(tmp_path))
    assert "GITHUB_TOKEN" not in found


async def test_no_shell_reads_the_arguments_and_nothing_is_on_standard_input(tmp_path: Path) -> None:
    words = ("$(touch x)", "a; b", "--flag=*", "")
    ended = await run(tmp_path, 'cat; printf "<%s>" "$@"', *words, source=OutputSource.STDOUT)
    assert ended.output == b"<$(touch x)><a; b><--flag=*><>"
    assert ended.changed == {}


async def test_a_timeout_kills_the_group(tmp_path: Path) -> None:
    script = "sleep 600 & echo $!; wait"
    ended = await run(tmp_path, script, timeout=0.3)
    assert ended.stopped == "the time limit was reached"
    child = int(ended.log)
    await until(lambda: not Path(f"/proc/{child}").exists() or "Z" in _state(child))


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "Z"


async def test_a_cancelled_run_ends_its_program_and_leaves_nothing(tmp_path: Path) -> None:
    make_program(tmp_path / "programs", "tool", "echo $$ > started; exec sleep 600")
    commands = AllowedCommands(tmp_path / "runs", AllowList((tmp_path / "programs",)))
    task = asyncio.create_task(commands.run(CommandRun("tool", (), TREE, 600.0)))
    await until(lambda: any(path.read_text() for path in tmp_path.rglob("started")))
    pid = int(next(tmp_path.rglob("started")).read_text())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not Path(f"/proc/{pid}").exists()
    assert list((tmp_path / "runs").iterdir()) == []


async def test_secrets_are_masked_in_what_is_shown(tmp_path: Path) -> None:
    script = 'echo "token $KEY"; printf %s "$KEY" | base64 >&2; echo "id-4711"; exit 3'
    ended = await run(tmp_path, script, secrets={"KEY": "s3cret-value"}, masks=(r"id-\d+",))
    assert ended.code == 3
    assert ended.log.splitlines() == ["token <sensitive: KEY>", "<masked>", "<sensitive: KEY>"]


async def test_with_a_broken_mask_nothing_is_shown(tmp_path: Path) -> None:
    ended = await run(tmp_path, "echo s3cret-value; exit 1", secrets={"KEY": "s3cret-value"}, masks=("(",))
    assert ended.log.startswith("what it said is not shown")


# -- what is left ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "changed"),
    [
        pytest.param("true", {}, id="nothing"),
        pytest.param("echo 'tag: 1' > app/values.yaml", {}, id="a file written back as it was"),
        pytest.param(
            "echo 'tag: 2' > app/values.yaml", {"app/values.yaml": File(b"tag: 2\n")}, id="another content"
        ),
        pytest.param("rm app/values.yaml", {"app/values.yaml": None}, id="a file removed"),
        pytest.param(
            "chmod +x app/values.yaml",
            {"app/values.yaml": File(b"tag: 1\n", Mode.EXECUTABLE)},
            id="another mode",
        ),
        pytest.param("mkdir -p a/b && echo x > a/b/c", {"a/b/c": File(b"x\n")}, id="a new file"),
        pytest.param(
            "ln -s values.yaml app/link", {"app/link": File(b"values.yaml", Mode.SYMLINK)}, id="a link inside"
        ),
        pytest.param("mkfifo pipe", {}, id="what is no file"),
    ],
)
async def test_changes_are_told_by_path(
    tmp_path: Path, script: str, changed: Mapping[str, File | None]
) -> None:
    assert (await run(tmp_path, script)).changed == changed


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param("ln -s /etc/passwd app/link", "points out of the tree", id="a link out"),
        pytest.param("ln -s ../../x app/link", "points out of the tree", id="a relative link out"),
        pytest.param("touch \"$(printf 'a\\nb')\"", "cannot be kept", id="a name with a line break"),
        pytest.param('rm "$KARGO_OUTPUT"; ln -s /etc/passwd "$KARGO_OUTPUT"', "cannot be read", id="a link as output"),
        pytest.param('rm "$KARGO_OUTPUT"; mkfifo "$KARGO_OUTPUT"', "no regular file", id="a pipe as output"),
        pytest.param('rm "$KARGO_OUTPUT"', "cannot be read", id="no output"),
        pytest.param(
            'i=0; while [ $i -lt 120 ]; do mkdir d && cd d; i=$((i+1)); done', "more than 100 deep", id="a deep tree"
        ),
        pytest.param("chmod 0 app/values.yaml", "cannot be read", id="a file that may not be read"),
    ],
)  # fmt: skip
async def test_what_cannot_be_kept_is_refused(tmp_path: Path, script: str, said: str) -> None:
    if os.geteuid() == 0 and script.startswith("chmod 0"):
        # Root reads every file, so there it is a change of nothing.
        assert (await run(tmp_path, script)).changed == {}
        return
    with pytest.raises(TerminalError, match=said):
        await run(tmp_path, script)


@pytest.mark.parametrize(
    ("source", "script", "output"),
    [
        pytest.param(OutputSource.PIPE, 'echo a=1 > "$KARGO_OUTPUT"; echo noise', b"a=1\n", id="the pipe"),
        pytest.param(OutputSource.PIPE, "echo noise", b"", id="the pipe, not used"),
        pytest.param(OutputSource.STDOUT, "echo a=1; echo noise >&2", b"a=1\n", id="standard output"),
        pytest.param(OutputSource.STDERR, "echo a=1 >&2; echo noise", b"a=1\n", id="standard error"),
        pytest.param(OutputSource.FILE, "mkdir out; echo a=1 > out/x; echo noise", b"a=1\n", id="a file"),
    ],
)
async def test_the_output_is_where_the_definition_says(
    tmp_path: Path, source: OutputSource, script: str, output: bytes
) -> None:
    ended = await run(tmp_path, script, source=source, path="out/x" if source is OutputSource.FILE else "")
    assert (ended.output, ended.changed) == (output, {})
    assert ended.log == ("" if "noise" not in script else "noise")


@pytest.mark.parametrize("source", list(OutputSource))
async def test_an_output_that_is_too_long_is_told_by_its_length(tmp_path: Path, source: OutputSource) -> None:
    where = {"Stdout": "", "Stderr": ">&2", "Pipe": '> "$KARGO_OUTPUT"', "File": "> x"}[source.value]
    script = f"head -c {OUTPUT_LIMIT + 10} /dev/zero | tr '\\0' x {where}"
    ended = await run(tmp_path, script, source=source, path="x" if source is OutputSource.FILE else "")
    assert len(ended.output) == OUTPUT_LIMIT + 1
