"""The links that the pipeline's author gave for a Promotion's Freight and its Stage."""

from __future__ import annotations

from bot.domain.model import Stage
from bot.domain.promotion import Promotion
from bot.domain.resources import freight_resource, stage_resource
from bot.domain.view import Link
from bot.expressions.links import resolve_links
from bot.workflow.configuration import Configuration


def find_links(configuration: Configuration, promotion: Promotion, stage: Stage | None) -> tuple[Link, ...]:
    """The links that hold, those of the Freight first; why others do not stands on the first of the bot's pages."""
    for_freight, for_stages = configuration.links(promotion.project)
    found, _ = resolve_links(for_freight, {"freight": freight_resource(promotion.freight)})
    if stage is not None:
        found += resolve_links(for_stages, {"stage": stage_resource(stage)})[0]
    return found
