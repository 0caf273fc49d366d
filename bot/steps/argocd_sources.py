"""How `argocd-update` changes an Application's sources, with Kargo's meaning of each field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.argocd import Application
from bot.domain.urls import normalize_chart_url, normalize_git_url
from bot.domain.values import Json, Value
from bot.ports import TerminalError
from bot.steps.options import Options, plain_text


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """One source to update; `images` are Kustomize's, `parameters` Helm's. Values may hold marks."""

    repo_url: str
    chart: str
    revision: Value
    updates_target: bool
    images: tuple[tuple[str, str, Value, Value], ...]
    """Repository, new name, tag and digest."""
    parameters: tuple[tuple[str, Value], ...]

    @property
    def changes_source(self) -> bool:
        """Whether the Application itself is changed."""
        return self.updates_target or bool(self.images) or bool(self.parameters)


def parse_sources(app: Options) -> tuple[SourceConfig, ...]:
    """The entries of `sources`; raises TerminalError for an unknown address."""
    return tuple(_parse(source) for source in app.each("sources"))


def _parse(source: Options) -> SourceConfig:
    images = source.part("kustomize").each("images")
    parameters = source.part("helm").each("images")
    return SourceConfig(
        repo_url=source.address("repoURL"),
        chart=source.address("chart"),
        revision=source.value("desiredRevision"),
        updates_target=source.flag("updateTargetRevision"),
        images=tuple(
            (image.address("repoURL"), image.address("newName"), image.value("tag"), image.value("digest"))
            for image in images
        ),
        parameters=tuple((image.address("key"), image.value("value")) for image in parameters),
    )


def describe(source: SourceConfig) -> list[tuple[str, Value]]:
    """What is asked of a source, as a reviewer sees it."""
    name = f"{source.repo_url} {source.chart}".strip()
    details: list[tuple[str, Value]] = [("source", name)]
    if source.revision is not None:
        details.append(("target revision" if source.updates_target else "revision", source.revision))
    for url, new_name, tag, digest in source.images:
        details.append((f"image {url}{f' as {new_name}' if new_name else ''}", tag or digest))
    details += [(f"parameter {key}", value) for key, value in source.parameters]
    return details


def check_sources(application: Application, wanted: Sequence[SourceConfig]) -> None:
    """Raises TerminalError if an update fits none of the Application's sources."""
    sources = _raw(application)
    for update in wanted:
        if not any(_matches(source, update) for source in sources):
            known = ", ".join(str(source.get("repoURL")) for source in sources) or "none"
            name = f"{update.repo_url} {update.chart}".strip()
            raise TerminalError(
                f"argocd-update: the Application {application.name} has no source {name} (sources: {known}); name one "
                "of its own"
            )


def patch(application: Application, wanted: Sequence[SourceConfig]) -> list[Json]:
    """The Application's sources with the updates in them; raises TerminalError if one fits no source."""
    check_sources(application, wanted)
    sources = _raw(application)
    for update in wanted:
        for source in sources:
            if _matches(source, update):
                _update(source, update)
    return list(sources)


def _raw(application: Application) -> list[dict[str, Json]]:
    return [dict(raw) if isinstance(raw, dict) else {} for raw in application.raw_sources]


def _matches(source: dict[str, Json], update: SourceConfig) -> bool:
    url, chart = str(source.get("repoURL") or ""), str(source.get("chart") or "")
    if chart != update.chart:
        return False
    if update.chart:
        return normalize_chart_url(url) == normalize_chart_url(update.repo_url)
    return normalize_git_url(url) == normalize_git_url(update.repo_url)


def _update(source: dict[str, Json], update: SourceConfig) -> None:
    if update.updates_target:
        source["targetRevision"] = plain_text(update.revision)
    if update.images:
        kustomize = source.get("kustomize")
        images: list[Json] = [_image(image) for image in update.images]
        source["kustomize"] = {**(kustomize if isinstance(kustomize, dict) else {}), "images": images}
    if update.parameters:
        helm = source.get("helm")
        kept = dict(helm) if isinstance(helm, dict) else {}
        source["helm"] = {**kept, "parameters": _parameters(kept.get("parameters"), update)}


def _image(image: tuple[str, str, Value, Value]) -> str:
    """Kustomize's text for an image: `name=new:tag` or `name=new@digest`."""
    url, new_name, tag, digest = image
    name = f"{url}={new_name}" if new_name else url
    if digest is not None and digest != "":
        return f"{name}@{plain_text(digest)}"
    return f"{name}:{plain_text(tag)}"


def _parameters(existing: Json, update: SourceConfig) -> list[Json]:
    wanted = {key: plain_text(value) for key, value in update.parameters}
    parameters: list[Json] = []
    for item in existing if isinstance(existing, list) else []:
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(item, dict) and isinstance(name, str) and name in wanted:
            parameters.append({**item, "value": wanted.pop(name)})
        else:
            parameters.append(item)
    for key, value in wanted.items():
        parameters.append({"name": key, "value": value})
    return parameters
