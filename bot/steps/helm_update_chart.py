"""`helm-update-chart`: sets versions of a chart's dependencies in `Chart.yaml` and lets helm fetch them.

Kargo rewrites the lines of `Chart.yaml`; here every byte but the version's stays. `Chart.lock` keeps its bytes if it
locks the same as before, and otherwise says that it was generated when the Promotion was made, so that a second run
gives the same file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.digest import canonical
from bot.domain.files import File
from bot.domain.promotion import StepStatus
from bot.domain.review import FrozenRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Json, Value, is_tainted
from bot.editors.errors import EditError
from bot.editors.keys import Update
from bot.editors.yaml import update_yaml
from bot.ports import TerminalError, Vault
from bot.ports.rendering import DependencyRun, Renderer, RenderFailed
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.frozen import stop_for_another
from bot.steps.helm_template import collect_chart
from bot.steps.marks import file_value
from bot.steps.options import Options
from bot.steps.parsing import parse_yaml
from bot.steps.updates import read_text, refuse_edit
from bot.steps.worktree import clean_path, join

KIND = StepKind("helm-update-chart", StepClass.EDIT)

_GENERATED = re.compile(r"^generated:.*$", re.MULTILINE)
_LOCKS = ("Chart.lock", "requirements.lock")


@dataclass(frozen=True, slots=True)
class Dependency:
    """A dependency to set: repository and name as `Chart.yaml` has them, and the version, which may hold marks."""

    repository: str
    name: str
    version: Value


@dataclass(frozen=True, slots=True)
class Config:
    """The chart's directory and the dependencies to set; with none, ranges are resolved anew."""

    path: str
    charts: tuple[Dependency, ...]


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    charts = tuple(
        Dependency(item.address("repository"), item.address("name"), item.text("version"))
        for item in options.each("charts")
    )
    return Config(clean_path(options.address("path")), charts)


@dataclass(frozen=True, slots=True)
class HelmUpdateChart:
    """Reads repositories and edits the work tree."""

    renderer: Renderer
    vault: Vault

    @property
    def kind(self) -> StepKind:
        """An edit."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Do it, and remember what was locked."""
        return await self._update(parse(config), context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Do it; other versions or archives than the approved ones stop the walk."""
        return await self._update(parse(config), context)

    async def _update(self, wanted: Config, context: StepContext) -> StepResult:
        if any(is_tainted(chart.version) for chart in wanted.charts):
            raise TerminalError(
                "helm-update-chart: a version is not known yet, so its chart cannot be fetched for review; use a "
                "version that is known before the merge"
            )
        edited = await self._edit(wanted, context)
        if isinstance(edited, StepResult):
            return edited
        files = await collect_chart(KIND.name, wanted.path, context)
        before = {path: files[join(wanted.path, path)] for path in _LOCKS if join(wanted.path, path) in files}
        outcome = await self.renderer.update_dependencies(
            DependencyRun(files, wanted.path, context.promotion.project)
        )
        if isinstance(outcome, RenderFailed):
            return failed(context.alias, f"{KIND.name}: {outcome.message}", log=outcome.log)
        made = {path: _settle(path, data, before.get(path), context) for path, data in outcome.files.items()}
        record = self._record(wanted, made)
        stop = stop_for_another(record, context, "are others than were approved")
        if stop is not None:
            return StepResult(StepStatus.RUNNING, message=stop.reason, stop=stop)
        await self._write(wanted, made, files, context)
        changes = _changes(_locked(before), _locked({path: File(data) for path, data in made.items()}))
        output: dict[str, Value] = {"commitMessage": _message(wanted.path, changes)} if changes else {}
        return StepResult(output=output, record=record)

    async def _edit(self, wanted: Config, context: StepContext) -> StepResult | None:
        """Set the versions in Chart.yaml; a failure names the dependency that is not there."""
        path = join(wanted.path, "Chart.yaml")
        text = await read_text(KIND.name, path, context)
        if isinstance(text, StepResult):
            return text
        context.tree.touch(path)
        try:
            declared = _declared(text)
            updates = []
            for chart in wanted.charts:
                places = [
                    number
                    for number, entry in enumerate(declared)
                    if entry.get("repository") == chart.repository and entry.get("name") == chart.name
                ]
                if not places:
                    known = ", ".join(f"{e.get('repository')} {e.get('name')}" for e in declared) or "none"
                    return failed(
                        context.alias,
                        f"helm-update-chart: {path} has no dependency {chart.name!r} of {chart.repository}; it has "
                        f"{known}",
                    )
                version = str(file_value(chart.version, context, f"helm-update-chart: {chart.name}"))
                updates += [Update(f"dependencies.{number}.version", version) for number in places]
            if updates:
                await context.tree.write(path, update_yaml(text, updates).encode())
        except EditError as error:
            return refuse_edit(KIND.name, path, error, context)
        return None

    def _record(self, wanted: Config, made: Mapping[str, bytes]) -> FrozenRecord:
        content: list[Json] = [[path, self.vault.digest(data)] for path, data in sorted(made.items())]
        return FrozenRecord(f"the dependencies of {wanted.path}", self.vault.digest(canonical(content)))

    async def _write(
        self, wanted: Config, made: Mapping[str, bytes], files: Mapping[str, File], context: StepContext
    ) -> None:
        folder = join(wanted.path, "charts")
        for path in files:
            inner = posixpath.relpath(path, wanted.path)
            if posixpath.dirname(path) == folder and path.endswith(".tgz") and inner not in made:
                await context.tree.delete(path)
        for path, data in made.items():
            await context.tree.write(join(wanted.path, path), data)


def _declared(text: str) -> list[dict[str, Json]]:
    document = parse_yaml(text)
    entries = document.get("dependencies") if isinstance(document, dict) else None
    return (
        [entry if isinstance(entry, dict) else {} for entry in entries] if isinstance(entries, list) else []
    )


def _settle(path: str, data: bytes, before: File | None, context: StepContext) -> bytes:
    """A lock without the time at which helm happened to write it; other files as they are."""
    if path not in _LOCKS:
        return data
    text = data.decode("utf-8", "replace")
    if before is not None and _GENERATED.sub("", before.data.decode("utf-8", "replace")) == _GENERATED.sub(
        "", text
    ):
        return before.data
    at = context.promotion.created_at.isoformat().replace("+00:00", "Z")
    return _GENERATED.sub(f'generated: "{at}"', text).encode()


def _locked(files: Mapping[str, File]) -> dict[str, str]:
    """The locked version of each dependency."""
    found: dict[str, str] = {}
    for name in _LOCKS:
        file = files.get(name)
        for entry in _declared(file.data.decode("utf-8", "replace")) if file is not None else []:
            found[str(entry.get("name"))] = str(entry.get("version"))
    return found


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    changes = {}
    for name, version in after.items():
        old = before.get(name)
        if old != version:
            changes[name] = f"{old} -> {version}" if old else version
    return changes | {name: "removed" for name in before if name not in after}


def _message(path: str, changes: Mapping[str, str]) -> str:
    lines = [f"- {name}: {change}" for name, change in sorted(changes.items())]
    return "\n".join([f"Updated chart dependencies for {path}", "", *lines])
