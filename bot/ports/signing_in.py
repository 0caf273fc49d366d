"""Finding out who sits at a browser: GitHub asks the person and tells us, by a code that is good once."""

from __future__ import annotations

from typing import Protocol

from bot.domain.github import User


class SignIn(Protocol):
    """Signing in with GitHub by the web application flow of our App."""

    def address(self, state: str, verifier: str) -> str:
        """Where GitHub asks the person. `state` comes back with the code; `verifier` must be shown with it."""

    async def identify(self, code: str, verifier: str) -> User:
        """Who the code is of; the token that it stands for is used for this and dropped.

        Raises TerminalError for a code that GitHub refuses, TransientError if GitHub does not answer.
        """
