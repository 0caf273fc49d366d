"""What monitoring reads: a few numbers in Prometheus' text format, without secrets and without names of pipelines.

Source of the format: Prometheus' documentation, "Exposition formats", text format 0.0.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from bot import __version__
from bot.ports import Clock, TransientError
from bot.ports.measuring import Workloads

_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Readings:
    """What this process knows of itself: requests left by installation, Terraform's runs, and the last sweep."""

    requests_left: Mapping[str, int] = field(default_factory=dict)
    terraform_running: int = 0
    terraform_begun: Mapping[str, int] = field(default_factory=dict)
    swept_at: datetime | None = None
    leads: bool = True
    """Whether this is the replica that sweeps and sends."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """The page `/metrics`; `read` gives what the process knows now."""

    store: Workloads
    clock: Clock
    read: Callable[[], Readings]

    async def page(self, _request: Request) -> Response:
        """All numbers; 503 while the database does not answer."""
        now = self.clock.now()
        try:
            work = await self.store.measure(now)
        except TransientError as error:
            return PlainTextResponse(f"{error}\n", 503)
        own = self.read()
        states = {str(state): count for state, count in work.promotions.items()}
        families = [
            _family("build_info", "gauge", "The version that runs.", {__version__: 1}, "version"),
            _one("deliveries_pending", "Webhooks that are stored and not worked on.", work.deliveries),
            _one("deliveries_oldest_seconds", "Age of the oldest of them.", _age(now, work.oldest_delivery)),
            _one("looks_due", "Looks whose time has come.", work.looks),
            _one("looks_lag_seconds", "For how long the first of them waits.", _age(now, work.oldest_look)),
            _one("outbox_posts", "Checks and comments that GitHub does not show yet.", work.posts),
            _family("promotions", "gauge", "Promotions that have not ended.", states, "state"),
            _one("promotions_ended", "Promotions that have ended.", work.ended),
            _family(
                "drift_stages",
                "gauge",
                "Stages that were looked at for drift, by what the last look found.",
                {str(finding): count for finding, count in work.drift.items()},
                "finding",
            ),
            _one(
                "drifted_resources", "Resources and outputs that are not as they were applied.", work.drifted
            ),
            _family(
                "github_requests_left",
                "gauge",
                "Requests that GitHub allows until its next reset, as of its last answer.",
                own.requests_left,
                "installation",
            ),
            _one("terraform_running", "Runs of Terraform that are under way here.", own.terraform_running),
            _family(
                "terraform_runs_total",
                "counter",
                "Runs of Terraform that were begun here.",
                own.terraform_begun,
                "operation",
            ),
            _one("leader", "1 if this replica sweeps and posts.", int(own.leads)),
        ]
        if own.swept_at is not None:
            said = "When this replica last looked at everything."
            families.append(_one("last_sweep_timestamp_seconds", said, own.swept_at.timestamp()))
        if work.oldest_drift_look is not None:
            said = "When the Stage was looked at for drift whose last look is the oldest."
            families.append(
                _one("drift_oldest_look_timestamp_seconds", said, work.oldest_drift_look.timestamp())
            )
        lines = [line for family in families for line in family]
        return Response("\n".join(lines) + "\n", media_type=_TYPE)


def _one(name: str, about: str, value: float) -> Iterator[str]:
    """A gauge without labels."""
    yield from _head(name, "gauge", about)
    yield f"lockstep_{name} {_number(value)}"


def _family(name: str, kind: str, about: str, values: Mapping[str, int], label: str) -> Iterator[str]:
    """A metric with one label."""
    yield from _head(name, kind, about)
    for key, value in sorted(values.items()):
        shown = key.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        yield f'lockstep_{name}{{{label}="{shown}"}} {_number(value)}'


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP lockstep_{name} {about}"
    yield f"# TYPE lockstep_{name} {kind}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def _age(now: datetime, since: datetime | None) -> float:
    """Seconds since then, 0 if nothing waits."""
    return max(0.0, (now - since).total_seconds()) if since is not None else 0.0
