"""Misbehaviour on demand: rules that make the server fail, dawdle or lose webhooks a counted number of times."""

import re
import threading
from dataclasses import dataclass
from typing import Any

from bot.sandbox.github.errors import Refused

REQUEST_KINDS = (
    "5xx-before",
    "5xx-after",
    "404-young",
    "secondary-limit",
    "primary-limit",
    "stale-mergeable",
    "slow",
)
WEBHOOK_KINDS = ("late", "doubled", "lost", "vanished", "reordered")
FOREVER = 10**9


@dataclass(slots=True)
class RequestFault:
    """One rule for API requests; `left` counts down, `status`, `delay` (s) and `young_ms` are for some kinds."""

    kind: str
    method: str
    path: re.Pattern[str]
    left: int
    status: int = 502
    delay: float = 0.0
    retry_after: int = 60
    young_ms: int = 0


@dataclass(slots=True)
class WebhookFault:
    """One rule for deliveries of an event (`*`: any) and action (`*`: any)."""

    kind: str
    event: str
    action: str
    left: int
    delay: float = 1.0


class Faults:
    """The rules in force. They are not stored: a restart ends them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: list[RequestFault] = []
        self._webhooks: list[WebhookFault] = []

    def add(self, described: Any) -> None:
        """Add rules from their JSON; 422 if one is not understood, and then none is added."""
        if not isinstance(described, list):
            raise Refused(422, "The faults are a JSON list of rules.")
        made = [_fault(item) for item in described]
        with self._lock:
            self._requests += [item for item in made if isinstance(item, RequestFault)]
            self._webhooks += [item for item in made if isinstance(item, WebhookFault)]

    def clear(self) -> None:
        """Forget all rules."""
        with self._lock:
            self._requests, self._webhooks = [], []

    def for_request(self, method: str, path: str, kinds: tuple[str, ...]) -> RequestFault | None:
        """The first rule of these kinds for the request, one use of it taken."""
        with self._lock:
            for item in self._requests:
                fits = item.method in ("*", method) and item.path.search(path)
                if item.left > 0 and item.kind in kinds and fits:
                    item.left -= 1
                    return item
        return None

    def for_webhook(self, event: str, action: str | None) -> WebhookFault | None:
        """The first rule for the delivery, one use of it taken."""
        with self._lock:
            for item in self._webhooks:
                if item.left > 0 and item.event in ("*", event) and item.action in ("*", action or ""):
                    item.left -= 1
                    return item
        return None


def _fault(item: Any) -> RequestFault | WebhookFault:
    if not isinstance(item, dict):
        raise Refused(422, f"A fault is an object, not {item!r}.")
    kind = item.get("kind")
    numbers: dict[str, Any] = {"left": item.get("count", 1) or FOREVER}
    if kind in REQUEST_KINDS:
        names = {"status", "delay", "retry_after", "young_ms"}
        _only(item, names | {"kind", "method", "path", "count"})
        numbers |= {name: item[name] for name in names if name in item}
        _all_numbers(numbers)
        return RequestFault(kind, item.get("method", "*"), _pattern(item.get("path", "")), **numbers)
    if kind in WEBHOOK_KINDS:
        _only(item, {"kind", "event", "action", "count", "delay"})
        numbers |= {"delay": item["delay"]} if "delay" in item else {}
        _all_numbers(numbers)
        return WebhookFault(kind, item.get("event", "*"), item.get("action", "*"), **numbers)
    known = ", ".join(REQUEST_KINDS + WEBHOOK_KINDS)
    raise Refused(422, f"There is no fault of kind {kind!r}; the kinds are {known}.")


def _pattern(text: Any) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, TypeError) as problem:
        raise Refused(422, f"The path {text!r} is not a regular expression: {problem}") from None


def _only(item: dict[str, Any], allowed: set[str]) -> None:
    unknown = sorted(set(item) - allowed)
    if unknown:
        raise Refused(422, f"A fault of kind {item['kind']} knows no {', '.join(unknown)}.")


def _all_numbers(numbers: dict[str, Any]) -> None:
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Refused(422, f"The fault's {name} is not a number: {value!r}.")
