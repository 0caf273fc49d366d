"""`AllowedCommands`: the port `Commands` on programs that the operator allows, in the cells that rendering uses.

A pipeline's author writes which program with which arguments, and must not gain the bot's machine by it: nothing is
looked up on PATH, no shell reads the line, and without an allow-list nothing runs. What the command leaves is read
without following any link, since a process that it left behind could swap one in.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.adapters.masks import MaskError, Masks
from bot.adapters.rendering.cell import PATH, Cell, Confinement, check_files, open_cell, sweep_cells
from bot.adapters.terraform.process import Ended, Limits
from bot.domain.custom_steps import OUTPUT_LIMIT, OutputSource
from bot.domain.files import File, Mode
from bot.ports import TerminalError
from bot.ports.commands import CommandEnded, CommandRun

_GRACE = 10.0
_LOG_BYTES = 16 * 1024 * 1024
_MOST_FILES = 20_000
_MOST_BYTES = 256 * 1024 * 1024
_DEEPEST = 100
_OUTPUT = "output"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class AllowList:
    """What the operator allows: absolute paths of programs, and of directories whose programs are all allowed."""

    entries: tuple[Path, ...] = ()

    def find(self, program: str) -> Path | str:
        """The program's path, or why it may not be run. A bare name is looked for among the entries alone."""
        if not self.entries:
            return (
                "the operator of this bot allows no program for custom steps; name directories or programs in "
                "LOCKSTEP_CUSTOM_STEPS, or use the step http to call a service"
            )
        found = next((path for path in self._allowed(program) if _is_program(path)), None)
        if found is not None:
            return found
        return (
            f"the program {program!r} is not among those that the operator of this bot allows, or is not executable; "
            "add it to LOCKSTEP_CUSTOM_STEPS"
        )

    def why_refused(self, program: str) -> str:
        """Why a program may not be run, empty if it may."""
        found = self.find(program)
        return found if isinstance(found, str) else ""

    def _allowed(self, program: str) -> Iterator[Path]:
        """Where the program may be; a path that is not in its shortest form could lead out of a directory."""
        is_path = posixpath.isabs(program) and posixpath.normpath(program) == program
        if not is_path and ("/" in program or program in ("", ".", "..")):
            return
        for entry in self.entries:
            path = Path(program) if is_path else (entry / program if entry.is_dir() else entry)
            is_allowed = path == entry or (path.parent == entry and entry.is_dir())
            if is_allowed and path.name == Path(program).name:
                yield path


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


class AllowedCommands:
    """The port `Commands`; `root` is a directory for runs, on a local disk."""

    def __init__(self, root: Path, programs: AllowList, *, isolated: bool = True) -> None:
        self._programs = programs
        self._confinement = Confinement(root.absolute(), isolated, {}, programs.entries)

    async def sweep(self) -> None:
        """Clear what runs of a bot that was killed left on disk."""
        await asyncio.to_thread(sweep_cells, self._confinement.root)

    def why_refused(self, program: str) -> str:
        """See `Commands.why_refused`."""
        return self._programs.why_refused(program)

    def find_secret(self, run: CommandRun, text: str) -> str:
        """See `Commands.find_secret`; where the policy's masks are broken everything counts as secret."""
        masks = _masks_of(run)
        return "masked" if masks is None else masks.find(text)

    async def run(self, run: CommandRun) -> CommandEnded:
        """See `Commands.run`."""
        program = self._programs.find(run.program)
        if isinstance(program, str):
            raise TerminalError(program)
        async with open_cell(self._confinement, run.files) as cell:
            pipe = cell.out / _OUTPUT
            pipe.touch(mode=0o600)
            ended = await cell.run(
                program,
                *run.arguments,
                environment={**run.environment, **run.secrets, **_fixed(cell), "KARGO_OUTPUT": str(pipe)},
                limits=Limits(run.timeout, _GRACE, _LOG_BYTES),
            )
            log = _log(cell, run, ended)
            if ended.code != 0 or ended.stopped:
                masks = _masks_of(run)
                stopped = masks(ended.stopped) if masks is not None else ended.stopped
                return CommandEnded(ended.code, b"", log, stopped=stopped)
            output = await asyncio.to_thread(_read_output, cell, run, ended)
            changed = await asyncio.to_thread(_read_changes, cell.work, run.files)
            if run.source is OutputSource.FILE:
                changed.pop(posixpath.normpath(run.path), None)
            return CommandEnded(0, output, log, changed)


def _fixed(cell: Cell) -> dict[str, str]:
    """What no definition may set, whatever the checks before have let through."""
    return {"HOME": str(cell.home), "TMPDIR": str(cell.home), "LANG": "C.UTF-8", "PATH": PATH}


def _masks_of(run: CommandRun) -> Masks | None:
    try:
        return Masks(run.secrets, run.masks)
    except MaskError:
        return None


def _log(cell: Cell, run: CommandRun, ended: Ended) -> str:
    """What it said besides its output, masked; nothing where masks are broken."""
    masks = _masks_of(run)
    if masks is None:
        return "what it said is not shown: a mask of the ReviewPolicy is no valid regular expression"
    parts = [] if run.source is OutputSource.STDOUT else [ended.output.decode("utf-8", "replace")]
    parts += [] if run.source is OutputSource.STDERR and ended.code == 0 else [ended.error]
    # Masked before it is cut, or half a secret would be left at the edge.
    return cell.hide(masks("\n".join(part.strip("\n") for part in parts if part.strip())))


# -- what the command left --------------------------------------------------------------------------------------


def _read_output(cell: Cell, run: CommandRun, ended: Ended) -> bytes:
    match run.source:
        case OutputSource.STDOUT:
            return ended.output[: OUTPUT_LIMIT + 1]
        case OutputSource.STDERR:
            # No more than this is kept of it, so that one of this length was cut.
            data = ended.error.encode()
            return data if len(data) < OUTPUT_LIMIT else data + b"\n"
        case OutputSource.PIPE:
            return _read_file(cell.out, _OUTPUT)
        case OutputSource.FILE:
            return _read_file(cell.work, posixpath.normpath(run.path))


def _read_file(root: Path, path: str) -> bytes:
    """The begin of a regular file below a directory; raises TerminalError for anything else, links above all."""
    *folders, name = path.split("/")
    descriptors = [os.open(root, _DIRECTORY)]
    try:
        for folder in folders:
            descriptors.append(os.open(folder, _DIRECTORY, dir_fd=descriptors[-1]))
        descriptors.append(os.open(name, _FILE, dir_fd=descriptors[-1]))
        if not stat.S_ISREG(os.fstat(descriptors[-1]).st_mode):
            raise TerminalError(f"the output {path!r} is no regular file, so it is not read")
        return _read_all(descriptors[-1], OUTPUT_LIMIT + 1)
    except OSError as error:
        raise TerminalError(
            f"the output {path!r} cannot be read: {error.strerror}; the command must leave a regular file there"
        ) from error
    finally:
        for descriptor in reversed(descriptors):
            os.close(descriptor)


def _read_all(descriptor: int, limit: int) -> bytes:
    data = bytearray()
    while len(data) < limit and (chunk := os.read(descriptor, limit - len(data))):
        data += chunk
    return bytes(data)


def _read_changes(root: Path, before: Mapping[str, File]) -> dict[str, File | None]:
    try:
        return _find_changes(root, before)
    except OSError as error:
        raise TerminalError(
            f"what the command left cannot be read: {error.strerror} ({error.filename}); it must leave files that its "
            "user may read, and no process that goes on changing them"
        ) from error


def _find_changes(root: Path, before: Mapping[str, File]) -> dict[str, File | None]:
    """Files that are other than before, None for those that are gone; what is neither file nor link does not count."""
    changed: dict[str, File | None] = {}
    seen: set[str] = set()
    total = 0
    for path, file in _walk(root):
        seen.add(path)
        if before.get(path) == file:
            continue
        if not path.isprintable():
            raise TerminalError(f"the command left a file of the name {path!r}, which cannot be kept")
        changed[path] = file
        total += len(file.data)
        if len(changed) > _MOST_FILES or total > _MOST_BYTES:
            raise TerminalError(
                f"the command changed more than {_MOST_FILES} files or {_MOST_BYTES >> 20} MiB, the most that is kept"
            )
    kept = (Mode.FILE, Mode.EXECUTABLE, Mode.SYMLINK)
    changed |= {path: None for path, file in before.items() if path not in seen and file.mode in kept}
    check_files({path: file for path, file in changed.items() if file is not None})
    return changed


def _walk(root: Path) -> Iterator[tuple[str, File]]:
    descriptor = os.open(root, _DIRECTORY)
    try:
        yield from _walk_below(descriptor, "", 0)
    finally:
        os.close(descriptor)


def _walk_below(folder: int, prefix: str, depth: int) -> Iterator[tuple[str, File]]:
    if depth > _DEEPEST:
        raise TerminalError(f"the command left directories more than {_DEEPEST} deep; they are not read")
    for name in sorted(os.listdir(folder)):
        path = f"{prefix}{name}"
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            yield path, File(os.fsencode(os.readlink(name, dir_fd=folder)), Mode.SYMLINK)
        elif stat.S_ISDIR(mode):
            inner = os.open(name, _DIRECTORY, dir_fd=folder)
            try:
                yield from _walk_below(inner, f"{path}/", depth + 1)
            finally:
                os.close(inner)
        elif stat.S_ISREG(mode):
            yield path, _load(folder, name, path)


def _load(folder: int, name: str, path: str) -> File:
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        facts = os.fstat(descriptor)
        if facts.st_size > _MOST_BYTES:
            raise TerminalError(
                f"the command left {path!r} of more than {_MOST_BYTES >> 20} MiB; it is not kept"
            )
        mode = Mode.EXECUTABLE if facts.st_mode & stat.S_IXUSR else Mode.FILE
        return File(_read_all(descriptor, _MOST_BYTES + 1), mode)
    finally:
        os.close(descriptor)
