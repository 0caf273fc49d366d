"""Looking at a Warehouse: what its subscriptions offer now, and the Freight that follows from it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from bot.domain.discovery import Discovery, SubscriptionFinds, decode_discovery, encode_discovery
from bot.domain.freight import Chart, Freight, FreightName, FreightOrigin, GitCommit, Image
from bot.domain.identity import freight_alias, freight_name
from bot.domain.model import (
    ChartSubscription,
    GenericSubscription,
    GitSubscription,
    ImageSubscription,
    Subscription,
    Warehouse,
)
from bot.expressions.errors import ExpressionError
from bot.expressions.facts import DiscoveredArtifacts, DiscoveredCommit, DiscoveredImage
from bot.expressions.scopes import meets_criteria
from bot.ports import Clock, Event, Ports, Store, TerminalError, TransientError
from bot.workflow.chart_discovery import ChartFinder
from bot.workflow.git_discovery import CommitFinder
from bot.workflow.image_discovery import ImageFinder
from bot.workflow.own_commits import OwnCommits
from bot.workflow.taken import Taken

log = logging.getLogger(__name__)

_MOST_LOOKS = 12
"""How often artifacts that do not stand still are looked at again; then the last ones count."""


@dataclass(frozen=True, slots=True)
class Discovered:
    """What came of one look at a Warehouse: new Freight, or why there is none."""

    freight: Freight | None
    reason: str


@dataclass(frozen=True, slots=True)
class Artifacts:
    """What Freight would be made of: the newest artifact of each subscription."""

    commits: tuple[GitCommit, ...] = ()
    images: tuple[Image, ...] = ()
    charts: tuple[Chart, ...] = ()

    def name(self, warehouse: Warehouse) -> FreightName:
        """The name of the Freight that they would be."""
        return freight_name(
            FreightOrigin(warehouse.metadata.name),
            commits=self.commits,
            images=self.images,
            charts=self.charts,
        )

    def __str__(self) -> str:
        parts = [f"{_last(commit.repo_url)} {commit.tag or commit.id[:7]}" for commit in self.commits]
        parts += [f"{_last(image.repo_url)} {image.tag}" for image in self.images]
        parts += [f"{chart.name or _last(chart.repo_url)} {chart.version}" for chart in self.charts]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class _Seen:
    """One look: what every subscription offers, and the artifacts or the reason why they make no Freight."""

    finds: tuple[SubscriptionFinds, ...]
    artifacts: Artifacts | Discovered


@dataclass(frozen=True, slots=True)
class Finders:
    """Finds what a subscription of any kind offers."""

    commits: CommitFinder
    images: ImageFinder
    charts: ChartFinder

    async def find(self, project: str, subscription: Subscription) -> Taken:
        """What the subscription offers now. Raises TransientError and TerminalError as the ports do."""
        match subscription:
            case GitSubscription():
                return await self.commits.find(project, subscription)
            case ImageSubscription():
                return await self.images.find(project, subscription)
            case ChartSubscription():
                return await self.charts.find(project, subscription)
            case GenericSubscription(artifact_type=kind, name=name):
                note = f"subscriptions of kind {kind} cannot be discovered here"
                return Taken(SubscriptionFinds(kind, name, name, note=note))
            case _:
                assert_never(subscription)

    async def pick(self, project: str, subscription: Subscription, version: str) -> Taken:
        """This version of what the subscription offers now, resolved anew to its digest or commit.

        Without an artifact its note says why not, and what there is. Raises as `find` does.
        """
        match subscription:
            case GitSubscription():
                return await self.commits.pick(project, subscription, version)
            case ImageSubscription():
                return await self.images.pick(project, subscription, version)
            case ChartSubscription():
                return await self.charts.pick(project, subscription, version)
            case GenericSubscription():
                return await self.find(project, subscription)
            case _:
                assert_never(subscription)


def make_finders(ports: Ports, emails: Callable[[], Collection[str]]) -> Finders:
    """Finders over the ports; `emails` gives the addresses that the bot commits with."""
    own = OwnCommits(ports.vault.digest, emails, ports.store, ports.github)
    return Finders(
        commits=CommitFinder(ports.watched, own, ports.clock),
        images=ImageFinder(ports.registry),
        charts=ChartFinder(ports.charts),
    )


@dataclass(frozen=True, slots=True)
class Discoverer:
    """Looks at Warehouses. `settle` is how long new artifacts must stand still before they are Freight, in seconds."""

    finders: Finders
    store: Store
    clock: Clock
    settle: float

    async def look(self, warehouse: Warehouse) -> Discovered:
        """Discover, and remember new Freight; the same artifacts again change nothing.

        Raises TransientError if a registry or repository cannot be reached, and TerminalError if it refuses us.
        """
        try:
            seen, outcome = await self._look(warehouse)
        except (TransientError, TerminalError) as error:
            last = await self._last_look(warehouse)
            await self._tell(warehouse, replace(last, outcome=f"the last look failed: {error}"))
            raise
        made = seen.artifacts.name(warehouse) if isinstance(seen.artifacts, Artifacts) else ""
        await self._tell(warehouse, Discovery(seen.finds, outcome.reason, made))
        return outcome

    async def _look(self, warehouse: Warehouse) -> tuple[_Seen, Discovered]:
        seen = await self._discover(warehouse)
        if isinstance(seen.artifacts, Artifacts) and await self._known(warehouse, seen.artifacts) is None:
            seen = await self._wait_until_still(warehouse, seen)
        if isinstance(seen.artifacts, Artifacts):
            return seen, await self._remember(warehouse, seen.artifacts)
        return seen, seen.artifacts

    async def _tell(self, warehouse: Warehouse, told: Discovery) -> None:
        """Keep what people are shown of this look."""
        metadata = warehouse.metadata
        stored = encode_discovery(told)
        await self.store.add_discovery(metadata.namespace, metadata.name, stored, self.clock.now())

    async def _last_look(self, warehouse: Warehouse) -> Discovery:
        row = await self.store.get_discovery(warehouse.metadata.namespace, warehouse.metadata.name)
        return decode_discovery(row[0]) if row is not None else Discovery((), "")

    async def _wait_until_still(self, warehouse: Warehouse, seen: _Seen) -> _Seen:
        # A build pushes its images one after the other: what a first look sees may be half of a release.
        for _ in range(_MOST_LOOKS):
            await asyncio.sleep(self.settle)
            before, seen = seen, await self._discover(warehouse)
            if isinstance(seen.artifacts, Discovered) or seen.artifacts == before.artifacts:
                break
        return seen

    async def _known(self, warehouse: Warehouse, artifacts: Artifacts) -> Freight | None:
        found = await self.store.get_freight(warehouse.metadata.namespace, artifacts.name(warehouse))
        return found[0] if found is not None else None

    async def _discover(self, warehouse: Warehouse) -> _Seen:
        """The newest artifact of each subscription, or why they do not make Freight."""
        project = warehouse.metadata.namespace
        answers = await asyncio.gather(
            *(self.finders.find(project, subscription) for subscription in warehouse.subscriptions),
            return_exceptions=True,
        )
        taken: list[Taken] = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            taken.append(answer)
        finds = tuple(item.finds for item in taken)
        reason = self._refusal(warehouse, taken)
        return _Seen(finds, Discovered(None, reason) if reason else collect(taken))

    def _refusal(self, warehouse: Warehouse, taken: list[Taken]) -> str:
        """Why the finds make no Freight, empty if they may."""
        for item in taken:
            if item.artifact is None:
                return f"{item.finds.address}: {item.finds.note or 'nothing was found'}"
        if warehouse.freight_creation_policy != "Automatic":
            name = f"{warehouse.metadata.namespace}/{warehouse.metadata.name}"
            return f"the Warehouse makes Freight only by hand: comment /freight {name}"
        criteria = warehouse.freight_creation_criteria
        try:
            if not meets_criteria(criteria, _facts(warehouse, taken), self.clock.now()):
                return "freightCreationCriteria is not met by the newest artifacts"
        except ExpressionError as error:
            return f"freightCreationCriteria cannot be evaluated: {error}"
        return ""

    async def _remember(self, warehouse: Warehouse, artifacts: Artifacts) -> Discovered:
        freight, new = await self.remember(warehouse, artifacts)
        if not new:
            return Discovered(None, f"the newest artifacts are known as Freight already: {freight.alias}")
        return Discovered(freight, f"{freight.alias} was made of {artifacts}")

    async def remember(
        self, warehouse: Warehouse, artifacts: Artifacts, *, by: str = ""
    ) -> tuple[Freight, bool]:
        """The Freight of these artifacts, and whether it is new; `by` is the login of who makes it by hand."""
        project = warehouse.metadata.namespace
        known = await self._known(warehouse, artifacts)
        if known is not None:
            return known, False
        name, now = artifacts.name(warehouse), self.clock.now()
        taken = {freight.alias for freight, _ in await self.store.list_freight(project)}
        freight = Freight(
            name=name,
            project=project,
            alias=freight_alias(name, taken),
            origin=FreightOrigin(warehouse.metadata.name),
            discovered_at=now,
            commits=artifacts.commits,
            images=artifacts.images,
            charts=artifacts.charts,
        )
        added = await self.store.add_freight(freight)
        if added is None:
            # A twin was first.
            return await self._known(warehouse, artifacts) or freight, False
        made = f"{added.alias}: {artifacts}{f', made by hand by {by}' if by else ''}"
        await self.store.add_event(Event(now, project, "", "", "freight", made))
        return added, True


def collect(taken: Sequence[Taken]) -> Artifacts:
    """The artifacts that were taken, by their kinds."""
    found = [item.artifact for item in taken]
    return Artifacts(
        commits=tuple(item for item in found if isinstance(item, GitCommit)),
        images=tuple(item for item in found if isinstance(item, Image)),
        charts=tuple(item for item in found if isinstance(item, Chart)),
    )


def _facts(warehouse: Warehouse, taken: list[Taken]) -> DiscoveredArtifacts:
    """What `freightCreationCriteria` sees: the newest find of each subscription."""
    pairs = [
        (subscription.repo_url, item.facts)
        for subscription, item in zip(warehouse.subscriptions, taken, strict=True)
        if not isinstance(subscription, GenericSubscription)
    ]
    return DiscoveredArtifacts(
        commits=tuple((url, (facts,)) for url, facts in pairs if isinstance(facts, DiscoveredCommit)),
        images=tuple((url, (facts,)) for url, facts in pairs if isinstance(facts, DiscoveredImage)),
        charts=tuple((url, (facts,)) for url, facts in pairs if isinstance(facts, Chart)),
    )


def _last(url: str) -> str:
    """The last part of an address, which people know the thing by."""
    return url.rstrip("/").rpartition("/")[2].removesuffix(".git")
