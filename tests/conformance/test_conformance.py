"""Kargo's behaviour, case by case: what it answers, ours must answer too.

Each JSON file holds cases of one area; one adapter function per area turns a case into a call of the product. Where
we deliberately answer something safer, the adapter names the case in `DECISIONS` with the reason and in `OURS` with
our answer (or `ERROR`); such a case must then really differ from Kargo's answer.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from bot.domain.values import Json
from tests.conformance import (
    adapter_domain,
    adapter_editors,
    adapter_expressions,
    adapter_pipeline,
    adapter_selection,
    adapter_webhooks,
)

ADAPTERS: list[ModuleType] = [
    adapter_domain,
    adapter_editors,
    adapter_expressions,
    adapter_pipeline,
    adapter_selection,
    adapter_webhooks,
]

Case = dict[str, Json]
ERROR = "raises an error"
"""Stands in `OURS` for a case that we refuse."""
NOT_INPUT = ("expect", "error", "quirk", "id")
INFORMATIVE = {"yaml_merge": ("text",)}
"""Parts of an expected answer that only tell how Kargo's bytes looked."""
FIELD_AREAS = ("step_config", "admission")


def same(one: Json, other: Json) -> bool:
    """JSON equality in which true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def covers(reported: str, field: str) -> bool:
    """Whether a reported path is the expected one, an ancestor of it or a descendant."""
    ours, theirs = _parts(reported), _parts(field)
    shorter = min(len(ours), len(theirs))
    return ours[:shorter] == theirs[:shorter]


def _parts(path: str) -> list[str]:
    return [] if path == "(root)" else re.findall(r"[^.\[\]]+", path)


def agrees(area: str, got: Json, expected: Json) -> bool:
    """Whether an answer is what Kargo gives, by the comparison that goes with the area."""
    if not isinstance(got, dict) or not isinstance(expected, dict):
        return same(got, expected)
    if area in FIELD_AREAS:
        reported, fields = got["fields"], expected["fields"]
        assert isinstance(reported, list)
        assert isinstance(fields, list)
        return got["valid"] is expected["valid"] and all(
            any(covers(str(ours), str(field)) for ours in reported) for field in fields
        )
    ignored = INFORMATIVE.get(area, ())
    return same(
        {key: value for key, value in got.items() if key not in ignored},
        {key: value for key, value in expected.items() if key not in ignored},
    )


def documents() -> list[tuple[str, list[Case]]]:
    """Every case file beside this one, as area and cases."""
    found = []
    for path in sorted(Path(__file__).parent.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        found.append((document["area"], document["cases"]))
    return found


def function_of(area: str) -> Callable[[Case], Json] | None:
    """The adapter's function for an area: listed in its `AREAS`, or of the area's own name."""
    for module in ADAPTERS:
        names = vars(module)
        found = names.get("AREAS", {}).get(area, names.get(area))
        if found is not None:
            function: Callable[[Case], Json] = found
            return function
    return None


def decisions() -> dict[str, tuple[str, Json]]:
    """Cases that are answered differently: `area/id` to the reason and our answer."""
    found: dict[str, tuple[str, Json]] = {}
    for module in ADAPTERS:
        ours = vars(module).get("OURS", {})
        found.update({key: (reason, ours[key]) for key, reason in vars(module).get("DECISIONS", {}).items()})
    return found


def cases() -> list[object]:
    return [
        pytest.param(area, case, id=f"{area}/{case['id']}") for area, items in documents() for case in items
    ]


def answer(area: str, case: Case) -> tuple[Json, bool]:
    """What the product gives for a case, and whether it refused."""
    function = function_of(area)
    assert function is not None
    given = copy.deepcopy({key: value for key, value in case.items() if key not in NOT_INPUT})
    try:
        return function(given), False
    except Exception as error:  # noqa: BLE001 - a case says only that the call must fail, not how.
        if not case.get("error"):
            return repr(error), True
        return None, True


@pytest.mark.parametrize("area", [area for area, _ in documents()])
def test_every_area_has_an_adapter(area: str) -> None:
    assert function_of(area) is not None


@pytest.mark.parametrize(("area", "case"), cases())
def test_behaves_as_kargo(area: str, case: Case) -> None:
    got, failed = answer(area, case)
    as_kargo = failed if case.get("error") else not failed and agrees(area, got, case["expect"])
    decision = decisions().get(f"{area}/{case['id']}")
    if decision is None:
        assert as_kargo, f"got {got!r}"
        return
    reason, ours = decision
    assert reason
    assert not as_kargo, "the decision to differ is out of date"
    assert failed if ours == ERROR else not failed and same(got, ours)


def test_every_decision_names_a_case() -> None:
    known = {f"{area}/{case['id']}" for area, items in documents() for case in items}
    assert set(decisions()) <= known
