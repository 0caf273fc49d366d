"""What a pipeline names is found without a promotion, and what hangs or breaks is a finding, never an error."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.adapters.config import read_directory
from bot.app import load
from bot.domain.app_manifest import AppManifest
from bot.domain.argocd import Application
from bot.domain.doctor import Finding, Level
from bot.domain.doctor_facts import (
    AppFacts,
    BranchFacts,
    DatabaseFacts,
    DirectoryFacts,
    HookFacts,
    HostFacts,
    InstallationFacts,
    IsolationFacts,
    KeyFacts,
    RequiredCheck,
    ToolFacts,
)
from bot.domain.github import Repository
from bot.domain.pipeline import Pipeline
from bot.domain.values import Json
from bot.ports import ImageFacts, SyncRefused, TerminalError, TransientError
from bot.workflow.doctor import Bench, Doctor
from bot.workflow.named import NamedBranch, find_applications, find_branches, find_images

ROOT = Path(__file__).parents[2]
OPERATIONS = "https://github.sandbox.example/acme/operations.git"


def pipeline(**replaced: str) -> Pipeline:
    """The shipped pipeline, with texts of its task replaced."""
    _, files = read_directory(ROOT / "config")
    changed = dict(files)
    for old, new in replaced.items():
        assert TEXTS[old] in changed["promote.yaml"]
        changed["promote.yaml"] = changed["promote.yaml"].replace(TEXTS[old], new)
    loaded, problems = load(changed, "x")
    assert problems == ()
    return loaded


TEXTS = {
    "branch": "targetBranch: ${{ vars.branch }}",
    "app": "name: otel-app-${{ ctx.stage }}",
    "url": "repoURL: ${{ vars.repoURL }}\n        checkout",
}


def branches(**replaced: str) -> tuple[list[NamedBranch], int]:
    found = pipeline(**replaced)
    return find_branches(found, found.stages["acme", "staging"])


def applications(**replaced: str) -> tuple[list[str], int]:
    found = pipeline(**replaced)
    named, untold = find_applications(found, found.stages["acme", "staging"])
    return [item.name for item in named], untold


FREIGHT = "${{ imageFrom(vars.image).Tag }}"


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (branches(), ([NamedBranch(OPERATIONS, "main")], 0)),
        (
            branches(branch="targetBranch: env/${{ ctx.stage }}"),
            ([NamedBranch(OPERATIONS, "env/staging")], 0),
        ),
        (branches(branch="provider: github"), ([NamedBranch(OPERATIONS, "main")], 0)),
        (branches(url=f"repoURL: https://x.example/{FREIGHT}.git\n        checkout"), ([], 1)),
    ],
    ids=[
        "by variables of Stage and task",
        "by the Stage's name",
        "a push without a target goes to the branch that was checked out",
        "an address that depends on the Freight cannot be told",
    ],
)
def test_where_a_stage_pushes_to(
    found: tuple[list[NamedBranch], int], wanted: tuple[list[NamedBranch], int]
) -> None:
    assert found == wanted


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (applications(), (["otel-app-staging"], 0)),
        (applications(app="name: fixed"), (["fixed"], 0)),
        (applications(app=f"name: app-{FREIGHT}"), ([], 1)),
        (applications(app="name: app-${{ ctx.targetFreight.name }}"), ([], 1)),
        (applications(app="selector: {matchLabels: {app: x}}"), ([], 1)),
    ],
    ids=[
        "by the Stage's name",
        "by a plain name",
        "one that depends on an image cannot be told",
        "one that depends on the Freight's name cannot be told",
        "one that is selected cannot be told",
    ],
)
def test_which_applications_a_stage_names(
    found: tuple[list[str], int], wanted: tuple[list[str], int]
) -> None:
    assert found == wanted


def test_which_images_are_watched() -> None:
    assert find_images(pipeline()) == [
        ("acme", "registry.sandbox.example/lambda-app", False),
        ("acme", "registry.sandbox.example/otel-app", False),
    ]


# -- the doctor on parts that hang or break --------------------------------------------------------------------------


@dataclass
class Machine:
    """A healthy machine, but that git never answers if it `hangs`."""

    hangs: bool = False

    async def directory(self) -> DirectoryFacts:
        return DirectoryFacts("/data", True, 0o700, True, 2**40, "ext4")

    async def key(self) -> KeyFacts:
        return KeyFacts("/data/vault.key", True)

    async def database(self) -> DatabaseFacts:
        return DatabaseFacts("/data/lockstep.db", 1, 1)

    async def terraform(self) -> ToolFacts:
        return ToolFacts("tofu 1.9.0")

    async def git(self) -> ToolFacts:
        if self.hangs:
            await asyncio.Event().wait()
        return ToolFacts("git version 2.40.0")

    async def isolation(self) -> IsolationFacts:
        return IsolationFacts("landlock", 4)


RIGHTS = {"metadata": "read"}


@dataclass
class GitHub:
    """A healthy GitHub, unless it has a `problem`; of `branch` it says nothing but that."""

    problem: str = ""
    known: bool = True

    async def host(self) -> HostFacts:
        return HostFacts("https://api.github.com/", True, 0.0, self.problem)

    async def app(self) -> AppFacts:
        return AppFacts(7, "lockstep", "page", RIGHTS if self.known else None, frozenset(), "401")

    async def installations(self) -> Sequence[InstallationFacts]:
        return [InstallationFacts("acme", "page", RIGHTS, frozenset())]

    async def hook(self) -> HookFacts:
        return HookFacts("https://bot.example/hooks/github")

    async def branch(self, repository: Repository, branch: str, *, pushes: bool) -> BranchFacts:
        return BranchFacts(repository, branch, (RequiredCheck("lockstep", 7),), pushes=pushes)


@dataclass
class Source:
    """The shipped pipeline, or an error."""

    error: Exception | None = None

    async def read(self) -> tuple[str, Mapping[str, str]]:
        if self.error is not None:
            raise self.error
        return read_directory(ROOT / "config")


class ArgoCD:
    """A server that refuses the token."""

    async def get_application(
        self, server: str, name: str, *, namespace: str = "", project: str = "", refresh: str = ""
    ) -> Application | None:
        raise TerminalError("Argo CD answered 401")

    async def list_applications(
        self, server: str, selector: str, *, namespace: str = "", project: str = ""
    ) -> Sequence[Application]:
        raise TerminalError("Argo CD answered 401")

    async def sync(
        self, server: str, application: Application, *, revision: str, infos: Mapping[str, str]
    ) -> SyncRefused:
        raise AssertionError("the doctor changes nothing")

    async def patch_sources(self, server: str, application: Application, sources: Sequence[Json]) -> None:
        raise AssertionError("the doctor changes nothing")


class Registry:
    """A registry that is away, for every project."""

    async def of(self, project: str) -> Registry:
        del project
        return self

    async def list_tags(self, repository: str, *, insecure: bool = False) -> Sequence[str]:
        raise AssertionError("ten thousand tags are not for the doctor")

    async def find_image(
        self, repository: str, tag: str, *, insecure: bool = False, cache_by_tag: bool = False
    ) -> ImageFacts | None:
        raise TransientError("no route to the registry")


async def examine(
    *, machine: Machine | None = None, github: GitHub | None = None, source: Source | None = None
) -> list[str]:
    """What is not in order: level, check and message."""
    doctor = Doctor(
        bench=Bench(7, "https://bot.example", "config", ("default",), limit=0.2),
        machine=machine or Machine(),
        github=github or GitHub(),
        manifest=AppManifest(RIGHTS, frozenset()),
        config=source or Source(),
        load=load,
        argocd=ArgoCD(),
        registries=Registry(),
        repository_of=lambda url: Repository("acme", "operations") if url == OPERATIONS else None,
    )
    found: list[Finding] = await doctor.examine()
    return [
        f"{item.level.value} {item.check}: {item.message}" for item in found if item.level is not Level.OK
    ]


PIPELINE = [
    "failure argocd: Argo CD answered 401",
    *["failure application: Argo CD answered 401"] * 3,
    *["failure registry: no route to the registry"] * 2,
]


async def test_what_breaks_is_told_and_hinders_no_other_check() -> None:
    assert await examine() == PIPELINE


async def test_what_hangs_is_told_and_hinders_no_other_check() -> None:
    assert await examine(machine=Machine(hangs=True)) == [
        "failure git: there was no answer within 0.2 s",
        *PIPELINE,
    ]


async def test_without_github_what_needs_it_is_said_to_be_unknown() -> None:
    assert await examine(github=GitHub("no network")) == [
        "failure github: no network",
        "unknown app: GitHub cannot be asked",
        "unknown branch rules: GitHub cannot be asked before the App is in order",
        *PIPELINE,
    ]
    found = await examine(github=GitHub(known=False))
    assert found[:2] == ["failure app: 401", "unknown installation: GitHub does not take us for the App"]
    assert "unknown branch rules: GitHub cannot be asked before the App is in order" in found


@pytest.mark.parametrize(
    "error", [TransientError("git did not end"), TerminalError("there is no such repository")]
)
async def test_without_the_pipeline_what_it_names_is_said_to_be_unknown(error: Exception) -> None:
    assert await examine(source=Source(error)) == [
        f"failure configuration: {error}",
        "unknown pipeline: what it names cannot be looked at",
        PIPELINE[0],
    ]
