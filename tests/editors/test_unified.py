"""What differs between two states of a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.editors.errors import EditError
from bot.editors.hcl import HclExpression
from bot.editors.unified import Absent, LeafChange, Line, Sign, changed_leaves, unified_diff


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


@pytest.mark.parametrize(
    ("path", "before", "after", "changes"),
    [
        pytest.param(
            "values.yaml", b"a: 1 # x\nb: [1, '2']\n", b"# y\na:   1\nb: [1, 2]\nc: {}\n",
            [LeafChange(("b", 1), "2", 2), LeafChange(("c",), Absent.ABSENT, {})],
            id="YAML: types count, comments do not",
        ),
        pytest.param(
            "x.auto.tfvars", b'u = "a"\nv = "${x}"\n', b'u = "b"\nv = "$${x}"\n',
            [LeafChange(("u",), "a", "b"), LeafChange(("v",), HclExpression('"${x}"'), "${x}")],
            id="HCL: a template is not the string it looks like",
        ),
        pytest.param("a.JSON", b'{"a": [true]}', b'{"a": [1]}', [LeafChange(("a", 0), True, 1)], id="JSON"),
        pytest.param("a.toml", b"a = 1\n", b"a = 1.0\n", [], id="TOML"),
        pytest.param("a.yml", None, b"a: 1\n", [LeafChange(("a",), Absent.ABSENT, 1)], id="a new file"),
        pytest.param("a.yml", b"a: 1\n", None, [LeafChange(("a",), 1, Absent.ABSENT)], id="a deleted file"),
        pytest.param("README.md", b"a", b"b", None, id="no known format"),
    ],
)  # fmt: skip
def test_names_the_values_that_differ(
    path: str, before: bytes | None, after: bytes | None, changes: list[LeafChange] | None
) -> None:
    assert changed_leaves(path, before, after) == changes


@pytest.mark.parametrize(
    ("path", "data"), [("a.yaml", b"a: ["), ("a.tf", b"a = "), ("a.json", b"\xff"), ("a.toml", b"a")]
)
def test_refuses_what_is_not_of_the_format(path: str, data: bytes) -> None:
    with pytest.raises(EditError):
        changed_leaves(path, data, None)
