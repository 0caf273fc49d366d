"""Message channels: where `send-message` sends to."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

from bot.domain.values import Json


@dataclass(frozen=True, slots=True)
class SlackChannel:
    """A Slack channel by its id, and the token that may write there."""

    channel_id: str
    token: str = field(repr=False)


class MailSecurity(StrEnum):
    """How a mail server is spoken to."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class MailChannel:
    """A mail server, who writes, and to whom if a message does not say."""

    host: str
    port: int
    sender: str
    recipients: tuple[str, ...] = ()
    security: MailSecurity = MailSecurity.STARTTLS
    username: str = ""
    password: str = field(default="", repr=False)


Channel: TypeAlias = SlackChannel | MailChannel


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail; `identity` is the left half of its Message-ID, the same for the same message."""

    recipients: tuple[str, ...]
    subject: str
    body: str
    identity: str
    html: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """It was taken; `thread` is Slack's timestamp of the message."""

    thread: str = ""


@dataclass(frozen=True, slots=True)
class NotSent:
    """Nothing was sent; it may be tried again after so many seconds."""

    reason: str
    retry_after: float = 30.0


@dataclass(frozen=True, slots=True)
class NotTaken:
    """The server says no, and will say so again."""

    reason: str


@dataclass(frozen=True, slots=True)
class MaybeSent:
    """It may have been taken, but the answer was lost."""

    reason: str


Delivered: TypeAlias = Sent | NotSent | NotTaken | MaybeSent


class Messages(Protocol):
    """Channels of the pipeline, and what is sent over them."""

    def find_channel(self, project: str, kind: str, name: str) -> Channel | None:
        """A `MessageChannel` of the project or a `ClusterMessageChannel`, None if there is none.

        Raises TerminalError if it cannot be used: another type, a missing field or Secret.
        """

    async def post(self, channel: SlackChannel, body: dict[str, Json]) -> Delivered:
        """Send a message of Slack's form to Slack."""

    async def mail(self, channel: MailChannel, mail: Mail) -> Delivered:
        """Send a mail."""
