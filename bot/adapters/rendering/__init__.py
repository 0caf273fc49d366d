"""The real helm and kustomize binaries, run in isolation."""

from __future__ import annotations

from bot.adapters.rendering.renderer import CommandRenderer as CommandRenderer
from bot.adapters.rendering.renderer import RenderTools as RenderTools
