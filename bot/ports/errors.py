"""The two kinds of error that the world may raise, by what the caller can do about them."""

from __future__ import annotations


class TransientError(Exception):
    """The world may answer later; `retry_after` is in seconds, None if it did not say."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TerminalError(Exception):
    """No retry can help; the message says what was tried, on what, what came back and what to do."""
