"""The seeded repository is what the running example says: a valid pipeline over files that a release edits in place."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from bot.domain.auto_promotion import is_auto_promotion_enabled
from bot.domain.patterns import matches_selector
from bot.domain.review_policy import ReviewPolicy
from bot.editors.hcl import find_backend, update_hcl
from bot.editors.keys import Update
from bot.editors.yaml import update_yaml
from bot.pipeline import STEP_SCHEMAS, Loaded, load_pipeline
from bot.sandbox.argocd.rendering import render
from bot.sandbox.seed import FOLDER, STAGES, Addresses, read_operations

REAL = Addresses("http://127.0.0.1:41000", "127.0.0.1:42000", "http://127.0.0.1:43000")
PLACEHOLDERS = Addresses(
    "https://github.sandbox.example", "registry.sandbox.example", "https://state.sandbox.example"
)


def load(addresses: Addresses) -> Loaded:
    files = {
        path: body.decode() for path, body in read_operations(addresses).items() if path.startswith("config/")
    }
    return load_pipeline(files, revision="test", step_schemas=STEP_SCHEMAS)


@pytest.mark.parametrize("addresses", [PLACEHOLDERS, REAL], ids=["as shipped", "as seeded"])
def test_the_pipeline_has_no_problem_at_all(addresses: Addresses) -> None:
    loaded = load(addresses)
    assert loaded.problems == ()
    assert list(loaded.pipeline.stages) == [("acme", stage) for stage in STAGES]


def test_the_seed_has_the_pipeline_at_the_top_of_this_repository() -> None:
    top = Path(__file__).parents[3] / "config"
    assert (FOLDER / "config").resolve() == top
    shipped = read_operations(PLACEHOLDERS)
    assert {f"config/{file.name}" for file in top.iterdir()} == {
        path for path in shipped if path.startswith("config/")
    }


def test_dev_merges_by_itself_and_the_others_want_one_approval() -> None:
    policies = load(REAL).pipeline.review_policies

    def policy(stage: str) -> ReviewPolicy:
        return next(each for each in policies if matches_selector(each.selector, stage, {}))

    assert policy("dev").auto_merge
    for stage in ("staging", "prod"):
        assert (policy(stage).auto_merge, policy(stage).approvals.count) == (False, 1)


@pytest.mark.parametrize("stage", STAGES)
def test_pull_requests_open_by_themselves(stage: str) -> None:
    assert is_auto_promotion_enabled(load(REAL).pipeline.project_configs["acme"], stage, {})


def changed_lines(before: str, after: str) -> list[str]:
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line[2:] for line in lines if line.startswith("+ ")]


@pytest.mark.parametrize("stage", STAGES)
def test_a_release_changes_one_line_for_each_of_its_values(stage: str) -> None:
    files = {path: body.decode() for path, body in read_operations(REAL).items()}
    variables = files[f"env/{stage}/terraform/env.auto.tfvars"]
    edited = update_hcl(variables, [Update("image_uri", "127.0.0.1:42000/lambda-app:1.0.0")])
    assert changed_lines(variables, edited) == ['image_uri = "127.0.0.1:42000/lambda-app:1.0.0"']
    values = files[f"env/{stage}/helm/values.yaml"]
    updates = [Update("image.tag", "1.0.0"), Update("env.LAMBDA_URL", "https://new.example/")]
    tag, url = changed_lines(values, update_yaml(values, updates))
    assert (tag.startswith("  tag: "), tag.endswith("  # written by a promotion")) == (True, True)
    assert (url.startswith("  LAMBDA_URL: "), url.endswith("  # exists after Terraform's first apply")) == (
        True,
        True,
    )


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_has_a_remote_state_and_a_chart_that_argocd_can_render(stage: str) -> None:
    files = read_operations(REAL)
    backend = find_backend(files[f"env/{stage}/terraform/main.tf"].decode())
    assert backend is not None
    assert backend[0] == "http"
    start = f"env/{stage}/helm/"
    chart = {path.removeprefix(start): body for path, body in files.items() if path.startswith(start)}
    rendered = render(chart, {})
    assert rendered.kind == "Helm"
    assert rendered.images == ["127.0.0.1:42000/otel-app:0.9.0"]
    assert rendered.env["OTEL_SERVICE_NAME"] == f"otel-app-{stage}"
    assert rendered.env["LAMBDA_URL"] == ""
