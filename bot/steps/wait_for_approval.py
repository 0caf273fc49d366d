"""`wait-for-approval`: people agree on the pull request.

Before the cut these are reviews of the promotion's head, and one eligible person who objects ends it. Behind the cut
nobody has reviewed what has happened since: there people say `/apply`, each counts once, and what was said stays.
`/cancel` ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.domain.github import Permission, Repository, Review, ReviewState, User
from bot.domain.promotion import StepStatus
from bot.domain.review import GateRecord
from bot.domain.step_kinds import StepClass, StepKind, short_alias
from bot.domain.values import Unknown, Value
from bot.ports import GitHub
from bot.ports.answers import AnswerStore
from bot.steps.anticipation import is_behind_cut
from bot.steps.approvers import Approver, find_roles, name_approvers, parse_approvers
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.gates import ask_later, is_asked_later
from bot.steps.options import Options

KIND = StepKind("wait-for-approval", StepClass.WAIT)

_WRITE = Permission.WRITE.rank
_LEAST_PAUSE = 60.0
"""Seconds between two looks at what people said behind the cut: each `/apply` wakes the walk."""


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
        approvers=parse_approvers(KIND.name, given),
        minimum=int(options.number("minApprovals", 1)),
        poll_interval=options.duration("pollInterval", 30.0),
    )


@dataclass(frozen=True, slots=True)
class WaitForApproval:
    """Reads reviews, and behind the cut what people said to it."""

    github: GitHub
    answers: AnswerStore

    @property
    def kind(self) -> StepKind:
        """A wait."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """The gate as the reviews of the head stand; behind the cut it is asked after the merge."""
        wanted = parse(config)
        subject = f"approval by {_names(wanted)}"
        later: dict[str, Value] = {"responses": Unknown(f"known after step: {context.alias}.responses")}
        if is_behind_cut(context):
            return ask_later(subject, later)
        poll = await self._poll(wanted, context)
        reason = poll.objection or poll.missing
        record = GateRecord(subject, open=not reason, reason=reason)
        return StepResult(None, later, message=reason, record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Succeeded with the responses once enough people agree."""
        wanted = parse(config)
        if is_asked_later(context):
            return await self._count(wanted, config, context)
        poll = await self._poll(wanted, context)
        if poll.objection:
            return failed(context.alias, f"wait-for-approval: {poll.objection}")
        if not poll.missing:
            return StepResult(output={"responses": poll.responses})
        return StepResult(StepStatus.RUNNING, message=poll.missing, retry_after=wanted.poll_interval)

    async def _count(self, wanted: Config, config: Given, context: StepContext) -> StepResult:
        """What was said behind the cut; the journal says what is asked, for whoever takes an answer."""
        if context.promotion.pull is None:
            return failed(
                context.alias, f"{KIND.name}: there is no pull request on which anybody could approve"
            )
        kept = await self.answers.list_answers(context.promotion.id)
        given = [answer for answer in kept if answer.alias == context.alias and answer.person]
        named = {str(approver): approver for approver in wanted.approvers}
        counted = {
            answer.person: [named[role] for role in answer.roles if role in named]
            for answer in given
            if not named or set(answer.roles) & set(named)
        }
        missing = _missing(wanted, counted, name_approvers(wanted.approvers, "whoever may `/apply`"))
        if not missing:
            said = [_said(answer.by, answer.at) for answer in given if answer.person in counted]
            return StepResult(output={"responses": said})
        return StepResult(
            StepStatus.RUNNING,
            message=f"{short_alias(context.alias)} {missing}: they comment `/apply`",
            retry_after=max(wanted.poll_interval, _LEAST_PAUSE),
            detail={"asks": dict(config)},
        )

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
            [_said(review.user.login, review.submitted_at) for review, _ in approvals.values()],
            _missing(wanted, {login: entitled for login, (_, entitled) in approvals.items()}, _names(wanted)),
            objection,
        )

    async def _entitled(self, user: User, wanted: Config, repository: Repository) -> list[Approver] | None:
        """As whom a person may approve, None if not at all."""
        if not wanted.approvers:
            permission = await self.github.get_permission(repository, user.login)
            return [] if permission.rank >= _WRITE else None
        return await find_roles(self.github, user, wanted.approvers, repository) or None


def _latest(reviews: Iterable[Review]) -> list[Review]:
    """Each person's last review that says something."""
    latest: dict[int, Review] = {}
    for review in reviews:
        if review.state not in (ReviewState.COMMENTED, ReviewState.PENDING):
            latest[review.user.id] = review
    return list(latest.values())


def _missing(wanted: Config, approvals: Mapping[str, Sequence[Approver]], whom: str) -> str:
    granted = {approver for entitled in approvals.values() for approver in entitled}
    required = [approver for approver in wanted.approvers if approver.required and approver not in granted]
    if required:
        return f"waits for approval by {', '.join(map(str, required))}"
    if len(approvals) < wanted.minimum:
        return f"has {len(approvals)} of {wanted.minimum} approvals by {whom}"
    return ""


def _names(wanted: Config) -> str:
    return name_approvers(wanted.approvers, "somebody with write permission")


def _said(login: str, at: datetime) -> Value:
    return {"user": login, "action": "approve", "time": at.isoformat(), "message": ""}
