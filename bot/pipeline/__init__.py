"""Kargo's manifests and our ReviewPolicy, from text to the model, or every problem with its line."""

from bot.pipeline.carried_out import find_not_carried_out
from bot.pipeline.loader import Loaded, load_pipeline
from bot.pipeline.step_schemas import STEP_SCHEMAS

__all__ = ["STEP_SCHEMAS", "Loaded", "find_not_carried_out", "load_pipeline"]
