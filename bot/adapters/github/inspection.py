"""The port `GitHubInspection`: what our App is, where it is installed, and what the rules of branches are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from bot.adapters.github.branch_rules import allowed_methods
from bot.adapters.github.connection import Connection, join_path
from bot.adapters.github.errors import NotFound, Unauthorized
from bot.adapters.github.tokens import Scope
from bot.domain.doctor_facts import (
    AppFacts,
    BranchFacts,
    HookFacts,
    HostFacts,
    InstallationFacts,
    RequiredCheck,
)
from bot.domain.github import Repository
from bot.payloads.reading import Node
from bot.ports import Clock, Http, HttpRequest, TerminalError, TransientError

_DELIVERIES = 50
_BYPASS = ("never", "pull_requests_only", "always")
"""GitHub's words for whether the asker may pass a rule set, least first; newer servers add `exempt`."""


@dataclass(frozen=True, slots=True)
class AppInspection:
    """GitHub through the connection of our App; `http` asks without a signature."""

    connection: Connection
    http: Http
    clock: Clock

    async def host(self) -> HostFacts:
        """Any answer of GitHub tells its time, and that it is GitHub."""
        url = self.connection.settings.api_url
        try:
            answer = await self.http.send(HttpRequest("GET", f"{url.rstrip('/')}/meta", timeout=10.0))
        except (TransientError, TerminalError) as error:
            return HostFacts(url, problem=str(error))
        headers = {name.lower(): value for name, value in answer.headers}
        ahead: float | None = None
        try:
            said = parsedate_to_datetime(headers.get("date", ""))
            # The header has whole seconds, so what is less than one tells nothing.
            ahead = float(int((self.clock.now() - said).total_seconds()))
        except ValueError:
            pass
        return HostFacts(url, "x-github-request-id" in headers, ahead)

    async def app(self) -> AppFacts:
        """The App by its own key."""
        settings = self.connection.settings
        try:
            load_pem_private_key(settings.private_key.encode(), None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            return AppFacts(settings.app_id, problem="the private key is no PEM file of an unencrypted key")
        try:
            node = await self.connection.call_as_app("GET", "app")
        except (Unauthorized, NotFound) as error:
            return AppFacts(settings.app_id, problem=str(error))
        return AppFacts(
            id=settings.app_id,
            slug=node.text("slug"),
            page=node.text("html_url"),
            permissions=node.texts("permissions"),
            events=_names(node.items("events")),
        )

    async def installations(self) -> Sequence[InstallationFacts]:
        """Every installation."""
        return tuple(
            InstallationFacts(
                account=item.text("account", "login"),
                page=item.text("html_url"),
                permissions=item.texts("permissions"),
                events=_names(item.items("events")),
                suspended=item.has("suspended_at"),
            )
            for item in await self.connection.list_all(None, "app/installations")
        )

    async def hook(self) -> HookFacts:
        """Where webhooks go, and how the newest events fared; of repeated ones the best attempt counts."""
        try:
            config = await self.connection.call_as_app("GET", join_path("app", "hook", "config"))
        except NotFound:
            return HookFacts("")
        left = _DELIVERIES

        def is_enough(_item: Node) -> bool:
            nonlocal left
            left -= 1
            return left < 0

        statuses: dict[str, int] = {}
        listed = await self.connection.list_all(None, join_path("app", "hook", "deliveries"), until=is_enough)
        for item in listed:
            status = item.number("status_code", default=0)
            known = statuses.setdefault(item.text("guid"), status)
            if not 200 <= known < 300 and 200 <= status < 300:
                statuses[item.text("guid")] = status
        return HookFacts(
            url=config.text("url", default=""),
            content_type=config.text("content_type", default="form"),
            verifies=str(config.at("insecure_ssl").value) == "0" if config.has("insecure_ssl") else True,
            statuses=tuple(statuses.values()),
        )

    async def branch(self, repository: Repository, branch: str, *, pushes: bool) -> BranchFacts:
        """The rules of a branch, as far as an App without administration may see them."""
        scope = Scope((("contents", "read"), ("metadata", "read")), repository)
        place = join_path("repos", repository.owner, repository.name)
        settings = await self.connection.get(scope, place)
        branch = branch or settings.text("default_branch")
        rules = await self.connection.list_all(scope, f"{place}/rules/branches/{join_path(branch)}")
        seen = await self.connection.get(scope, f"{place}/branches/{join_path(branch)}")
        older = [
            RequiredCheck(item.text("context"), _app_of(item, "app_id"))
            for item in seen.items("protection", "required_status_checks", "checks")
        ]
        newer = [
            RequiredCheck(item.text("context"), _app_of(item, "integration_id"))
            for rule in rules
            for item in rule.items("parameters", "required_status_checks")
        ]
        return BranchFacts(
            repository=repository,
            branch=branch,
            checks=tuple(dict.fromkeys([*newer, *older])),
            strict=any(rule.boolean("parameters", "strict_required_status_checks_policy") for rule in rules),
            reviews=max(
                (rule.number("parameters", "required_approving_review_count", default=0) for rule in rules),
                default=0,
            ),
            bypass=await self._bypass(scope, place, rules),
            kinds=frozenset(rule.text("type") for rule in rules),
            merge_methods=allowed_methods(settings, rules),
            pushes=pushes,
            classic=not rules and seen.boolean("protected"),
        )

    async def _bypass(self, scope: Scope, place: str, rules: Sequence[Node]) -> str:
        """The least of what the App may do against each rule set; empty if that is not told."""
        least = "always" if rules else ""
        for number in sorted({rule.number("ruleset_id") for rule in rules}):
            found = await self.connection.find(scope, f"{place}/rulesets/{number}")
            said = found.text("current_user_can_bypass", default="") if found is not None else ""
            if not said:
                return ""
            word = said if said in _BYPASS else "always"
            least = min(least, word, key=_BYPASS.index)
        return least


def _app_of(node: Node, key: str) -> int | None:
    """The App that must post a check; older answers say -1 for any."""
    found = node.find(key)
    return found.value if found is not None and isinstance(found.value, int) and found.value > 0 else None


def _names(items: Iterable[Node]) -> frozenset[str]:
    return frozenset(item.value for item in items if isinstance(item.value, str))
