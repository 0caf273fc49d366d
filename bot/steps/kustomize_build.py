"""`kustomize-build`: renders a kustomization into files, by the real kustomize (or `kubectl kustomize`).

What a kustomization may read is found by its own words: every text in it that names a file or directory of the work
tree counts, so that nothing else is touched by the step.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from bot.domain.files import File
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Json, json_texts
from bot.editors.errors import EditError
from bot.ports import TerminalError
from bot.ports.rendering import KustomizeRun, Renderer, RenderFailed
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.manifests import resource_name
from bot.steps.options import Options
from bot.steps.parsing import parse_yaml
from bot.steps.rendering import Source, collect, fulfil_run, is_file, lay_out, lies_above, preview_run
from bot.steps.worktree import clean_path, join

KIND = StepKind("kustomize-build", StepClass.EDIT)

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_CHARTS = ("helmCharts", "helmChartInflationGenerator")
_MOST_DIRECTORIES = 1000


@dataclass(frozen=True, slots=True)
class Config:
    """The directory, where it is rendered to, and what charts in it are rendered for."""

    path: str
    out_path: str
    like_kustomize: bool
    kube_version: str
    api_versions: tuple[str, ...]


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    helm = options.part("plugin").part("helm")
    return Config(
        path=clean_path(options.address("path")),
        out_path=clean_path(options.address("outPath")),
        like_kustomize=options.address("outputFormat") == "kustomize",
        kube_version=helm.address("kubeVersion"),
        api_versions=helm.addresses("apiVersions"),
    )


@dataclass(frozen=True, slots=True)
class KustomizeBuild:
    """Edits the work tree."""

    renderer: Renderer

    @property
    def kind(self) -> StepKind:
        """An edit."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Render twice; both must agree."""
        wanted = parse(config)
        reach = await _find_reach(wanted.path, context)
        run = partial(self._run, wanted, reach)
        return await preview_run(run, Source(reach.files), context, wanted.out_path)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Render."""
        wanted = parse(config)
        reach = await _find_reach(wanted.path, context)
        run = partial(self._run, wanted, reach)
        return await fulfil_run(run, Source(reach.files), context, wanted.out_path)

    async def _run(self, wanted: Config, reach: _Reach, source: Source) -> Mapping[str, bytes] | RenderFailed:
        split = not is_file(wanted.out_path) and wanted.like_kustomize
        outcome = await self.renderer.build(
            KustomizeRun(
                files=source.files,
                directory=wanted.path,
                split=split,
                charts=reach.charts,
                kube_version=wanted.kube_version,
                api_versions=wanted.api_versions,
            )
        )
        return lay_out(outcome, KIND.name, wanted.out_path, None if split else resource_name)


@dataclass(frozen=True, slots=True)
class _Reach:
    """What a kustomization reads, and whether it inflates charts."""

    files: Mapping[str, File]
    charts: bool


async def _find_reach(directory: str, context: StepContext) -> _Reach:
    found: dict[str, File] = {}
    charts = False
    waiting, seen = [directory], {directory}
    while waiting and len(seen) < _MOST_DIRECTORIES:
        here = waiting.pop()
        files = await collect(context, here)
        found |= files
        for path in [path for path in files if posixpath.basename(path) in KUSTOMIZATIONS]:
            document = _read(path, files[path])
            charts = charts or (isinstance(document, dict) and any(name in document for name in _CHARTS))
            for text in json_texts(document):
                target = _path_of(text, posixpath.dirname(path), path)
                new = target and target not in seen and not lies_above(target, directory)
                if target and new and context.tree.exists(target):
                    seen.add(target)
                    waiting.append(target)
    if not any(join(directory, name) in found for name in KUSTOMIZATIONS):
        raise TerminalError(f"kustomize-build: {directory!r} holds none of {', '.join(KUSTOMIZATIONS)}")
    return _Reach(found, charts)


def _read(path: str, file: File) -> Json:
    try:
        return parse_yaml(file.data.decode("utf-8"))
    except (EditError, UnicodeDecodeError) as error:
        raise TerminalError(f"kustomize-build: {path} cannot be read: {error}") from error


def _path_of(text: str, folder: str, path: str) -> str:
    """The place that a text may name relative to a folder, empty if it can be none (`key=file` names the file).

    Raises TerminalError for a remote base whose ref would be an option of git.
    """
    if "ref=-" in text or "version=-" in text:
        raise TerminalError(
            f"kustomize-build: {path} names a remote base with the ref of an option: {text[:200]!r}"
        )
    name = text.rpartition("=")[2]
    if not name or len(name) > 1024 or "\n" in name or "://" in name or posixpath.isabs(name):
        return ""
    cleaned = posixpath.normpath(posixpath.join(folder, name))
    # A kustomization may not leave the work tree, and the tree's own root is nobody's base.
    if cleaned in (".", "..") or cleaned.startswith("../") or ".git" in cleaned.split("/"):
        return ""
    return cleaned
