"""The values that differ between two states of a file."""

from __future__ import annotations

import pytest

from bot.editors.errors import EditError
from bot.editors.hcl import HclExpression
from bot.editors.leaves import Absent, LeafChange, changed_leaves


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
