"""Trees changed in memory are those that git's own index would make."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.adapters.git.objects import is_ref_name, parse_batch
from bot.adapters.git.trees import change_tree, folders_of, write_order
from bot.domain.files import BlobId, Entry, Mode
from tests.adapters.git_server import ENVIRONMENT, git

NAMES = ["a", "a.b", "a-b", "a0", "b", "ü", "A"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--bare", "--quiet", ".")
    return tmp_path


def index_tree(repository: Path, base: str, changes: dict[str, Entry | None]) -> str:
    """The tree that git's index makes of `base` and the changes, removals first."""
    index = repository / "index"
    index.unlink(missing_ok=True)
    environment = {**ENVIRONMENT, "GIT_INDEX_FILE": str(index)}

    def run(*arguments: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=repository, env=environment, input=stdin, check=True, capture_output=True
        )
        return done.stdout.decode().strip()

    run("read-tree", base)
    removed = [f"0 {'0' * 40}\t{path}" for path, entry in changes.items() if entry is None]
    written = [f"{entry.mode} {entry.blob}\t{path}" for path, entry in changes.items() if entry is not None]
    lines = "".join(f"{line}\0" for line in removed + written).encode()
    run("update-index", "--add", "--replace", "-z", "--index-info", stdin=lines)
    return run("write-tree", "--missing-ok")


def memory_tree(repository: Path, base: str, changes: dict[str, Entry | None]) -> str:
    folders = folders_of(changes)
    asked = "".join(f"{base}:{folder}\n" if folder else f"{base}^{{tree}}\n" for folder in folders)
    done = subprocess.run(
        ["git", "cat-file", "--batch"],
        cwd=repository,
        env=ENVIRONMENT,
        input=asked.encode(),
        check=True,
        capture_output=True,
    )
    objects = [(kind, raw) for _, kind, raw in parse_batch(done.stdout)]
    read = {folder: raw for folder, (kind, raw) in zip(folders, objects, strict=True) if kind == "tree"}
    tree, records = write_order(change_tree(read, changes))
    made = subprocess.run(
        ["git", "mktree", "-z", "--batch", "--missing"],
        cwd=repository,
        env=ENVIRONMENT,
        input=b"\0".join([*records, b""]),
        check=True,
        capture_output=True,
    )
    assert made.stdout.decode().split()[-1] == tree
    return tree


def some_changes(chance: random.Random, *, removals: bool) -> Iterator[tuple[str, Entry | None]]:
    taken: set[str] = set()
    for _ in range(chance.randint(1, 6)):
        path = "/".join(chance.choices(NAMES, k=chance.randint(1, 3)))
        # Two new files of which one is the other's directory have no order, so git itself would take the last.
        if any(path == t or path.startswith(f"{t}/") or t.startswith(f"{path}/") for t in taken):
            continue
        taken.add(path)
        entry = Entry(chance.choice([Mode.FILE, Mode.EXECUTABLE]), BlobId(f"{chance.randrange(2**64):040x}"))
        yield path, None if removals and chance.random() < 0.4 else entry


@pytest.mark.parametrize("seed", range(12))
def test_the_same_tree_as_the_index_makes(repository: Path, seed: int) -> None:
    chance = random.Random(seed)
    base = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    for round_number in range(5):
        changes = dict(some_changes(chance, removals=round_number > 0))
        expected = index_tree(repository, base, changes)
        assert memory_tree(repository, base, changes) == expected, changes
        base = expected


@pytest.mark.parametrize(
    "name", ["main", "lockstep/demo/dev", "refs/pull/7/head", "v1.2.3", "a-b_c+d", "ü", "@x", "x@y"]
)
def test_names_that_git_takes(repository: Path, name: str) -> None:
    git(repository, "check-ref-format", f"refs/heads/{name}")
    assert is_ref_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-x",
        ".a",
        "a/.b",
        "a..b",
        "a b",
        "a~1",
        "a^",
        "a:b",
        "a?",
        "a*",
        "a[",
        "a\\b",
        "/a",
        "a/",
        "a//b",
        "a.",
        "a.lock",
        "a.lock/b",
        "a@{b",
        "@",
        "a\n",
        "a\x7f",
        "a\tb",
    ],
)
def test_names_that_git_refuses(name: str) -> None:
    assert not is_ref_name(name)
