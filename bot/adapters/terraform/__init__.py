"""The real terraform or tofu binary, run in isolation."""

from __future__ import annotations

from bot.adapters.terraform.runner import TerraformRunner as TerraformRunner
from bot.adapters.terraform.tool import Tool as Tool
