"""One run on disk: its directories made and cleared under a lock, and Terraform's commands carried out in them."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import posixpath
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from bot.adapters.filelock import hold_file
from bot.adapters.masks import Masks
from bot.adapters.terraform.environment import Place, configuration_text, environment_of
from bot.adapters.terraform.orphans import Orphans
from bot.adapters.terraform.process import Command, Ended, Limits, Stop, execute
from bot.adapters.terraform.rescue import Rescue, rescue_of
from bot.adapters.terraform.sources import runs_elsewhere
from bot.adapters.terraform.stream import JsonLog
from bot.adapters.terraform.tool import Tool, Version
from bot.adapters.terraform.tree import LOCK_FILE, check_tree, empty_directory, read_changed, write_files
from bot.domain.files import File
from bot.domain.values import Json
from bot.ports import TerminalError, TerraformRun, TransientError, Vault


@dataclass(slots=True)
class Session:
    """A prepared run. `log` has what all its commands said; `masks` is None if nothing may be shown."""

    run: TerraformRun
    tool: Tool
    version: Version
    place: Place
    environment: Mapping[str, str]
    masks: Masks | None
    stop: Stop
    deadline: float
    lock_descriptor: int
    begun: datetime
    on_message: Callable[[str], None] | None
    rescue: Rescue
    orphans: Orphans
    log: JsonLog = field(init=False)

    def __post_init__(self) -> None:
        self.log = JsonLog(self.masks, self.on_message)

    @property
    def directory(self) -> Path:
        """Where Terraform runs."""
        return self.place.work / self.run.directory.strip("/")

    async def command(self, *arguments: str, streaming: bool = False, fetching: bool = False) -> Ended:
        """Run one command of the tool; `streaming` output is JSON lines that go to the log."""
        rules = self.tool.rules([self.place.work, self.place.scratch], fetching=fetching)
        loop = asyncio.get_running_loop()
        command = Command(
            arguments=[str(self.tool.find()), *arguments],
            directory=self.directory,
            environment=self.environment,
            rules=rules,
            limits=Limits(self.deadline - loop.time(), self.tool.grace),
            # The child holds the run's lock too: if the bot dies, the run stays taken until the child has ended.
            inherited=(self.lock_descriptor,),
            on_line=self.log.feed if streaming else None,
            on_start=self.orphans.note,
            spool=self.place.scratch,
        )
        try:
            ended = await execute(command, self.stop)
            self.orphans.forget()
        finally:
            if rules is not None:
                rules.close()
        self.log.add_text(ended.error)
        return ended

    async def init(self) -> Ended:
        """Prepare the directory; with a lock file in the tree, exactly the providers that it names."""
        arguments = ["init", "-input=false", "-no-color"]
        if (self.directory / LOCK_FILE).is_file():
            arguments.append("-lockfile=readonly")
        if self.version.has_json_init:
            arguments.append("-json")
        if self.tool.cache is None:
            return await self._init(arguments)
        self.tool.cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        wait = max(self.deadline - asyncio.get_running_loop().time(), 1.0)
        # Terraform's documentation says that two inits at a time may spoil the cache.
        lock = self.tool.cache.with_name(f"{self.tool.cache.name}.lock")
        async with hold_file(lock, timeout=wait, what="the provider cache"):
            return await self._init(arguments)

    async def _init(self, arguments: Sequence[str]) -> Ended:
        ended = await self.command(*arguments, streaming=self.version.has_json_init, fetching=True)
        if not self.version.has_json_init and ended.code != 0:
            self.log.add_text(ended.output.decode("utf-8", "replace"))
        return ended

    def variable_arguments(self) -> list[str]:
        """The options that give the run its variables; files first, so that single values win."""
        files = [f"-var-file={self.place.work / path}" for path in self.run.variable_files]
        return [*files, *(part for name, value in self.run.variables for part in ("-var", f"{name}={value}"))]

    def read_backend(self) -> tuple[str, Json]:
        """Type and configuration of the backend that init chose."""
        note = self.place.data / "terraform.tfstate"
        if not note.is_file():
            return "local", None
        backend = json.loads(note.read_bytes()).get("backend") or {}
        return str(backend.get("type", "local")), backend.get("config")

    def state_path(self) -> str:
        """The state's path in the checkout if it is kept in the tree, else empty."""
        kind, config = self.read_backend()
        if kind != "local":
            return ""
        settings = config if isinstance(config, dict) else {}
        workspace = self.environment.get("TF_WORKSPACE") or "default"
        name = str(settings.get("path") or "terraform.tfstate")
        if workspace != "default":
            folder = str(settings.get("workspace_dir") or "terraform.tfstate.d")
            name = posixpath.join(folder, workspace, "terraform.tfstate")
        full = posixpath.normpath(posixpath.join(str(self.directory), name))
        root = f"{self.place.work}/"
        return full.removeprefix(root) if full.startswith(root) else ""

    async def changed(self, wanted: Callable[[str], bool]) -> dict[str, File]:
        """Files of the tree that differ from what the run was given."""
        return await asyncio.to_thread(read_changed, self.place.work, self.run.files, wanted)


def run_directory(data: Path, key: str) -> Path:
    """The directory of all runs of one key: absolute, and the same for plan and apply."""
    return data / "runs" / hashlib.sha256(key.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Opening:
    """What a session is opened with, apart from the run itself."""

    data: Path
    tool: Tool
    version: Version
    masks: Masks | None
    stop: Stop
    on_message: Callable[[str], None] | None
    vault: Vault


@contextlib.asynccontextmanager
async def open_session(run: TerraformRun, opening: Opening) -> AsyncIterator[Session]:
    """A session in fresh directories, cleared again afterwards; waits while another run of this key goes on."""
    check_tree(run.files)
    _check_places(run)
    if runs_elsewhere(run.files, run.directory):
        raise TerminalError(
            f"{run.directory!r} has a `cloud` block or the backend `remote`, which run Terraform on another machine, "
            "where nothing of this holds; use a backend that only stores the state."
        )
    base = run_directory(opening.data, run.key)
    place = Place(base / "work", base / "scratch")
    environment = environment_of(run, place, opening.tool.environment)
    rescue = Rescue(opening.data, base, run.key, opening.vault)
    base.mkdir(parents=True, exist_ok=True, mode=0o700)
    deadline = asyncio.get_running_loop().time() + run.timeout
    orphans = Orphans(base)
    what = f"the Terraform run of {run.key}"
    async with hold_file(
        orphans.lock, timeout=run.timeout, what=what, on_busy=orphans.end_stragglers
    ) as descriptor:
        try:
            await asyncio.to_thread(_prepare, place, run, opening.tool, rescue)
            yield Session(
                run=run,
                tool=opening.tool,
                version=opening.version,
                place=place,
                environment=environment,
                masks=opening.masks,
                stop=opening.stop,
                deadline=deadline,
                lock_descriptor=descriptor,
                begun=datetime.now(UTC),
                on_message=opening.on_message,
                rescue=rescue,
                orphans=orphans,
            )
        finally:
            await asyncio.shield(asyncio.to_thread(_clear, place, rescue))


async def sweep_runs(data: Path, vault: Vault) -> None:
    """Clear the directories of all runs that nobody has now; states that an apply left there are kept."""
    for base in sorted((data / "runs").glob("*")):
        with contextlib.suppress(TransientError):
            # One that is taken is in use by a child that goes on, or by another process, and stays.
            async with hold_file(base / "lock", timeout=0.0, what=str(base)):
                place = Place(base / "work", base / "scratch")
                await asyncio.to_thread(_clear, place, rescue_of(data, base, vault))


def _prepare(place: Place, run: TerraformRun, tool: Tool, rescue: Rescue) -> None:
    rescue.settle(place.work)
    rescue.check()
    for directory in (place.work, place.scratch):
        empty_directory(directory)
    for directory in (place.scratch / "home", place.scratch / "tmp"):
        directory.mkdir()
    place.configuration.write_text(configuration_text(tool.mirror, tool.cache))
    write_files(place.work, run.files)
    if not (place.work / run.directory.strip("/")).is_dir():
        raise TerminalError(
            f"The directory {run.directory!r} is not in the tree; Terraform has nothing to run on."
        )


def _clear(place: Place, rescue: Rescue) -> None:
    rescue.settle(place.work)
    for directory in (place.work, place.scratch):
        empty_directory(directory)


def _check_places(run: TerraformRun) -> None:
    for path in (run.directory, *run.variable_files):
        if path.startswith("/") or ".." in path.split("/"):
            raise TerminalError(f"{path!r} is not a path inside the checkout; Terraform is not run on it.")
    for path in run.variable_files:
        if posixpath.normpath(path) not in run.files:
            raise TerminalError(f"The variable file {path!r} is not in the tree.")
    for name, _ in run.variables:
        if not name or "=" in name or name.startswith("-"):
            raise TerminalError(f"{name!r} is not the name of a Terraform variable.")
