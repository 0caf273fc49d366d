"""`expressionFilter` of a git subscription: what it sees of a commit or a tag, under Kargo's names."""

from __future__ import annotations

from datetime import datetime

from bot.domain.selection import BranchCommit, GitTag
from bot.expressions.functions import TEMPLATE_FUNCTIONS, UTILITY_FUNCTIONS
from bot.expressions.gotime import make_moment
from bot.expressions.operands import Operand
from bot.expressions.templates import Scope, evaluate_criteria


def keeps_commit(source: str, commit: BranchCommit, now: datetime | None = None) -> bool:
    """Whether the filter takes a commit of a branch; a blank one takes all. Raises ExpressionError."""
    return _keeps(
        source,
        {
            "id": commit.id,
            "commitDate": _time(commit.committed_at),
            "author": commit.author,
            "committer": commit.committer,
            "subject": commit.subject,
        },
        now,
    )


def keeps_tag(source: str, tag: GitTag, now: datetime | None = None) -> bool:
    """Whether the filter takes a tag; a blank one takes all. Raises ExpressionError."""
    return _keeps(
        source,
        {
            "tag": tag.tag,
            "id": tag.id,
            "creatorDate": _time(tag.created_at),
            "author": tag.author,
            "committer": tag.committer,
            "subject": tag.subject,
            "tagger": tag.tagger,
            "annotation": tag.annotation,
        },
        now,
    )


def _time(at: datetime | None) -> Operand:
    return make_moment(at) if at is not None else None


def _keeps(source: str, names: dict[str, Operand], now: datetime | None) -> bool:
    scope = Scope(names, {**TEMPLATE_FUNCTIONS, **UTILITY_FUNCTIONS}, now)
    return not source.strip() or evaluate_criteria(source, scope) is True
