from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.problems import Severity
from bot.domain.values import Json
from bot.pipeline import STEP_SCHEMAS
from bot.pipeline.schema import check, show_path

CASES = json.loads((Path(__file__).parents[1] / "conformance" / "12_step_config.json").read_text())["cases"]


def messages(kind: str, config: dict[str, Json], **options: Any) -> list[str]:
    return [
        f"{show_path(item.path)}: {item.message}" for item in check(config, STEP_SCHEMAS[kind], **options)
    ]


@pytest.mark.parametrize("kind", STEP_SCHEMAS)
def test_every_step_schema_is_a_json_schema(kind: str) -> None:
    jsonschema.Draft202012Validator.check_schema(STEP_SCHEMAS[kind])


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_a_full_validator_agrees(case: dict[str, Any]) -> None:
    schema = copy.deepcopy(STEP_SCHEMAS[case["step"]])
    checker = jsonschema.FormatChecker(formats=("email",))
    valid = jsonschema.Draft202012Validator(schema, format_checker=checker).is_valid(case["config"])
    only_ours = case["id"] == "git-clone-10"  # Unique names of entries are beyond JSON Schema.
    assert valid is (not check(case["config"], schema) or only_ours)


def test_what_an_expression_will_give_is_not_judged() -> None:
    config: dict[str, Json] = {
        "repoURL": "${{ vars.repo }}",
        "checkout": [{"path": "${{ vars.path }}", "branch": "${{ vars.branch }}", "tag": "${% vars.tag %}"}],
        "recurseSubmodules": "${{ vars.deep }}",
        "blobless": "yes",
    }
    assert messages("git-clone", config, expressions=True) == [
        "blobless: must be true or false, not text; write it without quotes"
    ]
    assert (
        messages("git-wait-for-pr", {"repoURL": "${{ a }}", "prNumber": "${{ b }}"}, expressions=True) == []
    )


def test_what_is_known_beside_an_expression_is_judged() -> None:
    config: dict[str, Json] = {"path": "${{ vars.path }}", "targetBranch": "a", "generateTargetBranch": True}
    assert messages("git-push", config, expressions=True) == [
        ": give at most one of targetBranch, generateTargetBranch and tag, and no force with a tag"
    ]


def test_unknown_keys_may_be_warnings() -> None:
    (finding,) = check({"message": "m", "mesage": 1}, STEP_SCHEMAS["fail"], unknown_keys=Severity.WARNING)
    assert finding.severity is Severity.WARNING
    assert finding.message == "unknown key 'mesage'; did you mean 'message'?"


def test_a_true_is_no_number() -> None:
    assert messages("untar", {"inPath": "a", "outPath": "b", "stripComponents": True}) == [
        "stripComponents: must be a whole number, not true or false"
    ]
    assert messages("untar", {"inPath": "a", "outPath": "b", "stripComponents": 1.0}) == []


def test_a_huge_unknown_key_is_cut_in_the_message() -> None:
    (message,) = messages("fail", {"k" * 100_000: 1})
    assert len(message) < 100_200
    (finding,) = check({"k" * 100_000: 1}, STEP_SCHEMAS["fail"])
    assert len(finding.message) < 100


VALUES: st.SearchStrategy[Json] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["path", "apps", "updates", "key", "value", "name", "x"]), inner, max_size=4
        ),
    ),
    max_leaves=12,
)


@given(st.sampled_from(sorted(STEP_SCHEMAS)), VALUES, st.booleans())
def test_no_configuration_breaks_the_check(kind: str, config: Json, expressions: bool) -> None:
    for finding in check(config, STEP_SCHEMAS[kind], expressions=expressions):
        assert finding.message
