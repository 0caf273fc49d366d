"""The port `BranchRules` on GitHub's rule sets, as far as an App without administration may see them."""

from __future__ import annotations

from collections.abc import Sequence

from bot.adapters.github.connection import Connection, join_path
from bot.adapters.github.errors import NotFound
from bot.adapters.github.tokens import Scope
from bot.domain.github import Repository
from bot.payloads.reading import Node

_METHODS = {"merge": "allow_merge_commit", "squash": "allow_squash_merge", "rebase": "allow_rebase_merge"}
_REFUSES_PUSHES = frozenset(
    {"merge_queue", "pull_request", "required_signatures", "required_status_checks", "update"}
)
"""Rules that a push of ours does not satisfy: its commits are new, not signed, and no pull request's."""
_BOUND = frozenset({"never", "pull_requests_only"})
"""GitHub's words for an asker whose pushes a rule set binds; nothing is said where it does not tell."""


class GitHubBranchRules:
    """Rules on a connection that is open."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def why_no_push(self, repository: Repository, branch: str) -> str:
        """See `BranchRules.why_no_push`."""
        by_set: dict[int, set[str]] = {}
        for rule in await self._rules(repository, branch):
            kind = rule.text("type")
            if kind in _REFUSES_PUSHES:
                by_set.setdefault(rule.number("ruleset_id"), set()).add(kind)
        refusing: set[str] = set()
        for number, kinds in sorted(by_set.items()):
            found = await self._connection.find(_scope(repository), f"{_place(repository)}/rulesets/{number}")
            said = found.text("current_user_can_bypass", default="") if found is not None else ""
            refusing |= kinds if said in _BOUND else set()
        return ", ".join(sorted(refusing))

    async def merge_methods(self, repository: Repository, branch: str) -> frozenset[str]:
        """See `BranchRules.merge_methods`."""
        settings = await self._connection.get(_scope(repository), _place(repository))
        return allowed_methods(settings, await self._rules(repository, branch))

    async def _rules(self, repository: Repository, branch: str) -> Sequence[Node]:
        path = f"{_place(repository)}/rules/branches/{join_path(branch)}"
        try:
            return await self._connection.list_all(_scope(repository), path)
        except NotFound:
            # An older GitHub Enterprise Server has no rule sets, and what else there is it does not tell an App.
            return ()


def allowed_methods(settings: Node, rules: Sequence[Node]) -> frozenset[str]:
    """The ways of merging that the repository and every rule allow; what is not shown is allowed."""
    allowed = {name for name, key in _METHODS.items() if settings.boolean(key, default=True)}
    for rule in rules:
        items = rule.items("parameters", "allowed_merge_methods")
        named = {item.value.lower() for item in items if isinstance(item.value, str)}
        allowed = allowed & named if named else allowed
        if rule.text("type") == "required_linear_history":
            allowed = allowed - {"merge"}
    return frozenset(allowed)


def _scope(repository: Repository) -> Scope:
    return Scope((("contents", "read"), ("metadata", "read")), repository)


def _place(repository: Repository) -> str:
    return join_path("repos", repository.owner, repository.name)
