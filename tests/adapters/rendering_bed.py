"""What the rendering tests share: a renderer with the stand-in for helm and the real kustomize."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from bot.adapters.rendering import CommandRenderer, RenderTools
from bot.adapters.rendering.renderer import Logins, no_logins
from tests.adapters import helm_stand_in


def make_tools(directory: Path, *, kustomize: str = "") -> RenderTools:
    """The tools: helm is a script that runs the stand-in, kustomize what the machine has."""
    assert kustomize or shutil.which("kustomize") or shutil.which("kubectl"), (
        "neither kustomize nor kubectl is here: install one of them to run these tests"
    )
    directory.mkdir(parents=True, exist_ok=True)
    script = directory / "helm"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{helm_stand_in.__file__}" "$@"\n')
    script.chmod(0o700)
    readable = (directory, Path(helm_stand_in.__file__), Path(sys.prefix), Path(sys.base_prefix))
    return RenderTools(str(script), kustomize, readable=readable)


def make_renderer(directory: Path, logins: Logins = no_logins, *, kustomize: str = "") -> CommandRenderer:
    """A renderer below a directory."""
    return CommandRenderer(directory / "runs", make_tools(directory / "bin", kustomize=kustomize), logins)
