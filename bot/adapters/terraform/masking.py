"""What of a run may be shown: secrets the run was given, those that Terraform marks, and the policy's own masks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from bot.adapters.masks import MaskError, Masks
from bot.domain.terraform import Output, Outputs, Plan, ResourceChange
from bot.domain.values import Json, Sensitive, Value, json_texts
from bot.ports import TerraformRun

_ATTRIBUTE = re.compile(r"[\w-]+\.[\w*-]+(\.[\w*-]+)+")
"""A mask of this shape (`aws_db_instance.*.password`) is an attribute's address, any other a regular expression."""

_SHORTEST_MARKED = 8
_MOST_MARKED = 200


def masks_of(run: TerraformRun, plan: Plan | None = None) -> Masks | None:
    """The masks of a run, with the secret values of its plan; None if a mask is not valid, so nothing may be shown."""
    patterns = [mask for mask in run.masks if not _ATTRIBUTE.fullmatch(mask)]
    marked = dict(_marked(plan)) if plan is not None else {}
    try:
        return Masks({**marked, **run.secrets}, patterns)
    except MaskError:
        return None


def _marked(plan: Plan) -> Iterator[tuple[str, str]]:
    """Secret texts of a plan, since configuration can print them unmarked (`nonsensitive()`)."""
    values: list[Value] = [o.after for o in plan.outputs] + [o.before for o in plan.outputs]
    values += plan.unchanged_outputs.values()
    values += [v for r in (*plan.resources, *plan.drift) for a in r.attributes for v in (a.before, a.after)]
    seen: set[str] = set()
    for value in values:
        for name, text in _secrets(value):
            if len(text) >= _SHORTEST_MARKED and text not in seen and len(seen) < _MOST_MARKED:
                seen.add(text)
                yield f"{name}#{len(seen)}" if len(seen) > 1 else name, text


def _secrets(value: Value) -> Iterator[tuple[str, str]]:
    match value:
        case Sensitive(name=name, value=inner):
            yield from ((name, text) for text in json_texts(inner))
        case list():
            for item in value:
                yield from _secrets(item)
        case dict():
            for item in value.values():
                yield from _secrets(item)
        case _:
            return


class Concealment:
    """For `read_plan`: whether a known value is a secret that Terraform does not know of."""

    def __init__(self, masks: Masks | None, named: Sequence[str]) -> None:
        self._masks = masks
        self._paths = [mask.split(".") for mask in named if _ATTRIBUTE.fullmatch(mask)]

    def __call__(self, path: str, value: Json) -> str:
        """The secret's name, empty if it is none."""
        if self._paths and self._is_named(path):
            return path
        if self._masks is None or isinstance(value, bool) or not isinstance(value, str | int | float):
            return ""
        return self._masks.find(str(value))

    def _is_named(self, path: str) -> bool:
        # An address in a module or with an index ends like the one in a mask begins.
        parts = re.sub(r"\[[^\]]*\]", "", path).split(".")
        while len(parts) > 2 and parts[0] == "module":
            parts = parts[2:]
        return any(
            len(parts) >= len(mask)
            and all(fnmatchcase(part, glob) for part, glob in zip(parts, mask, strict=False))
            for mask in self._paths
        )


def mask_names(plan: Plan, masks: Masks | None) -> Plan:
    """The plan with secrets taken out of addresses, attribute paths and the names of its parts.

    Terraform refuses keys that it knows to be secret; it does not know of those that the run was given.
    """
    if masks is None:
        return plan

    def change(item: ResourceChange) -> ResourceChange:
        attributes = tuple(replace(a, path=masks(a.path)) for a in item.attributes)
        return replace(
            item, address=masks(item.address), moved_from=masks(item.moved_from), attributes=attributes
        )

    return replace(
        plan,
        resources=tuple(map(change, plan.resources)),
        drift=tuple(map(change, plan.drift)),
        parts={masks(name): part for name, part in plan.parts.items()},
        resource_lines={masks(address): place for address, place in plan.resource_lines.items()},
    )


def withhold(plan: Plan) -> Plan:
    """The plan with nothing but actions and addresses, for when nothing may be shown."""

    def hide(name: str, value: Value) -> Value:
        return Sensitive(name, None) if value is not None else None

    return replace(
        plan,
        resources=tuple(replace(change, attributes=()) for change in plan.resources),
        drift=tuple(replace(change, attributes=()) for change in plan.drift),
        outputs=tuple(
            replace(o, before=hide(o.name, o.before), after=hide(o.name, o.after)) for o in plan.outputs
        ),
        unchanged_outputs={name: hide(name, value) for name, value in plan.unchanged_outputs.items()},
    )


def mark_outputs(found: Mapping[str, Any], masks: Masks | None) -> Outputs:
    """Outputs of `output -json`; one that holds a secret of the run is sensitive whatever the configuration says."""
    values: dict[str, Output] = {}
    for name, fields in sorted(found.items()):
        value = fields.get("value")
        hidden = masks is None or any(masks.find(text) for text in json_texts(value))
        values[name] = Output(
            value, sensitive=bool(fields.get("sensitive")) or hidden, type=fields.get("type")
        )
    return Outputs(values)
