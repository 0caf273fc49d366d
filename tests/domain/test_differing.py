"""Whether a Stage's steps would write something else than what stands on its branch, and which paths are theirs."""

from __future__ import annotations

import pytest

from bot.domain.differing import find_unwritten, wishes_of
from bot.domain.files import Change, File
from bot.domain.review import Patch, PreparedCommit, Preview, Split
from bot.domain.territory import sources_of, territory_of, written_by
from tests.domain import reviews as r

PATH = "env/dev/values.yaml"
SENTINEL = "lockstep-unknown-1-abc"


def walk(before: str | None, after: str | None, *, prepared: bool = False) -> Preview:
    """A walk that would write `after` to the one path, or nothing if both are the same."""
    old, new = (File(text.encode()) if text is not None else None for text in (before, after))
    change = Change(PATH, old, new)
    changes = (change,) if before != after else ()
    commits = (PreparedCommit("", changes),) if prepared else ()
    patch = Patch(r.MAIN, () if prepared else changes)
    return r.preview(split=Split(0, commits, patch), origins={SENTINEL: "known after apply: url"})


NOTHING = walk("a", "a")


@pytest.mark.parametrize(
    ("left", "now", "differs"),
    [
        (NOTHING, NOTHING, False),
        (NOTHING, walk("tag: 1.0", "tag: 1.1"), True),
        (NOTHING, walk("tag: 1.0", "tag: 1.1", prepared=True), True),
        (walk("n: 1", "n: 2"), walk("n: 1\nmore: x", "n: 2\nmore: x"), False),
        (NOTHING, walk("url: x", f"url: {SENTINEL}"), False),
        (NOTHING, walk("tag: 1.0\nurl: x", f"tag: 1.1\nurl: {SENTINEL}"), True),
        (NOTHING, walk("there", None), True),
        (NOTHING, walk(None, "there"), True),
        (NOTHING, walk("a\nb", "a"), True),
    ],
    ids=[
        "nothing would be written",
        "a value would be written again, after the cut",
        "a value would be written again, before the cut",
        "a counter never writes the same twice",
        "a value that is not known says nothing",
        "beside a value that is not known stands one that is",
        "a file would be removed again",
        "a file would be made again",
        "a line would be removed again",
    ],
)
def test_a_stage_differs(left: Preview, now: Preview, *, differs: bool) -> None:
    found = find_unwritten(wishes_of(left), wishes_of(now), {PATH})
    assert found == ((PATH,) if differs else ())


def test_only_paths_that_others_changed_count() -> None:
    assert find_unwritten({}, wishes_of(walk("tag: 1.0", "tag: 1.1")), {"other.yaml"}) == ()


def test_terraform_s_inputs_and_what_lies_beside_them_are_told_from_the_rest() -> None:
    apply = r.apply(inputs=("src/env/dev/main.tf", "src/root.tf", "elsewhere/x.tf"))
    step = r.edit(PATH)
    seen = r.preview(
        checkout="src",
        pins=(r.SOURCE,),
        steps=(step, apply),
        touched=frozenset({PATH, "env/dev/main.tf"}),
        differences={"README.md": None},
    )
    sources = sources_of(seen)
    assert sources.files == {"env/dev/main.tf", "root.tf"}
    assert sources.find(["docs/a.md", "env/dev/new.tf"]) == "env/dev/new.tf"
    assert sources.find(["new.tf"]) == "new.tf"
    assert sources.find(["env/dev/values/a.yaml", "env/x.tf"]) == ""
    assert written_by(seen) == {PATH}
    assert territory_of(seen).find(["README.md"]) == "README.md"
    assert territory_of(seen, with_diff=False).find(["README.md"]) == ""
