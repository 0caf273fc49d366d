"""Check runs as pages show them: the newest of each name, with the words and the colour of their state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from bot.sandbox.github import rules
from bot.sandbox.github.accounts import App
from bot.sandbox.github.pages.markdown import NOTHING, render_comment
from bot.sandbox.github.records import CheckRun, CommitStatus, PullRequest, Repository
from bot.sandbox.github.world import World

_TONES: Final = {
    "success": "good",
    "failure": "bad",
    "timed_out": "bad",
    "cancelled": "soft",
    "action_required": "warn",
    "neutral": "soft",
    "skipped": "soft",
    "stale": "soft",
}
_WORDS: Final = {
    "queued": "queued",
    "in_progress": "in progress",
    "success": "successful",
    "failure": "failed",
    "timed_out": "timed out",
    "action_required": "needs action",
}


@dataclass(frozen=True, slots=True)
class Annotation:
    """A remark on a line of a file."""

    path: str
    line: int
    level: str
    title: str
    message: str


@dataclass(frozen=True, slots=True)
class Button:
    """A button of a check run."""

    label: str
    description: str
    identifier: str


@dataclass(frozen=True, slots=True)
class Check:
    """The newest check run or status of a name on a commit; `id` is 0 for one that is only expected."""

    name: str
    app: str
    tone: str
    state: str
    required: bool
    id: int = 0
    title: str = ""
    summary: Markup = NOTHING
    text: Markup = NOTHING
    details_url: str = ""
    started_at: str = ""
    completed_at: str = ""
    completed: bool = False
    annotations: tuple[Annotation, ...] = ()
    buttons: tuple[Button, ...] = ()


def checks_of(world: World, repo: Repository, sha: str, base: str | None = None) -> list[Check]:
    """The checks on a commit by name; with a `base` branch the ones that it requires and that are missing too."""
    required = _required(world, repo, base) if base is not None else {}
    newest = {
        (run.app_id, run.name): run for run in world.store.find(CheckRun, repo_id=repo.id, head_sha=sha)
    }
    found = [_check(world, repo, run, required) for run in newest.values()]
    statuses = {item.context: item for item in world.store.find(CommitStatus, repo_id=repo.id, sha=sha)}
    found += [_status(item, required) for item in statuses.values()]
    missing = set(required) - {each.name for each in found}
    found += [Check(name, "", "warn", "expected", required=True) for name in missing]
    return sorted(found, key=lambda each: (not each.required, each.name))


def check_of(world: World, repo: Repository, run: CheckRun) -> Check:
    """One check run."""
    return _check(world, repo, run, {})


def required_state(world: World, repo: Repository, pull: PullRequest) -> tuple[str, str]:
    """The tone and the words for the required checks of a pull request: the worst state of any of them."""
    checks = [each for each in checks_of(world, repo, pull.head_sha, pull.base_ref) if each.required]
    order = ("bad", "warn", "busy", "soft", "good")
    worst = min(checks, key=lambda each: order.index(each.tone), default=None)
    return (worst.tone, f"{worst.name}: {worst.title or worst.state}") if worst else ("", "")


def is_under_way(checks: list[Check]) -> bool:
    """Whether any of them is still to finish."""
    return any(not each.completed for each in checks)


def _required(world: World, repo: Repository, base: str) -> dict[str, int | None]:
    found = rules.rulesets_for(world, repo, base)
    return {
        wanted["context"]: wanted.get("integration_id")
        for parameters in rules.rules_of(found, "required_status_checks")
        for wanted in parameters["required_status_checks"]
    }


def _check(world: World, repo: Repository, run: CheckRun, required: dict[str, int | None]) -> Check:
    home = world.full_name(repo)
    completed = run.status == "completed"
    state = (run.conclusion or "") if completed else run.status
    return Check(
        name=run.name,
        app=world.store.need(App, run.app_id).name,
        tone=_TONES.get(state, "soft") if completed else "busy",
        state=_WORDS.get(state, state),
        # A check of the right name by another App does not count, so it is not shown as the required one.
        required=run.name in required and required[run.name] in (None, run.app_id),
        id=run.id,
        title=run.title or "",
        summary=render_comment(run.summary, home),
        text=render_comment(run.text, home),
        details_url=run.details_url or "",
        started_at=run.started_at or "",
        completed_at=run.completed_at or "",
        completed=completed,
        annotations=tuple(_annotation(item) for item in run.annotations),
        buttons=tuple(Button(item["label"], item["description"], item["identifier"]) for item in run.actions),
    )


def _annotation(item: dict[str, Any]) -> Annotation:
    return Annotation(
        item["path"], item["start_line"], item["annotation_level"], item.get("title") or "", item["message"]
    )


def _status(item: CommitStatus, required: dict[str, int | None]) -> Check:
    tones = {"success": "good", "pending": "busy"}
    return Check(
        name=item.context,
        app="commit status",
        tone=tones.get(item.state, "bad"),
        state=_WORDS.get(item.state, item.state),
        required=item.context in required and required[item.context] in (None, item.app_id),
        title=item.description or "",
        details_url=item.target_url or "",
        completed=item.state != "pending",
    )
