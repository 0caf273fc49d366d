"""What differs between two states of a file, line by line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.unified import Line, Sign, unified_diff


def rendered(before: bytes | None, after: bytes | None) -> list[str]:
    found = unified_diff("f.yaml", before, after)
    return [] if found is None else list(found.render())


def test_one_line_with_its_surroundings() -> None:
    old = "".join(f"line {number}\n" for number in range(1, 21))
    found = unified_diff("a/values.yaml", old.encode(), old.replace("line 9\n", "line nine\n").encode())
    assert found is not None
    assert (found.added, found.removed, found.binary) == (False, False, False)
    (hunk,) = found.hunks
    assert (hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count) == (6, 7, 6, 7)
    assert hunk.lines[3:5] == (Line(Sign.REMOVED, "line 9"), Line(Sign.ADDED, "line nine"))


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        pytest.param(b"a\n", b"a\n", [], id="no change"),
        pytest.param(None, None, [], id="no file"),
        pytest.param(
            None, b"a\n", ["--- /dev/null", "+++ b/f.yaml", "@@ -0,0 +1,1 @@", "+a"], id="a new file"
        ),
        pytest.param(
            b"a\n", None, ["--- a/f.yaml", "+++ /dev/null", "@@ -1,1 +0,0 @@", "-a"], id="a deleted file"
        ),
        pytest.param(
            b"a",
            b"a\n",
            ["--- a/f.yaml", "+++ b/f.yaml", "@@ -1,1 +1,1 @@", "-a", "\\ No newline at end of file", "+a"],
            id="a last line end",
        ),
        pytest.param(
            b"a\r\n",
            b"a\n",
            ["--- a/f.yaml", "+++ b/f.yaml", "@@ -1,1 +1,1 @@", "-a\r", "+a"],
            id="a line end's kind",
        ),
        pytest.param(b"\0", b"a", ["--- a/f.yaml", "+++ b/f.yaml", "Binary files differ"], id="a NUL"),
        pytest.param(b"a", b"\xff", ["--- a/f.yaml", "+++ b/f.yaml", "Binary files differ"], id="no UTF-8"),
        pytest.param(None, b"", ["--- /dev/null", "+++ b/f.yaml"], id="a new empty file"),
    ],
)
def test_renders_as_diff_does(before: bytes | None, after: bytes | None, lines: list[str]) -> None:
    assert rendered(before, after) == lines


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n"]), max_size=30).map("".join)


@given(LINES, LINES, st.integers(0, 4))
def test_a_diff_leads_from_one_side_to_the_other(before: str, after: str, context: int) -> None:
    found = unified_diff("f", before.encode(), after.encode(), context=context)
    old, made, position = before.splitlines(), list[str](), 0
    for hunk in found.hunks if found is not None else ():
        start = hunk.old_start - 1 if hunk.old_count else hunk.old_start
        made += old[position:start]
        kept = [line.text for line in hunk.lines if line.sign is not Sign.ADDED]
        added = [line.text for line in hunk.lines if line.sign is not Sign.REMOVED]
        assert old[start : start + hunk.old_count] == kept
        assert len(added) == hunk.new_count
        assert hunk.new_start - (1 if hunk.new_count else 0) == len(made)
        assert any(line.sign is not Sign.SAME for line in hunk.lines)
        made += added
        position = start + hunk.old_count
    assert [*made, *old[position:]] == after.splitlines()


def test_a_huge_rewrite_is_shown_as_replaced() -> None:
    old = "".join(f"{number}\n" for number in range(5_000))
    new = "".join(f"{number}\n" for number in range(5_000, 0, -1))
    found = unified_diff("f", old.encode(), new.encode())
    assert found is not None
    assert len(found.hunks) == 1
