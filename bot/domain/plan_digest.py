"""The digest by which an approval is bound to a plan, and what differs between two plans.

A digest is a keyed hash over parts, each of which has a name that a person can read and a keyed hash of its own, so
that two plans can be compared after their values are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from bot.domain.plan_data import canonical, dict_of, list_of, text_of
from bot.domain.terraform import Action, AttributeChange, Plan, ResourceChange
from bot.domain.values import Json, Sensitive, Text, Unknown, Value, as_value, find_sensitive


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What a digest binds besides the plan itself; `backend` is its type and configuration.

    `ephemeral` are variables whose values are meant to differ from run to run, and are left out.
    """

    backend: Json
    workspace: str
    lock_file: str
    version: str
    ephemeral: frozenset[str] = frozenset()


def plan_parts(plan: Plan, document: Json, facts: PlanFacts, keyed: Callable[[bytes], str]) -> dict[str, str]:
    """What a plan's digest is made of: name to keyed hash, one for each thing that a reviewer approves.

    In it are: changes other than no-op and read with their differing attributes, imports and moves, changed
    outputs, the configuration of providers, provisioners and modules, variables, backend, workspace, lock file and
    tool version. Drift, timestamps, reasons and the rest of the state are not. `plan` must still have its secrets;
    they enter by `keyed` alone.
    """
    root = dict_of(document)
    encode = _Encoding(keyed)
    parts: dict[str, Value] = {}
    ids = {
        text_of(dict_of(item).get("address")): _import_id(dict_of(item))
        for item in list_of(root.get("resource_changes"))
    }
    for change in plan.resources:
        if change.action in (Action.NO_OP, Action.READ) and not (change.importing or change.moved_from):
            continue
        parts[change.address] = [change.action.value, as_value(ids.get(change.address)), change.moved_from]
        for attribute in change.attributes:
            parts[f"{change.address}: {attribute.path}"] = [attribute.before, attribute.after]
    for output in plan.outputs:
        parts[f"output {output.name}"] = [output.action.value, output.before, output.after, output.absent]
    variables = dict_of(root.get("variables"))
    for name in sorted(set(variables) - facts.ephemeral):
        parts[f"variable {name}"] = Sensitive(name, dict_of(variables[name]).get("value"))
    parts["configuration"] = as_value(_configuration(dict_of(root.get("configuration"))))
    parts["invocations"] = as_value(root.get("action_invocations"))
    parts["backend"] = Sensitive("backend", facts.backend)
    parts["workspace"] = facts.workspace
    parts["lock file"] = facts.lock_file
    parts["version"] = facts.version
    return {name: keyed(canonical([name, encode(value)])) for name, value in parts.items()}


def combine_parts(
    parts: Mapping[str, str], keyed: Callable[[bytes], str], *, volatile: frozenset[str] = frozenset()
) -> str:
    """The digest of a plan from its parts, whatever their order; `volatile` parts are left out and named in it."""
    kept: Json = {name: part for name, part in parts.items() if name not in volatile}
    left_out: Json = [*sorted(name for name in parts if name in volatile)]
    return keyed(canonical(["plan", 1, kept, left_out]))


def plan_digest(plan: Plan, document: Json, facts: PlanFacts, keyed: Callable[[bytes], str]) -> str:
    """The digest of a plan; equal digests mean that a reviewer would approve the same thing."""
    return combine_parts(plan_parts(plan, document, facts, keyed), keyed)


def find_differences(before: Plan, after: Plan) -> tuple[str, ...]:
    """The names of what two plans' digests disagree on, in order.

    Of two plans made back to back on the same inputs, these are the volatile parts (`plantimestamp()` and the like).
    """
    names = {*before.parts, *after.parts}
    return tuple(sorted(name for name in names if before.parts.get(name) != after.parts.get(name)))


def without_secrets(plan: Plan, keyed: Callable[[bytes], str]) -> Plan:
    """The plan with secret attributes of resources and former outputs emptied; fingerprints stay to compare by.

    The outputs that will be are left as they are: later steps need them. See `storable`.
    """
    encode = _Encoding(keyed)

    def strip(change: ResourceChange) -> ResourceChange:
        return replace(change, attributes=tuple(_without_secret(a, encode, keyed) for a in change.attributes))

    return replace(
        plan,
        resources=tuple(map(strip, plan.resources)),
        drift=tuple(map(strip, plan.drift)),
        outputs=tuple(replace(output, before=_emptied(output.before)) for output in plan.outputs),
    )


def storable(plan: Plan) -> Plan:
    """A plan `without_secrets` whose outputs are emptied of them too, as it may be stored."""
    return replace(
        plan,
        outputs=tuple(replace(output, after=_emptied(output.after)) for output in plan.outputs),
        unchanged_outputs={name: _emptied(value) for name, value in plan.unchanged_outputs.items()},
    )


def _without_secret(
    attribute: AttributeChange, encode: _Encoding, keyed: Callable[[bytes], str]
) -> AttributeChange:
    secret = bool(find_sensitive(attribute.after))
    return replace(
        attribute,
        before=_emptied(attribute.before),
        after=_emptied(attribute.after),
        fingerprint=keyed(canonical(["attribute", encode(attribute.after)]))[:32] if secret else "",
    )


def _emptied(value: Value) -> Value:
    match value:
        case Sensitive(name=name):
            return Sensitive(name, None)
        case list():
            return [_emptied(item) for item in value]
        case dict():
            return {key: _emptied(item) for key, item in value.items()}
        case _:
            return value


class _Encoding:
    """Values with marks as JSON in which no two different values look alike; secrets only as keyed hashes."""

    def __init__(self, keyed: Callable[[bytes], str]) -> None:
        self._keyed = keyed

    def __call__(self, value: Value) -> Json:
        match value:
            case Unknown(sensitive=name):
                return {"unknown": bool(name)}
            case Sensitive(value=inner):
                return {"secret": self._keyed(canonical(inner))}
            case Text(parts=pieces):
                return {"text": [self(piece) for piece in pieces]}
            case list():
                return {"list": [self(item) for item in value]}
            case dict():
                return {"map": {key: self(item) for key, item in value.items()}}
            case _:
                return value


def _import_id(item: Mapping[str, Json]) -> Json:
    return dict_of(dict_of(item.get("change")).get("importing")).get("id")


def _configuration(configuration: Mapping[str, Json]) -> Json:
    modules: dict[str, Json] = {}
    provisioners: dict[str, Json] = {}
    pending = [("", dict_of(configuration.get("root_module")))]
    while pending:
        prefix, module = pending.pop()
        for item in map(dict_of, list_of(module.get("resources"))):
            if item.get("provisioners"):
                provisioners[prefix + text_of(item.get("address"))] = item["provisioners"]
        for name, call in dict_of(module.get("module_calls")).items():
            fields = dict_of(call)
            modules[prefix + name] = [fields.get("source"), fields.get("version_constraint")]
            pending.append((f"{prefix}{name}/", dict_of(fields.get("module"))))
    return {
        "providers": configuration.get("provider_config"),
        "provisioners": provisioners,
        "modules": modules,
    }
