"""What the buttons of a pull request's page do, by the name in their address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from bot.sandbox.github.actions import Actions
from bot.sandbox.github.errors import Refused
from bot.sandbox.github.world import World


@dataclass(frozen=True, slots=True)
class Asked:
    """A form that a person sent: the repository, the number of the pull request, and the fields."""

    user: str
    repository: str
    number: int
    fields: Mapping[str, str]

    @property
    def body(self) -> str:
        """The text in the comment box, with the line ends that forms send made plain."""
        return self.fields.get("body", "").replace("\r\n", "\n")


Act = Callable[[Actions, Asked], int]


def _comment(actions: Actions, asked: Asked) -> int:
    actions.comment(asked.user, asked.repository, asked.number, asked.body)
    return asked.number


def _approve(actions: Actions, asked: Asked) -> int:
    actions.approve(asked.user, asked.repository, asked.number, asked.body)
    return asked.number


def _request_changes(actions: Actions, asked: Asked) -> int:
    actions.request_changes(asked.user, asked.repository, asked.number, asked.body)
    return asked.number


def _merge(actions: Actions, asked: Asked) -> int:
    method, bypass = asked.fields.get("method", "merge"), asked.fields.get("bypass") == "on"
    actions.merge(asked.user, asked.repository, asked.number, method, bypass=bypass)
    return asked.number


def _close(actions: Actions, asked: Asked) -> int:
    if asked.body.strip():
        _comment(actions, asked)
    return actions.close(asked.user, asked.repository, asked.number).number


def _reopen(actions: Actions, asked: Asked) -> int:
    if asked.body.strip():
        _comment(actions, asked)
    return actions.reopen(asked.user, asked.repository, asked.number).number


def _update_branch(actions: Actions, asked: Asked) -> int:
    actions.update_branch(asked.user, asked.repository, asked.number)
    return asked.number


def _revert(actions: Actions, asked: Asked) -> int:
    return actions.revert(asked.user, asked.repository, asked.number).number


# Name in the address -> the call, which answers the number of the pull request to show next.
ACTS: Final[Mapping[str, Act]] = {
    "comment": _comment,
    "approve": _approve,
    "request-changes": _request_changes,
    "merge": _merge,
    "close": _close,
    "reopen": _reopen,
    "update-branch": _update_branch,
    "revert": _revert,
}
_OF_THE_HEAD: Final = frozenset({"approve", "request-changes", "merge"})


def do(world: World, actions: Actions, name: str, asked: Asked) -> int:
    """Carry out one act; `Refused` with GitHub's reason, 404 for an act that does not exist.

    Reviews and merges are of the head that the page showed: if it has moved, they are refused.
    """
    if name not in ACTS:
        raise Refused(404, f"There is no act {name!r}; the acts are {', '.join(ACTS)}.")
    owner, _, repository = asked.repository.partition("/")
    with world.store.lock:
        if name in _OF_THE_HEAD:
            pull = world.pull(world.repository(owner, repository), asked.number)
            if asked.fields.get("head", pull.head_sha) != pull.head_sha:
                raise Refused(
                    409, "The head branch was updated since this page was shown. Read it again first."
                )
        return ACTS[name](actions, asked)


def reason(refused: Refused) -> str:
    """Why GitHub refuses, in one text."""
    details = [
        item if isinstance(item, str) else str(item.get("message", "")) for item in refused.errors or []
    ]
    said = [line for line in details if line] or [refused.message]
    return "\n".join(line.strip() for line in said if line.strip())
