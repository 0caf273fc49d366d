"""The literal list of kinds: where each may stand, its schema, and its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from bot.domain.problems import Severity
from bot.domain.values import Json
from bot.pipeline.kinds.admission import (
    admit_anything,
    admit_cluster_config,
    admit_project,
    admit_project_config,
    admit_review_policy,
    admit_stage,
    admit_task,
    admit_warehouse,
)
from bot.pipeline.kinds.custom_steps import CUSTOM_STEP, admit_custom_step
from bot.pipeline.kinds.review_policy import REVIEW_POLICY
from bot.pipeline.kinds.tables import (
    CLUSTER_CONFIG,
    DOCUMENT,
    PROJECT,
    PROJECT_CONFIG,
    PROMOTION_TASK,
    STAGE,
    WAREHOUSE,
)
from bot.pipeline.schema import Finding, JsonSchema

KARGO = "kargo.akuity.io/v1alpha1"
ENTERPRISE = "ee.kargo.akuity.io/v1alpha1"
ROLLOUTS = "argoproj.io/v1alpha1"
OURS = "lockstep.dev/v1alpha1"
CORE = "v1"


class Scope(StrEnum):
    """Where a resource lives."""

    PROJECT = "project"
    """In a project: `metadata.namespace`, or the only project there is."""
    CLUSTER = "cluster"
    ANYWHERE = "anywhere"
    """In the namespace that it names; without one, in the only project there is, or in none."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: its names, scope, the schema of its `spec` and the rules beyond it.

    `needs_spec` tells that a document without `spec` is wrong; `passed_over` says why a known kind is not loaded.
    """

    api_version: str
    name: str
    scope: Scope
    schema: JsonSchema
    admit: Callable[[dict[str, Json]], Iterable[Finding]] = admit_anything
    needs_spec: bool = False
    unknown_keys: Severity = Severity.WARNING
    passed_over: str = ""


_MADE = "is made while the pipeline runs; the one that is written here is passed over"

_KINDS = (
    Kind(KARGO, "Project", Scope.CLUSTER, PROJECT, admit_project),
    Kind(KARGO, "ProjectConfig", Scope.PROJECT, PROJECT_CONFIG, admit_project_config),
    Kind(KARGO, "ClusterConfig", Scope.CLUSTER, CLUSTER_CONFIG, admit_cluster_config),
    Kind(KARGO, "Warehouse", Scope.PROJECT, WAREHOUSE, admit_warehouse, needs_spec=True),
    Kind(KARGO, "Stage", Scope.PROJECT, STAGE, admit_stage, needs_spec=True),
    Kind(KARGO, "PromotionTask", Scope.PROJECT, PROMOTION_TASK, admit_task, needs_spec=True),
    Kind(KARGO, "ClusterPromotionTask", Scope.CLUSTER, PROMOTION_TASK, admit_task, needs_spec=True),
    Kind(KARGO, "Freight", Scope.PROJECT, DOCUMENT, passed_over=_MADE),
    Kind(KARGO, "Promotion", Scope.PROJECT, DOCUMENT, passed_over=_MADE),
    Kind(KARGO, "PromotionRequest", Scope.PROJECT, DOCUMENT, passed_over=_MADE),
    Kind(KARGO, "Target", Scope.PROJECT, DOCUMENT),
    Kind(
        ENTERPRISE,
        "CustomPromotionStep",
        Scope.CLUSTER,
        CUSTOM_STEP,
        admit_custom_step,
        needs_spec=True,
        unknown_keys=Severity.ERROR,
    ),
    Kind(ENTERPRISE, "MessageChannel", Scope.PROJECT, DOCUMENT),
    Kind(ENTERPRISE, "ClusterMessageChannel", Scope.CLUSTER, DOCUMENT),
    Kind(ENTERPRISE, "EventRouter", Scope.PROJECT, DOCUMENT),
    Kind(ROLLOUTS, "AnalysisTemplate", Scope.PROJECT, DOCUMENT, needs_spec=True),
    Kind(ROLLOUTS, "ClusterAnalysisTemplate", Scope.CLUSTER, DOCUMENT, needs_spec=True),
    Kind(ROLLOUTS, "AnalysisRun", Scope.PROJECT, DOCUMENT, passed_over=_MADE),
    Kind(CORE, "Secret", Scope.ANYWHERE, DOCUMENT),
    Kind(CORE, "ConfigMap", Scope.ANYWHERE, DOCUMENT),
    Kind(
        OURS,
        "ReviewPolicy",
        Scope.ANYWHERE,
        REVIEW_POLICY,
        admit_review_policy,
        unknown_keys=Severity.ERROR,
    ),
)
KINDS: Mapping[tuple[str, str], Kind] = {(kind.api_version, kind.name): kind for kind in _KINDS}
"""Every kind that is loaded or that deserves a word, by apiVersion and kind."""

GROUPS = ("kargo.akuity.io", "ee.kargo.akuity.io", "lockstep.dev")
"""API groups in which an unknown kind is surely a slip of the pen."""
