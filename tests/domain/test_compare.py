"""What would be committed is the approved patch with its holes filled, or a difference that names its line."""

from __future__ import annotations

import pytest

from bot.domain.compare import compare_patch
from bot.domain.files import Change, File, Mode

HOLE = "lockstep-unknown-1-abc"
ORIGINS = {HOLE: "known after apply: lambda_url"}
BEFORE = "image:\n  tag: 1.0\nenv:\n  URL: old # note\n"


def change(after: str | None, *, before: str | None = BEFORE, path: str = "values.yaml") -> Change:
    def file(text: str | None) -> File | None:
        return File(text.encode()) if text is not None else None

    return Change(path, file(before), file(after))


APPROVED = change(f"image:\n  tag: 1.1\nenv:\n  URL: {HOLE} # note\n")


@pytest.mark.parametrize(
    "after",
    [
        pytest.param("image:\n  tag: 1.1\nenv:\n  URL: https://x.example/ # note\n", id="the hole is filled"),
        pytest.param('image:\n  tag: 1.1\nenv:\n  URL: "12" # note\n', id="the hole needs quotes"),
        pytest.param("image:\n  tag: 1.1\nenv:\n  URL:  # note\n", id="the hole is empty"),
    ],
)
def test_a_hole_takes_any_scalar(after: str) -> None:
    assert compare_patch([APPROVED], [change(after)], ORIGINS) == ()


@pytest.mark.parametrize(
    ("actual", "says"),
    [
        pytest.param(
            change("image:\n  tag: 1.2\nenv:\n  URL: x # note\n"), "values.yaml:2", id="a known value differs"
        ),
        pytest.param(
            change("image:\n  tag: 1.1\nenv:\n  URL: x # other\n"), "values.yaml:4", id="text round the hole"
        ),
        pytest.param(
            change("image:\n  tag: 1.1\nenv:\n  URL: x # note\nmore: 1\n"), "lines", id="a line more"
        ),
        pytest.param(change(None), "removed", id="removed"),
        pytest.param(change("x", path="other.yaml"), "no change", id="another file"),
    ],
)
def test_everything_else_is_a_difference(actual: Change, says: str) -> None:
    found = compare_patch([APPROVED], [actual], ORIGINS)
    assert any(says in str(difference) for difference in found)


def test_a_long_value_of_many_holes_is_compared_without_trying_every_split() -> None:
    holes = {f"lockstep-unknown-{n}-abc": f"known after apply: {n}" for n in range(1, 9)}
    line = "key: " + "-".join(holes)
    approved = change(f"{line}\n", before="key: old\n")
    actual = change("key: " + "-" * 200_000 + "x\n", before="key: old\n")
    assert compare_patch([approved], [actual], holes) == ()
    assert compare_patch([change(f"{line}.\n", before="key: old\n")], [actual], holes) != ()


def test_a_difference_shows_what_the_hole_stands_for_and_never_the_sentinel() -> None:
    (found,) = compare_patch([APPROVED], [change("image:\n  tag: 1.1\nenv:\n  OTHER: x # note\n")], ORIGINS)
    assert "<known after apply: lambda_url>" in str(found)
    assert HOLE not in str(found)


def test_a_change_of_mode_is_a_difference() -> None:
    approved = Change("run.sh", None, File(b"x", Mode.FILE))
    actual = Change("run.sh", None, File(b"x", Mode.EXECUTABLE))
    assert [str(d) for d in compare_patch([approved], [actual], {})] == [
        "run.sh: approved mode 100644, now mode 100755"
    ]


def test_a_file_that_others_changed_elsewhere_is_compared_by_the_lines_that_we_change() -> None:
    moved = "# header\n" + BEFORE
    actual = change("# header\nimage:\n  tag: 1.1\nenv:\n  URL: https://x.example/ # note\n", before=moved)
    assert compare_patch([APPROVED], [actual], ORIGINS) == ()
    wrong = change("# header\nimage:\n  tag: 9.9\nenv:\n  URL: https://x.example/ # note\n", before=moved)
    assert compare_patch([APPROVED], [wrong], ORIGINS)


def test_an_approved_file_that_is_not_changed_is_a_difference() -> None:
    assert [str(d) for d in compare_patch([APPROVED], [], ORIGINS)] == [
        "values.yaml: approved a change, now none"
    ]
