"""Mail over TLS with a login, against a small server that holds to RFC 3207 and RFC 4954."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from bot.adapters.messages import MessageChannels
from bot.domain.model import Document, Metadata
from bot.domain.pipeline import Pipeline
from bot.domain.values import Json
from bot.ports import Http, Secrets, TerminalError
from bot.ports.messages import Mail, MailChannel, MailSecurity, NotSent, NotTaken, Sent
from tests.adapters.certificates import make_certificate

MAIL = Mail(("ops@example.com", "all@example.com"), "Done", "dev is done", "one")
PASSWORD = "pw-of-mail"


@dataclass
class Server:
    """A mail server; `commands` are what it was told, in order, each with whether that was encrypted."""

    context: ssl.SSLContext
    port: int = 0
    offers_tls: bool = True
    offers_login: bool = True
    tls_at_once: bool = False
    refused: dict[str, str] = field(default_factory=dict)
    """Replies to recipients."""
    login_reply: str = "535 5.7.8 no"
    """The reply to a wrong password."""
    commands: list[tuple[str, bool]] = field(default_factory=list)
    taken: list[bytes] = field(default_factory=list)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        encrypted, signed_in = self.tls_at_once, False
        try:
            while line := (await reader.readline()).decode().strip():
                word, _, rest = line.partition(" ")
                self.commands.append((line if word.upper() != "AUTH" else "AUTH", encrypted))
                match word.upper():
                    case "EHLO":
                        writer.write(self._capabilities(encrypted))
                    case "STARTTLS":
                        writer.write(b"220 go ahead\r\n")
                        await writer.drain()
                        await writer.start_tls(self.context)
                        encrypted = True
                    case "AUTH":
                        given = base64.b64decode(rest.split()[-1]).split(b"\0")
                        signed_in = given == [b"", b"robot", PASSWORD.encode()]
                        writer.write(b"235 yes\r\n" if signed_in else f"{self.login_reply}\r\n".encode())
                    case "RCPT":
                        address = rest.partition("<")[2].partition(">")[0]
                        said = self.refused.get(address, "250 yes" if signed_in else "530 sign in first")
                        writer.write(f"{said}\r\n".encode())
                    case "DATA":
                        writer.write(b"354 go on\r\n")
                        self.taken.append(await reader.readuntil(b"\r\n.\r\n"))
                        writer.write(b"250 taken\r\n")
                    case _:
                        writer.write(b"250 yes\r\n")
        except (ConnectionError, ssl.SSLError):
            # A client that does not trust us goes away.
            pass
        finally:
            writer.close()

    def _capabilities(self, encrypted: bool) -> bytes:
        offered = ["mail.example"]
        offered += ["STARTTLS"] if self.offers_tls and not encrypted else []
        offered += ["AUTH PLAIN"] if self.offers_login and encrypted else []
        lines = [f"250-{line}\r\n" for line in offered[:-1]] + [f"250 {offered[-1]}\r\n"]
        return "".join(lines).encode()


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    certificate, key = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    made = Server(context)
    listening = await asyncio.start_server(made.talk, "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield made


def channels(document: Document | None = None, **values: str) -> MessageChannels:
    class Known:
        def secret(self, project: str, name: str) -> dict[str, str]:
            return values

        def config_map(self, project: str, name: str) -> None:
            return None

    pipeline = Pipeline(others=(document,) if document is not None else ())
    return MessageChannels(lambda: pipeline, cast(Secrets, Known()), cast(Http, None))


def channel(server: Server, **changes: object) -> MailChannel:
    made = MailChannel("localhost", server.port, "bot@example.com", username="robot", password=PASSWORD)
    return replace(made, **changes)  # type: ignore[arg-type]


async def test_the_login_and_the_mail_go_through_tls(server: Server) -> None:
    assert await channels().mail(channel(server), MAIL) == Sent()
    said = [(line.split()[0], encrypted) for line, encrypted in server.commands]
    assert said[:4] == [("ehlo", False), ("STARTTLS", False), ("ehlo", True), ("AUTH", True)]
    assert all(encrypted for _, encrypted in said[2:])
    assert b"dev is done" in server.taken[0]


async def test_tls_from_the_beginning(tmp_path: Path, server: Server) -> None:
    server.tls_at_once = True
    listening = await asyncio.start_server(server.talk, "127.0.0.1", 0, ssl=server.context)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        wanted = channel(server, port=port, security=MailSecurity.TLS)
        assert await channels().mail(wanted, MAIL) == Sent()
    assert all(encrypted for _, encrypted in server.commands)


@pytest.mark.parametrize(
    ("reply", "kind", "why"),
    [
        pytest.param("535 5.7.8 no", NotTaken, "does not accept the user and password", id="for good"),
        pytest.param("454 4.7.0 later", NotSent, "cannot tell now", id="for the moment"),
    ],
)
async def test_a_wrong_password_is_refused(server: Server, reply: str, kind: type, why: str) -> None:
    server.login_reply = reply
    answer = await channels().mail(channel(server, password="wrong-one"), MAIL)
    assert isinstance(answer, kind)
    assert why in str(answer)
    assert "wrong-one" not in str(answer)
    assert server.taken == []


@pytest.mark.parametrize(
    ("offers", "why"),
    [
        pytest.param({"offers_tls": False}, "STARTTLS", id="no STARTTLS"),
        pytest.param({"offers_login": False}, "AUTH", id="no login"),
    ],
)
async def test_what_a_server_does_not_offer_is_not_done_without(
    server: Server, offers: dict[str, bool], why: str
) -> None:
    for name, value in offers.items():
        setattr(server, name, value)
    answer = await channels().mail(channel(server), MAIL)
    assert isinstance(answer, NotTaken)
    assert "does not offer" in str(answer)
    assert why in str(answer)
    assert (server.taken, "AUTH" in [line for line, _ in server.commands]) == ([], False)


async def test_a_server_under_another_name_is_not_trusted(server: Server) -> None:
    answer = await channels().mail(channel(server, host="127.0.0.1"), MAIL)
    assert isinstance(answer, NotTaken)
    assert "a certificate that cannot be verified" in str(answer)
    assert [line for line, encrypted in server.commands if encrypted] == []


@pytest.mark.parametrize(
    ("refused", "kind", "why", "taken"),
    [
        pytest.param(
            {"all@example.com": "550 5.1.1 nobody"}, NotTaken, "refuses all@example.com", 1, id="one of two"
        ),
        pytest.param(
            {"all@example.com": "550 5.1.1 nobody", "ops@example.com": "550 5.1.1 nobody"},
            NotTaken,
            "answered 550 5.1.1 nobody",
            0,
            id="all",
        ),
        pytest.param(
            {"all@example.com": "451 4.7.1 greylisted", "ops@example.com": "451 4.7.1 greylisted"},
            NotSent,
            "answered 451",
            0,
            id="all for the moment",
        ),
    ],
)
async def test_a_refused_recipient(
    server: Server, refused: dict[str, str], kind: type, why: str, taken: int
) -> None:
    server.refused = refused
    answer = await channels().mail(channel(server), MAIL)
    assert isinstance(answer, kind)
    assert why in str(answer)
    assert len(server.taken) == taken


@pytest.mark.parametrize(("host", "refused"), [("mail.example", True), ("localhost", False)])
def test_a_password_never_leaves_the_machine_unencrypted(host: str, refused: bool) -> None:
    smtp: Json = {"host": host, "from": "bot@example.com", "security": "none"}
    body: dict[str, Json] = {"spec": {"secretRef": {"name": "mail"}, "smtp": smtp}}
    document = Document("v1", "MessageChannel", Metadata("mail", "acme"), body)
    known = channels(document, username="robot", password=PASSWORD)
    if not refused:
        assert isinstance(known.find_channel("acme", "MessageChannel", "mail"), MailChannel)
        return
    with pytest.raises(TerminalError, match="without encryption"):
        known.find_channel("acme", "MessageChannel", "mail")
