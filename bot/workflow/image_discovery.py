"""Images that a subscription offers: Kargo's four strategies, with as few requests to the registry as they allow."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.discovery import Find, SubscriptionFinds
from bot.domain.freight import Image
from bot.domain.model import ImageSelectionStrategy, ImageSubscription
from bot.domain.selection import keep_newest_builds, order_image_tags
from bot.expressions.facts import DiscoveredImage
from bot.ports import ImageFacts, Registries, Registry, TerminalError
from bot.workflow.taken import Taken, not_offered

_PARALLEL = 8


@dataclass(frozen=True, slots=True)
class ImageFinder:
    """Finds images.

    Only the newest makes Freight, so for SemVer and Lexical it alone is asked for its digest, and older tags are only
    listed. Of tags that turn out to be for other platforms no more than `discoveryLimit` are asked for, where Kargo
    goes on to the last tag of the repository. NewestBuild must ask for every tag that passes the filters.
    """

    registries: Registries

    async def find(self, project: str, subscription: ImageSubscription) -> Taken:
        """What the subscription offers now. Raises TransientError and TerminalError as `Registry` does."""
        registry = await self.registries.of(project)
        url, insecure = subscription.repo_url, subscription.insecure_skip_tls_verify
        if subscription.strategy is ImageSelectionStrategy.DIGEST:
            facts = await _ask(registry, subscription, subscription.constraint)
            note = "" if facts is not None else f"there is no tag {subscription.constraint}"
            return _taken(subscription, facts, (), note)
        listed = await registry.list_tags(url, insecure=insecure)
        try:
            # Ten thousand tags take a while to put in order, in which others must be answered.
            tags = await asyncio.to_thread(order_image_tags, subscription, listed)
        except ValueError as error:
            raise TerminalError(f"the subscription to {url} cannot be carried out: {error}") from error
        if not tags:
            return _taken(
                subscription, None, (), f"none of {len(listed)} tags passes the subscription's filters"
            )
        if subscription.strategy is ImageSelectionStrategy.NEWEST_BUILD:
            return await _newest_build(registry, subscription, tags)
        return await _first(registry, subscription, tags[: max(subscription.discovery_limit, 1)])

    async def pick(self, project: str, subscription: ImageSubscription, tag: str) -> Taken:
        """The image with this tag, with its digest of now, if it is among what the subscription offers now."""
        taken = await self.find(project, subscription)
        if isinstance(taken.artifact, Image) and taken.artifact.tag == tag:
            return taken
        if all(find.version != tag for find in taken.finds.finds):
            return not_offered(taken.finds, tag)
        facts = await _ask(await self.registries.of(project), subscription, tag)
        if facts is None or not _fits(subscription, facts):
            what = f"an image for {subscription.platform}" if subscription.platform else "an image"
            return not_offered(taken.finds, tag, f"{tag} is not {what}")
        return _taken(subscription, facts, (), "")


async def _first(registry: Registry, subscription: ImageSubscription, tags: Sequence[str]) -> Taken:
    """The first tag, in order, that is there and for the platform."""
    # Nearly always it is the first one, and then nothing else need be asked for.
    starts = [0, *range(1, len(tags), _PARALLEL)]
    for start, end in zip(starts, [*starts[1:], len(tags)], strict=True):
        asked = await asyncio.gather(*(_ask(registry, subscription, tag) for tag in tags[start:end]))
        for position, facts in enumerate(asked, start=start):
            if facts is not None and _fits(subscription, facts):
                return _taken(subscription, facts, tags[position + 1 :], "")
    note = f"none of the newest {len(tags)} tags is an image"
    if subscription.platform:
        note += f" for {subscription.platform}; a higher discoveryLimit looks further back"
    return _taken(subscription, None, (), note)


async def _newest_build(registry: Registry, subscription: ImageSubscription, tags: Sequence[str]) -> Taken:
    gate = asyncio.Semaphore(_PARALLEL)

    async def ask(tag: str) -> ImageFacts | None:
        async with gate:
            return await _ask(registry, subscription, tag)

    found = [facts for facts in await asyncio.gather(*(ask(tag) for tag in tags)) if facts is not None]
    built = {f.tag: f for f in found if f.created_at is not None and _fits(subscription, f)}
    created = {tag: f.created_at for tag, f in built.items() if f.created_at is not None}
    newest = keep_newest_builds(created, subscription.discovery_limit)
    if not newest:
        return _taken(subscription, None, (), f"none of {len(tags)} tags says when it was built")
    return _taken(subscription, built[newest[0]], newest[1:], "")


async def _ask(registry: Registry, subscription: ImageSubscription, tag: str) -> ImageFacts | None:
    return await registry.find_image(
        subscription.repo_url,
        tag,
        insecure=subscription.insecure_skip_tls_verify,
        cache_by_tag=subscription.cache_by_tag,
    )


def _fits(subscription: ImageSubscription, facts: ImageFacts) -> bool:
    return not subscription.platform or subscription.platform in facts.platforms


def _taken(
    subscription: ImageSubscription, newest: ImageFacts | None, older: Sequence[str], note: str
) -> Taken:
    first = () if newest is None else (Find(newest.tag, newest.digest, newest.created_at),)
    finds = (*first, *(Find(tag) for tag in older))
    told = SubscriptionFinds("image", subscription.repo_url, subscription.name, finds, note)
    if newest is None:
        return Taken(told)
    image = Image(
        repo_url=subscription.repo_url,
        tag=newest.tag,
        digest=newest.digest,
        annotations=dict(newest.annotations),
        subscription_name=subscription.name,
    )
    facts = DiscoveredImage(newest.tag, newest.digest, dict(newest.annotations), newest.created_at)
    return Taken(told, image, facts)
