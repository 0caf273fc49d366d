"""`wait-for-approval`: people agree on the pull request.

Before the cut these are reviews of the promotion's head; behind it an answer that a person gives after the merge.
Kargo's claims become GitHub's: `groups` and a `role` name a team of the repository's organisation, any other claim
a login. One eligible person who objects ends it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bot.domain.github import Permission, Repository, Review, ReviewState, User
from bot.domain.promotion import StepStatus
from bot.domain.review import GateRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Unknown, Value
from bot.ports import GitHub
from bot.steps.anticipation import is_behind_cut
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.options import Options

KIND = StepKind("wait-for-approval", StepClass.WAIT)

_TOO_LATE = (
    "wait-for-approval stands behind an effect, where there is no pull request left to approve; put it before the "
    "first apply or effect, or split the Stage in two"
)

_TEAM_CLAIMS = ("groups", "group", "team", "teams")
_WRITE = Permission.WRITE.rank


@dataclass(frozen=True, slots=True)
class Approver:
    """Who may approve: a team or a login. Without a required one nothing goes on."""

    team: str
    login: str
    required: bool

    def __str__(self) -> str:
        return f"team {self.team}" if self.team else self.login


@dataclass(frozen=True, slots=True)
class Config:
    """Who may approve (nobody named: write permission), how many must, and how often it is looked at."""

    approvers: tuple[Approver, ...]
    minimum: int
    poll_interval: float


@dataclass(frozen=True, slots=True)
class Poll:
    """What the reviews say: responses in Kargo's shape, who is missing, who objects."""

    responses: list[Value]
    missing: str
    objection: str


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown approver."""
    options = Options(KIND.name, given)
    return Config(
        approvers=tuple(_approver(item) for item in options.each("approvers")),
        minimum=int(options.number("minApprovals", 1)),
        poll_interval=options.duration("pollInterval", 30.0),
    )


def _approver(item: Options) -> Approver:
    claim, value = item.address("claim"), item.address("value")
    team = item.address("role") or (value if claim in _TEAM_CLAIMS else "")
    return Approver(team, "" if team else value, item.flag("required"))


@dataclass(frozen=True, slots=True)
class WaitForApproval:
    """Reads reviews."""

    github: GitHub

    @property
    def kind(self) -> StepKind:
        """A wait."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """The gate as the reviews of the head stand; behind the cut it fails, since nobody could answer there."""
        wanted = parse(config)
        subject = f"approval by {_names(wanted)}"
        later: dict[str, Value] = {"responses": Unknown(f"known after step: {context.alias}.responses")}
        if is_behind_cut(context):
            return failed(context.alias, _TOO_LATE)
        poll = await self._poll(wanted, context)
        reason = poll.objection or poll.missing
        record = GateRecord(subject, open=not reason, reason=reason)
        return StepResult(None, later, message=reason, record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Succeeded with the responses once enough people agree."""
        wanted = parse(config)
        poll = await self._poll(wanted, context)
        if poll.objection:
            return failed(context.alias, f"wait-for-approval: {poll.objection}")
        if not poll.missing:
            return StepResult(output={"responses": poll.responses})
        return StepResult(StepStatus.RUNNING, message=poll.missing, retry_after=wanted.poll_interval)

    async def _poll(self, wanted: Config, context: StepContext) -> Poll:
        promotion = context.promotion
        repository = self.github.repository_of(promotion.target.url) if promotion.target is not None else None
        if repository is None or promotion.pull is None:
            return Poll([], f"waits for approval by {_names(wanted)}; the pull request is not open yet", "")
        reviews = await self.github.list_reviews(repository, promotion.pull)
        approvals: dict[str, tuple[Review, list[Approver]]] = {}
        objection = ""
        for review in _latest(reviews):
            entitled = await self._entitled(review.user, wanted, repository)
            if entitled is None or review.user.bot:
                continue
            if review.state is ReviewState.CHANGES_REQUESTED:
                objection = f"{review.user.login} asks for changes"
            elif review.state is ReviewState.APPROVED and review.commit == promotion.head:
                approvals[review.user.login] = (review, entitled)
        return Poll(
            [_response(review) for review, _ in approvals.values()], _missing(wanted, approvals), objection
        )

    async def _entitled(self, user: User, wanted: Config, repository: Repository) -> list[Approver] | None:
        """As whom a person may approve, None if not at all."""
        if not wanted.approvers:
            permission = await self.github.get_permission(repository, user.login)
            return [] if permission.rank >= _WRITE else None
        found = []
        for approver in wanted.approvers:
            if approver.login.lower() == user.login.lower() and approver.login:
                found.append(approver)
            elif approver.team:
                organisation, _, team = approver.team.rpartition("/")
                if await self.github.is_team_member(organisation or repository.owner, team, user.login):
                    found.append(approver)
        return found or None


def _latest(reviews: Iterable[Review]) -> list[Review]:
    """Each person's last review that says something."""
    latest: dict[int, Review] = {}
    for review in reviews:
        if review.state not in (ReviewState.COMMENTED, ReviewState.PENDING):
            latest[review.user.id] = review
    return list(latest.values())


def _missing(wanted: Config, approvals: dict[str, tuple[Review, list[Approver]]]) -> str:
    granted = {approver for _, entitled in approvals.values() for approver in entitled}
    required = [approver for approver in wanted.approvers if approver.required and approver not in granted]
    if required:
        return f"waits for approval by {', '.join(map(str, required))}"
    if len(approvals) < wanted.minimum:
        return f"has {len(approvals)} of {wanted.minimum} approvals by {_names(wanted)}"
    return ""


def _names(wanted: Config) -> str:
    return " or ".join(map(str, wanted.approvers)) or "somebody with write permission"


def _response(review: Review) -> Value:
    time = review.submitted_at.isoformat()
    return {"user": review.user.login, "action": "approve", "time": time, "message": ""}
