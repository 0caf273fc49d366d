"""A git subscription that watches what the pipeline's own Stages write: its Freight would come of its own releases.

Lockstep's own commits make no Freight, so nothing goes round in circles; but a person's change of what Stages write
(a values file, a revert) would be a new release. What is written is known as far as the steps say it in plain text or
by variables.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.domain.model import CommitSelectionStrategy, GitSubscription, Stage, Step, Variable, Warehouse
from bot.domain.patterns import compile_path_filter
from bot.domain.pipeline import Pipeline
from bot.domain.problems import Severity
from bot.domain.selection import DEFAULT_BRANCHES
from bot.domain.tasks import TaskError, inflate_steps
from bot.domain.urls import normalize_git_url
from bot.pipeline.schema import Finding, shown

_WRITERS = frozenset({"yaml-update", "json-update", "toml-update", "hcl-update", "file-write"})
"""Steps whose `path` is the file that they write."""
_REFERENCE = re.compile(r"\$\{\{\s*(vars|ctx)\.(\w+)\s*\}\}")
_MOST_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Write:
    """What a Stage pushes somewhere: files that are known, of a branch that is empty if it is not known."""

    stage: str
    url: str
    branch: str
    files: tuple[str, ...]


def find_writes(pipeline: Pipeline) -> tuple[Write, ...]:
    """What all Stages write; nothing if no Warehouse watches a git repository."""
    subscriptions = (item for warehouse in pipeline.warehouses.values() for item in warehouse.subscriptions)
    if not any(isinstance(item, GitSubscription) for item in subscriptions):
        return ()
    return tuple(write for stage in pipeline.stages.values() for write in _writes_of(stage, pipeline))


def check_watched_writes(warehouse: Warehouse, writes: Sequence[Write]) -> Iterator[Finding]:
    """Warnings about the git subscriptions of a Warehouse."""
    for index, subscription in enumerate(warehouse.subscriptions):
        if not isinstance(subscription, GitSubscription):
            continue
        found = next((write for write in writes if _overlaps(subscription, write)), None)
        if found is not None:
            what = shown(found.files[0]) if found.files else "this branch"
            yield Finding(
                ("spec", "subscriptions", index, "git"),
                f"Stage {shown(found.stage)} writes to {what}, which is watched here: Lockstep's own commits make no "
                "Freight, but a person's change of what it writes does; leave that out by includePaths or excludePaths",
                Severity.WARNING,
            )


def _overlaps(subscription: GitSubscription, write: Write) -> bool:
    if subscription.strategy is not CommitSelectionStrategy.NEWEST_FROM_BRANCH:
        return False
    if normalize_git_url(subscription.repo_url) != normalize_git_url(write.url):
        return False
    watched = {subscription.branch} if subscription.branch else set(DEFAULT_BRANCHES)
    if write.branch and write.branch not in watched:
        return False
    if not subscription.include_paths and not subscription.exclude_paths:
        return True
    try:
        return compile_path_filter(subscription.include_paths, subscription.exclude_paths)(write.files)
    except ValueError:
        # The pattern is a problem of its own.
        return False


def _writes_of(stage: Stage, pipeline: Pipeline) -> tuple[Write, ...]:
    template = stage.template
    if template is None:
        return ()
    project = stage.metadata.namespace
    tasks = {name: task for (owner, name), task in pipeline.tasks.items() if owner == project}
    variables = (*stage.variables, *template.variables)
    try:
        steps = inflate_steps(template.steps, tasks, pipeline.cluster_tasks, variables)
    except TaskError:
        # A task that is missing is a problem of its own.
        return ()
    return tuple(_Texts(stage, variables).writes(steps))


@dataclass(frozen=True, slots=True)
class _Texts:
    """Reads steps of a Stage, whose texts may name variables; what is not known is an empty text."""

    stage: Stage
    variables: Sequence[Variable]

    def writes(self, steps: Sequence[Step]) -> Iterator[Write]:
        """What the pushes among the steps publish."""
        checkouts: dict[str, tuple[str, str]] = {}
        files: list[str] = []
        for step in steps:
            if step.uses == "git-clone":
                checkouts.update(self._checkouts(step))
            elif step.uses in _WRITERS:
                files.append(_clean(self._text(step, step.config, "path")))
            elif step.uses == "git-push":
                path = _clean(self._text(step, step.config, "path"))
                url, branch = checkouts.get(path, ("", ""))
                if url and not step.config.get("generateTargetBranch") and not step.config.get("tag"):
                    target = self._text(step, step.config, "targetBranch") or branch
                    written = tuple(f.removeprefix(f"{path}/") for f in files if f.startswith(f"{path}/"))
                    yield Write(self.stage.metadata.name, url, target, written)

    def _checkouts(self, step: Step) -> Iterator[tuple[str, tuple[str, str]]]:
        url = self._text(step, step.config, "repoURL")
        listed = step.config.get("checkout")
        for item in listed if isinstance(listed, list) else ():
            if isinstance(item, dict):
                yield _clean(self._text(step, item, "path")), (url, self._text(step, item, "branch"))

    def _text(self, step: Step, config: Mapping[str, object], key: str) -> str:
        value = config.get(key)
        values = {item.name: item.value or "" for item in (*self.variables, *step.variables)}
        context = {"stage": self.stage.metadata.name, "project": self.stage.metadata.namespace}
        text = value if isinstance(value, str) else ""
        for _ in range(_MOST_DEPTH):
            text = _REFERENCE.sub(
                lambda found: (values if found[1] == "vars" else context).get(found[2], ""), text
            )
        return "" if "${" in text else text


def _clean(path: str) -> str:
    return posixpath.normpath(path) if path else ""
