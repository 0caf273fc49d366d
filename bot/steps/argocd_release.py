"""Which revision of a repository an Application must run, and which newer ones leave what was released as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.domain.argocd import Application
from bot.domain.files import CommitId
from bot.domain.review import PublishRecord
from bot.domain.urls import normalize_git_url
from bot.domain.values import Value
from bot.ports import Git
from bot.steps.argocd_sources import SourceConfig
from bot.steps.contract import StepContext
from bot.steps.worktree import inside_path

_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Released:
    """Our commit in one repository and the paths (inside it) that this walk changed there."""

    url: str
    revision: CommitId
    paths: frozenset[str]


def find_released(
    sources: Sequence[SourceConfig], application: Application, context: StepContext
) -> tuple[Released, ...]:
    """What the Application must run, by repository: what the config desires, else what this walk published."""
    desired = {
        normalize_git_url(source.repo_url): str(source.revision)
        for source in sources
        if not source.chart and isinstance(source.revision, str) and _COMMIT.fullmatch(source.revision)
    }
    released: dict[str, Released] = {}
    for source in application.sources:
        url = normalize_git_url(source.repo_url)
        if source.chart or url in released:
            continue
        place = _checkout_of(url, context)
        revision = desired.get(url) or (_published(place, context) if place is not None else "")
        if revision:
            # The mirror is known under the address that git-clone used.
            address = context.tree.checkouts[place].pin.url if place is not None else source.repo_url
            released[url] = Released(address, CommitId(revision), _changed(place, context))
    return tuple(released.values())


async def acceptable_revisions(git: Git, released: Released, seen: Iterable[str]) -> frozenset[str]:
    """Our commit, and those seen that contain it and leave what this walk changed as it is."""
    accepted = {str(released.revision)}
    unknown = [
        CommitId(each) for each in dict.fromkeys(seen) if _COMMIT.fullmatch(each) and each not in accepted
    ]
    if unknown:
        await git.fetch(released.url)
    for revision in unknown:
        if await git.resolve(released.url, revision) != revision:
            continue
        if not await git.is_ancestor(released.url, released.revision, revision):
            continue
        changed = {path for path, _, _ in await git.diff(released.url, released.revision, revision)}
        if not changed & released.paths:
            accepted.add(str(revision))
    return frozenset(accepted)


def _checkout_of(url: str, context: StepContext) -> str | None:
    found = [
        place
        for place, checkout in context.tree.checkouts.items()
        if normalize_git_url(checkout.pin.url) == url and checkout.pin.branch
    ]
    published = [place for place in found if _published(place, context)]
    return next(iter([*published, *found]), None)


def _published(place: str, context: StepContext) -> str:
    """The newest commit that this walk published from a checkout, else the one it was made from."""
    for report in reversed(context.earlier):
        if (
            isinstance(report.record, PublishRecord)
            and report.record.checkout == place
            and not report.record.tag
        ):
            commit: Value = report.output.get("commit")
            if isinstance(commit, str) and _COMMIT.fullmatch(commit):
                return commit
    return context.tree.checkouts[place].pin.commit or ""


def _changed(place: str | None, context: StepContext) -> frozenset[str]:
    if place is None:
        return frozenset()
    inner = (inside_path(place, change.path) for report in context.earlier for change in report.changes)
    return frozenset(path for path in inner if path is not None)
