"""The plumbing: trees are edited where they are touched, and diffs are told as GitHub tells them."""

from pathlib import Path

import pytest

from bot.sandbox.github.git import EMPTY_TREE, ZERO, Git, GitError, Person, RefMoved, TreeEntry

WHO = Person("Ann", "ann@example.com", "2026-01-02T03:04:05Z")


@pytest.fixture
def git(tmp_path: Path) -> Git:
    made = Git(tmp_path)
    made.run("init", "-q", "--bare", "--initial-branch=main")
    return made


def files(git: Git, tree: str) -> dict[str, str]:
    return {entry.path: entry.mode for entry in git.tree(tree, recursive=True) if entry.type != "tree"}


def commit(git: Git, tree: str, *parents: str, message: str = "m\n") -> str:
    return git.commit_tree(tree, parents, message, author=WHO, committer=WHO)


def test_files_are_written_removed_and_keep_their_mode(git: Git) -> None:
    tool = git.write_tree(None, [TreeEntry("bin/tool", "100755", "blob", git.write_blob(b"1"))])
    both = git.tree_with(tool, {"bin/tool": b"2", "a/b/c.txt": b"3"})
    assert files(git, both) == {"bin/tool": "100755", "a/b/c.txt": "100644"}
    assert files(git, git.tree_with(both, {"a/b/c.txt": None})) == {"bin/tool": "100755"}
    assert git.tree_with(both, {"a/b/c.txt": None, "bin/tool": None}) == EMPTY_TREE
    assert git.tree_with(both, {"no/such": None}) == both


def test_a_file_takes_the_place_of_a_folder_and_a_whole_tree_is_put_at_a_path(git: Git) -> None:
    inner = git.tree_with(None, {"x": b"1", "y/z": b"2"})
    put = git.write_tree(None, [TreeEntry("mod", "040000", "tree", inner)])
    assert set(files(git, put)) == {"mod/x", "mod/y/z"}
    assert set(files(git, git.tree_with(put, {"mod": b"file"}))) == {"mod"}
    odd = git.tree_with(None, {'ü\n"x".yaml': b"1"})
    assert set(files(git, odd)) == {'ü\n"x".yaml'}


def test_diffs_name_renames_binaries_and_counts(git: Git) -> None:
    text = "".join(f"line {at}\n" for at in range(30)).encode()
    old = commit(git, git.tree_with(None, {"old.txt": text, "gone.txt": b"1\n2\n", "bin": b"\0\1"}))
    changed = {"old.txt": None, "new.txt": text + b"more\n", "gone.txt": None, "bin": b"\0\2", "add": b"x\n"}
    new = commit(git, git.tree_with(git.commit(old).tree, changed), old)
    found = {item.filename: item for item in git.diff(old, new)}
    assert {name: item.status for name, item in found.items()} == {
        "add": "added",
        "bin": "modified",
        "gone.txt": "removed",
        "new.txt": "renamed",
    }
    assert found["new.txt"].previous == "old.txt"
    assert (found["new.txt"].additions, found["gone.txt"].deletions) == (1, 2)
    assert found["bin"].patch is None
    assert found["add"].patch == "@@ -0,0 +1 @@\n+x"


def test_commits_are_read_back_as_they_were_written(git: Git) -> None:
    sha = commit(git, git.tree_with(None, {"a": b"1"}), message="subject\n\nbody\n\nTrailer: x\n")
    found = git.commit(sha)
    assert found.message == "subject\n\nbody\n\nTrailer: x"
    assert (found.author, found.committer, found.parents) == (WHO, WHO, ())


def test_refs_move_only_from_where_they_are_expected(git: Git) -> None:
    first = commit(git, git.tree_with(None, {"a": b"1"}))
    second = commit(git, git.tree_with(None, {"a": b"2"}), first)
    git.update_ref("refs/heads/main", first, ZERO)
    with pytest.raises(RefMoved):
        git.update_ref("refs/heads/main", second, ZERO)
    git.update_ref("refs/heads/main", second, first)
    with pytest.raises(RefMoved):
        git.delete_ref("refs/heads/main", first)
    assert (git.resolve("main"), git.resolve("nope"), git.resolve("--all")) == (second, None, None)
    with pytest.raises(GitError, match="failed with"):
        git.blob("1" * 40)


def test_merges_conflict_or_give_a_tree(git: Git) -> None:
    base = commit(git, git.tree_with(None, {"a": b"1\n", "b": b"1\n"}))
    ours = commit(git, git.tree_with(git.commit(base).tree, {"a": b"2\n"}), base)
    theirs = commit(git, git.tree_with(git.commit(base).tree, {"b": b"2\n"}), base)
    other = commit(git, git.tree_with(git.commit(base).tree, {"a": b"3\n"}), base)
    assert git.merge_tree(ours, theirs) == git.tree_with(None, {"a": b"2\n", "b": b"2\n"})
    assert git.merge_tree(ours, other) is None
