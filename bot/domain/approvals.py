"""Whose approvals count: per reviewer the latest review on this head, never the requester's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.domain.files import CommitId
from bot.domain.github import Permission, Review, ReviewState, User
from bot.domain.review_policy import ApprovalRule, Approvals


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of one reviewer, read live: role on the repository and membership of the teams that matter."""

    permission: Permission
    teams: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Verdict:
    """One reviewer's say: whether it counts, and why (not)."""

    login: str
    counted: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Tally:
    """How many approvals there are of how many needed, and what each reviewer's review was worth."""

    count: int
    needed: int
    destroy_count: int = 0
    destroy_needed: int = 0
    verdicts: tuple[Verdict, ...] = ()
    objections: tuple[str, ...] = ()
    """Logins of entitled reviewers whose latest review asks for changes."""
    by_policy: str = ""
    """Set where no person approves: the policy that does."""

    @property
    def enough(self) -> bool:
        """Whether the promotion may be merged as far as approvals go."""
        return self.count >= self.needed and self.destroy_count >= self.destroy_needed and not self.objections

    @property
    def approvers(self) -> tuple[str, ...]:
        """Logins whose approval counts."""
        return tuple(v.login for v in self.verdicts if v.counted)


def count_approvals(
    reviews: Sequence[Review],
    heads: Sequence[CommitId],
    rule: Approvals,
    excluded: Mapping[str, str],
    standings: Mapping[str, Standing],
) -> Tally:
    """Count the reviews against a rule; those of any head that carries the digest in force count.

    `excluded` maps logins (lower case) to the reason why their review never counts: the requester, commit authors.
    `standings` holds every reviewer's; who is missing has no access. The destroy rule is filled in by the caller.
    """
    verdicts = []
    objections = []
    latest = _latest(reviews)
    for review in latest:
        verdicts.append(_judge(review, heads, rule.from_, excluded, standings))
        if review.state is ReviewState.CHANGES_REQUESTED and _entitled(review.user, rule.from_, standings):
            objections.append(review.user.login)
    counted = [v.login for v in verdicts if v.counted]
    for_destroy = [
        login for login in counted if _login_entitled(login, rule.on_destroy.from_ or rule.from_, standings)
    ]
    return Tally(
        count=len(counted),
        needed=rule.count,
        destroy_count=len(for_destroy),
        verdicts=tuple(verdicts),
        objections=tuple(objections),
    )


def needs_for_destroy(rule: ApprovalRule, *, destroys: bool) -> int:
    """How many approvals a plan needs because it deletes or replaces."""
    return rule.count if destroys else 0


def is_entitled(login: str, allowed: Sequence[str], standing: Standing | None) -> bool:
    """Whether a person is among those that `team:`, `user:` and `perm:` entries name; none means write permission."""
    if standing is None:
        return False
    if not allowed:
        return standing.permission.rank >= Permission.WRITE.rank
    return any(_matches(entry, login, standing) for entry in allowed)


def _matches(entry: str, login: str, standing: Standing) -> bool:
    kind, _, name = entry.partition(":")
    match kind:
        case "user":
            return name.lower() == login.lower()
        case "team":
            return name.lower() in standing.teams
        case "perm":
            return name in set(Permission) and standing.permission.rank >= Permission(name).rank
        case _:
            return False


def _latest(reviews: Sequence[Review]) -> list[Review]:
    """Per reviewer the newest review that says yes or no; a comment neither adds nor takes away."""
    newest: dict[int, Review] = {}
    for review in sorted(reviews, key=lambda r: (r.submitted_at, r.id)):
        if review.state not in (ReviewState.COMMENTED, ReviewState.PENDING):
            newest[review.user.id] = review
    return sorted(newest.values(), key=lambda r: r.submitted_at)


def _judge(
    review: Review,
    heads: Sequence[CommitId],
    allowed: Sequence[str],
    excluded: Mapping[str, str],
    standings: Mapping[str, Standing],
) -> Verdict:
    login = review.user.login
    if review.state is ReviewState.CHANGES_REQUESTED:
        return Verdict(login, counted=False, reason="asks for changes")
    if review.state is ReviewState.DISMISSED:
        return Verdict(login, counted=False, reason="was dismissed")
    if review.user.bot:
        return Verdict(login, counted=False, reason="is a bot")
    if review.commit not in heads:
        seen, newest = (review.commit or "?")[:7], heads[-1][:7] if heads else "?"
        return Verdict(login, counted=False, reason=f"approved {seen}, not the head {newest}")
    if login.lower() in excluded:
        return Verdict(login, counted=False, reason=excluded[login.lower()])
    if not _login_entitled(login, allowed, standings):
        needed = ", ".join(allowed) if allowed else "write permission"
        return Verdict(login, counted=False, reason=f"is not entitled (needs {needed})")
    return Verdict(login, counted=True, reason="approved this head")


def _entitled(user: User, allowed: Sequence[str], standings: Mapping[str, Standing]) -> bool:
    return not user.bot and _login_entitled(user.login, allowed, standings)


def _login_entitled(login: str, allowed: Sequence[str], standings: Mapping[str, Standing]) -> bool:
    return is_entitled(login, allowed, standings.get(login.lower()))
