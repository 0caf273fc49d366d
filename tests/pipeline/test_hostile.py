"""Configurations made to choke on: each costs bounded time and ends in problems that a person can read."""

from __future__ import annotations

import time

import pytest

from bot.pipeline import STEP_SCHEMAS, load_pipeline
from tests.pipeline.test_loader import PROJECT, STAGE, WAREHOUSE


def _many_stages(part: int) -> str:
    """1,900 Stages, each with a step kind and an upstream that do not exist."""
    return "---\n".join(
        "apiVersion: kargo.akuity.io/v1alpha1\nkind: Stage\n"
        f"metadata: {{name: p{part}s{number}}}\n"
        "spec: {requestedFreight: [{origin: {kind: Warehouse, name: a}, "
        f"sources: {{stages: [p{part}s{number + 1}, x]}}}}], promotionTemplate: {{spec: {{steps: [{{uses: y}}]}}}}}}\n"
        for number in range(1900)
    )


def _with(template: str, old: str, new: str, *entries: str) -> dict[str, str]:
    """A file in which a list of many entries stands."""
    assert old in template
    return {"a.yaml": template.replace(old, new.replace("ENTRIES", ",".join(entries)), 1)}


FAILING = STAGE % "fail"
NUMBERS = range(20_000)
POLICY = "apiVersion: lockstep.dev/v1alpha1\nkind: ReviewPolicy\nmetadata: {name: a}\nspec:\n"
CONFIG = PROJECT.replace("Project", "ProjectConfig") + "spec: {promotionPolicies: []}"
HOSTILE = {
    "many unknown keys": {"a.yaml": POLICY + "".join(f"  commandz{number}: 1\n" for number in NUMBERS)},
    "many steps": _with(FAILING, "[{uses: fail}]", "[ENTRIES]", *["{uses: nope}"] * 20_000),
    "many references": _with(
        FAILING,
        "[{uses: fail}]",
        "[ENTRIES]",
        *(f"{{uses: fail, config: {{message: '${{{{ outputs.a{number}.b }}}}'}}}}" for number in range(450)),
    ),
    "many variables without a name": _with(FAILING, "spec:", "spec:\n  vars: [ENTRIES]", *["{}"] * 60_000),
    "many Stages in a row": {f"{part}.yaml": _many_stages(part) for part in range(3)},
    "a huge expression": _with(FAILING, "{uses: fail}", "{uses: fail, if: '${{ ENTRIES }}'}", "(" * 100_000),
    "many large patterns": _with(
        WAREHOUSE,
        "a/b}",
        "a/b, allowTagsRegexes: [ENTRIES]}",
        *(f"'(a{{99}}){{{number}}}'" for number in range(2_000)),
    ),
    "a few large patterns": _with(
        WAREHOUSE,
        "a/b}",
        "a/b, allowTagsRegexes: [ENTRIES]}",
        *(f"'(a{{99}}){{99}}{number}'" for number in range(200)),
    ),
    "many policies": _with(CONFIG, "[]", "[ENTRIES]", *(f"{{stage: s{number}}}" for number in NUMBERS)),
    "many patterns of policies": _with(
        CONFIG,
        "[]",
        "[ENTRIES]",
        *(f"{{stageSelector: {{name: 'regex:(a{{99}}){{49}}{n}('}}}}" for n in range(1000)),
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_configurations_cost_bounded_time(name: str) -> None:
    begun = time.monotonic()
    loaded = load_pipeline({**HOSTILE[name], "p.yaml": PROJECT}, revision="", step_schemas=STEP_SCHEMAS)
    assert time.monotonic() - begun < 30
    assert 0 < len(loaded.problems) < 30_000
