"""The port `Workflows` on GitHub's REST API. The App needs the permission `actions: write` for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from bot.adapters.github.comments import Comments
from bot.adapters.github.connection import Connection, join_path
from bot.adapters.github.errors import Unanswered
from bot.adapters.github.tokens import Scope
from bot.domain.github import Repository, RunId, WorkflowRun
from bot.payloads.reading import Node
from bot.ports.issues import Dispatch, Dispatched, DispatchLost

_SKEW = timedelta(seconds=5)
"""GitHub's clock may be behind ours by this much."""


class GitHubWorkflows:
    """GitHub Actions on a connection that is open; `comments` knows our bot account."""

    def __init__(self, connection: Connection, comments: Comments) -> None:
        self._connection = connection
        self._comments = comments

    async def dispatch(self, repository: Repository, wanted: Dispatch) -> Dispatched | DispatchLost:
        """See `Workflows.dispatch`."""
        body = {"ref": wanted.ref, "inputs": dict(wanted.inputs), "return_run_details": True}
        path = f"{_workflow(repository, wanted)}/dispatches"
        try:
            answer = await self._connection.write(
                _scope(repository, "write"), "POST", path, body, creates=True
            )
        except Unanswered as error:
            return DispatchLost(str(error))
        # Older servers answer with nothing.
        return Dispatched(RunId(answer.number("workflow_run_id")) if answer.has("workflow_run_id") else None)

    async def find_dispatched(
        self, repository: Repository, wanted: Dispatch, since: datetime
    ) -> Sequence[WorkflowRun]:
        """See `Workflows.find_dispatched`."""
        user_id = await self._comments.bot_user_id(repository)
        query = {
            "event": "workflow_dispatch",
            "created": f">={(since - _SKEW).strftime('%Y-%m-%dT%H:%M:%SZ')}",
        }
        listed = await self._connection.list_all(
            _scope(repository, "read"),
            f"{_workflow(repository, wanted)}/runs",
            query,
            key="workflow_runs",
        )
        short = wanted.ref.removeprefix("refs/heads/").removeprefix("refs/tags/")
        return tuple(
            _read(run)
            for run in listed
            if run.number("actor", "id", default=0) == user_id
            and run.text("head_branch", default="") == short
        )

    async def get_run(self, repository: Repository, run: RunId) -> WorkflowRun | None:
        """See `Workflows.get_run`."""
        path = join_path("repos", repository.owner, repository.name, "actions", "runs", run)
        node = await self._connection.find(_scope(repository, "read"), path)
        return None if node is None else _read(node)


def _read(node: Node) -> WorkflowRun:
    return WorkflowRun(
        RunId(node.number("id")),
        node.text("status", default=""),
        node.text("conclusion", default=""),
        node.text("html_url"),
    )


def _scope(repository: Repository, level: str) -> Scope:
    return Scope((("actions", level),), repository)


def _workflow(repository: Repository, wanted: Dispatch) -> str:
    return join_path("repos", repository.owner, repository.name, "actions", "workflows", wanted.workflow)
