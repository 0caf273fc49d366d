"""Workflows of GitHub Actions as far as `workflow_dispatch` goes: their files are read, nothing is ever run."""

import json
from dataclasses import dataclass
from typing import Any

import yaml

from bot.sandbox.github.auth import Actor
from bot.sandbox.github.errors import Refused, not_found
from bot.sandbox.github.records import Repository, WorkflowRun
from bot.sandbox.github.world import World

_FOLDER = ".github/workflows"


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow file: its path, its name, and the inputs of `workflow_dispatch` (None: it has no such trigger)."""

    path: str
    name: str
    inputs: dict[str, dict[str, Any]] | None


def find(world: World, repo: Repository, file: str, revision: str) -> Workflow | None:
    """The workflow of a file name at a revision, None if there is none."""
    path = f"{_FOLDER}/{file}"
    git = world.git(repo)
    entries = git.tree(revision, path=path) if git.resolve(revision) else []
    sha = entries[0].sha if entries else None
    if sha is None or "/" in file:
        return None
    try:
        document = yaml.safe_load(git.blob(sha))
    except yaml.YAMLError:
        return Workflow(path, path, None)
    held = document if isinstance(document, dict) else {}
    # YAML 1.1 reads the key `on` as true.
    triggers = held.get("on", held.get(True))
    if isinstance(triggers, str | list):
        triggers = dict.fromkeys([triggers] if isinstance(triggers, str) else triggers)
    name = str(held.get("name") or path)
    if not isinstance(triggers, dict) or "workflow_dispatch" not in triggers:
        return Workflow(path, name, None)
    declared = triggers["workflow_dispatch"] or {}
    return Workflow(path, name, {key: value or {} for key, value in (declared.get("inputs") or {}).items()})


def dispatch(
    world: World, actor: Actor, repo: Repository, file: str, ref: str, inputs: dict[str, Any]
) -> WorkflowRun:
    """Queue a run, or refuse as GitHub does; the workflow has to exist on the default branch too."""
    known = find(world, repo, file, f"refs/heads/{repo.default_branch}")
    if known is None:
        raise not_found()
    git = world.git(repo)
    short = ref.removeprefix("refs/heads/").removeprefix("refs/tags/")
    sha = git.resolve(f"refs/heads/{short}") or git.resolve(f"refs/tags/{short}")
    if sha is None:
        raise Refused(422, f"No ref found for: {ref}")
    workflow = find(world, repo, file, sha)
    if workflow is None or workflow.inputs is None:
        raise Refused(422, "Workflow does not have 'workflow_dispatch' trigger")
    _check_inputs(workflow.inputs, inputs)
    runs = world.store.count(WorkflowRun, repo_id=repo.id, path=workflow.path)
    now = world.now()
    return world.store.add(
        WorkflowRun(
            repo.id,
            workflow.path,
            workflow.name,
            short,
            sha,
            runs + 1,
            actor.account.id,
            json.dumps(inputs),
            created_at=now,
            updated_at=now,
        )
    )


def _check_inputs(declared: dict[str, dict[str, Any]], given: dict[str, Any]) -> None:
    if len(given) > 25:
        raise Refused(422, "Invalid request.\n\nNo more than 25 properties are allowed.")
    unexpected = sorted(set(given) - set(declared))
    if unexpected:
        raise Refused(422, f"Unexpected inputs provided: {json.dumps(unexpected)}")
    for name, about in declared.items():
        if about.get("required") and "default" not in about and given.get(name) in (None, ""):
            raise Refused(422, f"Required input '{name}' not provided")
