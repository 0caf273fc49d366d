"""The outbox: what GitHub shall show goes out in order, paced by the adapter, and again until it is there.

A post is idempotent by its place (a check by name and commit, a comment by its marker), so that a crash between
posting and remembering shows the same thing once.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from bot.domain.codec import decode
from bot.domain.files import CommitId
from bot.domain.github import CheckRun, CommentId, DeploymentState, PullNumber, Repository
from bot.domain.values import Json
from bot.ports import Clock, DuePost, GitHub, Look, Store, TerminalError, TransientError
from bot.workflow.event_routing import POST

log = logging.getLogger(__name__)

_GIVE_UP = 12
"""Tries of a post that is refused; afterwards the log has the last word. A run never fails for a comment."""


@dataclass(frozen=True, slots=True)
class Outbox:
    """Sends what is due."""

    store: Store
    github: GitHub
    clock: Clock

    async def send_due(self) -> int:
        """Send everything that is due, lane by lane; returns how many went out."""
        lanes: dict[str, list[DuePost]] = defaultdict(list)
        for due in await self.store.list_due_posts(self.clock.now()):
            # Messages to people go out by themselves: a channel that hangs must not hold up GitHub.
            if due.post.kind != POST:
                lanes[due.post.lane].append(due)
        sent = 0
        for posts in lanes.values():
            for due in sorted(posts, key=lambda item: item.post.rank):
                sent += await self._try(due)
        return sent

    async def _try(self, due: DuePost) -> int:
        try:
            await self._send(due)
        except TransientError as error:
            pause = (
                error.retry_after
                if error.retry_after is not None
                else min(2.0 ** min(due.attempts, 8), 300.0)
            )
            await self.store.postpone_post(due, self.clock.now() + timedelta(seconds=pause), str(error))
            return 0
        except TerminalError as error:
            log.error("a post was refused", extra={"post": due.post.key, "error": str(error)})
            if due.attempts >= _GIVE_UP:
                await self.store.finish_post(due)
            else:
                await self.store.postpone_post(due, self.clock.now() + timedelta(minutes=5), str(error))
            return 0
        except Exception as error:
            # An error of ours in one post must not keep all others from going out.
            log.exception("a post failed", extra={"post": due.post.key})
            await self.store.postpone_post(due, self.clock.now() + timedelta(minutes=5), str(error))
            return 0
        await self.store.finish_post(due)
        if due.post.kind == "check":
            await self._look(due)
        return 1

    async def _look(self, due: DuePost) -> None:
        """A check that turned may be what a merge waits for."""
        payload = due.post.payload
        check = decode(CheckRun, payload["check"])
        if check.conclusion is not None:
            await self.store.request_looks(
                [Look("head", f"{payload['repository']}@{check.head}", "a check was posted")]
            )

    async def _send(self, due: DuePost) -> None:
        payload = due.post.payload
        repository = Repository.parse(str(payload["repository"]))
        match due.post.kind:
            case "check":
                await self.github.post_check(repository, decode(CheckRun, payload["check"]))
            case "comment":
                number = PullNumber(int(str(payload["number"])))
                await self.github.post_comment(
                    repository, number, str(payload["body"]), marker=str(payload["marker"])
                )
            case "pull":
                number = PullNumber(int(str(payload["number"])))
                await self.github.update_pull_request(
                    repository, number, title=str(payload["title"]), body=str(payload["body"])
                )
            case "reaction":
                comment = CommentId(int(str(payload["comment"])))
                await self.github.react(repository, comment, str(payload["content"]))
            case "deployment":
                await self._deploy(repository, payload)
            case kind:
                raise TerminalError(f"the outbox cannot send {kind!r}")

    async def _deploy(self, repository: Repository, payload: Mapping[str, Json]) -> None:
        """Find or create the deployment that carries this payload, and make its newest status say this."""
        bound = payload["payload"]
        deployment = await self.github.create_deployment(
            repository,
            ref=CommitId(str(payload["ref"])),
            environment=str(payload["environment"]),
            production=bool(payload["production"]),
            payload=bound if isinstance(bound, dict) else {},
        )
        await self.github.set_deployment_state(
            repository,
            deployment,
            DeploymentState(str(payload["state"])),
            description=str(payload["description"]),
            log_url=str(payload["log_url"]),
        )
