"""Deployments, which mirror Stages on GitHub's side."""

from __future__ import annotations

from collections.abc import Mapping

from bot.adapters.github.connection import Connection, join_path
from bot.adapters.github.tokens import Scope
from bot.domain.files import CommitId
from bot.domain.github import DeploymentId, DeploymentState, Repository
from bot.domain.values import Json
from bot.payloads.reading import Node, PayloadProblem, read_json, to_json

_DESCRIPTION_LIMIT = 140


class Deployments:
    """The part of the port `GitHub` that is about deployments."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def create(
        self,
        repository: Repository,
        *,
        ref: CommitId,
        environment: str,
        production: bool,
        payload: Mapping[str, Json],
    ) -> DeploymentId:
        """Create it, or give back the one of that commit and environment with the same payload.

        GitHub's defaults would merge the default branch into `ref` and wait for every status; both are off.
        """
        scope, path = _scope(repository), _path(repository)

        async def look() -> DeploymentId | None:
            query = {"sha": ref, "environment": environment}
            for item in await self._connection.list_all(scope, path, query):
                if read_payload(item) == dict(payload):
                    return DeploymentId(item.number("id"))
            return None

        async def create() -> DeploymentId:
            body = {
                "ref": ref,
                "environment": environment,
                "production_environment": production,
                "transient_environment": False,
                "payload": dict(payload),
                "auto_merge": False,
                "required_contexts": [],
            }
            return DeploymentId(
                (await self._connection.write(scope, "POST", path, body, creates=True)).number("id")
            )

        there = await look()
        return there if there is not None else await self._connection.write_once(create, look)

    async def set_state(
        self,
        repository: Repository,
        deployment: DeploymentId,
        state: DeploymentState,
        *,
        description: str,
        log_url: str,
    ) -> None:
        """Add a status unless the newest one says the same; raises ValueError for a description over 140."""
        if len(description) > _DESCRIPTION_LIMIT:
            raise ValueError(
                f"the description has {len(description)} characters, GitHub takes {_DESCRIPTION_LIMIT}"
            )
        scope, path = _scope(repository), f"{_path(repository)}/{deployment}/statuses"
        body: dict[str, object] = {"state": state, "description": description, "auto_inactive": True}
        if log_url:
            body["log_url"] = log_url

        async def look() -> Node | None:
            # GitHub may not know a deployment everywhere yet that it has just created.
            await self._connection.get_fresh(scope, f"{_path(repository)}/{deployment}")
            newest = max(
                await self._connection.list_all(scope, path),
                key=lambda item: item.number("id"),
                default=None,
            )
            if newest is None or newest.text("state") != state:
                return None
            return newest if newest.text("description", default="") == description else None

        async def create() -> Node:
            return await self._connection.write(scope, "POST", path, body)

        if await look() is None:
            await self._connection.write_once(create, look)


def read_payload(node: Node) -> Json:
    """What was given as payload; GitHub returns it as an object or as the text of one."""
    found = node.find("payload")
    if found is None:
        return {}
    if not isinstance(found.value, str):
        return to_json(found)
    try:
        return to_json(read_json(found.value)) if found.value else {}
    except PayloadProblem:
        # Another tool's payload may be any text; it only must not be taken for ours.
        return found.value


def _scope(repository: Repository) -> Scope:
    return Scope((("deployments", "write"),), repository)


def _path(repository: Repository) -> str:
    return join_path("repos", repository.owner, repository.name, "deployments")
