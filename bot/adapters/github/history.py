"""`History`: pull requests and deployments of the past, as far as a limit allows."""

from __future__ import annotations

from collections.abc import Sequence

from bot.adapters.github.comments import Comments
from bot.adapters.github.connection import Connection, join_path
from bot.adapters.github.deployments import read_payload
from bot.adapters.github.pulls import read_pull
from bot.adapters.github.tokens import Scope
from bot.domain.github import DeploymentId, DeploymentState, PullRequest, Repository
from bot.payloads.github import read_commit
from bot.payloads.reading import Node
from bot.ports.restoring import DeploymentResult, ShownDeployment


class GitHubHistory:
    """See the port `History`."""

    def __init__(self, connection: Connection, comments: Comments) -> None:
        self._connection = connection
        self._comments = comments

    async def list_recent_pull_requests(self, repository: Repository, limit: int) -> Sequence[PullRequest]:
        path = join_path("repos", repository.owner, repository.name, "pulls")
        query = {"state": "all", "sort": "created", "direction": "desc"}
        scope = Scope((("pull_requests", "read"),), repository)
        listed = await self._connection.list_all(scope, path, query, until=_After(limit))
        pulls = (read_pull(repository, item) for item in listed)
        return tuple(pull for pull in pulls if not pull.from_fork)

    async def list_deployments(self, repository: Repository, limit: int) -> Sequence[ShownDeployment]:
        listed = await self._connection.list_all(_scope(repository), _path(repository), until=_After(limit))
        bot = await self._comments.bot_user_id(repository)
        return tuple(_read_deployment(item) for item in listed if _creator(item) == bot)

    async def find_deployment_result(
        self, repository: Repository, deployment: DeploymentId
    ) -> DeploymentResult | None:
        path = f"{_path(repository)}/{deployment}/statuses"
        bot = await self._comments.bot_user_id(repository)
        listed = await self._connection.list_all(_scope(repository), path)
        # Whoever may write deployments can add a status to ours.
        ours = [item for item in listed if _creator(item) == bot]
        newest = max(ours, key=lambda item: item.number("id"), default=None)
        if newest is None or newest.text("state") not in set(DeploymentState):
            return None
        return DeploymentResult(DeploymentState(newest.text("state")), newest.time("created_at"))


class _After:
    """Holds for every entry of a list behind the first so many."""

    def __init__(self, limit: int) -> None:
        self._left = limit

    def __call__(self, _entry: Node) -> bool:
        self._left -= 1
        return self._left < 0


def _read_deployment(node: Node) -> ShownDeployment:
    payload = read_payload(node)
    marker = payload.get("marker") if isinstance(payload, dict) else None
    return ShownDeployment(
        DeploymentId(node.number("id")),
        node.text("environment"),
        read_commit(node.at("sha")),
        marker if isinstance(marker, str) else "",
    )


def _creator(node: Node) -> int:
    return node.number("creator", "id", default=0)


def _scope(repository: Repository) -> Scope:
    return Scope((("deployments", "read"),), repository)


def _path(repository: Repository) -> str:
    return join_path("repos", repository.owner, repository.name, "deployments")
