"""Branch rules: what a rule set asks for, who may pass it by, and what stands against a push or a merge."""

import fnmatch
from dataclasses import dataclass

from bot.sandbox.github.accounts import OrganisationMember, User
from bot.sandbox.github.auth import Actor
from bot.sandbox.github.git import ZERO, Git
from bot.sandbox.github.records import (
    CheckRun,
    CommitStatus,
    Json,
    PullRequest,
    Repository,
    Review,
    Ruleset,
    VerifiedCommit,
)
from bot.sandbox.github.world import ROLES, World

# The ids that GitHub uses for its own repository roles in bypass lists.
ROLE_IDS = {2: "maintain", 4: "write", 5: "admin"}
SATISFIED = ("success", "neutral", "skipped")


@dataclass(frozen=True, slots=True)
class Bypass:
    """Who may pass a rule set by: `actor_type` Integration, RepositoryRole, OrganizationAdmin, Team or User."""

    actor_type: str
    actor_id: int | None = None
    mode: str = "always"


@dataclass(frozen=True, slots=True)
class BranchRules:
    """The rules of a branch in short form; `required_checks` pairs a name with an App id or None.

    `required_reviews` None leaves direct pushes allowed; 0 asks for a pull request without asking for reviews.
    """

    required_checks: tuple[tuple[str, int | None], ...] = ()
    strict: bool = False
    required_reviews: int | None = None
    dismiss_stale_reviews: bool = False
    last_push_approval: bool = False
    linear_history: bool = False
    merge_queue: bool = False
    signatures: bool = False
    allow_force_push: bool = False
    allow_deletion: bool = False
    merge_methods: tuple[str, ...] = ("merge", "squash", "rebase")
    bypass: tuple[Bypass, ...] = ()

    def as_json(self) -> tuple[Json, ...]:
        """The rules in the shape of GitHub's rule set API."""
        rules: list[Json] = []
        if not self.allow_deletion:
            rules.append({"type": "deletion"})
        if not self.allow_force_push:
            rules.append({"type": "non_fast_forward"})
        if self.linear_history:
            rules.append({"type": "required_linear_history"})
        if self.signatures:
            rules.append({"type": "required_signatures"})
        if self.required_reviews is not None:
            rules.append({"type": "pull_request", "parameters": self._pull_request(self.required_reviews)})
        if self.required_checks:
            rules.append({"type": "required_status_checks", "parameters": self._checks()})
        if self.merge_queue:
            rules.append({"type": "merge_queue", "parameters": dict(_QUEUE_DEFAULTS)})
        return tuple(rules)

    def _pull_request(self, count: int) -> Json:
        return {
            "required_approving_review_count": count,
            "dismiss_stale_reviews_on_push": self.dismiss_stale_reviews,
            "require_code_owner_review": False,
            "require_last_push_approval": self.last_push_approval,
            "required_review_thread_resolution": False,
            "allowed_merge_methods": list(self.merge_methods),
        }

    def _checks(self) -> Json:
        return {
            "strict_required_status_checks_policy": self.strict,
            "do_not_enforce_on_create": False,
            "required_status_checks": [
                {"context": name} if app is None else {"context": name, "integration_id": app}
                for name, app in self.required_checks
            ],
        }


_QUEUE_DEFAULTS: Json = {
    "check_response_timeout_minutes": 60,
    "grouping_strategy": "ALLGREEN",
    "max_entries_to_build": 5,
    "max_entries_to_merge": 5,
    "merge_method": "MERGE",
    "min_entries_to_merge": 1,
    "min_entries_to_merge_wait_minutes": 5,
}


def set_rules(world: World, repo: Repository, branch: str, rules: BranchRules) -> Ruleset:
    """Replace the rule set of the branch (a name or a `fnmatch` pattern)."""
    with world.store.transaction():
        found = world.store.first(Ruleset, repo_id=repo.id, name=branch)
        if found is None:
            found = world.store.add(Ruleset(repo.id, branch, branch, created_at=world.now()))
        bypass = tuple(
            {"actor_id": item.actor_id, "actor_type": item.actor_type, "bypass_mode": item.mode}
            for item in rules.bypass
        )
        return world.store.change(found, rules=rules.as_json(), bypass=bypass, updated_at=world.now())


def clear_rules(world: World, repo: Repository, branch: str) -> None:
    """Remove the rule set of the branch if it has one."""
    found = world.store.first(Ruleset, repo_id=repo.id, name=branch)
    if found:
        world.store.remove(found)


def rulesets_for(world: World, repo: Repository, branch: str) -> list[Ruleset]:
    """The rule sets that hold for the branch."""
    found = world.store.find(Ruleset, repo_id=repo.id)
    return [item for item in found if fnmatch.fnmatchcase(branch, item.pattern)]


def rules_of(rulesets: list[Ruleset], kind: str) -> list[Json]:
    """The parameters of every rule of one type."""
    return [rule.get("parameters", {}) for item in rulesets for rule in item.rules if rule["type"] == kind]


def is_protected(world: World, repo: Repository, branch: str) -> bool:
    """Whether any rule holds for the branch."""
    return any(item.rules for item in rulesets_for(world, repo, branch))


def may_bypass(world: World, ruleset: Ruleset, actor: Actor, repo: Repository, *, merging: bool) -> bool:
    """Whether the rule set lets the caller by; mode `pull_request` counts only when a pull request is merged."""
    return any(
        (item["bypass_mode"] != "pull_request" or merging) and _is_bypass_actor(world, item, actor, repo)
        for item in ruleset.bypass
    )


def _is_bypass_actor(world: World, item: Json, actor: Actor, repo: Repository) -> bool:
    kind, wanted = item["actor_type"], item["actor_id"]
    if kind == "Integration":
        return actor.app_id is not None and actor.app_id == wanted
    user = actor.user
    if user is None or actor.app_id is not None:
        return False
    if kind == "RepositoryRole":
        return ROLES.index(world.role(user, repo)) >= ROLES.index(ROLE_IDS[wanted])
    if kind == "OrganizationAdmin":
        member = world.store.first(OrganisationMember, org_id=repo.owner_id, user_id=user.id)
        return user.id == repo.owner_id or (member is not None and member.role == "admin")
    if kind == "Team":
        return world.in_team(wanted, user)
    return bool(kind == "User" and user.id == wanted)


def binding_rulesets(
    world: World, repo: Repository, branch: str, actor: Actor, *, merging: bool = False
) -> list[Ruleset]:
    """The rule sets of the branch that the caller may not pass by."""
    found = rulesets_for(world, repo, branch)
    return [item for item in found if not may_bypass(world, item, actor, repo, merging=merging)]


# ---- pushes


@dataclass(frozen=True, slots=True)
class Push:
    """One branch that is to move; ZERO stands for "is not there"."""

    branch: str
    old: str
    new: str


def push_problems(world: World, repo: Repository, actor: Actor, push: Push, git: Git) -> list[str]:
    """What stands against moving a branch by a push; empty if nothing does."""
    rulesets = binding_rulesets(world, repo, push.branch, actor)
    kinds = {rule["type"] for item in rulesets for rule in item.rules}
    problems: list[str] = []
    if push.new == ZERO:
        return ["Cannot delete this branch"] if "deletion" in kinds else []
    if push.old == ZERO:
        return ["Cannot create ref due to creations being restricted."] if "creation" in kinds else []
    if "update" in kinds:
        problems.append("Cannot update this protected ref.")
    if "non_fast_forward" in kinds and not git.is_ancestor(push.old, push.new):
        problems.append("Cannot force-push to this branch")
    if "pull_request" in kinds or "merge_queue" in kinds:
        problems.append("Changes must be made through a pull request.")
    if "required_linear_history" in kinds and git.count("--merges", f"{push.old}..{push.new}"):
        problems.append("This branch must not contain merge commits.")
    if "required_signatures" in kinds:
        problems += signature_problems(world, repo, git, f"{push.old}..{push.new}")
    return problems + check_problems(world, repo, rulesets, push.new)


def signature_problems(world: World, repo: Repository, git: Git, span: str) -> list[str]:
    """What is said of commits in a span of which the server knows no verified signature."""
    signed = {item.sha for item in world.store.find(VerifiedCommit, repo_id=repo.id)}
    unsigned = [item.sha for item in git.commits(span) if item.sha not in signed]
    return [f"Commits must have verified signatures. Found {len(unsigned)} violation(s)."] if unsigned else []


# ---- checks


def check_problems(world: World, repo: Repository, rulesets: list[Ruleset], sha: str) -> list[str]:
    """What the required checks of the rule sets still lack on a commit."""
    problems: list[str] = []
    for parameters in rules_of(rulesets, "required_status_checks"):
        for wanted in parameters["required_status_checks"]:
            state = check_state(world, repo, sha, wanted["context"], wanted.get("integration_id"))
            if state == "expected":
                problems.append(f'Required status check "{wanted["context"]}" is expected.')
            elif state == "pending":
                problems.append(f'Required status check "{wanted["context"]}" is in progress.')
            elif state == "failure":
                problems.append(f'Required status check "{wanted["context"]}" is failing.')
    return list(dict.fromkeys(problems))


def check_state(world: World, repo: Repository, sha: str, context: str, app_id: int | None) -> str:
    """`success`, `failure`, `pending` or `expected` for a check or status of this name on the commit.

    The newest run of the name counts; with an App id only that App's runs and statuses do.
    """
    runs = [
        run
        for run in world.store.find(CheckRun, repo_id=repo.id, head_sha=sha, name=context)
        if app_id is None or run.app_id == app_id
    ]
    statuses = [
        item
        for item in world.store.find(CommitStatus, repo_id=repo.id, sha=sha, context=context)
        if app_id is None or item.app_id == app_id
    ]
    states = [_run_state(runs[-1])] if runs else []
    if statuses:
        states.append({"success": "success", "pending": "pending"}.get(statuses[-1].state, "failure"))
    return next((state for state in ("failure", "pending", "success") if state in states), "expected")


def _run_state(run: CheckRun) -> str:
    if run.status != "completed":
        return "pending"
    return "success" if run.conclusion in SATISFIED else "failure"


# ---- reviews and merges


def latest_reviews(world: World, repo: Repository, pull: PullRequest) -> dict[int, Review]:
    """The review of each person that counts: the last one that approves, objects or was dismissed."""
    found = world.store.find(Review, repo_id=repo.id, number=pull.number)
    return {item.author_id: item for item in found if item.state not in ("COMMENTED", "PENDING")}


def counted_reviews(world: World, repo: Repository, pull: PullRequest) -> tuple[list[Review], list[Review]]:
    """The approvals and the objections that rules count: those of people with write permission."""
    approvals: list[Review] = []
    objections: list[Review] = []
    for review in latest_reviews(world, repo, pull).values():
        user = world.store.need(User, review.author_id)
        if user.app_id is not None or not world.has_role(user, repo, "write"):
            continue
        if review.state == "APPROVED":
            approvals.append(review)
        elif review.state == "CHANGES_REQUESTED":
            objections.append(review)
    return approvals, objections


def review_problems(world: World, repo: Repository, rulesets: list[Ruleset], pull: PullRequest) -> list[str]:
    """What the review rules of the rule sets still lack."""
    approvals, objections = counted_reviews(world, repo, pull)
    problems: list[str] = []
    for parameters in rules_of(rulesets, "pull_request"):
        wanted = parameters["required_approving_review_count"]
        if wanted and objections:
            problems.append("Changes were requested by reviewers with write access.")
        if len(approvals) < wanted:
            noun = "review is" if wanted == 1 else "reviews are"
            problems.append(f"At least {wanted} approving {noun} required by reviewers with write access.")
        if parameters["require_last_push_approval"] and not any(
            item.commit_id == pull.head_sha and item.author_id != pull.last_pusher_id for item in approvals
        ):
            problems.append("New changes require approval from someone other than the last pusher.")
    return list(dict.fromkeys(problems))


def review_decision(world: World, repo: Repository, pull: PullRequest) -> str | None:
    """GraphQL's `reviewDecision`: None if the branch asks for no review."""
    rulesets = rulesets_for(world, repo, pull.base_ref)
    wanted = [item["required_approving_review_count"] for item in rules_of(rulesets, "pull_request")]
    if not any(wanted):
        return None
    approvals, objections = counted_reviews(world, repo, pull)
    if objections:
        return "CHANGES_REQUESTED"
    return "APPROVED" if len(approvals) >= max(wanted) else "REVIEW_REQUIRED"


def merge_problems(world: World, repo: Repository, rulesets: list[Ruleset], pull: PullRequest) -> list[str]:
    """What the rule sets still lack before the pull request may be merged."""
    problems = review_problems(world, repo, rulesets, pull)
    problems += check_problems(world, repo, rulesets, pull.head_sha)
    strict = any(
        item["strict_required_status_checks_policy"] for item in rules_of(rulesets, "required_status_checks")
    )
    if strict and is_behind(world, repo, pull):
        problems.append("The head branch is not up to date with the base branch.")
    return problems


def is_behind(world: World, repo: Repository, pull: PullRequest) -> bool:
    """Whether the base branch has commits that the head lacks."""
    git = world.git(repo)
    base = git.ref(f"refs/heads/{pull.base_ref}")
    return base is not None and not git.is_ancestor(base, pull.head_sha)
