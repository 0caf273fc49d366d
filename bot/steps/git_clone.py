"""`git-clone`: checkouts of one repository in the work tree, each pinned to a commit.

Nothing is cloned: a checkout is a tree of the mirror. Where Kargo pushes an empty first commit for `create`, a missing
branch stays local here until `git-push`, so that a preview leaves no trace.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from bot.domain.files import CommitId
from bot.domain.review import Pin, PinRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.urls import normalize_git_url, sanitize_url
from bot.domain.values import Value
from bot.ports import Git
from bot.steps.contract import Config as Given
from bot.steps.contract import MergedBranch, StepContext, StepResult, failed
from bot.steps.options import Options
from bot.steps.worktree import clean_path

_T = TypeVar("_T")

KIND = StepKind("git-clone", StepClass.READ)


@dataclass(frozen=True, slots=True)
class CheckoutConfig:
    """One checkout; at most one of `branch`, `commit` and `tag` is given, none means the default branch."""

    path: str
    branch: str
    commit: str
    tag: str
    create: bool
    name: str
    sparse: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Config:
    """Repository, checkouts and the author of the commits made in them."""

    url: str
    checkouts: tuple[CheckoutConfig, ...]
    author: tuple[str, str] | None
    submodules: bool


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    author = options.part("author")
    return Config(
        url=sanitize_url(options.address("repoURL")),
        checkouts=tuple(_checkout(item) for item in options.each("checkout")),
        author=(author.address("name"), author.address("email")) if author.has("name") else None,
        submodules=options.flag("recurseSubmodules"),
    )


def _checkout(item: Options) -> CheckoutConfig:
    path = item.address("path")
    return CheckoutConfig(
        path=clean_path(path),
        branch=item.address("branch"),
        commit=item.address("commit"),
        tag=item.address("tag"),
        create=item.flag("create"),
        name=item.address("as") or path,
        sparse=tuple(clean_path(directory) for directory in item.addresses("sparse")),
    )


@dataclass(frozen=True, slots=True)
class GitClone:
    """Resolves checkouts to commits and puts their trees into the work tree."""

    git: Git

    @property
    def kind(self) -> StepKind:
        """A read."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Pin every checkout to the commit where it is now."""
        return await self._run(parse(config), context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Check out what the walk's pins say."""
        return await self._run(parse(config), context)

    async def _run(self, config: Config, context: StepContext) -> StepResult:
        if config.submodules:
            return failed(
                context.alias,
                f"git-clone of {config.url}: recurseSubmodules is not supported, since a submodule may lie on any "
                "server; add a git-clone step for the repository that it names",
            )
        if any(checkout.path not in context.pins for checkout in config.checkouts):
            await self.git.fetch(config.url)
        pins: list[Pin] = []
        commits: dict[str, Value] = {}
        for checkout in config.checkouts:
            pin = context.pins.get(checkout.path) or await self._pin(config.url, checkout)
            if isinstance(pin, str):
                return failed(context.alias, f"git-clone of {config.url}: {pin}")
            merged = context.merged if _is_of(context.merged, pin) else None
            if merged is not None:
                pin = replace(pin, commit=merged.commit)
            files = {} if pin.commit is None else await self.git.list_files(config.url, pin.commit)
            added = context.tree.add_checkout(pin, _sparse(files, checkout.sparse))
            added.author = config.author
            pins.append(pin)
            if merged is not None:
                added.await_merge(_sparse(merged.files, checkout.sparse))
            commits[checkout.name] = added.commit
        return StepResult(output={"commits": commits}, record=PinRecord(tuple(pins)))

    async def _pin(self, url: str, checkout: CheckoutConfig) -> Pin | str:
        """The pin of a checkout as the mirror stands, or why there is none."""
        if checkout.tag:
            found = await self.git.resolve(url, f"refs/tags/{checkout.tag}")
            return _fixed(url, checkout, found) or f"there is no tag {checkout.tag!r}; check its name"
        if checkout.commit:
            found = await self.git.resolve(url, checkout.commit)
            # A branch may be named like a commit; it is not what was asked for.
            if found is not None and not found.startswith(checkout.commit.lower()):
                found = None
            return _fixed(url, checkout, found) or (
                f"there is no commit {checkout.commit!r} in any branch or tag; was it force-pushed away?"
            )
        branch = checkout.branch or await self.git.default_branch(url)
        found = await self.git.resolve(url, f"refs/heads/{branch}")
        if found is not None:
            return Pin(checkout.path, url, branch, found)
        if checkout.create:
            return Pin(checkout.path, url, branch, None, created=True)
        return f"there is no branch {branch!r}; create it, or set create: true for this checkout"


def _fixed(url: str, checkout: CheckoutConfig, commit: CommitId | None) -> Pin | None:
    return None if commit is None else Pin(checkout.path, url, "", commit)


def _is_of(merged: MergedBranch | None, pin: Pin) -> bool:
    """Whether a checkout is of the branch that the merge will change."""
    if merged is None or pin.branch != merged.target.branch:
        return False
    return normalize_git_url(pin.url) == normalize_git_url(merged.target.url)


def _sparse(files: Mapping[str, _T], directories: tuple[str, ...]) -> Mapping[str, _T]:
    """What git's cone mode shows: the directories whole, and the files that lie directly in those above them."""
    if not directories:
        return files
    above = {""}
    for directory in directories:
        parts = directory.split("/")
        above |= {"/".join(parts[:length]) for length in range(1, len(parts))}
    return {
        path: entry
        for path, entry in files.items()
        if posixpath.dirname(path) in above
        or any(directory == "." or path.startswith(directory + "/") for directory in directories)
    }
