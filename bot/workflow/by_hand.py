"""Freight that a person makes: of the versions that they name, and the newest of what they do not name."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.domain.commands import MakeFreight
from bot.domain.model import ChartSubscription, GenericSubscription, Stage, Subscription, Warehouse
from bot.ports import Look, Store, TerminalError
from bot.workflow.buttons import Asked, Refusal
from bot.workflow.discovery import Artifacts, Discoverer, collect
from bot.workflow.rights import Rights
from bot.workflow.taken import Taken

_SHOWN_DIGITS = 12


@dataclass(frozen=True, slots=True)
class FreightByHand:
    """Makes Freight when somebody asks for it; Kargo's `freightCreationCriteria` concern what is made by itself."""

    discoverer: Discoverer
    rights: Rights
    store: Store

    async def make(self, asked: Asked, command: MakeFreight) -> str:
        """The Freight's alias and what it holds; the same artifacts again are the same Freight.

        Raises Refusal if there is no such Warehouse, the person may not, or a version cannot be taken; TransientError
        if a registry or repository cannot be reached now.
        """
        warehouse = self._warehouse(asked, command)
        await self._allow(asked, warehouse)
        versions = _assign(warehouse, command.versions)
        try:
            taken = await self._take(warehouse, versions)
        except TerminalError as error:
            raise Refusal(str(error)) from error
        missing = [f"{item.finds.address}: {item.finds.note}" for item in taken if item.artifact is None]
        if missing:
            raise Refusal("; ".join(missing))
        artifacts = collect(taken)
        freight, new = await self.discoverer.remember(warehouse, artifacts, by=asked.author.login)
        # Also for Freight that is known: the process may have ended before anybody looked at it.
        project = warehouse.metadata.namespace
        await self.store.request_looks(
            [
                Look("stage", f"{project}/{stage.metadata.name}", "Freight made by hand")
                for stage in self._stages(project)
            ]
        )
        said = "is new Freight of" if new else "is Freight already, with the same artifacts, of"
        return f"{freight.alias} {said} {warehouse.metadata.name}: {_describe(artifacts)}"

    async def _take(self, warehouse: Warehouse, versions: Mapping[int, str]) -> Sequence[Taken]:
        project, finders = warehouse.metadata.namespace, self.discoverer.finders
        answers = await asyncio.gather(
            *(
                finders.pick(project, subscription, versions[place])
                if place in versions
                else finders.find(project, subscription)
                for place, subscription in enumerate(warehouse.subscriptions)
            ),
            return_exceptions=True,
        )
        taken: list[Taken] = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            taken.append(answer)
        return taken

    def _warehouse(self, asked: Asked, command: MakeFreight) -> Warehouse:
        known = self.rights.gatherer.configuration.pipeline.warehouses
        owner = command.project or (asked.promotion.project if asked.promotion is not None else "")
        found = [w for (p, n), w in known.items() if n == command.warehouse and owner in ("", p)]
        if len(found) == 1:
            return found[0]
        names = ", ".join(sorted(f"{project}/{name}" for project, name in known)) or "none"
        why = "there is no Warehouse" if not found else "several projects have a Warehouse"
        raise Refusal(f"{why} {command.warehouse}; the Warehouses are: {names}")

    async def _allow(self, asked: Asked, warehouse: Warehouse) -> None:
        """The right is needed in every Stage that takes the Freight first: there it can go on by itself."""
        takers = [
            (stage, request.sources.direct)
            for stage in self._stages(warehouse.metadata.namespace)
            for request in stage.requested_freight
            if request.origin.name == warehouse.metadata.name and not stage.is_control_flow
        ]
        first = [stage for stage, direct in takers if direct] or [stage for stage, _ in takers]
        if not first:
            raise Refusal(
                f"no Stage with steps takes Freight of {warehouse.metadata.name}, so nobody can be shown to have "
                "the right"
            )
        for stage in first:
            await self.rights.check(asked, "freight", stage)

    def _stages(self, project: str) -> Sequence[Stage]:
        return self.rights.gatherer.configuration.stages_in_order(project)


def _assign(warehouse: Warehouse, versions: Sequence[tuple[str, str]]) -> Mapping[int, str]:
    """The versions by the place of their subscription. Raises Refusal for a name that is none or several."""
    assigned: dict[int, str] = {}
    names = [_names(subscription) for subscription in warehouse.subscriptions]
    for name, version in versions:
        found = [place for place, known in enumerate(names) if name in known]
        if len(found) != 1:
            why = "several subscriptions" if found else "no subscription"
            there = ", ".join(known[0] for known in names)
            raise Refusal(f"{name} names {why} of {warehouse.metadata.name}; there are: {there}")
        if found[0] in assigned:
            raise Refusal(f"{name} names a subscription for which another version stands there already")
        assigned[found[0]] = version
    return assigned


def _names(subscription: Subscription) -> tuple[str, ...]:
    """What a subscription may be called, first what tells it from the others."""
    if isinstance(subscription, GenericSubscription):
        return (subscription.name,)
    url = subscription.repo_url
    chart = subscription.chart if isinstance(subscription, ChartSubscription) else ""
    last = url.rstrip("/").rpartition("/")[2].removesuffix(".git")
    address = f"{url.rstrip('/')}/{chart}" if chart else url
    # The last part of a classic chart repository's address says nothing of the chart.
    return tuple(dict.fromkeys(name for name in (subscription.name, address, chart or last) if name))


def _describe(artifacts: Artifacts) -> str:
    """Every artifact with its version, and the digest or commit that the version stands for."""
    parts = [
        f"{c.repo_url} {f'{c.tag} ' if c.tag else ''}({c.id[:_SHOWN_DIGITS]})" for c in artifacts.commits
    ]
    parts += [
        f"{image.repo_url}:{image.tag} ({image.digest[: len('sha256:') + _SHOWN_DIGITS]})"
        for image in artifacts.images
    ]
    parts += [f"{chart.name or chart.repo_url} {chart.version}" for chart in artifacts.charts]
    return ", ".join(parts)
