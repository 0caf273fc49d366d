"""The digest of a plan: what binds, what does not, and that no secret gets into it unkeyed."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.codec import CodecError, decode, encode
from bot.domain.plan_compare import is_rest
from bot.domain.plan_data import read_plan
from bot.domain.plan_digest import (
    PlanFacts,
    combine_parts,
    find_differences,
    plan_digest,
    plan_parts,
    storable,
    without_secrets,
)
from bot.domain.terraform import Plan
from bot.domain.values import Json, Sensitive

FACTS = PlanFacts(
    backend=["http", {"address": "https://state"}],
    workspace="default",
    lock_file="ab",
    version="terraform 1.11.4",
)


def keyed(data: bytes) -> str:
    return hashlib.sha256(b"key" + data).hexdigest()


def document() -> dict[str, Any]:
    def change(actions: list[str], before: Json, after: Json, **fields: Json) -> dict[str, Any]:
        return {
            "actions": actions,
            "before": before,
            "after": after,
            "after_unknown": {},
            "before_sensitive": {},
            **fields,
        }

    return {
        "format_version": "1.2",
        "terraform_version": "1.11.4",
        "timestamp": "2024-01-01T00:00:00Z",
        "variables": {"tag": {"value": "1"}, "session": {"value": "short-lived"}},
        "resource_changes": [
            {
                "address": "aws_a.x",
                "type": "aws_a",
                "action_reason": "because",
                "change": change(
                    ["update"],
                    {"tag": "1", "pw": "old", "same": "s"},
                    {"tag": "2", "pw": "new", "same": "s"},
                    after_sensitive={"pw": True},
                ),
            },
            {
                "address": "aws_a.y",
                "type": "aws_a",
                "change": change(["create"], None, {"n": 1}, after_unknown={"id": True}),
            },
            {"address": "aws_a.same", "type": "aws_a", "change": change(["no-op"], {"v": 1}, {"v": 1})},
            {"address": "data.aws_b.z", "type": "aws_b", "change": change(["read"], None, {"q": 1})},
            {"address": "aws_a.gone", "type": "aws_a", "change": change(["delete"], {"v": 1}, None)},
        ],
        "output_changes": {
            "url": change(["create"], None, None, after_unknown=True),
            "still": change(["no-op"], "s", "s"),
        },
        "resource_drift": [
            {"address": "aws_a.d", "type": "aws_a", "change": change(["update"], {"v": 1}, {"v": 2})}
        ],
        "prior_state": {"values": {"outputs": {}}},
        "configuration": {
            "provider_config": {"aws": {"name": "aws", "expressions": {"region": {"constant_value": "eu"}}}},
            "root_module": {
                "resources": [
                    {
                        "address": "aws_a.x",
                        "provisioners": [{"type": "local-exec"}],
                        "expressions": {"tag": {"references": ["var.tag"]}},
                    }
                ],
                "module_calls": {
                    "net": {
                        "source": "./net",
                        "module": {"resources": [{"address": "aws_n.n"}], "module_calls": {}},
                    }
                },
            },
        },
    }


def digest_of(made: Json, facts: PlanFacts = FACTS) -> str:
    return plan_digest(read_plan(made), made, facts, keyed)


Edit = Callable[[dict[str, Any]], object]


def at(made: dict[str, Any], number: int) -> dict[str, Any]:
    change: dict[str, Any] = made["resource_changes"][number]["change"]
    return change


BINDING: dict[str, Edit] = {
    "a value of a change": lambda d: at(d, 0)["after"].update(tag="3"),
    "the value before": lambda d: at(d, 0)["before"].update(tag="0"),
    "a secret value": lambda d: at(d, 0)["after"].update(pw="newer"),
    "one more attribute": lambda d: at(d, 0)["after"].update(more=1),
    "an action": lambda d: at(d, 0).update(actions=["delete", "create"]),
    "a known value becomes unknown": lambda d: at(d, 1)["after_unknown"].update(n=True),
    "an unknown value becomes known": lambda d: (
        at(d, 1)["after_unknown"].pop("id"),
        at(d, 1)["after"].update(id="i"),
    ),
    "an address": lambda d: d["resource_changes"][1].update(address="aws_a.z"),
    "a change less": lambda d: d["resource_changes"].pop(4),
    "a no-op that now changes": lambda d: at(d, 2).update(actions=["delete"], after=None),
    "an import": lambda d: at(d, 2).update(importing={"id": "i-1"}),
    "a move": lambda d: d["resource_changes"][2].update(previous_address="aws_a.old"),
    "an output": lambda d: d["output_changes"]["url"].update(after_unknown=False, after="https://x"),
    "an output that is deleted": lambda d: d["output_changes"]["still"].update(
        actions=["delete"], after=None
    ),
    "a provider's configuration": lambda d: d["configuration"]["provider_config"]["aws"].update(alias="b"),
    "a provisioner": lambda d: d["configuration"]["root_module"]["resources"][0]["provisioners"].append(
        {"type": "x"}
    ),
    "a module's source": lambda d: d["configuration"]["root_module"]["module_calls"]["net"].update(
        source="./other"
    ),
    "a provisioner in a module": lambda d: d["configuration"]["root_module"]["module_calls"]["net"]["module"][
        "resources"
    ][0].update(provisioners=[{"type": "x"}]),
    "a variable": lambda d: d["variables"]["tag"].update(value="2"),
    "one more variable": lambda d: d["variables"].update(new={"value": None}),
    "an invoked action": lambda d: d.update(action_invocations=[{"address": "action.x.y"}]),
}

FREE: dict[str, Edit] = {
    "drift": lambda d: d["resource_drift"].clear(),
    "the time": lambda d: d.update(timestamp="2025-01-01T00:00:00Z"),
    "the order of resources": lambda d: d["resource_changes"].reverse(),
    "the order of attributes": lambda d: at(d, 0).update(after=dict(reversed(at(d, 0)["after"].items()))),
    "the state before": lambda d: d["prior_state"].clear(),
    "an unchanged attribute": lambda d: (
        at(d, 0)["before"].update(same="t"),
        at(d, 0)["after"].update(same="t"),
    ),
    "a no-op": lambda d: at(d, 2).update(before={"v": 2}, after={"v": 2}),
    "a read": lambda d: at(d, 3)["after"].update(q=2),
    "an unchanged output": lambda d: d["output_changes"]["still"].update(before="t", after="t"),
    "the reason": lambda d: d["resource_changes"][0].update(action_reason="other"),
    "an expression of the same value": lambda d: d["configuration"]["root_module"]["resources"][0].update(
        expressions={}
    ),
    "what a deleted resource was": lambda d: at(d, 4).update(before={"v": 2}),
}


@pytest.mark.parametrize("edit", BINDING.values(), ids=BINDING.keys())
def test_binds(edit: Edit) -> None:
    made = document()
    edit(made)
    assert made != document()
    assert digest_of(made) != digest_of(document())


@pytest.mark.parametrize("edit", FREE.values(), ids=FREE.keys())
def test_does_not_bind(edit: Edit) -> None:
    made = document()
    edit(made)
    assert digest_of(made) == digest_of(document())


@pytest.mark.parametrize(
    "facts",
    [
        replace(FACTS, backend=["http", {"address": "https://other"}]),
        replace(FACTS, backend=["s3", {}]),
        replace(FACTS, workspace="blue"),
        replace(FACTS, lock_file="cd"),
        replace(FACTS, version="terraform 1.12.0"),
        replace(FACTS, ephemeral=frozenset({"tag"})),
    ],
)
def test_facts_bind(facts: PlanFacts) -> None:
    assert digest_of(document(), facts) != digest_of(document())


def test_ephemeral_variables_do_not_bind() -> None:
    facts = replace(FACTS, ephemeral=frozenset({"session"}))
    made = document()
    made["variables"]["session"]["value"] = "another"
    assert digest_of(made, facts) == digest_of(document(), facts)


def test_secrets_enter_only_by_their_keyed_hash() -> None:
    seen: list[bytes] = []

    def watching(data: bytes) -> str:
        seen.append(data)
        return keyed(data)

    made = document()
    plan_digest(read_plan(made), made, FACTS, watching)
    holding = [data for data in seen if b'"new"' in data]
    assert holding == [b'"new"'], "the value goes into a keyed hash alone, and the rest holds that hash"


def test_another_key_gives_another_digest() -> None:
    made = document()
    other = plan_digest(read_plan(made), made, FACTS, lambda data: hashlib.sha256(data).hexdigest())
    assert other != digest_of(made)


def with_parts(made: dict[str, Any]) -> Plan:
    plan = read_plan(made)
    return replace(plan, parts=plan_parts(plan, made, FACTS, keyed))


def test_what_differs_is_named() -> None:
    made = document()
    at(made, 0)["after"]["tag"] = "2024-05-06T07:08:09Z"
    made["variables"]["tag"]["value"] = "9"
    at(made, 1)["after"]["extra"] = True
    assert find_differences(with_parts(document()), with_parts(made)) == (
        "aws_a.x: tag",
        "aws_a.y: extra",
        "variable tag",
    )
    assert find_differences(with_parts(made), with_parts(made)) == ()


def test_volatile_parts_are_left_out_but_named() -> None:
    made = document()
    at(made, 0)["after"]["tag"] = "2024-05-06T07:08:09Z"
    one, two = with_parts(document()).parts, with_parts(made).parts
    volatile = frozenset({"aws_a.x: tag"})
    assert combine_parts(one, keyed) != combine_parts(two, keyed)
    assert combine_parts(one, keyed, volatile=volatile) == combine_parts(two, keyed, volatile=volatile)
    assert combine_parts(one, keyed, volatile=volatile) != combine_parts(
        {k: v for k, v in one.items() if k not in volatile}, keyed
    )


def test_no_secret_is_left_in_what_is_stored() -> None:
    made = document()
    made["output_changes"]["still"].update(before_sensitive=True, after_sensitive=True)
    made["output_changes"]["hush"] = {"actions": ["create"], "after": "hidden", "after_sensitive": True}
    kept = storable(without_secrets(with_parts(made), keyed))
    (pw,) = [a for a in kept.resources[0].attributes if a.path == "pw"]
    assert pw.after == Sensitive("aws_a.x.pw", None)
    text = json.dumps(encode(kept))
    assert '"new"' not in text
    assert '"hidden"' not in text
    assert decode(Plan, json.loads(text)) == kept


def test_outputs_keep_their_secrets_until_they_are_stored() -> None:
    made = document()
    made["output_changes"]["still"].update(before_sensitive=True, after_sensitive=True)
    plan = without_secrets(with_parts(made), keyed)
    assert plan.unchanged_outputs == {"still": Sensitive("still", "s")}
    with pytest.raises(CodecError):
        encode(plan)


def test_emptied_secrets_are_still_told_apart() -> None:
    def password(value: str) -> Plan:
        made = document()
        at(made, 0)["after"]["pw"] = value
        return storable(without_secrets(with_parts(made), keyed))

    assert is_rest(password("one"), password("one"))
    assert not is_rest(password("one"), password("two"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_different_values_never_look_alike(one: Json, two: Json) -> None:
    def output(value: Json) -> dict[str, Any]:
        made = document()
        made["output_changes"]["url"] = {"actions": ["create"], "before": None, "after": copy.deepcopy(value)}
        return made

    same = json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)
    assert (digest_of(output(one)) == digest_of(output(two))) == same
