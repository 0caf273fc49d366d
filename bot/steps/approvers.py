"""Whom the steps that ask people ask: Kargo's claims and roles as GitHub's teams and logins.

`groups` and a `role` name a team of the repository's organisation (or `ORGANISATION/TEAM`), any other claim a login.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.github import Repository, User
from bot.ports import GitHub
from bot.steps.contract import Config as Given
from bot.steps.options import Options

_TEAM_CLAIMS = ("groups", "group", "team", "teams")


@dataclass(frozen=True, slots=True)
class Approver:
    """Who may answer: a team or a login. Without a required one nothing goes on."""

    team: str
    login: str
    required: bool

    def __str__(self) -> str:
        return f"team {self.team}" if self.team else self.login


def parse_approvers(kind: str, given: Given) -> tuple[Approver, ...]:
    """Whom a step of that kind names, none for everybody who may; raises TerminalError for one that is not known."""
    key = "responders" if kind == "get-user-input" else "approvers"
    return tuple(_approver(item) for item in Options(kind, given).each(key))


def _approver(item: Options) -> Approver:
    claim, value = item.address("claim"), item.address("value")
    team = item.address("role") or (value if claim in _TEAM_CLAIMS else "")
    return Approver(team, "" if team else value, item.flag("required"))


async def find_roles(
    github: GitHub, user: User, approvers: Sequence[Approver], repository: Repository
) -> list[Approver]:
    """As whom of the approvers a person speaks; teams are asked now."""
    found = []
    for approver in approvers:
        if approver.login and approver.login.lower() == user.login.lower():
            found.append(approver)
        elif approver.team:
            organisation, _, team = approver.team.rpartition("/")
            if await github.is_team_member(organisation or repository.owner, team, user.login):
                found.append(approver)
    return found


def name_approvers(approvers: Sequence[Approver], otherwise: str) -> str:
    """`team sre or bob`, or what is said where nobody is named."""
    return " or ".join(map(str, approvers)) or otherwise
