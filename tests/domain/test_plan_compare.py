"""When a plan is the rest of an approved one, and what a person sees where it is not."""

from __future__ import annotations

import pytest

from bot.domain.plan_compare import fits, is_rest, plan_differences
from bot.domain.terraform import Action, AttributeChange, OutputChange, Plan, ResourceChange
from bot.domain.values import Sensitive, Text, Unknown, Value

U = Unknown("known after apply: id")


def plan(*resources: ResourceChange, outputs: tuple[OutputChange, ...] = ()) -> Plan:
    return Plan(resources, (), outputs, {}, "d" * 64, "terraform 1.11.4", "Plan.")


def change(address: str, action: Action, reason: str = "", **attributes: Value) -> ResourceChange:
    changes = tuple(
        AttributeChange(path.replace("__", "."), None, after) for path, after in attributes.items()
    )
    return ResourceChange(address, "t", action, changes, reason=reason)


def output(name: str, after: Value, *, absent: bool = False) -> OutputChange:
    return OutputChange(name, Action.CREATE, None, after, absent)


CREATE_A = change("a", Action.CREATE, image="x", id=U)
UPDATE_B = change("b", Action.UPDATE, size=3)
TAINTED = "replace_because_tainted"


@pytest.mark.parametrize(
    ("approved", "now", "expected"),
    [
        (plan(CREATE_A, UPDATE_B), plan(), True),
        (plan(CREATE_A, UPDATE_B), plan(CREATE_A, UPDATE_B), True),
        (plan(CREATE_A, UPDATE_B), plan(UPDATE_B), True),
        (plan(CREATE_A), plan(change("a", Action.REPLACE, TAINTED, id=U)), True),
        (plan(CREATE_A), plan(change("a", Action.REPLACE, "replace_because_cannot_update", id=U)), False),
        (plan(CREATE_A), plan(change("a", Action.UPDATE, image="x")), False),
        (plan(CREATE_A), plan(change("a", Action.DELETE)), False),
        (plan(CREATE_A), plan(change("c", Action.CREATE)), False),
        (plan(CREATE_A), plan(change("a", Action.CREATE, image="y", id=U)), False),
        (plan(CREATE_A), plan(change("a", Action.CREATE, image="x", id="known now")), True),
        (plan(CREATE_A), plan(change("a", Action.CREATE, image=U, id=U)), False),
        (plan(CREATE_A), plan(change("a", Action.CREATE, image="x", extra=1)), False),
        (plan(change("a", Action.CREATE, net=U)), plan(change("a", Action.CREATE, net__cidr="10/8")), True),
        (plan(UPDATE_B), plan(change("b", Action.UPDATE, size=3, colour="red")), False),
        (plan(UPDATE_B), plan(change("z", Action.NO_OP), change("y", Action.READ)), True),
        (plan(outputs=(output("u", U),)), plan(outputs=(output("u", "https://x"),)), True),
        (plan(outputs=(output("u", "a"),)), plan(outputs=(output("u", "b"),)), False),
        (plan(), plan(outputs=(output("u", "a"),)), False),
        (plan(outputs=(output("u", None, absent=True),)), plan(outputs=(output("u", None),)), False),
    ],
    ids=[
        "nothing left",
        "everything left",
        "one of two left",
        "a create that left a tainted object",
        "a replacement for another reason",
        "a create that became an update",
        "a create that became a deletion",
        "another address",
        "another value",
        "an unknown value that is known now",
        "a known value that is unknown now",
        "one more attribute",
        "an attribute inside an unknown one",
        "an update that does more",
        "no-ops and reads do not count",
        "an unknown output that is known now",
        "another output value",
        "an output that was not to change",
        "an output that was to vanish",
    ],
)
def test_is_rest(approved: Plan, now: Plan, expected: bool) -> None:
    assert is_rest(approved, now) is expected


@pytest.mark.parametrize(
    ("expected", "actual", "answer"),
    [
        ("a", "a", True),
        ("a", "b", False),
        (1, True, False),
        (True, 1, False),
        (1, 1.0, True),
        (U, {"any": "thing"}, True),
        (Text(("https://", U)), "https://x", True),
        (Text(("https://", U)), 5, False),
        ({"a": U, "b": 1}, {"a": 2, "b": 1}, True),
        ({"a": U}, {"a": 2, "b": 1}, False),
        ([U, 2], [1, 2], True),
        ([U], [1, 2], False),
        (Sensitive("k", "x"), Sensitive("k", "x"), True),
        (Sensitive("k", "x"), Sensitive("k", "y"), False),
        (None, None, True),
        (None, "x", False),
    ],
)
def test_fits(expected: Value, actual: Value, answer: bool) -> None:
    assert fits(expected, actual) is answer


def test_differences_name_what_nobody_approved() -> None:
    approved = plan(CREATE_A, UPDATE_B, outputs=(output("url", U), output("gone", 1)))
    now = plan(
        change("a", Action.CREATE, image="y", id=U, extra=1),
        change("c", Action.DELETE),
        outputs=(output("url", "https://x"), output("new", 2)),
    )
    assert plan_differences(approved, now) == (
        "a: image approved as x, now y",
        "a: extra was to stay, would become 1",
        "c: not approved, would be deleted",
        "b: approved to be updated, now nothing would happen",
        "output url: approved as <known after apply: id>, now https://x",
        "output new: not approved to change, would become 2",
        "output gone: approved as 1, now would stay",
    )


def test_equal_plans_have_no_differences() -> None:
    assert plan_differences(plan(CREATE_A), plan(CREATE_A)) == ()


def test_without_an_approved_plan_everything_is_new() -> None:
    assert plan_differences(None, plan(CREATE_A)) == ("a: not approved, would be created",)


def test_many_differences_are_bounded_and_long_values_cut() -> None:
    now = plan(*(change(f"r{number}", Action.CREATE) for number in range(100)))
    lines = plan_differences(None, now)
    assert (len(lines), lines[-1]) == (61, "and 40 more")
    cut = plan_differences(plan(CREATE_A), plan(change("a", Action.CREATE, image="y" * 500, id=U)))
    assert len(cut[0]) < 200


def test_secrets_are_masked() -> None:
    now = plan(change("a", Action.CREATE, image=Sensitive("password", "hunter2"), id=U))
    assert "hunter2" not in str(plan_differences(plan(CREATE_A), now))
