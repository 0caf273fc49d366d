"""The files of a run on disk: refused if they could steer the tool itself, written so that nothing leaves the tree."""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from bot.domain.files import File, Mode
from bot.ports import TerminalError

_REFUSED_FOLDERS = frozenset({"terraform.d", ".terraform"})
_REFUSED_FILES = re.compile(r"\.terraformrc|terraform\.rc|\.tofurc|tofu\.rc|.*\.tfrc")

LOCK_FILE = ".terraform.lock.hcl"

_STATE = re.compile(r"(.*\.tfstate(\.\d+)?(\.backup)?|\..*\.tfstate\.lock\.info)")
"""State files, their backups, and the note that says who locked one."""

_DROPPINGS = re.compile(r"crash\.log|crash\..*\.log|\.terraform\.tfstate\.lock\.info|\..*\.lock\.info")


def check_tree(files: Mapping[str, File]) -> None:
    """Raises TerminalError, with the path, for a file that would configure the tool or that points out of the tree."""
    for path, file in files.items():
        parts = path.split("/")
        if any(part in ("", ".", "..") for part in parts) or "\0" in path:
            raise TerminalError(f"The path {path!r} leaves the tree; Terraform is not run on it.")
        if _REFUSED_FOLDERS & set(parts) or _REFUSED_FILES.fullmatch(parts[-1]):
            raise TerminalError(
                f"The tree has {path!r}, which would change how Terraform itself runs and which programs it "
                "starts; remove it from the repository."
            )
        if file.mode is Mode.SYMLINK:
            target = file.data.decode("utf-8", "surrogateescape")
            landed = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            if target.startswith("/") or landed == ".." or landed.startswith("../"):
                raise TerminalError(
                    f"The link {path!r} points out of the tree, to {target!r}; Terraform is not run on it."
                )


def write_files(root: Path, files: Mapping[str, File]) -> None:
    """Write checked files below an empty directory; links come last, so that no file is written through one."""
    for path, file in files.items():
        if file.mode in (Mode.FILE, Mode.EXECUTABLE):
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.data)
            target.chmod(0o700 if file.mode is Mode.EXECUTABLE else 0o600)
    for path, file in files.items():
        if file.mode is Mode.SYMLINK:
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            os.symlink(os.fsencode(file.data.decode("utf-8", "surrogateescape")), target)


def read_changed(root: Path, files: Mapping[str, File], wanted: Callable[[str], bool]) -> dict[str, File]:
    """Regular files below `root` that `files` does not have with this content, of the paths that are wanted."""
    changed: dict[str, File] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            full = Path(folder) / name
            path = full.relative_to(root).as_posix()
            if full.is_symlink() or not full.is_file() or not wanted(path):
                continue
            mode = Mode.EXECUTABLE if os.access(full, os.X_OK) and full.stat().st_mode & 0o100 else Mode.FILE
            known = files.get(path)
            if known is not None and known.mode in (Mode.FILE, Mode.EXECUTABLE):
                mode = known.mode
            data = full.read_bytes()
            if known is None or known.data != data:
                changed[path] = File(data, mode)
    return changed


def is_state(path: str) -> bool:
    """Whether a path is that of a state file or its backup."""
    return _STATE.fullmatch(posixpath.basename(path)) is not None and not path.endswith(".lock.info")


def is_made_by_planning(path: str) -> bool:
    """Whether a new file of the tree belongs into a plan's bundle: all but states and droppings."""
    name = posixpath.basename(path)
    return _STATE.fullmatch(name) is None and _DROPPINGS.fullmatch(name) is None


def empty_directory(path: Path) -> None:
    """Make the directory exist and be empty, whatever modes its content has."""
    if path.is_dir() and not path.is_symlink():
        try:
            shutil.rmtree(path)
        except PermissionError:
            # Module and provider downloads may leave directories that their owner cannot write.
            for folder, _, _ in os.walk(path):
                os.chmod(folder, 0o700)
            shutil.rmtree(path)
    elif path.is_symlink() or path.exists():
        path.unlink()
    path.mkdir(parents=True, mode=0o700)
