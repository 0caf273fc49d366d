"""Webhook receivers: which are open, at which address, and what follows from that which they were told."""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.domain.github import PullNumber
from bot.domain.model import WebhookReceiver
from bot.domain.pipeline import Pipeline
from bot.domain.receiving import (
    SECRET_KEYS,
    ActionFailed,
    Notice,
    PullRequestEnded,
    RefsMoved,
    TagsPushed,
    TargetsChosen,
    find_warehouses,
    receiver_path,
    waits_for_pull,
)
from bot.payloads import PayloadProblem
from bot.payloads.reading import UnsupportedEventError
from bot.payloads.receivers import read_notices
from bot.ports import Clock, Delivery, GitHub, Look, Secrets, Store, TerminalError

log = logging.getLogger(__name__)

CLUSTER_SECRETS = ("kargo-system-resources", "kargo-cluster-secrets")
"""Namespaces of the Secrets that a ClusterConfig names: Kargo's, and the one of its older versions."""

OLD_SUFFIX = "-old"
"""Ends the key of a credential that is being replaced: both hold until it is taken away."""
_KEPT = timedelta(seconds=10)
"""How long addresses are kept before Secrets are read again, so that a flood of guesses reads no files."""
_PULL = re.compile(r"(https?://.+)/pull/([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class OpenReceiver:
    """A receiver that can be reached at `path`; `project` is empty for one of the ClusterConfig."""

    project: str
    receiver: WebhookReceiver
    path: str
    secret: str = field(repr=False)
    old: bool = False
    """Whether this is the address of the credential that is being replaced."""

    @property
    def name(self) -> str:
        """How deliveries name it: `project/name`, `/name` for the cluster's."""
        return f"{self.project}/{self.receiver.name}"


@dataclass(frozen=True, slots=True)
class ClosedReceiver:
    """A receiver that cannot be reached, and why."""

    project: str
    receiver: WebhookReceiver
    reason: str


def list_configured(pipeline: Pipeline) -> Iterator[tuple[str, WebhookReceiver]]:
    """Every receiver of a pipeline with its project, empty for those of the ClusterConfig."""
    for project, config in sorted(pipeline.project_configs.items()):
        for receiver in config.webhook_receivers:
            yield project, receiver
    if pipeline.cluster_config is not None:
        for receiver in pipeline.cluster_config.webhook_receivers:
            yield "", receiver


def find_receivers(
    pipeline: Pipeline, secrets: Secrets
) -> tuple[tuple[OpenReceiver, ...], tuple[ClosedReceiver, ...]]:
    """The receivers that are open, and those that lack their Secret."""
    opened: list[OpenReceiver] = []
    closed: list[ClosedReceiver] = []
    for project, receiver in list_configured(pipeline):
        try:
            opened += _open(project, receiver, _read_secret(project, receiver, secrets))
        except (ValueError, TerminalError) as error:
            closed.append(ClosedReceiver(project, receiver, str(error)))
    return tuple(opened), tuple(closed)


def _open(project: str, receiver: WebhookReceiver, values: Mapping[str, str]) -> Iterator[OpenReceiver]:
    """A receiver at its address; during a rotation also at that of the old credential, `<key>-old`."""
    key = SECRET_KEYS[receiver.vendor]
    yield OpenReceiver(project, receiver, receiver_path(project, receiver, values), values.get(key, ""))
    old = values.get(f"{key}{OLD_SUFFIX}", "")
    if old:
        yield OpenReceiver(project, receiver, receiver_path(project, receiver, {key: old}), old, old=True)


def describe_receivers(pipeline: Pipeline, secrets: Secrets, base: str) -> str:
    """A line for each receiver: its kind, its name, and its address under `base` or why it has none."""
    opened, closed = find_receivers(pipeline, secrets)
    lines = [
        f"{item.name} ({item.receiver.vendor}{', old' if item.old else ''}): {base}{item.path}"
        for item in opened
    ]
    for item in closed:
        lines.append(f"{item.project}/{item.receiver.name} ({item.receiver.vendor}): closed, {item.reason}")
    return "\n".join(sorted(lines)) or "the configuration has no webhook receivers"


def _read_secret(project: str, receiver: WebhookReceiver, secrets: Secrets) -> dict[str, str]:
    for owner in (project,) if project else CLUSTER_SECRETS:
        values = secrets.secret(owner, receiver.secret) if receiver.secret else None
        if values is not None:
            return dict(values)
    return {}


@dataclass(slots=True)
class ReceiverBook:
    """Finds the receiver that an address belongs to, in the configuration that is in force."""

    pipeline: Callable[[], Pipeline]
    secrets: Secrets
    clock: Clock
    _opened: tuple[OpenReceiver, ...] = ()
    _revision: str | None = None
    _read_at: datetime | None = None

    def find(self, path: str) -> OpenReceiver | None:
        """The receiver at `/<kind>/<digest>`, None if there is none; all are compared, in constant time."""
        found: OpenReceiver | None = None
        for opened in self._current():
            if hmac.compare_digest(opened.path.encode(), path.encode("utf-8", "replace")):
                found = opened
        return found

    def _current(self) -> tuple[OpenReceiver, ...]:
        pipeline, now = self.pipeline(), self.clock.now()
        fresh = self._read_at is not None and now - self._read_at < _KEPT
        if not fresh or pipeline.revision != self._revision:
            self._opened, closed = find_receivers(pipeline, self.secrets)
            if pipeline.revision != self._revision:
                for item in closed:
                    name = f"{item.project}/{item.receiver.name}"
                    log.warning(
                        "a receiver is not reachable", extra={"receiver": name, "reason": item.reason}
                    )
            self._revision, self._read_at = pipeline.revision, now
        return self._opened


@dataclass(frozen=True, slots=True)
class ReceivedIntake:
    """Reads deliveries of receivers. `pipeline` gives the one in force."""

    store: Store
    github: GitHub
    pipeline: Callable[[], Pipeline]

    async def read(self, delivery: Delivery) -> tuple[list[Look], str]:
        """The looks that follow from a delivery, each once, and a note on it; a receiver sees only its project."""
        project, _, name = delivery.receiver.partition("/")
        receiver = self._find(project, name, delivery.source)
        if receiver is None:
            return [], f"the receiver {delivery.receiver} is no longer configured"
        try:
            notices = read_notices(delivery.source, delivery.event, delivery.body, receiver.config)
        except UnsupportedEventError as reason:
            return [], f"of no interest: {reason}"
        except PayloadProblem as problem:
            log.warning(
                "a delivery was not understood", extra={"delivery": delivery.id, "problem": str(problem)}
            )
            return [], str(problem)
        looks: dict[tuple[str, str], Look] = {}
        for notice in notices:
            for look in await self._looks(notice, project):
                looks[(look.kind, look.key)] = look
        failed = "; ".join(notice.reason for notice in notices if isinstance(notice, ActionFailed))
        if failed:
            log.warning(
                "an action of a receiver failed", extra={"receiver": delivery.receiver, "problem": failed}
            )
        return list(looks.values()), failed or ("" if looks else "of no interest")

    def _find(self, project: str, name: str, vendor: str) -> WebhookReceiver | None:
        return next(
            (
                receiver
                for owner, receiver in list_configured(self.pipeline())
                if (owner, receiver.name, receiver.vendor) == (project, name, vendor)
            ),
            None,
        )

    async def _looks(self, notice: Notice, project: str) -> list[Look]:
        reason = _reason(notice)
        found = find_warehouses(notice, self.pipeline().warehouses, project)
        looks = [Look("warehouse", f"{owner}/{name}", reason) for owner, name in found]
        if isinstance(notice, PullRequestEnded):
            looks += await self._of_pull(notice, project, reason)
        if isinstance(notice, TargetsChosen) and notice.kind == "Promotion":
            looks += await self._of_promotion(notice, project, reason)
        return looks

    async def _of_pull(self, notice: PullRequestEnded, project: str, reason: str) -> list[Look]:
        looks = []
        for promotion in await self.store.list_unfinished_promotions():
            if project and promotion.project != project:
                continue
            runs = await self.store.list_steps(promotion.id)
            if waits_for_pull(promotion.state, tuple(runs.values()), notice.url):
                looks.append(Look("stage", f"{promotion.project}/{promotion.stage}", reason))
        named = _PULL.fullmatch(notice.url)
        repository = self.github.repository_of(named[1]) if named is not None else None
        if named is not None and repository is not None:
            number = PullNumber(int(named[2]))
            own = await self.store.find_promotion_by_pull(self.github.clone_url(repository), number)
            if own is not None and not own.state.ended and project in ("", own.project):
                looks.append(Look("stage", f"{own.project}/{own.stage}", reason))
        return looks

    async def _of_promotion(self, notice: TargetsChosen, project: str, reason: str) -> list[Look]:
        # Our Promotions have no labels and no index, so that they are chosen by name alone.
        if not notice.name or notice.match_labels or notice.requirements or notice.subscribed:
            return []
        return [
            Look("stage", f"{promotion.project}/{promotion.stage}", reason)
            for promotion in await self.store.list_unfinished_promotions()
            if promotion.id == notice.name and project in ("", promotion.project)
        ]


def _reason(notice: Notice) -> str:
    match notice:
        case RefsMoved():
            return f"{_listed(notice.refs)} was pushed"
        case TagsPushed():
            return f"{notice.repository[:200]}:{_listed(notice.tags)} was pushed"
        case PullRequestEnded():
            return f"{notice.url[:200]} was merged or closed"
        case TargetsChosen() | ActionFailed():
            return "a receiver asked for it"


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(name[:100] for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown
