"""What each step kind takes as `config`, as JSON Schema; the keys are Kargo's step names.

A kind that stands here is known; whether it can be carried out is decided by who runs steps.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.pipeline.schema import JsonSchema
from bot.pipeline.step_schemas.argocd import ARGOCD
from bot.pipeline.step_schemas.files import FILES
from bot.pipeline.step_schemas.git import GIT
from bot.pipeline.step_schemas.github import GITHUB
from bot.pipeline.step_schemas.manifests import MANIFESTS
from bot.pipeline.step_schemas.network import NETWORK
from bot.pipeline.step_schemas.people import PEOPLE
from bot.pipeline.step_schemas.terraform import TERRAFORM
from bot.pipeline.step_schemas.tickets import TICKETS

STEP_SCHEMAS: Mapping[str, JsonSchema] = {
    **GIT,
    **FILES,
    **MANIFESTS,
    **ARGOCD,
    **NETWORK,
    **TERRAFORM,
    **PEOPLE,
    **GITHUB,
    **TICKETS,
}
"""The configuration schema of every step kind of Kargo and Kargo Enterprise."""
