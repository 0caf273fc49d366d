from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from bot.pipeline import STEP_SCHEMAS
from bot.pipeline.json_schema import editor_schema

SCHEMA = editor_schema(STEP_SCHEMAS)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
EXAMPLES = sorted((Path(__file__).parent / "examples").glob("*.yaml"))


def documents(path: Path) -> list[Any]:
    found: list[Any] = []
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        found.extend(document["items"] if document["kind"] == "List" else [document])
    return found


def stage(**step: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kargo.akuity.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": "dev"},
        "spec": {
            "requestedFreight": [
                {"origin": {"kind": "Warehouse", "name": "app"}, "sources": {"direct": True}}
            ],
            "promotionTemplate": {"spec": {"steps": [step]}},
        },
    }


def test_it_is_a_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_editors_accept_what_the_loader_accepts(path: Path) -> None:
    # What only the loader converts from old field names is a warning there and an error in an editor.
    for document in documents(path):
        if document["kind"] != "Warehouse":
            assert [error.message for error in VALIDATOR.iter_errors(document)] == []


@pytest.mark.parametrize(
    ("step", "accepted"),
    [
        ({"uses": "git-clone", "config": {"repoURL": "x", "checkout": [{"path": "a"}]}}, True),
        ({"uses": "git-clone", "config": {"repoURL": "x", "checkout": [{"pth": "a"}]}}, False),
        (
            {"uses": "git-wait-for-pr", "config": {"repoURL": "${{ vars.r }}", "prNumber": "${{ vars.n }}"}},
            True,
        ),
        ({"uses": "git-wait-for-pr", "config": {"repoURL": "https://h/r", "prNumber": "n"}}, False),
        ({"uses": "git-open-pr", "config": {}}, False),
        ({"task": {"name": "t"}}, True),
        ({"uses": "a", "task": {"name": "t"}}, False),
    ],
)
def test_editors_know_what_each_step_takes(step: dict[str, Any], accepted: bool) -> None:
    assert VALIDATOR.is_valid(stage(**step)) is accepted


def test_other_kinds_are_left_alone() -> None:
    assert VALIDATOR.is_valid(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": 1}
    )
