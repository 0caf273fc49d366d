"""Registering our App on a GitHub by its manifest: a browser posts it, and a code comes back that is good once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class AppCredentials:
    """An App that was registered, with everything that it needs to work; `page` is its public page on GitHub."""

    app_id: int
    slug: str
    name: str
    page: str
    client_id: str
    client_secret: str = field(repr=False)
    webhook_secret: str = field(repr=False)
    private_key: str = field(repr=False)

    @property
    def install_page(self) -> str:
        """Where its owner installs it."""
        return f"{self.page}/installations/new"


class Registering(Protocol):
    """The App manifest flow of one GitHub."""

    def address(self, organisation: str, state: str) -> str:
        """Where the manifest is to be posted, for an organisation or (empty) the person; `state` comes back."""

    async def exchange(self, code: str) -> AppCredentials:
        """The App that the code stands for; a code is good once, and for an hour.

        Raises TerminalError for a code that GitHub does not take, TransientError if GitHub does not answer (the code
        may be good still).
        """
