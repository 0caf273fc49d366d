"""Buttons on check runs: each stands for a command, with the same rights, carried out once per delivery."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from bot.domain.commands import Command, Plan, Retry
from bot.domain.events import ButtonPressed
from bot.domain.github import CommentId, PullNumber, Repository, User
from bot.domain.promotion import Promotion, PromotionId
from bot.ports import Store
from bot.reports.checks import PLAN_AGAIN, RETRY
from bot.reports.markdown import plain

log = logging.getLogger(__name__)

COMMANDS: Mapping[str, Command] = {PLAN_AGAIN.identifier: Plan(), RETRY.identifier: Retry()}
"""What each button stands for."""


class Refusal(Exception):
    """The answer is no; the message is posted as the reply."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One command with who gave it and where; `promotion` is the newest one of the pull request, if any.

    `number` is the issue or pull request and `comment` the comment that holds it; a button has no comment.
    """

    command: Command
    author: User
    repository: Repository
    promotion: Promotion | None
    number: PullNumber | None = None
    comment: CommentId | None = None


@dataclass(frozen=True, slots=True)
class Buttons:
    """Carries out what a button stands for.

    `repository_of` tells which repository a git address is, `obey` does a command or raises Refusal, `reply` answers on
    a pull request, once per key.
    """

    store: Store
    repository_of: Callable[[str], Repository | None]
    obey: Callable[[Asked], Awaitable[str]]
    reply: Callable[[Repository, PullNumber, str, str], Awaitable[None]]

    async def press(self, event: ButtonPressed, delivery: str) -> None:
        """Carry it out once per delivery; a refusal is said on the pull request."""
        command, promotion = COMMANDS.get(event.identifier), await self._promotion(event)
        number = promotion.pull if promotion is not None else _own_pull(event)
        if isinstance(command, Plan) and promotion is None:
            # On a person's pull request the button speaks of the head that it stands on.
            command = Plan(event.head)
        if event.sender.bot or command is None or number is None:
            log.warning(
                "a button was not understood", extra={"delivery": delivery, "button": event.identifier}
            )
            return
        repository, key = str(event.repository), f"press/{delivery}"
        if await self.store.is_command_done(repository, key):
            return
        try:
            reply = await self.obey(Asked(command, event.sender, event.repository, promotion, number))
        except Refusal as refusal:
            reply = f"@{event.sender.login} pressed a button of the check {event.name}: {refusal}"
        if reply:
            name = f"lockstep:reply:{key.replace('--', '-')}"
            await self.reply(event.repository, number, name, plain(reply))
        await self.store.finish_command(repository, key)

    async def _promotion(self, event: ButtonPressed) -> Promotion | None:
        """The Promotion that the check speaks of, if it is one of that repository."""
        name, _, rest = event.external_id.partition("/")
        found = await self.store.get_promotion(PromotionId(name)) if rest else None
        if found is None or found.target is None:
            return None
        return found if self.repository_of(found.target.url) == event.repository else None


def _own_pull(event: ButtonPressed) -> PullNumber | None:
    """The person's pull request that the check speaks of."""
    kind, _, rest = event.external_id.partition("/")
    number = rest.partition("/")[0]
    return PullNumber(int(number)) if kind == "pull" and number.isdecimal() else None
