from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.freight import FreightOrigin
from bot.domain.model import (
    FreightRequest,
    FreightSources,
    ImageSelectionStrategy,
    ImageSubscription,
    LabelRequirement,
    PromotionPolicy,
    Retry,
    Selector,
    Source,
    Variable,
)
from bot.domain.problems import Severity
from bot.domain.review_policy import ApprovalRule, Approvals
from bot.domain.values import Json
from bot.pipeline import STEP_SCHEMAS, Loaded, load_pipeline

EXAMPLES = Path(__file__).parent / "examples"


def load(text: str, **more: str) -> Loaded:
    return load_pipeline({"a.yaml": text, **more}, revision="r", step_schemas=STEP_SCHEMAS)


def example(name: str) -> Loaded:
    return load((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))


def told(loaded: Loaded) -> list[str]:
    return [f"{item.line} {item.key}: {item.message}" for item in loaded.problems]


# -- What becomes of what is written -------------------------------------------------------------------------------


def test_old_tag_filters_are_read_in_the_new_way() -> None:
    warehouse = example("advanced").pipeline.warehouses["advanced", "backend"]
    assert warehouse.subscriptions == (
        ImageSubscription(
            "registry.example/acme/backend",
            allow_tags_regexes=(r"^v?\d+",),
            ignore_tags_regexes=("^latest$", r"^v1\.0\.0\+dirty$"),
        ),
    )
    assert warehouse.interval == 300.0


def test_a_digest_subscription_keeps_its_name() -> None:
    (subscription,) = example("advanced").pipeline.warehouses["advanced", "lambda"].subscriptions
    assert isinstance(subscription, ImageSubscription)
    assert (subscription.name, subscription.strategy) == ("fn", ImageSelectionStrategy.DIGEST)


def test_a_stage_with_all_its_parts() -> None:
    stage = example("advanced").pipeline.stages["advanced", "prod"]
    assert stage.variables == (Variable("dir", "./src/env/prod"),)
    assert stage.requested_freight[0] == FreightRequest(
        FreightOrigin("backend"), FreightSources(stages=("gate",), selection_policy="MatchUpstream")
    )
    assert stage.template is not None
    (step,) = stage.template.steps
    assert step.task is not None
    assert (step.alias, step.task.kind) == ("infra", "ClusterPromotionTask")
    assert step.source == Source("a.yaml", 132)
    assert stage.metadata.labels == {"tier": "prod"}


def test_a_stage_without_a_template_is_a_junction() -> None:
    gate = example("advanced").pipeline.stages["advanced", "gate"]
    assert gate.is_control_flow
    assert gate.requested_freight[1].sources.required_soak_time == 3600.0


def test_a_task_keeps_its_retry_and_its_inputs() -> None:
    task = example("advanced").pipeline.cluster_tasks["infrastructure"]
    assert task.variables == (Variable("dir", None),)
    assert task.steps[2].retry == Retry(timeout=1800.0, error_threshold=2)
    assert task.cluster


def test_policies_of_a_project() -> None:
    config = example("advanced").pipeline.project_configs["advanced"]
    first, second = config.promotion_policies
    assert first == PromotionPolicy(
        Selector(name="regex:^(dev|qa)"),
        auto_promotion_enabled=True,
        rollback_on_promotion=("Failed",),
        auto_rollback=True,
    )
    assert second.selector.match_expressions == (LabelRequirement("region", "NotIn", ("us",)),)
    assert config.promotion_windows[0].stage_selector.match_labels == {"tier": "prod"}
    assert config.webhook_receivers[0].vendor == "dockerhub"


def test_review_policies_in_the_order_of_the_files() -> None:
    strict, rest = example("advanced").pipeline.review_policies
    assert strict.approvals == Approvals(
        count=2, from_=("team:acme/platform", "perm:maintain"), on_destroy=ApprovalRule(count=3)
    )
    assert strict.commands["apply"] == "team:acme/platform"
    assert strict.commands["promote"] == "write"
    assert (strict.plan_max_age, strict.argocd_settle, strict.argocd_timeout) == (43200.0, 60.0, 900.0)
    assert (rest.auto_merge, rest.auto_merge_allow, rest.rollback_infra) == (True, ("destroy",), "Keep")
    assert rest.review == "PullRequest"


def test_documents_are_kept_as_written() -> None:
    pipeline = example("simple").pipeline
    secret = pipeline.secrets["simple", "simple-repo"]
    assert secret.body["stringData"] == {
        "repoURL": "https://git.example/acme/simple.git",
        "username": "lockstep",
    }
    assert ("helm", "smoke") in example("helm").pipeline.analysis_templates


def test_the_last_of_two_templates_counts() -> None:
    stage = example("helm").pipeline.stages["helm", "dev"]
    assert stage.template is not None
    assert [bool(step.task) for step in stage.template.steps] == [True, False]


# -- Projects ----------------------------------------------------------------------------------------------------

WAREHOUSE = """
apiVersion: kargo.akuity.io/v1alpha1
kind: Warehouse
metadata: {name: app}
spec: {subscriptions: [{image: {repoURL: a/b}}]}
"""
PROJECT = "apiVersion: kargo.akuity.io/v1alpha1\nkind: Project\nmetadata: {name: shop}\n"


def test_the_only_project_needs_no_name() -> None:
    loaded = load(WAREHOUSE, **{"p.yaml": PROJECT})
    assert list(loaded.pipeline.warehouses) == [("shop", "app")]
    assert loaded.problems == ()


def test_an_adopted_namespace_is_a_project() -> None:
    namespace = (
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {kargo.akuity.io/project: 'true'}}\n"
    )
    assert load(WAREHOUSE, **{"n.yaml": namespace}).pipeline.projects == ("shop",)


def test_without_any_project_the_question_is_asked() -> None:
    assert told(load(WAREHOUSE)) == [
        "4 metadata.namespace: 'namespace' is missing: which project? Add a document of kind Project, or a namespace"
    ]


def test_policies_in_a_project_serve_where_there_is_no_project_config() -> None:
    old = PROJECT + "spec: {promotionPolicies: [{stage: dev, autoPromotionEnabled: true}]}\n"
    loaded = load(old)
    assert loaded.pipeline.project_configs["shop"].promotion_policies[0].auto_promotion_enabled
    assert [item.severity for item in loaded.problems] == [Severity.WARNING]


def test_a_cluster_config_is_one() -> None:
    text = (
        "apiVersion: kargo.akuity.io/v1alpha1\nkind: ClusterConfig\nmetadata: {name: cluster}\n"
        "spec: {gitClient: {name: Bot, email: bot@example.com}}\n"
    )
    config = load(text).pipeline.cluster_config
    assert config is not None
    assert config.git_author == ("Bot", "bot@example.com")
    assert told(load(text.replace("name: cluster", "name: other"))) == [
        "3 metadata.name: a ClusterConfig must be named 'cluster'"
    ]


# -- What stops what ---------------------------------------------------------------------------------------------

STAGE = """
apiVersion: kargo.akuity.io/v1alpha1
kind: Stage
metadata: {name: dev}
spec:
  requestedFreight: [{origin: {kind: Warehouse, name: app}, sources: {direct: true}}]
  promotionTemplate: {spec: {steps: [{uses: %s}]}}
"""


def test_a_step_that_cannot_run_stops_its_stage_alone() -> None:
    loaded = load(STAGE % "nothing", **{"p.yaml": PROJECT, "w.yaml": WAREHOUSE})
    (problem,) = loaded.problems
    assert (problem.project, problem.stage, problem.severity) == ("shop", "dev", Severity.ERROR)
    assert not loaded.is_broken
    assert ("shop", "dev") in loaded.pipeline.stages


def test_a_step_that_is_known_but_not_offered_says_so() -> None:
    offered = {key: value for key, value in STEP_SCHEMAS.items() if key != "jira"}
    files = {"a.yaml": STAGE % "jira", "p.yaml": PROJECT, "w.yaml": WAREHOUSE}
    (problem,) = load_pipeline(files, revision="", step_schemas=offered).problems
    assert problem.message == 'the step "jira" is Kargo\'s, but cannot be carried out here'


def test_what_is_malformed_breaks_the_configuration() -> None:
    loaded = load(STAGE.replace("requestedFreight", "requested") % "fail", **{"p.yaml": PROJECT})
    assert loaded.is_broken
    assert loaded.pipeline.stages == {}


def test_a_broken_warehouse_is_not_missing_as_well() -> None:
    broken = WAREHOUSE.replace("a/b", "A b")
    loaded = load(STAGE % "fail", **{"p.yaml": PROJECT, "w.yaml": broken})
    assert [item.path for item in loaded.problems] == ["w.yaml"]


def test_a_generic_subscription_stops_the_stages_that_wait_for_it() -> None:
    generic = WAREHOUSE.replace("{image: {repoURL: a/b}}", "{name: x, maven: {config: {}}}")
    (problem,) = load(STAGE % "fail", **{"p.yaml": PROJECT, "w.yaml": generic}).problems
    assert (problem.path, problem.stage, problem.key) == ("w.yaml", "dev", "spec.subscriptions[0].maven")


def test_other_files_are_passed_over_and_none_at_all_is_a_problem() -> None:
    loaded = load_pipeline({"README.md": "# {{"}, revision="", step_schemas=STEP_SCHEMAS)
    assert told(loaded) == ["0 : the configuration holds no .yaml file"]


def test_json_is_read_too() -> None:
    document = yaml.safe_load(WAREHOUSE)
    files = {"w.json": json.dumps(document), "p.yml": PROJECT}
    loaded = load_pipeline(files, revision="", step_schemas=STEP_SCHEMAS)
    assert list(loaded.pipeline.warehouses) == [("shop", "app")]


# -- Size and nonsense -------------------------------------------------------------------------------------------


def test_a_thousand_stages_load_soon() -> None:
    stages = "---".join(STAGE.replace("dev", f"dev-{number}") % "fail" for number in range(1000))
    begun = time.monotonic()
    loaded = load(stages, **{"p.yaml": PROJECT, "w.yaml": WAREHOUSE})
    assert time.monotonic() - begun < 20
    assert len(loaded.pipeline.stages) == 1000
    assert [
        item
        for item in loaded.problems
        if item.severity is Severity.ERROR and item.message.startswith("there")
    ] == []


def survive(text: str, **more: str) -> None:
    """Load it: whatever is wrong is said of a line that the file has."""
    files = {"a.yaml": text, **more}
    for item in load_pipeline(files, revision="r", step_schemas=STEP_SCHEMAS).problems:
        assert item.message
        lines = len(files[item.path].splitlines()) + 1
        assert 1 <= item.line <= lines, item


@settings(max_examples=200, derandomize=True)
@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=100))
def test_no_text_breaks_the_loader(text: str) -> None:
    survive(text, **{"p.yaml": PROJECT})


WORDS = """
name namespace spec steps uses task as if config vars value requestedFreight origin sources stages
promotionTemplate subscriptions image git repoURL constraint promotionPolicies stageSelector webhookReceivers
github verification args labels
"""
KEYS = st.sampled_from(WORDS.split())
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from(
        ["", "a", "git-clone", "${{ outputs.x }}", "${{", "Warehouse", "regex:(", "1h", "${{ vars['a'] }}"]
    ),
)
TREES: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=25,
)


@settings(max_examples=400, derandomize=True)
@given(
    st.sampled_from(
        [
            "Stage",
            "Warehouse",
            "PromotionTask",
            "ProjectConfig",
            "Project",
            "ClusterConfig",
            "AnalysisTemplate",
        ]
    ),
    TREES,
    TREES,
)
def test_no_resource_of_any_shape_breaks_the_loader(kind: str, spec: Json, metadata: Json) -> None:
    for version in ("kargo.akuity.io/v1alpha1", "argoproj.io/v1alpha1"):
        document: Json = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
        named: Json = {"apiVersion": version, "kind": kind, "metadata": {"name": "dev"}, "spec": spec}
        survive(json.dumps(document, indent=1), **{"b.yaml": json.dumps(named, indent=1), "p.yaml": PROJECT})


@settings(max_examples=200, derandomize=True)
@given(TREES)
def test_no_policy_of_any_shape_breaks_the_loader(spec: Json) -> None:
    document = {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "ReviewPolicy",
        "metadata": {"name": "a"},
        "spec": spec,
    }
    survive(json.dumps(document, indent=1), **{"p.yaml": PROJECT})


STEPS = st.lists(
    st.fixed_dictionaries(
        {"uses": st.sampled_from(["git-clone", "tf-apply", "yaml-update", "nope"])},
        optional={"config": TREES, "as": st.sampled_from(["a", "b"]), "if": SCALARS, "vars": TREES},
    ),
    max_size=4,
)


@settings(max_examples=300, derandomize=True)
@given(STEPS)
@pytest.mark.parametrize("where", ["Stage", "PromotionTask"])
def test_no_steps_of_any_shape_break_the_loader(where: str, steps: list[Json]) -> None:
    spec: Json = {"steps": steps}
    if where == "Stage":
        spec = {
            "requestedFreight": [
                {"origin": {"kind": "Warehouse", "name": "app"}, "sources": {"direct": True}}
            ],
            "promotionTemplate": {"spec": {"steps": steps}},
        }
    document = {
        "apiVersion": "kargo.akuity.io/v1alpha1",
        "kind": where,
        "metadata": {"name": "a"},
        "spec": spec,
    }
    survive(json.dumps(document, indent=1), **{"p.yaml": PROJECT, "w.yaml": WAREHOUSE})


WHOLE = {path.stem: path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.yaml"))}
SCRAPS = st.one_of(
    st.sampled_from(["", " ", "\n", "  ", ":", "- ", "#", "'", '"', "${{", "}}", "&a ", "*a", "*origin"]),
    st.sampled_from(["<<: ", "---\n", "!!binary ", "|", "{", "]", "~", "\t", "\ufeff", "1e999", "0x_"]),
)


@settings(max_examples=150, derandomize=True)
@given(st.sampled_from(sorted(WHOLE)), st.floats(0, 1), st.integers(0, 12), SCRAPS)
def test_a_slip_anywhere_in_a_real_file_is_told_at_its_line(
    name: str, place: float, cut: int, scrap: str
) -> None:
    text = WHOLE[name]
    at = int(place * len(text))
    survive(text[:at] + scrap + text[at + cut :])
