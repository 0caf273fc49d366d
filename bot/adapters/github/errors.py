"""GitHub's refusals, told apart by status and header."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import httpx

from bot.payloads.reading import PayloadProblem, read_json
from bot.ports import TerminalError, TransientError

RATE_MARKS: tuple[str, ...] = ("secondary rate limit", "abuse detection mechanism")
"""What a 403 for the secondary limit says where GitHub sends neither `Retry-After` nor a remaining count of 0."""

_LEAST_WAIT = 60.0
"""GitHub's docs: "wait for at least one minute before retrying" where no header says more."""


class Unanswered(TransientError):
    """The answer was lost or is a 5xx: a write may have been done, so look before it is repeated."""


class RateLimited(TransientError):
    """GitHub asks us to stop for a while; nothing was done."""


class NotFound(TerminalError):
    """GitHub says 404 or 410: it does not exist, or the App may not see it."""


class Rejected(TerminalError):
    """GitHub understood and says no (405, 409, 422); `status` tells which, `reason` is its own message."""

    def __init__(self, message: str, *, status: int, reason: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class Unauthorized(TerminalError):
    """GitHub does not accept the token (401); a fresh one may help once."""


def translate(response: httpx.Response, *, now: datetime) -> TransientError | TerminalError:
    """The error that a response of 300 or more means to the caller; what was tried is part of the message."""
    status, reason = response.status_code, read_reason(response)
    tried = f"GitHub answered {status} to {describe(response.request)}: {reason}"
    if status >= 500:
        return Unanswered(tried, retry_after=_read_number(response.headers, "retry-after"))
    if status == 429 or (status == 403 and _is_rate_limit(response.headers, reason)):
        wait = _read_wait(response.headers, now)
        return RateLimited(f"{tried}; trying again in {wait:.0f} s", retry_after=wait)
    if status == 401:
        return Unauthorized(
            f"{tried}; check the App's id and private key, and this machine's clock"
            f" (GitHub's says {response.headers.get('date', 'nothing')})"
        )
    if status == 403:
        return TerminalError(f"{tried}; {_say_what_to_grant(response.headers, reason)}")
    if status in {404, 410}:
        return NotFound(f"{tried}; it does not exist, or the App is not installed there or may not read it")
    if status in {405, 409, 422}:
        return Rejected(tried, status=status, reason=reason)
    return TerminalError(tried)


def describe(request: httpx.Request) -> str:
    """Method and path of a request, without its query and headers."""
    return f"{request.method} {request.url.path}"


def read_reason(response: httpx.Response) -> str:
    """GitHub's own message with the details of a validation error, bounded; the status phrase if there is none."""
    try:
        root = read_json(response.content)
        parts = [root.text("message", default=response.reason_phrase)]
        parts += [
            item.value if isinstance(item.value, str) else item.text("message", default="")
            for item in root.items("errors")
        ]
    except PayloadProblem:
        return response.reason_phrase or "no message"
    return "; ".join(part for part in parts if part)[:500]


def _is_rate_limit(headers: Mapping[str, str], reason: str) -> bool:
    if "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0":
        return True
    return any(mark in reason.lower() for mark in RATE_MARKS)


def _read_wait(headers: Mapping[str, str], now: datetime) -> float:
    if (wait := _read_number(headers, "retry-after")) is not None:
        return wait
    reset = _read_number(headers, "x-ratelimit-reset")
    if headers.get("x-ratelimit-remaining") == "0" and reset is not None:
        # The reset is a whole second of GitHub's clock; one more makes up for a clock that is slightly ahead.
        return max(1.0, reset - now.timestamp() + 1.0)
    return _LEAST_WAIT


def _read_number(headers: Mapping[str, str], name: str) -> float | None:
    text = headers.get(name, "")
    return float(text) if text.isascii() and text.isdigit() else None


def _say_what_to_grant(headers: Mapping[str, str], reason: str) -> str:
    needed = headers.get("x-accepted-github-permissions", "")
    if "suspended" in reason.lower():
        return "an owner of that account must lift the suspension of the App's installation"
    if needed:
        return (
            f"grant the App one of these permissions: {needed.replace('=', ': ')};"
            " then accept them on the installation"
        )
    return "grant the App the permission in its settings, then accept it on the installation"
