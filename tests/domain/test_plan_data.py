"""Reading Terraform's plan JSON: the table of the review gate for outputs, and attribute differences."""

from __future__ import annotations

from typing import Any

import pytest

from bot.domain.plan_data import UnreadablePlan, read_action, read_plan
from bot.domain.terraform import Action, AttributeChange, OutputChange, Plan, ResourceChange
from bot.domain.values import Json, Sensitive, Unknown, Value

LATER = Unknown("known after apply")


def plan_json(**fields: Any) -> Json:
    return {
        "format_version": "1.2",
        "terraform_version": "1.11.4",
        "complete": True,
        "errored": False,
        **fields,
    }


def change_json(
    actions: list[str], before: Json = None, after: Json = None, **fields: Json
) -> dict[str, Json]:
    defaults: dict[str, Json] = {"after_unknown": False, "before_sensitive": False, "after_sensitive": False}
    return {"actions": list(actions), "before": before, "after": after, **defaults, **fields}


def resource_json(change: Json, address: str = "a.b", **fields: Json) -> Json:
    return {"address": address, "type": address.split(".")[0], "change": change, **fields}


def read_output(change: Json) -> OutputChange | None:
    plan = read_plan(plan_json(output_changes={"url": change}))
    return plan.outputs[0] if plan.outputs else None


def read_attributes(change: Json) -> list[AttributeChange]:
    (resource,) = read_plan(plan_json(resource_changes=[resource_json(change)])).resources
    return list(resource.attributes)


U = Unknown("known after apply: url")


@pytest.mark.parametrize(
    ("change", "before", "after", "absent"),
    [
        pytest.param(change_json(["create"], None, "x"), None, "x", False, id="known"),
        pytest.param(
            {"actions": ["update"], "before": "old", "after_unknown": True},
            "old",
            U,
            False,
            id="unknown, whatever before is",
        ),
        pytest.param(
            change_json(["create"], None, {"host": "h"}, after_unknown={"id": True}),
            None,
            {"host": "h", "id": U},
            False,
            id="unknown keys of a map are missing in after",
        ),
        pytest.param(
            change_json(["create"], None, [None, "x"], after_unknown=[True, False]),
            None,
            [U, "x"],
            False,
            id="unknown items of a list are null in after",
        ),
        pytest.param(
            change_json(
                ["create"], None, {"a": [{"b": 1}]}, after_unknown={"a": [{"c": True}], "d": {"e": True}}
            ),
            None,
            {"a": [{"b": 1, "c": U}], "d": {"e": U}},
            False,
            id="nested",
        ),
        pytest.param(change_json(["update"], "x", None), "x", None, True, id="known to be null"),
        pytest.param(change_json(["delete"], "x", None), "x", None, True, id="deleted"),
        pytest.param(
            change_json(["create"], None, "s", after_sensitive=True),
            None,
            Sensitive("url", "s"),
            False,
            id="sensitive",
        ),
        pytest.param(
            change_json(
                ["update"], "o", None, before_sensitive=True, after_sensitive=True, after_unknown=True
            ),
            Sensitive("url", "o"),
            Unknown("known after apply: url", "url"),
            False,
            id="sensitive and unknown",
        ),
        pytest.param(
            change_json(["create"], None, {"k": "v"}, after_sensitive=True, after_unknown={"u": True}),
            None,
            Unknown("known after apply: url", "url"),
            False,
            id="sensitive and unknown in part",
        ),
        pytest.param(
            change_json(["create"], None, {"k": "v", "p": "q"}, after_sensitive={"p": True}),
            None,
            {"k": "v", "p": Sensitive("url.p", "q")},
            False,
            id="sensitive in part",
        ),
        pytest.param(change_json(["create"], None, False), None, False, False, id="false is a value"),
        pytest.param(change_json(["create"], None, {}), None, {}, False, id="an empty map is a value"),
    ],
)
def test_an_outputs_entry(change: Json, before: Value, after: Value, absent: bool) -> None:
    action = read_action(change["actions"])  # type: ignore[index,call-overload,arg-type]
    assert read_output(change) == OutputChange("url", action, before, after, absent)


def test_unchanged_outputs_are_apart_and_null_ones_do_not_exist() -> None:
    plan = read_plan(
        plan_json(
            output_changes={
                "same": change_json(["no-op"], "x", "x"),
                "nothing": change_json(["no-op"], None, None),
                "hidden": change_json(["no-op"], "x", "x", before_sensitive=True, after_sensitive=True),
                "new": change_json(["create"], None, 1),
            }
        )
    )
    assert plan.unchanged_outputs == {"same": "x", "hidden": Sensitive("hidden", "x")}
    assert [o.name for o in plan.outputs] == ["new"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            change_json(
                ["create"], None, {"name": "n", "size": None, "tags": {"a": "1"}}, after_unknown={"id": True}
            ),
            [("id", None, LATER), ("name", None, "n"), ("tags.a", None, "1")],
            id="create shows what is set and what comes later",
        ),
        pytest.param(
            change_json(["update"], {"a": 1, "same": [1, {"x": 2}]}, {"a": 2, "same": [1, {"x": 2}]}),
            [("a", 1, 2)],
            id="update shows what differs",
        ),
        pytest.param(
            change_json(["update"], {"l": ["a", "b"], "m": {"k": "v"}}, {"l": ["a", "c", "d"], "m": {}}),
            [("l.1", "b", "c"), ("l.2", None, "d"), ("m.k", "v", None)],
            id="lists by index, maps by key",
        ),
        pytest.param(
            change_json(["update"], {"v": {"k": 1}}, {"v": "text"}),
            [("v", {"k": 1}, "text")],
            id="another kind of value",
        ),
        pytest.param(
            change_json(["update"], {"n": 1, "f": True}, {"n": 1.5, "f": 1}),
            [("f", True, 1), ("n", 1, 1.5)],
            id="true is not one",
        ),
        pytest.param(
            change_json(
                ["update"],
                {"out": {"a": "s"}},
                {},
                after_unknown={"out": True},
                before_sensitive={"out": {"a": True}},
            ),
            [("out", {"a": Sensitive("a.b.out.a", "s")}, LATER)],
            id="unknown as a whole",
        ),
        pytest.param(
            change_json(
                ["update"],
                {"pw": "old", "same": "x"},
                {"pw": "new", "same": "x"},
                before_sensitive={"pw": True, "same": True},
                after_sensitive={"pw": True, "same": True},
            ),
            [("pw", Sensitive("a.b.pw", "old"), Sensitive("a.b.pw", "new"))],
            id="sensitive",
        ),
        pytest.param(
            change_json(["update"], {"m": {"k": "old"}}, {"m": {"k": "new"}}, after_sensitive={"m": True}),
            [("m", {"k": "old"}, Sensitive("a.b.m", {"k": "new"}))],
            id="becomes sensitive as a whole",
        ),
        pytest.param(
            change_json(
                ["create"], None, {"m": {}}, after_unknown={"m": {"u": True}}, after_sensitive={"m": True}
            ),
            [("m", None, Unknown("known after apply", "a.b.m"))],
            id="sensitive with an unknown key",
        ),
        pytest.param(change_json(["delete"], {"a": 1}, None), [], id="delete shows no attributes"),
        pytest.param(change_json(["no-op"], {"a": 1}, {"a": 1}), [], id="no-op has none"),
        pytest.param(change_json(["forget"], {"a": 1}, None), [], id="forget has none"),
    ],
)
def test_attributes_that_differ(change: Json, expected: list[tuple[str, Value, Value]]) -> None:
    assert [(a.path, a.before, a.after) for a in read_attributes(change)] == expected


def test_what_forces_a_replacement_is_marked_with_all_below_it() -> None:
    change = change_json(
        ["delete", "create"],
        {"ami": "1", "net": [{"id": "x", "z": 1}], "tag": "a"},
        {"ami": "2", "net": [{"id": "y", "z": 1}], "tag": "b"},
        replace_paths=[["ami"], ["net", 0]],
    )
    assert {a.path: a.forces_replacement for a in read_attributes(change)} == {
        "ami": True,
        "net.0.id": True,
        "tag": False,
    }


@pytest.mark.parametrize(
    ("actions", "action"),
    [
        (["no-op"], Action.NO_OP),
        (["read"], Action.READ),
        (["create"], Action.CREATE),
        (["update"], Action.UPDATE),
        (["delete"], Action.DELETE),
        (["forget"], Action.FORGET),
        (["delete", "create"], Action.REPLACE),
        (["create", "delete"], Action.REPLACE),
        (["create", "forget"], Action.REPLACE),
    ],
)
def test_actions(actions: list[Json], action: Action) -> None:
    assert read_action(actions) is action


@pytest.mark.parametrize("actions", [[], ["explode"], ["update", "create"], ["replace"], [1]])
def test_unknown_actions_are_not_guessed(actions: list[Json]) -> None:
    with pytest.raises(UnreadablePlan, match="not known"):
        read_action(actions)


def test_the_rest_of_a_resource() -> None:
    plan = read_plan(
        plan_json(
            resource_changes=[
                resource_json(change_json(["no-op"], {}, {}), previous_address="a.old"),
                resource_json(change_json(["no-op"], {}, {}, importing={"id": "i-1"}), "a.c"),
                resource_json(
                    change_json(["delete"], {}, None), "a.d", deposed="1234", action_reason="delete_because_x"
                ),
            ],
            resource_drift=[resource_json(change_json(["update"], {"a": 1}, {"a": 2}), "a.e")],
        )
    )
    assert plan.resources == (
        ResourceChange("a.b", "a", Action.NO_OP, moved_from="a.old"),
        ResourceChange("a.c", "a", Action.NO_OP, importing=True),
        ResourceChange("a.d (deposed 1234)", "a", Action.DELETE, reason="delete_because_x"),
    )
    assert plan.drift == (ResourceChange("a.e", "a", Action.UPDATE, (AttributeChange("a", 1, 2),)),)
    assert not plan.is_empty


def test_a_plan_of_moves_alone_is_not_empty_and_of_nothing_is() -> None:
    moved = resource_json(change_json(["no-op"], {}, {}), previous_address="a.old")
    assert not read_plan(plan_json(resource_changes=[moved])).is_empty
    assert read_plan(plan_json(resource_changes=[resource_json(change_json(["no-op"], {}, {}))])).is_empty
    assert read_plan(plan_json()).is_empty


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"format_version": "2.0"},
        plan_json(errored=True),
        plan_json(complete=False),
        plan_json(resource_changes=[resource_json({"actions": ["explode"]})]),
    ],
)
def test_what_is_no_complete_plan_is_refused(document: Json) -> None:
    with pytest.raises(UnreadablePlan):
        read_plan(document)


def test_a_plan_of_opentofu_without_the_later_fields_is_read() -> None:
    plan = read_plan({"format_version": "1.2", "terraform_version": "1.6.2"})
    assert plan == Plan((), (), (), {}, "", "1.6.2", "")


def test_secrets_that_terraform_does_not_know_of_are_marked() -> None:
    def conceal(path: str, value: Json) -> str:
        return "TOKEN" if value == "tok" else path if path == "a.b.private" else ""

    plan = read_plan(
        plan_json(
            output_changes={"o": change_json(["create"], None, {"k": ["tok", "plain", None]})},
            resource_changes=[resource_json(change_json(["create"], None, {"private": 7, "x": "tok"}))],
        ),
        conceal=conceal,
    )
    assert plan.outputs[0].after == {"k": [Sensitive("TOKEN", "tok"), "plain", None]}
    assert [a.after for a in plan.resources[0].attributes] == [
        Sensitive("a.b.private", 7),
        Sensitive("TOKEN", "tok"),
    ]
