"""Chart versions that a subscription offers, from a classic repository's index or an OCI repository's tags."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.discovery import Find, SubscriptionFinds
from bot.domain.freight import Chart
from bot.domain.model import ChartSubscription
from bot.domain.selection import order_chart_versions
from bot.ports import Charts, TerminalError
from bot.workflow.taken import Taken, not_offered


@dataclass(frozen=True, slots=True)
class ChartFinder:
    """Finds chart versions."""

    charts: Charts

    async def find(self, project: str, subscription: ChartSubscription) -> Taken:
        """What the subscription offers now. Raises TransientError and TerminalError as `Charts` does."""
        url, name = subscription.repo_url, subscription.chart
        listed = await self.charts.list_versions(
            project, url, name, insecure=subscription.insecure_skip_tls_verify
        )
        try:
            ordered = order_chart_versions(subscription, listed, oci=url.startswith("oci://"))
        except ValueError as error:
            raise TerminalError(f"the subscription to {url} cannot be carried out: {error}") from error
        versions = ordered[: max(subscription.discovery_limit, 1)]
        note = "" if versions else f"none of {len(listed)} versions satisfies the subscription"
        finds = tuple(Find(version) for version in versions)
        address = f"{url.rstrip('/')}/{name}" if name else url
        told = SubscriptionFinds("chart", address, subscription.name, finds, note)
        if not versions:
            return Taken(told)
        chart = Chart(url, name, versions[0], subscription.name)
        return Taken(told, chart, chart)

    async def pick(self, project: str, subscription: ChartSubscription, version: str) -> Taken:
        """The chart with this version, if it is among what the subscription offers now."""
        told = (await self.find(project, subscription)).finds
        if all(find.version != version for find in told.finds):
            return not_offered(told, version)
        chart = Chart(subscription.repo_url, subscription.chart, version, subscription.name)
        return Taken(told, chart, chart)
