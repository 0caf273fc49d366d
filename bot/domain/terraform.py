"""Terraform's plan, outputs and failures as values; binary and wire details stay in the adapter.

Shapes follow the documented JSON of `terraform show -json` and `terraform output -json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from bot.domain.files import File
from bot.domain.values import Json, Value


class Action(StrEnum):
    """What a plan does to one resource; replace is either order of delete and create."""

    NO_OP = "no-op"
    READ = "read"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    REPLACE = "replace"
    FORGET = "forget"


_DETAIL = 300
"""Characters of an error's details that are said in one line; the log has all of it."""


@dataclass(frozen=True, slots=True)
class AttributeChange:
    """One attribute path (dotted, list index as a part) that differs; marks stand for unknown and sensitive."""

    path: str
    before: Value
    after: Value
    forces_replacement: bool = False
    fingerprint: str = ""
    """A keyed hash of `after` where that holds a secret: in plans that are kept, secrets themselves are emptied."""


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """What the plan does at one address."""

    address: str
    type: str
    action: Action
    attributes: tuple[AttributeChange, ...] = ()
    importing: bool = False
    moved_from: str = ""
    reason: str = ""
    """Terraform's own `action_reason`, if any."""


@dataclass(frozen=True, slots=True)
class OutputChange:
    """What the plan does to one root output; `after` holds marks where it is not known or sensitive.

    `absent` is true if the output will not exist after the apply (deleted, or known to be null).
    """

    name: str
    action: Action
    before: Value
    after: Value
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A complete plan; `digest` binds an approval (see `plan_digest`), `result` is Terraform's closing sentence."""

    resources: tuple[ResourceChange, ...]
    drift: tuple[ResourceChange, ...]
    outputs: tuple[OutputChange, ...]
    unchanged_outputs: Mapping[str, Value]
    digest: str
    version: str
    result: str
    resource_lines: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Address of a resource to file (relative to the directory) and line, as far as known."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """What the digest is made of: a name that a person can read to a keyed hash (see `plan_parts`)."""
    backend: str = ""
    """The type of the backend, `local` if the configuration names none."""
    state_in_tree: bool = False
    """Whether the state is a file of the checked-out tree, which an apply changes and the caller must commit."""

    @property
    def changes(self) -> tuple[ResourceChange, ...]:
        """The entries that are neither no-op nor read."""
        return tuple(r for r in self.resources if r.action not in (Action.NO_OP, Action.READ))

    @property
    def destroys(self) -> bool:
        """Whether anything is deleted or replaced."""
        return any(r.action in (Action.DELETE, Action.REPLACE) for r in self.resources)

    @property
    def is_empty(self) -> bool:
        """Whether neither resources nor outputs change, and nothing is only imported or moved in the state."""
        if self.changes or any(o.action is not Action.NO_OP for o in self.outputs):
            return False
        return not any(r.importing or r.moved_from for r in self.resources)


@dataclass(frozen=True, slots=True)
class Output:
    """One root output as the state holds it."""

    value: Json
    sensitive: bool = False
    type: Json = None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning of Terraform; `path` is relative to the directory, `line` 0 if it has none."""

    severity: str
    summary: str
    detail: str = ""
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Lock:
    """Who holds the state lock, as far as the backend tells; texts may be empty."""

    id: str = ""
    who: str = ""
    operation: str = ""
    created: str = ""
    message: str = ""


# -- what came of a run -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan was made. `text` is the masked human text; `bundle` is sealed and can be applied once."""

    plan: Plan
    text: str
    bundle: bytes


@dataclass(frozen=True, slots=True)
class Applied:
    """The apply succeeded; `result` is Terraform's closing sentence(s), `text` the masked log.

    `state_files` are the files of the tree that hold the state, if it is kept there: path in the checkout to new
    content. They are to be committed, or the state is lost. They are never shown.
    """

    result: str
    text: str
    state_files: Mapping[str, File] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs that the state holds."""

    values: Mapping[str, Output]


@dataclass(frozen=True, slots=True)
class Failed:
    """Terraform said no; `text` is the masked log, bounded. `partial` if an apply may have changed something.

    `state_files` as in `Applied`.
    """

    diagnostics: tuple[Diagnostic, ...]
    text: str
    partial: bool = False
    state_files: Mapping[str, File] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """The first error in one line: what, where, and the beginning of its details."""
        first = next((d for d in self.diagnostics if d.severity == "error"), None)
        if first is None:
            return "Terraform failed without a diagnostic"
        place = f" ({first.path}:{first.line})" if first.path and first.line else ""
        detail = " ".join(first.detail.split())
        shown = detail if len(detail) <= _DETAIL else f"{detail[:_DETAIL]}…"
        return f"{first.summary}{place}" + (f": {shown}" if shown else "")


@dataclass(frozen=True, slots=True)
class StateLocked:
    """Somebody else holds the state; nothing was done."""

    lock: Lock


@dataclass(frozen=True, slots=True)
class StalePlan:
    """The state moved since the saved plan was made; nothing was done."""

    message: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The run was stopped by time limit, cancel or drain; an apply may have changed something.

    `state_files` as in `Applied`.
    """

    reason: str
    partial: bool = False
    state_files: Mapping[str, File] = field(default_factory=dict)


PlanOutcome = Planned | Failed | StateLocked | Interrupted
ApplyOutcome = Applied | Failed | StateLocked | StalePlan | Interrupted
OutputOutcome = Outputs | Failed | StateLocked | Interrupted


@dataclass(frozen=True, slots=True)
class Counts:
    """How many of each, as a person reads them."""

    create: int = 0
    update: int = 0
    replace: int = 0
    delete: int = 0
    import_: int = 0
    move: int = 0
    forget: int = 0
    outputs: int = 0


def count(plan: Plan) -> Counts:
    """Count what a plan does; a replacement counts once, as `replace`."""
    by_action = [r.action for r in plan.resources]
    return Counts(
        create=by_action.count(Action.CREATE),
        update=by_action.count(Action.UPDATE),
        replace=by_action.count(Action.REPLACE),
        delete=by_action.count(Action.DELETE),
        import_=sum(r.importing for r in plan.resources),
        move=sum(bool(r.moved_from) for r in plan.resources),
        forget=by_action.count(Action.FORGET),
        outputs=sum(o.action is not Action.NO_OP for o in plan.outputs),
    )
