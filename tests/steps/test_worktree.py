"""The work tree: overlays, links, records, and paths that never leave it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.files import CommitId, File, Mode
from bot.domain.review import Pin
from bot.domain.values import Text, Unknown
from bot.ports import TerminalError
from bot.steps.worktree import Sentinels, WorkTree, clean_path
from tests.adapters.git_server import git
from tests.steps.bench import Bench


@pytest.fixture
async def tree(bench: Bench, repository: Path) -> WorkTree:
    await bench.git.fetch(bench.url)
    tip = CommitId(git(repository, "rev-parse", "main"))
    bench.tree.add_checkout(Pin("src", bench.url, "main", tip), await bench.git.list_files(bench.url, tip))
    return bench.tree


async def test_what_is_written_hides_what_was_checked_out(tree: WorkTree) -> None:
    assert await tree.read("src/README.md") == b"read me\n"
    await tree.write("./src/README.md", b"changed\n")
    assert await tree.read("src/README.md") == b"changed\n"
    await tree.delete("src/README.md")
    assert await tree.find_file("src/README.md") is None
    assert "src/README.md" not in tree.list("src")


async def test_only_real_changes_are_recorded(tree: WorkTree) -> None:
    tree.begin()
    await tree.write("src/README.md", b"other\n")
    await tree.write("src/README.md", b"read me\n")
    await tree.write("loose.txt", b"new\n")
    await tree.read("src/env/dev/values.yaml")
    access = await tree.end()
    assert [(change.path, change.before) for change in access.changes] == [("loose.txt", None)]
    assert access.wrote == {"src/README.md", "loose.txt"}
    assert "src/env/dev/values.yaml" in access.reads


async def test_staged_is_what_differs_from_the_last_local_commit(tree: WorkTree) -> None:
    await tree.write("src/a", b"1")
    tree.commit("src", "first", await tree.staged("src"))
    assert await tree.staged("src") == ()
    await tree.write("src/a", b"2")
    await tree.delete("src/README.md")
    staged = await tree.staged("src")
    assert [(c.path, c.before and c.before.data, c.after and c.after.data) for c in staged] == [
        ("README.md", b"read me\n", None),
        ("a", b"1", b"2"),
    ]


async def test_many_files_at_once_are_recorded_like_one(tree: WorkTree) -> None:
    tree.begin()
    await tree.put(
        {
            "src/README.md": None,
            "src/nothing": None,
            "src/new": File(b"n", Mode.EXECUTABLE),
            "loose": File(b"l"),
        }
    )
    access = await tree.end()
    assert [(c.path, c.after) for c in access.changes] == [
        ("loose", File(b"l")),
        ("src/README.md", None),
        ("src/new", File(b"n", Mode.EXECUTABLE)),
    ]


async def test_links_inside_a_checkout_are_followed_and_others_refused(tree: WorkTree) -> None:
    overlay = tree.checkouts["src"].overlay
    overlay["good"] = File(b"env/dev/values.yaml", Mode.SYMLINK)
    overlay["out"] = File(b"../../etc/passwd", Mode.SYMLINK)
    overlay["absolute"] = File(b"/etc/passwd", Mode.SYMLINK)
    overlay["loop"] = File(b"loop", Mode.SYMLINK)
    assert (await tree.read("src/good")).startswith(b"image:")
    for path in ("src/out", "src/absolute", "src/loop"):
        with pytest.raises(TerminalError):
            await tree.read(path)
    with pytest.raises(TerminalError, match="symbolic link"):
        await tree.write("src/good", b"through the link")


async def test_checkouts_nest_and_never_share_a_place(tree: WorkTree, bench: Bench) -> None:
    pin = Pin("src/inner", bench.url, "other", None)
    tree.add_checkout(pin, {})
    await tree.write("src/inner/x", b"x")
    assert tree.find_checkout("src/inner/x") == ("src/inner", tree.checkouts["src/inner"], "x")
    assert await tree.staged("src") == ()
    with pytest.raises(TerminalError, match="already"):
        tree.add_checkout(pin, {})


@given(st.text(alphabet="ab./\0G.git", max_size=12))
def test_a_clean_path_lies_in_the_tree(path: str) -> None:
    try:
        cleaned = clean_path(path)
    except TerminalError:
        return
    parts = cleaned.split("/")
    assert not cleaned.startswith("/")
    assert ".." not in parts
    assert all(part.lower() != ".git" for part in parts)
    assert clean_path(cleaned) == cleaned


@given(st.lists(st.one_of(st.text(max_size=5), st.sampled_from([Unknown("a"), Unknown("b")])), max_size=6))
def test_stand_ins_are_read_back_as_what_they_stand_for(parts: list[str | Unknown]) -> None:
    sentinels = Sentinels("nonce")
    joined: list[str | Unknown] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part != "":
            joined.append(part)
    written = sentinels.write_text(Text(tuple(joined)))
    read = sentinels.read(written)
    if not any(isinstance(part, Unknown) for part in joined):
        assert read == written
    elif len(joined) == 1:
        assert read == joined[0]
    else:
        assert read == Text(tuple(joined))
