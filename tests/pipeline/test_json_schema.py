from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from bot.pipeline import STEP_SCHEMAS
from bot.pipeline.json_schema import SCHEMA_KINDS, editor_schema, kind_schema

SCHEMA = editor_schema(STEP_SCHEMAS)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
EXAMPLES = sorted((Path(__file__).parent / "examples").glob("*.yaml"))
ROOT = Path(__file__).parents[2]
SHIPPED = sorted(
    path
    for directory in ("config", "bot/sandbox/seed/operations/config")
    for path in (ROOT / directory).iterdir()
)
KARGO = "kargo.akuity.io/v1alpha1"


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


@pytest.mark.parametrize("name", SCHEMA_KINDS)
def test_the_schema_of_one_kind_is_a_json_schema_that_holds_steps_where_it_needs_them(name: str) -> None:
    schema = kind_schema(SCHEMA_KINDS[name], {"git-clear": STEP_SCHEMAS["git-clear"]})
    jsonschema.Draft202012Validator.check_schema(schema)
    with_steps = name in ("Stage", "PromotionTask", "ClusterPromotionTask")
    assert ("config-of-git-clear" in schema["$defs"]) is with_steps  # type: ignore[operator]


def test_every_reference_leads_somewhere() -> None:
    names = {f"#/$defs/{name}" for name in SCHEMA["$defs"]} | {"#"}  # type: ignore[union-attr]
    assert set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(SCHEMA))) == names


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_editors_accept_what_is_shipped(path: Path) -> None:
    found = documents(path)
    assert found
    for document in found:
        assert [error.message for error in VALIDATOR.iter_errors(document)] == []
        of_its_kind = kind_schema(SCHEMA_KINDS[document["kind"]], STEP_SCHEMAS)
        assert [
            error.message for error in jsonschema.Draft202012Validator(of_its_kind).iter_errors(document)
        ] == []


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
        ({"uses": "git-clone", "config": "${{ vars.everything }}"}, False),
        ({"uses": "a-custom-step", "config": {"any": "thing"}}, True),
    ],
)
def test_editors_know_what_each_step_takes(step: dict[str, Any], accepted: bool) -> None:
    assert VALIDATOR.is_valid(stage(**step)) is accepted


@pytest.mark.parametrize(
    ("document", "accepted"),
    [
        pytest.param({"apiVersion": "apps/v1", "kind": "Deployment", "spec": 1}, True, id="a kind of others"),
        pytest.param({"apiVersion": "example.com/v1", "kind": "Stage"}, True, id="a Stage of somebody else"),
        pytest.param({"apiVersion": KARGO, "kind": "Stage", "metadata": {"name": "x"}}, False, id="no spec"),
        pytest.param({"apiVersion": KARGO, "kind": "Project", "spec": {}}, False, id="no metadata"),
        pytest.param(
            {"apiVersion": KARGO, "kind": "Project", "metadata": {"name": "x"}}, True, id="a project"
        ),
        pytest.param(
            {"apiVersion": KARGO, "kind": "Project", "metadata": {"name": "X"}}, False, id="a bad name"
        ),
        pytest.param({"kind": "Stage"}, False, id="no apiVersion"),
        pytest.param(
            {"apiVersion": "v1", "kind": "List", "items": [stage(uses="copy", config={})]},
            False,
            id="in a List",
        ),
    ],
)
def test_documents_are_told_apart_by_api_version_and_kind(document: dict[str, Any], accepted: bool) -> None:
    assert VALIDATOR.is_valid(document) is accepted


def test_the_schema_of_one_kind_refuses_the_others() -> None:
    validator = jsonschema.Draft202012Validator(kind_schema(SCHEMA_KINDS["Project"], STEP_SCHEMAS))
    assert validator.is_valid({"apiVersion": KARGO, "kind": "Project", "metadata": {"name": "x"}})
    assert not validator.is_valid(stage(uses="git-clear", config={"path": "x"}))
