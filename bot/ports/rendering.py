"""Helm and Kustomize: programs that make files out of files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from bot.domain.files import File


class RenderTool(StrEnum):
    """A program that rendering needs."""

    HELM = "helm"
    KUSTOMIZE = "kustomize"


@dataclass(frozen=True, slots=True)
class ChartRun:
    """One `helm template`. `files` are everything that it may read, by path; `chart` and values files are among them.

    `settings` are keys with their values, and whether the value is taken literally. With `split` every template
    becomes a file of its own, below the chart's name, or below the release's with `by_release`. `build` fetches the
    dependencies that `Chart.lock` names first; `project` says whose credentials that may use.
    """

    files: Mapping[str, File]
    chart: str
    release: str
    namespace: str
    project: str = ""
    values_files: tuple[str, ...] = ()
    settings: tuple[tuple[str, str, bool], ...] = ()
    split: bool = False
    by_release: bool = False
    build: bool = False
    crds: bool = False
    hooks: bool = True
    tests: bool = True
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DependencyRun:
    """One `helm dependency update` of the chart in a directory; `project` says whose credentials it may use."""

    files: Mapping[str, File]
    chart: str
    project: str = ""


@dataclass(frozen=True, slots=True)
class KustomizeRun:
    """One `kustomize build` of a directory. With `split` every resource becomes a file, named as Kustomize does it.

    `charts` says that the kustomization inflates Helm charts, which then may be done.
    """

    files: Mapping[str, File]
    directory: str
    split: bool = False
    charts: bool = False
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rendered:
    """What came out: one text, or files by path relative to where they are to be written."""

    text: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RenderFailed:
    """The program said no; `log` is what it wrote, bounded."""

    message: str
    log: str = ""


class Renderer(Protocol):
    """The real programs, isolated as Terraform is.

    Raises TerminalError if a program is missing or the files are refused.
    """

    async def template(self, run: ChartRun) -> Rendered | RenderFailed:
        """The manifests of a chart."""

    async def update_dependencies(self, run: DependencyRun) -> Rendered | RenderFailed:
        """`Chart.lock` and the archives in `charts/` as they are afterwards, by path relative to the chart."""

    async def build(self, run: KustomizeRun) -> Rendered | RenderFailed:
        """The manifests of a kustomization."""

    def find_missing(self) -> Mapping[RenderTool, str]:
        """The programs that this machine does not have, each with what to do about it."""
