"""Infra inputs: everything that a plan of one Terraform state depends on, and their digest (review gate, 3.3).

Equal digests mean that Terraform would be asked the same question again. Sensitive values enter by their names, so
that a rotated credential does not ask for a plan, and the state itself never enters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.domain.digest import canonical
from bot.domain.files import File
from bot.domain.urls import normalize_git_url
from bot.domain.values import Json, Value, find_sensitive, is_tainted, show
from bot.ports import Git, TerminalError, Terraform, TerraformRun, Vault
from bot.steps.contract import StepContext
from bot.steps.terraform_config import Site, TerraformConfig, argument, split_environment
from bot.steps.terraform_reach import Reach, View, find_reach
from bot.steps.worktree import join


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of one state. `paths` lie in the work tree; `unknown` says what reaches them and is not known yet.

    `state` is `<repository>#<directory>@<workspace>`; `whole` says why the whole checkout is an input, if it is.
    """

    state: str
    digest: str
    paths: frozenset[str]
    site: Site
    config: TerraformConfig
    view: View = field(compare=False)
    unknown: tuple[str, ...] = ()
    whole: str = ""
    state_files: frozenset[str] = frozenset()
    """Where the state is kept in the tree, if it is and the policy lets it."""

    async def to_run(
        self, context: StepContext, *, lock: bool, environment: Mapping[str, Value] | None = None
    ) -> TerraformRun:
        """The run that these inputs make, with their files and opened secrets.

        Raises TerminalError if anything of it is unknown: that never reaches Terraform.
        """
        if self.unknown:
            raise TerminalError(f"{', '.join(self.unknown)} is not known yet, so Terraform cannot be run")
        given = dict(self.config.environment) if environment is None else dict(environment)
        plain, secret = split_environment(given)
        for number, (_, value) in enumerate(self.config.variables):
            if find_sensitive(value):
                # Nothing reads this variable; what is listed among the secrets is masked in Terraform's texts.
                secret[f"SENSITIVE_VARIABLE_{number}"] = argument(value)
        inner = [self.site.inside(path) or path for path in self.paths | self.state_files]
        return TerraformRun(
            key=run_key(self.state),
            files=await self.view.load(inner),
            directory=self.site.directory,
            environment=plain,
            secrets=secret,
            variables=tuple((name, argument(value)) for name, value in self.config.variables),
            variable_files=tuple(self.site.inside(path) or path for path in self.config.variable_files),
            masks=context.policy.masks,
            lock=lock,
        )


def state_key(site: Site, workspace: str) -> str:
    """The name of a Terraform state: repository, directory and workspace."""
    return f"{normalize_git_url(site.checkout.pin.url)}#{site.directory}@{workspace}"


def run_key(state: str) -> str:
    """The name of a state's work path: short, and safe as a folder's name."""
    return hashlib.sha256(state.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class InputGatherer:
    """Gathers inputs from a walk's tree."""

    git: Git
    terraform: Terraform
    vault: Vault

    async def gather(self, config: TerraformConfig, site: Site, context: StepContext) -> Inputs:
        """The inputs as the walk sees them now; raises TerminalError for a directory that cannot be run."""
        view = View.current(self.git, site.checkout)
        reach = await self._reach(view, config, site)
        self._check(view, reach, config, site, context)
        state = state_key(site, config.workspace)
        paths = frozenset(join(site.place, path) for path in reach.paths)
        context.tree.note_reads(paths)
        return Inputs(
            state=state,
            digest=await self._digest(view, reach, config, state),
            paths=paths,
            site=site,
            config=config,
            view=view,
            unknown=tuple(_unknown(view, reach, config, context)),
            whole=reach.whole,
            state_files=self._state_files(view, reach, site, context),
        )

    def _state_files(self, view: View, reach: Reach, site: Site, context: StepContext) -> frozenset[str]:
        if not context.policy.state_in_git or reach.backend not in ("", "local"):
            return frozenset()
        present = view.states_below(site.directory) or {join(site.directory, "terraform.tfstate")}
        return frozenset(join(site.place, path) for path in present)

    async def base_digest(self, config: TerraformConfig, site: Site, context: StepContext) -> str:
        """The digest of the inputs as the target's base has them, empty if the checkout has no base."""
        checkout, promotion = site.checkout, context.promotion
        commit = checkout.pin.commit
        target = promotion.target
        if target is not None and promotion.base is not None and checkout.pin.branch == target.branch:
            same = normalize_git_url(checkout.pin.url) == normalize_git_url(target.url)
            commit = promotion.base if same else commit
        if commit is None:
            return ""
        at_pin = commit == checkout.pin.commit
        entries = checkout.files if at_pin else await self.git.list_files(checkout.pin.url, commit)
        view = View.base(self.git, checkout, entries)
        reach = await self._reach(view, config, site)
        return await self._digest(view, reach, config, state_key(site, config.workspace))

    async def _reach(self, view: View, config: TerraformConfig, site: Site) -> Reach:
        files = [inner for path in config.variable_files if (inner := site.inside(path)) is not None]
        return await find_reach(view, site.directory, files)

    async def _digest(self, view: View, reach: Reach, config: TerraformConfig, state: str) -> str:
        files: list[Json] = [
            [path, view.entry(path).mode.value, view.entry(path).blob] for path in sorted(reach.paths)
        ]
        bound: Json = {
            "schema": 1,
            "state": state,
            "files": files,
            "vars": [[name, show(value)] for name, value in config.variables],
            "var files": list(config.variable_files),
            "env": [[name, show(value)] for name, value in sorted(config.environment, key=lambda e: e[0])],
            "backend": reach.backend,
            "tool": await self.terraform.version(),
        }
        return self.vault.digest(canonical(bound))

    def _check(
        self, view: View, reach: Reach, config: TerraformConfig, site: Site, context: StepContext
    ) -> None:
        if not view.below(site.directory):
            raise TerminalError(
                f"dir {config.directory!r} holds no files in {site.checkout.pin.url} at "
                f"{site.checkout.pin.branch or (site.checkout.pin.commit or '')[:12]}; check the path"
            )
        for path in config.variable_files:
            if (site.inside(path) or "") not in view.paths:
                raise TerminalError(f"the variable file {path!r} does not exist; it is relative to dir")
        if reach.backend in ("", "local") and not reach.unread and not context.policy.state_in_git:
            raise TerminalError(
                f"{config.directory!r} keeps its state in the repository "
                f"({'backend local' if reach.backend else 'no backend block'}): whoever reads the repository reads its "
                "secrets, and nothing locks it. Configure a backend, or set stateInGit: true in the ReviewPolicy"
            )


def _unknown(view: View, reach: Reach, config: TerraformConfig, context: StepContext) -> list[str]:
    found = [f"the variable {name}" for name, value in config.variables if is_tainted(value)]
    found += [f"env {name}" for name, value in config.environment if is_tainted(value)]
    for path in sorted(reach.paths):
        written: File | None = view.written(path)
        if written is not None and context.tree.sentinels.found_in(written.data):
            found.append(path)
    return found
