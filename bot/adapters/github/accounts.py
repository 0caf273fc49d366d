"""Who may do what, where the App is installed, and which deliveries of it were lost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bot.adapters.github.connection import Connection, join_path
from bot.adapters.github.errors import NotFound
from bot.adapters.github.tokens import Scope
from bot.domain.github import Permission, Repository
from bot.payloads.github import read_repository
from bot.payloads.reading import Node


class Accounts:
    """The part of the port `GitHub` that is about people, installations and deliveries."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def permission_of(self, repository: Repository, login: str) -> Permission:
        """A person's role, asked now; a custom role counts as the role that it is built on, unknown people as none."""
        path = join_path("repos", repository.owner, repository.name, "collaborators", login, "permission")
        node = await self._connection.find(Scope((("metadata", "read"),), repository), path)
        if node is None:
            return Permission.NONE
        for word in (node.text("role_name", default=""), node.text("permission")):
            if word in set(Permission):
                return Permission(word)
        raise node.fail("is no role that this version knows", "permission")

    async def is_team_member(self, organisation: str, team: str, login: str) -> bool:
        """Whether a person is an active member of a team, child teams included; no such team has no members."""
        path = join_path("orgs", organisation, "teams", team, "memberships", login)
        node = await self._connection.find(Scope((("members", "read"),), organisation=organisation), path)
        return node is not None and node.text("state") == "active"

    async def list_repositories(self) -> Sequence[Repository]:
        """Every repository of every installation that is not suspended."""
        repositories: dict[Repository, None] = {}
        for installation in await self._connection.list_all(None, "app/installations"):
            if installation.has("suspended_at"):
                continue
            scope = Scope((("metadata", "read"),), installation=installation.number("id"))
            try:
                listed = await self._connection.list_all(
                    scope, "installation/repositories", key="repositories"
                )
            except NotFound:
                # It was uninstalled after it was listed.
                continue
            repositories.update((read_repository(item.at("full_name")), None) for item in listed)
        return tuple(repositories)

    async def list_failed_deliveries(self, since: datetime) -> Sequence[tuple[int, str]]:
        """Deliveries since then of which no attempt was answered with 2xx: newest attempt's id and GUID, oldest first.

        GitHub keeps deliveries for three days and repeats none by itself.
        """
        attempts = await self._connection.list_all(
            None,
            "app/hook/deliveries",
            until=lambda item: item.time("delivered_at") < since,
        )
        arrived = {
            item.text("guid") for item in attempts if 200 <= item.number("status_code", default=0) < 300
        }
        newest: dict[str, Node] = {}
        for item in attempts:
            known = newest.get(item.text("guid"))
            if known is None or item.number("id") > known.number("id"):
                newest[item.text("guid")] = item
        lost = [item for guid, item in newest.items() if guid not in arrived]
        lost.sort(key=lambda item: item.time("delivered_at"))
        return tuple((item.number("id"), item.text("guid")) for item in lost)

    async def redeliver(self, delivery: int) -> None:
        """Ask for one more attempt of a delivery; asked twice, it comes twice, under the same GUID."""
        await self._connection.call_as_app(
            "POST", join_path("app", "hook", "deliveries", delivery, "attempts")
        )
