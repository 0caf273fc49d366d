"""What differs between two states of a file, as values for a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TypeAlias

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.hcl import HclExpression, find_hcl_leaves
from bot.editors.json import find_json_leaves
from bot.editors.keys import same_value
from bot.editors.toml import find_toml_leaves
from bot.editors.yaml import find_leaves


class Absent(StrEnum):
    """Stands where a file has no such value."""

    ABSENT = "absent"


Leaf: TypeAlias = "Json | HclExpression | Absent"
LeafPath: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class LeafChange:
    """One value that differs: its path, and what stands there before and after."""

    path: LeafPath
    before: Leaf
    after: Leaf


_READERS: dict[str, Callable[[str], Mapping[LeafPath, Json | HclExpression]]] = {
    ".yaml": find_leaves,
    ".yml": find_leaves,
    ".tf": find_hcl_leaves,
    ".tofu": find_hcl_leaves,
    ".tfvars": find_hcl_leaves,
    ".hcl": find_hcl_leaves,
    ".json": find_json_leaves,
    ".toml": find_toml_leaves,
}


def changed_leaves(path: str, before: bytes | None, after: bytes | None) -> list[LeafChange] | None:
    """The values that differ between two states of a file, in the order of the text; comments and layout do not count.

    None if the file's ending tells of no format with values. A missing file has no values. Bytes that are not of the
    format raise EditError. Types count: 1 and "1" differ, as do true and 1.
    """
    reader = _READERS.get(PurePosixPath(path).suffix.lower())
    if reader is None:
        return None
    old, new = _read(reader, before), _read(reader, after)
    changes: list[LeafChange] = []
    for key in dict.fromkeys([*old, *new]):
        held: Leaf = old.get(key, Absent.ABSENT)
        found: Leaf = new.get(key, Absent.ABSENT)
        if not _same(held, found):
            changes.append(LeafChange(key, held, found))
    return changes


def _read(
    reader: Callable[[str], Mapping[LeafPath, Json | HclExpression]], data: bytes | None
) -> Mapping[LeafPath, Json | HclExpression]:
    if data is None:
        return {}
    try:
        return reader(data.decode())
    except UnicodeDecodeError as error:
        raise EditError(f"this file is no UTF-8 text: {error.reason} at byte {error.start}") from error


def _same(left: Leaf, right: Leaf) -> bool:
    if isinstance(left, HclExpression | Absent) or isinstance(right, HclExpression | Absent):
        return type(left) is type(right) and left == right
    return same_value(left, right)
