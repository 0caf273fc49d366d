"""Terraform's plan JSON as a `Plan`.

The input is what `terraform show -json PLANFILE` prints (format version 1): `after_unknown` and `*_sensitive` have
the shape of the value beside them, with true where it is not known or secret. Known values, unknown ones and secret
ones come out as plain values and marks; the rules for outputs are those of the review gate.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.domain.terraform import Action, AttributeChange, OutputChange, Plan, ResourceChange
from bot.domain.values import Json, Sensitive, Unknown, Value

Conceal = Callable[[str, Json], str]
"""Asked for each known leaf, by address and attribute path: the name of the secret that it holds, or an empty text."""

_LATER = "known after apply"

_SINGLE = frozenset(action.value for action in Action if action is not Action.REPLACE)


class UnreadablePlan(ValueError):
    """The JSON is not a complete plan that we understand; the message says what stands against it."""


def _conceal_nothing(path: str, value: Json) -> str:
    del path, value
    return ""


# -- reading -------------------------------------------------------------------------------------------------


def read_plan(document: Json, *, conceal: Conceal = _conceal_nothing, result: str = "") -> Plan:
    """The plan that the JSON describes, without a digest (see `plan_digest`).

    Values of resources and outputs hold marks; `conceal` adds secrets that Terraform does not know of.
    Raises UnreadablePlan for another format, and for a plan that failed or is not complete.
    """
    plan = dict_of(document)
    version = text_of(plan.get("format_version"))
    if version.partition(".")[0] != "1":
        raise UnreadablePlan(f"the plan has format version {version or 'none'}; only version 1 can be read")
    if plan.get("errored") is True or plan.get("complete") is False:
        raise UnreadablePlan("the plan failed or is not complete, so nothing can be approved by it")
    marking = _Marking(conceal)
    outputs = {name: dict_of(change) for name, change in sorted(dict_of(plan.get("output_changes")).items())}
    changes = {name: marking.output(name, change) for name, change in outputs.items()}
    return Plan(
        resources=tuple(marking.resource(dict_of(item)) for item in list_of(plan.get("resource_changes"))),
        drift=tuple(marking.resource(dict_of(item)) for item in list_of(plan.get("resource_drift"))),
        outputs=tuple(change for change in changes.values() if change.action is not Action.NO_OP),
        unchanged_outputs={
            name: change.after
            for name, change in changes.items()
            if change.action is Action.NO_OP and not change.absent
        },
        digest="",
        version=text_of(plan.get("terraform_version")),
        result=result,
    )


def read_action(actions: Sequence[Json]) -> Action:
    """The one action that Terraform's list of actions amounts to. Raises UnreadablePlan for an unknown list."""
    named = {text_of(action) for action in actions}
    if "create" in named and named & {"delete", "forget"} and len(named) == 2:
        return Action.REPLACE
    single = next(iter(named)) if len(named) == 1 else ""
    if single in _SINGLE:
        return Action(single)
    raise UnreadablePlan(
        f"the plan has the actions {sorted(named)}, which are not known to this version of Lockstep"
    )


class _Marking:
    """Terraform's side-by-side values, unknowns and sensitivities put together into values with marks."""

    def __init__(self, conceal: Conceal) -> None:
        self._conceal = conceal

    def resource(self, item: Mapping[str, Json]) -> ResourceChange:
        change = dict_of(item.get("change"))
        action = read_action(list_of(change.get("actions")))
        deposed = text_of(item.get("deposed"))
        address = text_of(item.get("address")) + (f" (deposed {deposed})" if deposed else "")
        attributes: tuple[AttributeChange, ...] = ()
        if action in (Action.CREATE, Action.UPDATE, Action.REPLACE):
            forced = [tuple(map(_part, list_of(path))) for path in list_of(change.get("replace_paths"))]
            attributes = tuple(self._attributes(address, change, forced))
        return ResourceChange(
            address=address,
            type=text_of(item.get("type")),
            action=action,
            attributes=attributes,
            importing=change.get("importing") is not None,
            moved_from=text_of(item.get("previous_address")),
            reason=text_of(item.get("action_reason")),
        )

    def _attributes(
        self, address: str, change: Mapping[str, Json], forced: Sequence[tuple[str, ...]]
    ) -> Iterator[AttributeChange]:
        sides = _Sides(
            before=change.get("before"),
            after=change.get("after"),
            unknown=change.get("after_unknown"),
            secret_before=change.get("before_sensitive"),
            secret_after=change.get("after_sensitive"),
        )
        for path, at in _differences((), sides):
            name = ".".join((address, *path))
            yield AttributeChange(
                path=".".join(path),
                before=self.value(at.before, None, at.secret_before, name, _LATER),
                after=self.value(at.after, at.unknown, at.secret_after, name, _LATER),
                # A path of an indexed or nested value that forces it covers everything below.
                forces_replacement=any(path[: len(root)] == root for root in forced),
            )

    def output(self, name: str, change: Mapping[str, Json]) -> OutputChange:
        action = read_action(list_of(change.get("actions")))
        after, unknown = change.get("after"), change.get("after_unknown")
        origin = f"{_LATER}: {name}"
        secret_before, secret_after = change.get("before_sensitive"), change.get("after_sensitive")
        return OutputChange(
            name=name,
            action=action,
            before=self.value(change.get("before"), None, secret_before, name, origin),
            after=self.value(after, unknown, secret_after, name, origin),
            # Terraform does not store an output that is null.
            absent=action is Action.DELETE or (after is None and not _any(unknown)),
        )

    def value(self, value: Json, unknown: Json, secret: Json, name: str, origin: str) -> Value:
        """One value with its marks; `name` is that of the secret if it is one, `origin` tells when it is known."""
        if unknown is True or (_any(unknown) and secret is True):
            # Of a secret that is known in part, the known part must not be told apart from the rest.
            return Unknown(origin, sensitive=name if _any(secret) else "")
        if secret is True:
            return value if value is None else Sensitive(name, value)
        if isinstance(value, dict) or (value is None and isinstance(unknown, dict) and _any(unknown)):
            fields, later, hidden = dict_of(value), dict_of(unknown), dict_of(secret)
            # Keys of unknown values are missing in `after`.
            keys = [*fields, *(key for key in later if key not in fields and _any(later[key]))]
            return {
                key: self.value(fields.get(key), later.get(key), hidden.get(key), f"{name}.{key}", origin)
                for key in keys
            }
        if isinstance(value, list):
            later_items, hidden_items = list_of(unknown), list_of(secret)
            return [
                self.value(item, _item(later_items, n), _item(hidden_items, n), f"{name}.{n}", origin)
                for n, item in enumerate(value)
            ]
        concealed = self._conceal(name, value) if value is not None else ""
        return Sensitive(concealed, value) if concealed else value


@dataclass(frozen=True, slots=True)
class _Sides:
    """The five parallel values of a change, at one path."""

    before: Json
    after: Json
    unknown: Json
    secret_before: Json
    secret_after: Json

    def at(self, key: str | int) -> _Sides:
        return _Sides(
            _child(self.before, key),
            _child(self.after, key),
            _child(self.unknown, key),
            _child(self.secret_before, key),
            _child(self.secret_after, key),
        )


def _differences(path: tuple[str, ...], sides: _Sides) -> Iterator[tuple[tuple[str, ...], _Sides]]:
    """The paths at which before and after differ, as deep as both sides have the same kind of value."""
    if sides.unknown is True or sides.secret_before is True or sides.secret_after is True:
        if _any(sides.unknown) or not _same(sides.before, sides.after):
            yield path, sides
        return
    keys = _common_keys(sides)
    if keys is None:
        if not _same(sides.before, sides.after):
            yield path, sides
        return
    for key in keys:
        yield from _differences((*path, str(key)), sides.at(key))


def _common_keys(sides: _Sides) -> Sequence[str | int] | None:
    before, after = sides.before, sides.after
    if isinstance(before, list) and isinstance(after, list):
        return range(max(len(before), len(after)))
    maps = all(isinstance(side, dict) or side is None for side in (before, after))
    if maps and (before is not None or after is not None):
        later = [key for key, value in dict_of(sides.unknown).items() if _any(value)]
        return sorted({*dict_of(before), *dict_of(after), *later}) or None
    if before is None and after is None and isinstance(sides.unknown, dict):
        return sorted(sides.unknown)
    if before is None and isinstance(after, list) and after and _any(sides.unknown):
        return range(len(after))
    return None


def _same(before: Json, after: Json) -> bool:
    # Python takes True for 1 and 1 for 1.0; in the text that JSON makes of them they differ, as for Terraform.
    return canonical(before) == canonical(after)


# -- JSON of a shape that is not certain -----------------------------------------------------------------------


def canonical(value: Json) -> bytes:
    """The one text of a JSON value: equal values, and only those, have the same."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def dict_of(value: Json) -> dict[str, Json]:
    """The object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def list_of(value: Json) -> list[Json]:
    """The array, or an empty one for anything else."""
    return value if isinstance(value, list) else []


def text_of(value: Json) -> str:
    """The string, or an empty one for anything else."""
    return value if isinstance(value, str) else ""


def _part(value: Json) -> str:
    return str(value)


def _item(items: Sequence[Json], number: int) -> Json:
    return items[number] if number < len(items) else None


def _child(value: Json, key: str | int) -> Json:
    if isinstance(key, int):
        return _item(list_of(value), key) if isinstance(value, list) else value if value is True else None
    return value.get(key) if isinstance(value, dict) else value if value is True else None


def _any(flags: Json) -> bool:
    """Whether a tree of flags has a true one anywhere."""
    match flags:
        case dict():
            return any(map(_any, flags.values()))
        case list():
            return any(map(_any, flags))
        case _:
            return flags is True
