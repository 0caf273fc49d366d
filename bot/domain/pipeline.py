"""Everything that a configuration holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.domain.custom_steps import CustomStep
from bot.domain.model import Document, ProjectConfig, PromotionTask, Stage, Warehouse
from bot.domain.review_policy import ReviewPolicy


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Everything that a configuration holds, keyed by (project, name); cluster things by name.

    `revision` is the commit (or content hash) that is in force.
    """

    revision: str = ""
    projects: tuple[str, ...] = ()
    warehouses: Mapping[tuple[str, str], Warehouse] = field(default_factory=dict)
    stages: Mapping[tuple[str, str], Stage] = field(default_factory=dict)
    tasks: Mapping[tuple[str, str], PromotionTask] = field(default_factory=dict)
    cluster_tasks: Mapping[str, PromotionTask] = field(default_factory=dict)
    project_configs: Mapping[str, ProjectConfig] = field(default_factory=dict)
    cluster_config: ProjectConfig | None = None
    review_policies: tuple[ReviewPolicy, ...] = ()
    custom_steps: Mapping[str, CustomStep] = field(default_factory=dict)
    analysis_templates: Mapping[tuple[str, str], Document] = field(default_factory=dict)
    secrets: Mapping[tuple[str, str], Document] = field(default_factory=dict)
    config_maps: Mapping[tuple[str, str], Document] = field(default_factory=dict)
    others: tuple[Document, ...] = ()
