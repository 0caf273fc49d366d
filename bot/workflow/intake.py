"""From stored deliveries to looks: an event says where to look, never what to do."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import assert_never

from bot.domain.events import (
    AppIdentity,
    ButtonPressed,
    CheckRerun,
    Commented,
    Event,
    ImagePushed,
    InstallationChanged,
    MergeGroupRequested,
    PullRequestChanged,
    Pushed,
    RepositoryChanged,
    ReviewChanged,
)
from bot.domain.follow_up import promotion_of_branch
from bot.domain.github import PullNumber, Repository
from bot.domain.pipeline import Pipeline
from bot.domain.promotion import Promotion
from bot.domain.receiving import RefsMoved, TagsPushed, find_warehouses
from bot.payloads import SENDERS, PayloadProblem
from bot.payloads import Delivery as Payload
from bot.ports import Delivery, GitHub, Look, Store, TransientError
from bot.workflow.receivers import ReceivedIntake

log = logging.getLogger(__name__)

_TRIES = 10
_GROUP = re.compile(r"/pr-(\d+)-[0-9a-f]+$")


@dataclass(frozen=True, slots=True)
class Intake:
    """Drains deliveries. `pipeline` gives the one in force, `config` the repository that holds it, if any."""

    store: Store
    github: GitHub
    app: Callable[[], AppIdentity]
    pipeline: Callable[[], Pipeline]
    config: Repository | None
    received: ReceivedIntake

    async def drain(self) -> int:
        """Turn every pending delivery into looks; the same look asked for twice is one. Returns how many were done."""
        deliveries = await self.store.list_pending_deliveries()
        for delivery in deliveries:
            looks, note = await self._read(delivery)
            await self.store.finish_delivery(delivery.id, looks, note)
        return len(deliveries)

    async def _read(self, delivery: Delivery) -> tuple[list[Look], str]:
        if delivery.receiver:
            return await self.received.read(delivery)
        parse = SENDERS.get(delivery.source)
        if parse is None:
            return [], f"no reader for {delivery.source}"
        try:
            events = parse(Payload(delivery.event, delivery.body, self.app()))
        except PayloadProblem as problem:
            log.warning(
                "a delivery was not understood", extra={"delivery": delivery.id, "problem": str(problem)}
            )
            return [], str(problem)
        looks: dict[tuple[str, str], Look] = {}
        for event in events:
            for look in await self._looks(event, delivery):
                looks[(look.kind, look.key)] = look
        return list(looks.values()), "" if looks else "of no interest"

    async def _looks(self, event: Event, delivery: Delivery) -> list[Look]:
        match event:
            case Pushed():
                return await self._of_push(event)
            case PullRequestChanged():
                return await self._of_pull(event.repository, event.number, f"pull request {event.action}")
            case ReviewChanged():
                return await self._of_pull(event.repository, event.number, f"review {event.action}")
            case Commented(by_app=True):
                return []
            case Commented() | ButtonPressed():
                return [Look("command", delivery.id, "somebody asked")]
            case CheckRerun():
                return [Look("head", f"{event.repository}@{event.head}", "a check is asked for")]
            case MergeGroupRequested():
                return [_of_group(event)]
            case ImagePushed():
                return self._of_image(event)
            case InstallationChanged() | RepositoryChanged():
                return [Look("config", "", "the installation changed")]
            case _:
                assert_never(event)

    async def _of_push(self, event: Pushed) -> list[Look]:
        moved = Look("branch", f"{event.repository}@{event.branch}", "it was pushed")
        looks = [moved] if event.branch and not event.branch.startswith("lockstep/") else []
        if event.by_app:
            return looks
        if event.repository == self.config:
            looks.append(Look("config", "", f"{event.branch} was pushed"))
        looks += self._watching(event)
        await self._note_pusher_of_people(event)
        for promotion in await self.store.list_unfinished_promotions():
            target = promotion.target
            if target is not None and event.repository.is_same(self.github.repository_of(target.url)):
                await self._note_pusher(promotion, event)
                looks.append(
                    Look("stage", f"{promotion.project}/{promotion.stage}", f"{event.ref} was pushed")
                )
        return looks

    def _watching(self, event: Pushed) -> list[Look]:
        """Looks at the Warehouses that a push could concern, by address, ref and paths."""
        moved = RefsMoved(
            urls=(self.github.clone_url(event.repository),),
            refs=(event.ref,),
            changed=event.paths or (),
            default_branch=event.default_branch,
        )
        found = find_warehouses(moved, self.pipeline().warehouses, "")
        return [Look("warehouse", f"{project}/{name}", f"{event.ref} was pushed") for project, name in found]

    async def _note_pusher(self, promotion: Promotion, event: Pushed) -> None:
        """Remember who pushed to a branch of the promotion: their word for what is there does not count."""
        ours = event.branch == promotion.branch or promotion_of_branch(event.branch) == promotion.id
        if not ours or event.after is None or event.sender.bot:
            return
        for _ in range(_TRIES):
            if event.sender.id in promotion.pushers:
                return
            noted = replace(promotion, pushers=(*promotion.pushers, event.sender.id))
            newest = await self.store.get_promotion(promotion.id)
            if await self.store.save_promotion(noted, expected=promotion) or newest is None:
                return
            promotion = newest
        raise TransientError(f"{promotion.id} changes too fast to note who pushed to its branch")

    async def _note_pusher_of_people(self, event: Pushed) -> None:
        """As with a promotion branch: who pushed to a person's branch wrote what is there, whatever its commits say."""
        if not event.branch or event.after is None or event.sender.bot:
            return
        url, pusher = self.github.clone_url(event.repository), event.sender.id
        for row in await self.store.list_peoples_pulls():
            if (row.url, row.head_branch) == (url, event.branch) and pusher not in row.pushers:
                await self.store.change_peoples_pull(
                    row, lambda found: replace(found, pushers=(*found.pushers, pusher))
                )

    async def _of_pull(self, repository: Repository, number: PullNumber, reason: str) -> list[Look]:
        promotion = await self.store.find_promotion_by_pull(self.github.clone_url(repository), number)
        if promotion is not None and not promotion.state.ended:
            return [Look("stage", f"{promotion.project}/{promotion.stage}", reason)]
        return [Look("pull", f"{repository}#{number}", reason)]

    def _of_image(self, event: ImagePushed) -> list[Look]:
        """Images and charts alike: what a registry tells does not say which of the two was pushed."""
        pushed = TagsPushed(event.repository, (event.tag,))
        reason = f"{event.repository}:{event.tag} was pushed"
        found = find_warehouses(pushed, self.pipeline().warehouses, "")
        return [Look("warehouse", f"{project}/{name}", reason) for project, name in found]


def _of_group(event: MergeGroupRequested) -> Look:
    """A group's branch names the pull request that it ends in; those before it have groups of their own."""
    named = _GROUP.search(event.head_ref)
    if named is None:
        return Look("head", f"{event.repository}@{event.head}", "a check is asked for")
    return Look("group", f"{event.repository}#{named[1]}@{event.head}", "a merge queue asks")
