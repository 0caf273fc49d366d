"""Looking at a Warehouse: what its subscriptions offer now, and the Freight that follows from it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from bot.domain.freight import Freight, FreightOrigin, Image
from bot.domain.identity import freight_alias, freight_name
from bot.domain.model import ImageSelectionStrategy, ImageSubscription, Warehouse
from bot.domain.selection import keep_newest_builds, order_image_tags
from bot.domain.values import Json
from bot.ports import Clock, Event, ImageFacts, Registry, Store, TerminalError

log = logging.getLogger(__name__)

_PARALLEL = 8
_MOST_LOOKS = 12
"""How often artifacts that do not stand still are looked at again; then the last ones count."""


@dataclass(frozen=True, slots=True)
class Discovered:
    """What came of one look at a Warehouse: new Freight, or why there is none."""

    freight: Freight | None
    reason: str


@dataclass(frozen=True, slots=True)
class Discoverer:
    """Looks at Warehouses. `settle` is how long new artifacts must stand still before they are Freight, in seconds."""

    registry: Registry
    store: Store
    clock: Clock
    settle: float

    async def look(self, warehouse: Warehouse) -> Discovered:
        """Discover, and remember new Freight; the same artifacts again change nothing.

        Raises TransientError if a registry cannot be reached, and TerminalError if it refuses us.
        """
        found = await self._discover(warehouse)
        if isinstance(found, Discovered):
            return found
        if warehouse.freight_creation_policy != "Automatic":
            return Discovered(None, "the Warehouse makes Freight only by hand")
        if await self._is_known(warehouse, found):
            return Discovered(None, "the newest artifacts are known as Freight already")
        # A build pushes its images one after the other: what a first look sees may be half of a release.
        for _ in range(_MOST_LOOKS):
            await asyncio.sleep(self.settle)
            before, found = found, await self._discover(warehouse)
            if isinstance(found, Discovered):
                return found
            if found == before:
                break
        return await self._remember(warehouse, found)

    async def _is_known(self, warehouse: Warehouse, images: tuple[Image, ...]) -> bool:
        name = freight_name(FreightOrigin(warehouse.metadata.name), images=images)
        return await self.store.get_freight(warehouse.metadata.namespace, name) is not None

    async def _discover(self, warehouse: Warehouse) -> tuple[Image, ...] | Discovered:
        """The newest artifact of each subscription, in order, or why there is none for one of them."""
        project, name = warehouse.metadata.namespace, warehouse.metadata.name
        now = self.clock.now()
        images: list[Image] = []
        found: dict[str, Json] = {}
        for subscription in warehouse.subscriptions:
            if not isinstance(subscription, ImageSubscription):
                raise TerminalError(f"Warehouse {name}: only image subscriptions are discovered so far")
            newest = await self._newest_image(subscription)
            found[subscription.name or subscription.repo_url] = [image.tag for image in newest]
            if not newest:
                await self.store.add_discovery(project, name, found, now)
                return Discovered(None, f"no tag of {subscription.repo_url} matches the subscription")
            images.append(newest[0])
        await self.store.add_discovery(project, name, found, now)
        return tuple(images)

    async def _remember(self, warehouse: Warehouse, images: tuple[Image, ...]) -> Discovered:
        project, origin = warehouse.metadata.namespace, FreightOrigin(warehouse.metadata.name)
        name = freight_name(origin, images=images)
        now = self.clock.now()
        known = await self.store.list_freight(project)
        alias = freight_alias(name, {freight.alias for freight, _ in known})
        freight = Freight(
            name=name, project=project, alias=alias, origin=origin, discovered_at=now, images=images
        )
        added = await self.store.add_freight(freight)
        if added is None:
            return Discovered(None, "the newest artifacts are known as Freight already")
        tags = ", ".join(f"{image.repo_url.rpartition('/')[2]} {image.tag}" for image in images)
        await self.store.add_event(Event(now, project, "", "", "freight", f"{added.alias}: {tags}"))
        return Discovered(added, f"{added.alias} was made of {tags}")

    async def _newest_image(self, subscription: ImageSubscription) -> list[Image]:
        """The images that the subscription selects, newest first, at most `discovery_limit`."""
        url, insecure = subscription.repo_url, subscription.insecure_skip_tls_verify
        if subscription.strategy is ImageSelectionStrategy.DIGEST:
            facts = await self.registry.find_image(url, subscription.constraint, insecure=insecure)
            return [_image(subscription, facts)] if facts is not None else []
        tags = order_image_tags(subscription, await self.registry.list_tags(url, insecure=insecure))
        if subscription.strategy is ImageSelectionStrategy.NEWEST_BUILD:
            return await self._newest_builds(subscription, tags)
        kept: list[Image] = []
        for tag in tags:
            facts = await self.registry.find_image(url, tag, insecure=insecure)
            if facts is not None and _fits(subscription, facts):
                kept.append(_image(subscription, facts))
            if len(kept) >= 1:
                # Only the newest makes Freight; older ones are looked up when a person asks for them.
                break
        return kept

    async def _newest_builds(self, subscription: ImageSubscription, tags: tuple[str, ...]) -> list[Image]:
        gate = asyncio.Semaphore(_PARALLEL)

        async def find(tag: str) -> ImageFacts | None:
            async with gate:
                return await self.registry.find_image(
                    subscription.repo_url, tag, insecure=subscription.insecure_skip_tls_verify
                )

        found = [f for f in await asyncio.gather(*(find(tag) for tag in tags)) if f is not None]
        facts = {f.tag: f for f in found if f.created_at is not None and _fits(subscription, f)}
        created = {tag: f.created_at for tag, f in facts.items() if f.created_at is not None}
        return [
            _image(subscription, facts[tag])
            for tag in keep_newest_builds(created, subscription.discovery_limit)
        ]


def _fits(subscription: ImageSubscription, facts: ImageFacts) -> bool:
    return not subscription.platform or subscription.platform in facts.platforms


def _image(subscription: ImageSubscription, facts: ImageFacts) -> Image:
    return Image(
        repo_url=subscription.repo_url,
        tag=facts.tag,
        digest=facts.digest,
        annotations=dict(facts.annotations),
        subscription_name=subscription.name,
    )
