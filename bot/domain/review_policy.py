"""What Kargo has no words for: how Stages are reviewed, applied and rolled back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.domain.model import Metadata, Selector, Variable


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """How many of whom; `from_` lists `team:`, `user:` and `perm:` entries, empty means write permission."""

    count: int = 1
    from_: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Approvals:
    """Whose approvals a promotion needs, and what a plan that deletes or replaces needs."""

    count: int = 1
    from_: tuple[str, ...] = ()
    requester: bool = False
    on_destroy: ApprovalRule = ApprovalRule(count=2)


DEFAULT_COMMANDS: Mapping[str, str] = {
    "promote": "write",
    "plan": "write",
    "apply": "approvers",
    "approve": "approvers",
    "rollback": "write",
    "freight": "write",
    "freeze": "maintain",
}
"""Who may give a command, by default; commands that are not listed need write permission."""

_LIKE: Mapping[str, str] = {"cancel": "plan", "resume": "hold", "unfreeze": "freeze", "doctor": "plan"}
"""Commands for which, where the policy does not name them, whoever may give another one may."""


_DEFAULT = Metadata(name="default")
_EVERYTHING = Selector()


@dataclass(frozen=True, slots=True)
class ReviewPolicy:
    """What Kargo has no words for: how the Stages that it selects are reviewed, applied and rolled back."""

    metadata: Metadata = _DEFAULT
    selector: Selector = _EVERYTHING
    review: str = "PullRequest"
    apply: str = "AfterMerge"
    approvals: Approvals = Approvals()
    auto_merge: bool = False
    auto_merge_allow: tuple[str, ...] = ()
    supersede: str = "UntilApproved"
    commands: Mapping[str, str] = field(default_factory=lambda: DEFAULT_COMMANDS)
    rollback_count: int = 1
    rollback_infra: str = "WithFreight"
    review_in: str = ""
    unchanged_inputs: str = "Skip"
    show_other_repositories: bool = False
    effects_before_review: bool = False
    write_back: str = "Push"
    plan_env: tuple[Variable, ...] = ()
    plan_max_age: float = 86400.0
    sensitive_outputs: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    state_in_git: bool = False
    record_file: str = ""
    argocd_server: str = "default"
    argocd_settle: float = 20.0
    argocd_timeout: float = 900.0
    drift_schedule: str = ""
    drift_correct: tuple[str, ...] = ()


def right_to(policy: ReviewPolicy, command: str) -> str:
    """Who may give a command under a policy, in the policy's words."""
    return policy.commands.get(command) or policy.commands.get(_LIKE.get(command, command), "write")
