"""The reference pages as tables, and the rows that the code asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.domain.values import Json
from bot.pipeline.kinds import tables
from bot.pipeline.schema import JsonSchema

PAGES = Path(__file__).parents[2] / "docs" / "reference"

SHARED: Mapping[str, JsonSchema] = {
    "Variables": tables.VARIABLES,
    "Steps of a Stage or task": tables.STAGE_STEPS,
    "Stage selectors": tables.SELECTOR,
    "Links": tables.LINKS,
    "Receivers": tables.RECEIVERS,
    "Policies": tables.POLICIES,
}
"""Parts that several kinds have: each is described once, under this title."""
_STOPS = (*SHARED.values(), tables.TASK_STEPS)


@dataclass(frozen=True, slots=True)
class Row:
    """One key: its path, type in words, and whether it must be given."""

    path: str
    type: str
    required: bool

    def __str__(self) -> str:
        return f"| `{self.path}` | {self.type} | {'yes' if self.required else ''} | ... |"


def sections(page: str) -> dict[str, str]:
    """The text below each `###` heading, by its title."""
    parts = re.split(r"^(#{1,3}) (.+)$", (PAGES / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    triples = zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    return {title.strip("`"): text for level, title, text in triples if level == "###"}


def rows(section: str) -> list[Row]:
    """The rows of a section's table of keys."""
    found = re.findall(r"^\| `([^`]+)` \| ([^|]*) \| (yes)? ?\| [^|\n]+ \|$", section, re.MULTILINE)
    return [Row(path, type_, bool(required)) for path, type_, required in found]


def first_cells(section: str) -> list[str]:
    """Everything in code spans in the first column of a section's tables."""
    cells = re.findall(r"^\| (`[^|]*) \|", section.replace("\\|", "\0"), re.MULTILINE)
    return [word.replace("\0", "|") for cell in cells for word in re.findall(r"`([^`]+)`", cell)]


def expected_rows(schema: JsonSchema, prefix: str = "") -> Iterator[Row]:
    """A row for each key below a schema; shared parts are not entered."""
    for branch in _branches(schema, "anyOf"):
        yield from expected_rows(branch, prefix)
    each = schema.get("items")
    if isinstance(each, dict):
        yield from expected_rows(each, f"{prefix}[]" if prefix else "")
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    for name, value in _mapping(schema, "properties").items():
        if isinstance(value, dict):
            yield from _row(value, f"{prefix}.{name}" if prefix else name, required=name in names)
    other = schema.get("additionalProperties")
    if isinstance(other, dict) and "properties" in other:
        yield from _row(other, f"{prefix}.*" if prefix else "*", required=False)


def _row(value: JsonSchema, path: str, *, required: bool) -> Iterator[Row]:
    yield Row(path, describe_type(value), required)
    if not any(value is stop for stop in _STOPS):
        yield from expected_rows(value, path)


def _mapping(schema: JsonSchema, key: str) -> Mapping[str, Json]:
    found = schema.get(key)
    return found if isinstance(found, dict) else {}


def _branches(schema: JsonSchema, key: str) -> list[JsonSchema]:
    """Branches that are whole schemas, not rules about keys of this one."""
    found = schema.get(key)
    items = found if isinstance(found, list) else []
    return [item for item in items if isinstance(item, dict) and "type" in item]


def describe_type(schema: JsonSchema) -> str:
    """The type in the words of the pages."""
    options = schema.get("enum")
    if isinstance(options, list):
        return ", ".join(f"`{option}`" for option in options if option)
    if branches := _branches(schema, "anyOf"):
        return " or ".join(describe_type(branch) for branch in branches)
    match schema.get("type"):
        case "string":
            return "text"
        case "array":
            each = schema.get("items")
            return f"list of {describe_type(each)}" if isinstance(each, dict) else "list"
        case "object":
            return "mapping" if "properties" in schema else "free mapping"
        case str() as word:
            return word
    return "anything"
