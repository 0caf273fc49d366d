"""`helm-template`: renders a chart into files. Layouts and names are Kargo's; the program is the real helm."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from bot.domain.files import File
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Json, Value
from bot.editors.errors import EditError
from bot.ports import TerminalError
from bot.ports.rendering import ChartRun, Renderer, RenderFailed
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.manifests import flat_name
from bot.steps.marks import file_value
from bot.steps.options import Options
from bot.steps.parsing import parse_yaml
from bot.steps.rendering import Source, collect, fulfil_run, is_file, lay_out, preview_run
from bot.steps.worktree import clean_path

KIND = StepKind("helm-template", StepClass.EDIT)

_MOST_CHARTS = 100


@dataclass(frozen=True, slots=True)
class Config:
    """The chart, where it is rendered to, and how. `settings` are key, value (which may hold marks) and literal."""

    path: str
    out_path: str
    release: str
    namespace: str
    flat: bool
    by_release: bool
    values_files: tuple[str, ...]
    ignore_missing: bool
    settings: tuple[tuple[str, Value, bool], ...]
    build: bool
    crds: bool
    hooks: bool
    tests: bool
    kube_version: str
    api_versions: tuple[str, ...]


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    return Config(
        path=clean_path(options.address("path")),
        out_path=clean_path(options.address("outPath")),
        release=options.address("releaseName"),
        namespace=options.address("namespace"),
        flat=options.address("outLayout") == "flat",
        by_release=options.flag("useReleaseName"),
        values_files=tuple(clean_path(path) for path in options.addresses("valuesFiles")),
        ignore_missing=options.flag("ignoreMissingValueFiles"),
        settings=tuple(
            (item.address("key"), item.text("value"), item.flag("literal"))
            for item in options.each("setValues")
        ),
        build=options.flag("buildDependencies"),
        crds=options.flag("includeCRDs"),
        hooks=not options.flag("disableHooks"),
        tests=not options.flag("skipTests"),
        kube_version=options.address("kubeVersion"),
        api_versions=options.addresses("apiVersions"),
    )


@dataclass(frozen=True, slots=True)
class HelmTemplate:
    """Edits the work tree."""

    renderer: Renderer

    @property
    def kind(self) -> StepKind:
        """An edit."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Render twice; both must agree."""
        wanted = parse(config)
        source = await _source(wanted, context)
        return await preview_run(partial(self._run, wanted, context), source, context, wanted.out_path)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Render."""
        wanted = parse(config)
        source = await _source(wanted, context)
        return await fulfil_run(partial(self._run, wanted, context), source, context, wanted.out_path)

    async def _run(
        self, wanted: Config, context: StepContext, source: Source
    ) -> Mapping[str, bytes] | RenderFailed:
        split = not is_file(wanted.out_path) and not wanted.flat
        outcome = await self.renderer.template(
            ChartRun(
                files=source.files,
                chart=wanted.path,
                release=wanted.release,
                namespace=wanted.namespace or context.promotion.project,
                project=context.promotion.project,
                values_files=tuple(
                    path for path in wanted.values_files if path in source.files or not wanted.ignore_missing
                ),
                settings=tuple(
                    (key, value, literal)
                    for (key, _, literal), value in zip(wanted.settings, source.texts, strict=True)
                ),
                split=split,
                by_release=wanted.by_release,
                build=wanted.build,
                crds=wanted.crds,
                hooks=wanted.hooks,
                tests=wanted.tests,
                kube_version=wanted.kube_version,
                api_versions=wanted.api_versions,
            )
        )
        return lay_out(outcome, KIND.name, wanted.out_path, None if split else flat_name)


async def _source(wanted: Config, context: StepContext) -> Source:
    """The chart, the charts beside it that it depends on, the values files, and the settings as texts."""
    for path in wanted.values_files:
        if not wanted.ignore_missing and await context.tree.find_file(path) is None:
            raise TerminalError(
                f"helm-template: the values file {path!r} does not exist; mend valuesFiles, or set "
                "ignoreMissingValueFiles: true"
            )
    files = await collect_chart(KIND.name, wanted.path, context)
    files |= await collect(context, *wanted.values_files)
    texts = tuple(
        str(file_value(value, context, f"helm-template: setValues {key}"))
        for key, value, _ in wanted.settings
    )
    return Source(files, texts)


async def collect_chart(step: str, path: str, context: StepContext) -> dict[str, File]:
    """The files of a chart (a directory or an archive), and of the charts that its `file://` dependencies name.

    Raises TerminalError if there is no chart.
    """
    found: dict[str, File] = {}
    waiting, seen = [path], {path}
    while waiting and len(seen) < _MOST_CHARTS:
        chart = waiting.pop()
        files = await collect(context, chart)
        declaration = files.get(posixpath.normpath(posixpath.join(chart, "Chart.yaml")))
        if declaration is None and chart not in files:
            raise TerminalError(f"{step}: {chart!r} holds no Chart.yaml, so it is no chart")
        found |= files
        beside = {
            clean_path(posixpath.join(chart, local)) for local in _local_dependencies(declaration, chart)
        }
        waiting += sorted(beside - seen)
        seen |= beside
    return found


def _local_dependencies(declaration: File | None, chart: str) -> list[str]:
    if declaration is None:
        return []
    try:
        document = parse_yaml(declaration.data.decode("utf-8"))
    except (EditError, UnicodeDecodeError) as error:
        raise TerminalError(f"{chart}/Chart.yaml cannot be read: {error}") from error
    entries: Json = document.get("dependencies") if isinstance(document, dict) else None
    urls = (
        [entry.get("repository") for entry in entries or () if isinstance(entry, dict)]
        if isinstance(entries, list)
        else []
    )
    return [url.removeprefix("file://") for url in urls if isinstance(url, str) and url.startswith("file://")]
