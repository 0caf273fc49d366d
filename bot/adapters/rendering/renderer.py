"""`CommandRenderer`: the port `Renderer` on the real binaries.

Every run gets a directory of its own and, unless isolation is switched off, Landlock: it reads the given files and
system programs, and writes what is thrown away or taken from it. No shell, an environment of its own, limits on time
and output. What it fetches from the network is up to the chart or kustomization, as in Kargo.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bot.adapters.rendering.cell import Cell, Confinement, open_cell, sweep_cells
from bot.adapters.rendering.repositories import find_repositories, write_logins
from bot.adapters.terraform.process import Ended
from bot.ports import TerminalError
from bot.ports.rendering import ChartRun, DependencyRun, KustomizeRun, Rendered, RenderFailed, RenderTool

Logins = Callable[[str, str], Awaitable["tuple[str, str] | None"]]
"""User and password by project and address, `oci://` ones included; None to go without."""


async def no_logins(project: str, url: str) -> tuple[str, str] | None:
    """Nobody is known anywhere."""
    del project, url
    return None


@dataclass(frozen=True, slots=True)
class RenderTools:
    """Which binaries to run: paths or names on PATH. An empty `kustomize` takes `kustomize`, else `kubectl`.

    `isolated` keeps runs apart by Landlock; `environment` reaches every run; `readable` are further paths for them.
    """

    helm: str = "helm"
    kustomize: str = ""
    isolated: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()

    def find_helm(self) -> Path | None:
        """The helm binary's real path, None if there is none."""
        return _find(self.helm)

    def find_kustomize(self) -> tuple[Path, tuple[str, ...]] | None:
        """The binary's real path and how its `build` is called, None if there is none."""
        for name in (self.kustomize,) if self.kustomize else ("kustomize", "kubectl"):
            found = _find(name)
            if found is not None:
                # The name that it was asked for by: a real path may be called otherwise.
                is_kubectl = Path(name).name.startswith("kubectl")
                return found, ("kustomize",) if is_kubectl else ("build",)
        return None

    def find_missing(self) -> Mapping[RenderTool, str]:
        """The programs that are not there, each with what to do."""
        missing: dict[RenderTool, str] = {}
        if self.find_helm() is None:
            missing[RenderTool.HELM] = (
                f"{self.helm!r} was not found; install helm 3 or newer, or say where it is: LOCKSTEP_HELM"
            )
        if self.find_kustomize() is None:
            name = self.kustomize or "kustomize"
            missing[RenderTool.KUSTOMIZE] = (
                f"{name!r} was not found; install kustomize or kubectl, or say where it is: LOCKSTEP_KUSTOMIZE"
            )
        return missing


def _find(name: str) -> Path | None:
    found = shutil.which(name)
    return None if found is None else Path(found).resolve()


class CommandRenderer:
    """The port `Renderer`; `root` is a directory for runs, on a local disk."""

    def __init__(self, root: Path, tools: RenderTools, logins: Logins = no_logins) -> None:
        self._tools = tools
        self._logins = logins
        self._confinement = Confinement(
            root.absolute(), tools.isolated, dict(tools.environment), tools.readable
        )

    def find_missing(self) -> Mapping[RenderTool, str]:
        """See `Renderer.find_missing`."""
        return self._tools.find_missing()

    async def sweep(self) -> None:
        """Clear what runs of a bot that was killed left on disk."""
        await asyncio.to_thread(sweep_cells, self._confinement.root)

    # -- helm ------------------------------------------------------------------------------------------------

    async def template(self, run: ChartRun) -> Rendered | RenderFailed:
        """See `Renderer.template`."""
        helm = self._helm()
        async with open_cell(self._confinement, run.files) as cell:
            if run.build:
                built = await self._dependencies("build", cell, helm, run)
                if built.code != 0 or built.stopped:
                    return _failed(cell, f"helm dependency build {run.chart}", built)
            arguments = _template_arguments(run)
            arguments += ["--output-dir", str(cell.out)] if run.split else []
            # A name that begins like an option is none behind the two dashes, and a path with a dot is no repository.
            arguments += ["--", run.release, f"./{run.chart}"]
            ended = await cell.run(helm, *arguments, environment=_helm_home(cell))
            if ended.code != 0 or ended.stopped:
                return _failed(cell, f"helm template {run.chart}", ended)
            if run.split:
                return Rendered(files=await cell.read(cell.out))
            return Rendered(text=ended.output.decode("utf-8", "replace"))

    async def update_dependencies(self, run: DependencyRun) -> Rendered | RenderFailed:
        """See `Renderer.update_dependencies`."""
        helm = self._helm()
        async with open_cell(self._confinement, run.files) as cell:
            ended = await self._dependencies("update", cell, helm, run)
            if ended.code != 0 or ended.stopped:
                return _failed(cell, f"helm dependency update {run.chart}", ended)
            found = await cell.read(cell.work / run.chart)
            kept = {path: data for path, data in found.items() if _is_dependency(path)}
            return Rendered(files=kept)

    async def _dependencies(self, verb: str, cell: Cell, helm: Path, run: ChartRun | DependencyRun) -> Ended:
        repositories = find_repositories(run.files, run.chart)
        logins = {url: login for url in repositories if (login := await self._logins(run.project, url))}
        # Helm refuses to build from a repository that nobody has added; with a name for each it does.
        environment = write_logins(cell.home, repositories, logins)
        ended = await cell.run(
            helm, "dependency", verb, f"./{run.chart}", environment={**_helm_home(cell), **environment}
        )
        for path in environment.values():
            # Templates have no business with credentials.
            Path(path).unlink(missing_ok=True)
        return ended

    def _helm(self) -> Path:
        found = self._tools.find_helm()
        if found is None:
            raise TerminalError(self.find_missing()[RenderTool.HELM])
        return found

    # -- kustomize -------------------------------------------------------------------------------------------

    async def build(self, run: KustomizeRun) -> Rendered | RenderFailed:
        """See `Renderer.build`."""
        tool = self._tools.find_kustomize()
        if tool is None:
            raise TerminalError(self.find_missing()[RenderTool.KUSTOMIZE])
        binary, verb = tool
        helm = self._helm() if run.charts else None
        async with open_cell(self._confinement, run.files) as cell:
            # The tree holds what the task checked out and nothing else, so that a base may lie anywhere in it.
            arguments = [*verb, f"./{run.directory}", "--load-restrictor", "LoadRestrictionsNone"]
            if helm is not None:
                arguments += ["--enable-helm", "--helm-command", str(helm), *_helm_options(run)]
            if run.split:
                arguments += ["--output", str(cell.out)]
            ended = await cell.run(
                binary, *arguments, environment=_helm_home(cell), also=(helm,) if helm is not None else ()
            )
            if ended.code != 0 or ended.stopped:
                return _failed(cell, f"kustomize build {run.directory}", ended)
            if run.split:
                return Rendered(files=await cell.read(cell.out))
            return Rendered(text=ended.output.decode("utf-8", "replace"))


def _template_arguments(run: ChartRun) -> list[str]:
    arguments = ["template", "--namespace", run.namespace]
    for path in run.values_files:
        arguments += ["--values", path]
    for key, value, literal in run.settings:
        arguments += ["--set-literal" if literal else "--set", f"{key}={value}"]
    arguments += ["--include-crds"] if run.crds else []
    arguments += [] if run.hooks else ["--no-hooks"]
    arguments += [] if run.tests else ["--skip-tests"]
    arguments += ["--kube-version", run.kube_version] if run.kube_version else []
    for version in run.api_versions:
        arguments += ["--api-versions", version]
    return [*arguments, *(["--release-name"] if run.split and run.by_release else [])]


def _helm_options(run: KustomizeRun) -> list[str]:
    options = ["--helm-kube-version", run.kube_version] if run.kube_version else []
    for version in run.api_versions:
        options += ["--helm-api-versions", version]
    return options


def _helm_home(cell: Cell) -> dict[str, str]:
    """Helm's own directories, without plugins of the machine."""
    return {
        "HELM_CACHE_HOME": str(cell.home / "cache"),
        "HELM_CONFIG_HOME": str(cell.home / "config"),
        "HELM_DATA_HOME": str(cell.home / "data"),
        "HELM_PLUGINS": str(cell.home / "plugins"),
    }


def _is_dependency(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return path in ("Chart.lock", "requirements.lock") or (folder == "charts" and name.endswith(".tgz"))


def _failed(cell: Cell, what: str, ended: Ended) -> RenderFailed:
    log = cell.hide(ended.error)
    said = ended.stopped or next((line for line in log.splitlines() if line.strip()), "it gave no reason")
    return RenderFailed(f"{what} failed: {said}", log)
