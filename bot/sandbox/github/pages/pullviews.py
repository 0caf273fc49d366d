"""Pull requests as pages show them: their state, their list, and what the person may do with one."""

from __future__ import annotations

from dataclasses import dataclass

from bot.sandbox.github import rules
from bot.sandbox.github.accounts import User
from bot.sandbox.github.auth import person
from bot.sandbox.github.forks import head_repository
from bot.sandbox.github.pages.checkviews import Check, checks_of, is_under_way, required_state
from bot.sandbox.github.pages.history import brought
from bot.sandbox.github.pages.people import Who, who
from bot.sandbox.github.records import Comment, Issue, PullRequest, Repository
from bot.sandbox.github.world import World


@dataclass(frozen=True, slots=True)
class Listed:
    """A pull request in the list; `check` is the tone and the words of its required checks."""

    number: int
    title: str
    state: str
    author: Who
    head: str
    base: str
    at: str
    labels: tuple[str, ...]
    comments: int
    check: tuple[str, str]
    approvals: int


@dataclass(frozen=True, slots=True)
class Panel:
    """What is known of merging an open pull request, and what this person may do with it.

    `state` is `clean`, `blocked`, `conflict` or `unknown`; `reasons` are what GitHub's rules still ask for.
    """

    state: str
    reasons: tuple[str, ...]
    checks: tuple[Check, ...]
    methods: tuple[str, ...]
    may_write: bool
    may_close: bool
    may_review: bool
    may_bypass: bool
    behind: bool

    @property
    def busy(self) -> bool:
        """Whether something about it will change by itself."""
        return self.state == "unknown" or is_under_way(list(self.checks))


def state_of(issue: Issue, pull: PullRequest | None) -> str:
    """`open`, `draft`, `merged` or `closed`."""
    if pull and pull.merged:
        return "merged"
    return "draft" if issue.state == "open" and pull and pull.draft else issue.state


def head_label(world: World, repo: Repository, pull: PullRequest) -> str:
    """The branch that a pull request comes from, with its owner if that is a fork."""
    source = head_repository(world, pull)
    return pull.head_ref if source.id == repo.id else f"{world.owner(source).login}:{pull.head_ref}"


def list_pulls(world: World, repo: Repository, state: str) -> list[Listed]:
    """The pull requests that are `open` or `closed`, newest first."""
    pulls = world.store.find(PullRequest, repo_id=repo.id)
    found = []
    for pull in reversed(pulls):
        issue = world.issue(repo, pull.number)
        if issue.state != state:
            continue
        approvals, _ = rules.counted_reviews(world, repo, pull)
        found.append(
            Listed(
                pull.number,
                issue.title,
                state_of(issue, pull),
                who(world, issue.author_id),
                head_label(world, repo, pull),
                pull.base_ref,
                pull.merged_at or issue.closed_at or issue.created_at,
                issue.labels,
                world.store.count(Comment, repo_id=repo.id, number=pull.number),
                required_state(world, repo, pull),
                len(approvals),
            )
        )
    return found


def count_pulls(world: World, repo: Repository) -> dict[str, int]:
    """How many pull requests are `open` and `closed`."""
    return {
        state: world.store.count(Issue, repo_id=repo.id, is_pull=True, state=state)
        for state in ("open", "closed")
    }


def panel(world: World, repo: Repository, pull: PullRequest, visitor: User | None) -> Panel:
    """What stands between an open pull request and its merge."""
    found = rules.rulesets_for(world, repo, pull.base_ref)
    reasons = rules.merge_problems(world, repo, found, pull)
    issue = world.issue(repo, pull.number)
    may_write = visitor is not None and world.has_role(visitor, repo, "write")
    own = visitor is not None and visitor.id == issue.author_id
    state = "blocked" if reasons else "clean"
    if pull.mergeable is None and issue.state == "open":
        state = "unknown"
    elif pull.mergeable is False:
        state = "conflict"
    allowed = (
        ("merge", repo.allow_merge_commit),
        ("squash", repo.allow_squash_merge),
        ("rebase", repo.allow_rebase_merge),
    )
    bypass = visitor is not None and all(
        rules.may_bypass(world, item, person(visitor), repo, merging=True) for item in found
    )
    return Panel(
        state=state,
        reasons=tuple(reasons),
        checks=tuple(checks_of(world, repo, pull.head_sha, pull.base_ref)),
        methods=tuple(name for name, on in allowed if on),
        may_write=may_write,
        may_close=may_write or own,
        may_review=visitor is not None and not own,
        may_bypass=bool(reasons) and may_write and bypass,
        behind=brought(world.git(repo), pull).behind,
    )
