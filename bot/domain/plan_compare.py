"""Two plans of one state compared: what differs for a person, and whether one is the rest of the other.

A *rest* is what is left of an approved plan after an apply of it failed half-way (review gate, section 8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bot.domain.terraform import Action, OutputChange, Plan, ResourceChange
from bot.domain.values import Text, Unknown, Value, is_tainted, show

_TAINTED = "replace_because_tainted"
_SHOWN = 60
_LONG = 120


def is_rest(approved: Plan, now: Plan) -> bool:
    """Whether everything that `now` does was approved, with equal values wherever the approved ones were known.

    An approved `create` may have become the replacement of the object that the failed apply left tainted.
    """
    known = {change.address: change for change in approved.changes}
    for change in now.changes:
        before = known.get(change.address)
        if before is None or not _same_action(before, change) or not _same_values(before, change):
            return False
    outputs = {output.name: output for output in approved.outputs if output.action is not Action.NO_OP}
    changed = (output for output in now.outputs if output.action is not Action.NO_OP)
    return all(_is_rest_output(outputs.get(output.name), output) for output in changed)


def fits(expected: Value, actual: Value) -> bool:
    """Whether a value is what was expected, where something was: an unknown part takes any value."""
    match expected:
        case Unknown():
            return True
        case Text() if is_tainted(expected):
            return isinstance(actual, str | Text)
        case dict():
            return (
                isinstance(actual, dict)
                and expected.keys() == actual.keys()
                and all(fits(value, actual[key]) for key, value in expected.items())
            )
        case list():
            return (
                isinstance(actual, list) and len(expected) == len(actual) and all(map(fits, expected, actual))
            )
        case bool():
            return expected is actual
        case _:
            return not isinstance(actual, bool) and expected == actual


def _same_action(approved: ResourceChange, now: ResourceChange) -> bool:
    if approved.action is now.action:
        return (approved.importing, approved.moved_from) == (now.importing, now.moved_from) or not (
            now.importing or now.moved_from
        )
    return approved.action is Action.CREATE and now.action is Action.REPLACE and now.reason == _TAINTED


def _same_values(approved: ResourceChange, now: ResourceChange) -> bool:
    expected = {attribute.path: attribute.after for attribute in approved.attributes}
    # Secrets are emptied in plans that are kept, so what tells them apart is their keyed hash.
    secret = {
        attribute.path: attribute.fingerprint for attribute in approved.attributes if attribute.fingerprint
    }
    for attribute in now.attributes:
        if attribute.path in expected:
            if not fits(expected[attribute.path], attribute.after):
                return False
            if secret.get(attribute.path, attribute.fingerprint) != attribute.fingerprint:
                return False
        elif not _below_unknown(attribute.path, expected):
            return False
    return True


def _below_unknown(path: str, expected: Mapping[str, Value]) -> bool:
    """Whether an attribute lies inside one that was not known when it was approved."""
    parts = path.split(".")
    above = (".".join(parts[:length]) for length in range(1, len(parts)))
    return any(isinstance(expected.get(parent), Unknown) for parent in above)


def _is_rest_output(approved: OutputChange | None, now: OutputChange) -> bool:
    return approved is not None and approved.absent is now.absent and fits(approved.after, now.after)


def plan_differences(approved: Plan | None, now: Plan) -> tuple[str, ...]:
    """What a person must see before `now` is applied instead of `approved`, one line each, bounded.

    Empty if the plans do the same although their digests differ: then configuration, variables or the tool do.
    """
    lines = list(_differences(approved, now))
    if len(lines) <= _SHOWN:
        return tuple(lines)
    return (*lines[:_SHOWN], f"and {len(lines) - _SHOWN} more")


def _differences(approved: Plan | None, now: Plan) -> Iterator[str]:
    before = {change.address: change for change in approved.changes} if approved is not None else {}
    after = {change.address: change for change in now.changes}
    for address, change in after.items():
        if address not in before:
            yield f"{address}: not approved, would be {_past(change)}"
        elif before[address].action is not change.action:
            yield f"{address}: approved to be {_past(before[address])}, now would be {_past(change)}"
        else:
            yield from _attribute_differences(before[address], change)
    for address, change in before.items():
        if address not in after:
            yield f"{address}: approved to be {_past(change)}, now nothing would happen"
    yield from _output_differences(approved, now)


def _attribute_differences(approved: ResourceChange, now: ResourceChange) -> Iterator[str]:
    before = {attribute.path: attribute.after for attribute in approved.attributes}
    after = {attribute.path: attribute.after for attribute in now.attributes}
    for path, value in after.items():
        if path not in before:
            yield f"{now.address}: {path} was to stay, would become {_shown(value)}"
        elif before[path] != value:
            yield f"{now.address}: {path} approved as {_shown(before[path])}, now {_shown(value)}"
    for path, value in before.items():
        if path not in after:
            yield f"{now.address}: {path} approved as {_shown(value)}, now would stay"


def _output_differences(approved: Plan | None, now: Plan) -> Iterator[str]:
    before = _outputs(approved)
    after = _outputs(now)
    for name in [*after, *(name for name in before if name not in after)]:
        left, right = before.get(name), after.get(name)
        if left is None and right is not None:
            yield f"output {name}: not approved to change, would become {_shown(right.after)}"
        elif right is None and left is not None:
            yield f"output {name}: approved as {_shown(left.after)}, now would stay"
        elif left is not None and right is not None and left.after != right.after:
            yield f"output {name}: approved as {_shown(left.after)}, now {_shown(right.after)}"


def _outputs(plan: Plan | None) -> dict[str, OutputChange]:
    changed = plan.outputs if plan is not None else ()
    return {output.name: output for output in changed if output.action is not Action.NO_OP}


_WORDS: Mapping[Action, str] = {
    Action.CREATE: "created",
    Action.UPDATE: "updated",
    Action.DELETE: "deleted",
    Action.REPLACE: "replaced",
    Action.FORGET: "forgotten",
    Action.READ: "read",
    Action.NO_OP: "left alone",
}


def _past(change: ResourceChange) -> str:
    return _WORDS[change.action]


def _shown(value: Value) -> str:
    text = " ".join(str(show(value)).split())
    return text if len(text) <= _LONG else text[:_LONG] + "…"
