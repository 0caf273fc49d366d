"""What can be told of a configuration's deep links before there is anything to show them for."""

from __future__ import annotations

from collections.abc import Iterator

from bot.domain.model import ProjectConfig
from bot.domain.problems import Severity
from bot.expressions.links import check_link
from bot.pipeline.schema import Finding


def check_links(config: ProjectConfig) -> Iterator[Finding]:
    """Links that can never be shown; warnings, since nothing else depends on them."""
    for key, links in (("freightLinks", config.freight_links), ("stageLinks", config.stage_links)):
        for index, link in enumerate(links):
            for part, message in check_link(link):
                yield Finding(("spec", key, index, part), message, Severity.WARNING)
