"""The port `Messages`: Slack by its Web API, mail by SMTP.

A channel is Kargo's document: `spec.slack.channelID` with the key `apiKey` of the Secret that `spec.secretRef` names,
or `spec.smtp`. Kargo's public documentation does not say what stands in `spec.smtp`; here it is `host`, `port`, `from`,
`to` and `security` (`starttls`, `tls` or `none`), and the Secret may hold `username`, `password` and any of the others.
"""

from __future__ import annotations

import asyncio
import json
import smtplib
import ssl
from collections.abc import Callable, Mapping
from email.message import EmailMessage

import httpx

from bot.adapters.git.environment import is_loopback
from bot.domain.model import Document
from bot.domain.pipeline import Pipeline
from bot.domain.values import Json
from bot.ports import Http, HttpRequest, HttpResponse, Secrets, TerminalError, TransientError
from bot.ports.messages import (
    Channel,
    Delivered,
    Mail,
    MailChannel,
    MailSecurity,
    MaybeSent,
    NotSent,
    NotTaken,
    Sent,
    SlackChannel,
)

_SLACK = "https://slack.com/api/chat.postMessage"
_CLUSTER_SECRETS = ("kargo-system-resources", "kargo-cluster-secrets")
"""Where Kargo looks for the Secrets of what belongs to no project; the second is its older default."""
_TIMEOUT = 30.0
_PORTS = {MailSecurity.STARTTLS: 587, MailSecurity.TLS: 465, MailSecurity.NONE: 25}
_LATER = frozenset({"ratelimited", "rate_limited", "service_unavailable", "internal_error", "fatal_error"})
"""Slack's errors after which the same message may be taken."""


class MessageChannels:
    """Channels of the pipeline that is in force; `slack_url` is where Slack takes messages."""

    def __init__(
        self, pipeline: Callable[[], Pipeline], secrets: Secrets, http: Http, *, slack_url: str = _SLACK
    ) -> None:
        self._pipeline = pipeline
        self._secrets = secrets
        self._http = http
        self._slack_url = slack_url

    # -- channels ----------------------------------------------------------------------------------------------

    def find_channel(self, project: str, kind: str, name: str) -> Channel | None:
        """See `Messages.find_channel`."""
        owner = project if kind == "MessageChannel" else ""
        for document in self._pipeline().others:
            metadata = document.metadata
            if (document.kind, metadata.namespace, metadata.name) == (kind, owner, name):
                return self._read(document, project)
        return None

    def _read(self, document: Document, project: str) -> Channel:
        what = f"the {document.kind} {document.metadata.name}"
        spec = _mapping(document.body.get("spec"))
        secret = self._secret(document, spec, project, what)
        if "slack" in spec:
            channel = _text(_mapping(spec["slack"]).get("channelID"))
            token = secret.get("apiKey", "")
            if not channel or not token:
                missing = "spec.slack.channelID" if not channel else "the key apiKey in its Secret"
                raise TerminalError(f"{what} lacks {missing}")
            return SlackChannel(channel, token)
        if "smtp" in spec:
            return _read_mail(_mapping(spec["smtp"]), secret, what)
        raise TerminalError(
            f"{what} is neither for Slack nor for mail (spec.slack, spec.smtp); messages are sent to these alone. "
            "Use the step http for another kind of channel"
        )

    def _secret(
        self, document: Document, spec: Mapping[str, Json], project: str, what: str
    ) -> Mapping[str, str]:
        name = _text(_mapping(spec.get("secretRef")).get("name"))
        if not name:
            return {}
        owners = (project,) if document.kind == "MessageChannel" else _CLUSTER_SECRETS
        for owner in owners:
            found = self._secrets.secret(owner, name)
            if found is not None:
                return found
        raise TerminalError(f"{what} names the Secret {name!r}, which is not in {' or '.join(owners)}")

    # -- Slack -------------------------------------------------------------------------------------------------

    async def post(self, channel: SlackChannel, body: dict[str, Json]) -> Delivered:
        """See `Messages.post`."""
        request = HttpRequest(
            "POST",
            self._slack_url,
            headers=(
                ("Authorization", f"Bearer {channel.token}"),
                ("Content-Type", "application/json; charset=utf-8"),
            ),
            body=json.dumps(body).encode(),
            timeout=_TIMEOUT,
        )
        try:
            response = await self._http.send(request)
        except TransientError as error:
            # Without a connection, or a name that resolves, nothing can have arrived.
            unreachable = error.__cause__ is None or isinstance(error.__cause__, httpx.ConnectError)
            return NotSent(str(error)) if unreachable else MaybeSent(str(error))
        return _judge(response)

    # -- mail --------------------------------------------------------------------------------------------------

    async def mail(self, channel: MailChannel, mail: Mail) -> Delivered:
        """See `Messages.mail`."""
        return await asyncio.to_thread(_send, channel, mail)


def _judge(response: HttpResponse) -> Delivered:
    if response.status == 429:
        wait = next((value for name, value in response.headers if name.lower() == "retry-after"), "")
        return NotSent("Slack asks to wait", float(wait) if wait.isdigit() else 30.0)
    try:
        answer = json.loads(response.body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        said = f"Slack answered {response.status} without JSON"
        return MaybeSent(said) if response.status >= 500 or response.status < 300 else NotTaken(said)
    if answer.get("ok") is True:
        return Sent(str(answer.get("ts", "")))
    error = str(answer.get("error", "no reason"))[:200]
    if error in _LATER:
        return NotSent(f"Slack says {error}")
    return NotTaken(f"Slack says {error}")


def _read_mail(given: Mapping[str, Json], secret: Mapping[str, str], what: str) -> MailChannel:
    def text(name: str) -> str:
        return _text(given.get(name)) or secret.get(name, "")

    security = text("security") or MailSecurity.STARTTLS
    if security not in list(MailSecurity):
        raise TerminalError(
            f"{what}: spec.smtp.security is {security!r}, not one of {', '.join(MailSecurity)}"
        )
    port = text("port") or str(_PORTS[MailSecurity(security)])
    for name in ("host", "from"):
        if not text(name):
            raise TerminalError(f"{what} lacks spec.smtp.{name}")
    if not port.isdigit():
        raise TerminalError(f"{what}: spec.smtp.port is {port!r}, which is no port")
    if security == MailSecurity.NONE and secret.get("username") and not is_loopback(text("host")):
        raise TerminalError(
            f"{what} would send its password without encryption; set spec.smtp.security to starttls or tls"
        )
    to = given.get("to")
    recipients = [to] if isinstance(to, str) else to if isinstance(to, list) else []
    return MailChannel(
        text("host"),
        int(port),
        text("from"),
        tuple(item for item in recipients if isinstance(item, str)),
        MailSecurity(security),
        secret.get("username", ""),
        secret.get("password", ""),
    )


def _send(channel: MailChannel, mail: Mail) -> Delivered:
    try:
        message = _message(channel, mail)
    except ValueError as error:
        # A line break in an address or a subject, for example.
        return NotTaken(f"the mail cannot be written: {error}")
    server = f"{channel.host}:{channel.port}"
    try:
        client = _connect(channel)
    except smtplib.SMTPAuthenticationError as error:
        if 400 <= error.smtp_code < 500:
            return NotSent(f"{server} cannot tell now whether user and password are right", 60.0)
        return NotTaken(f"{server} does not accept the user and password of the channel's Secret")
    except smtplib.SMTPNotSupportedError as error:
        # Asking again would not change what the server can do; and nothing is sent less safely than was asked for.
        return NotTaken(f"{server} does not offer what spec.smtp.security and the Secret ask for: {error}")
    except ssl.SSLCertVerificationError as error:
        return NotTaken(
            f"{server} shows a certificate that cannot be verified ({error.verify_message}); write its name as "
            "spec.smtp.host, or install its certificate authority on the bot's machine"
        )
    except (OSError, smtplib.SMTPException) as error:
        return NotSent(f"{server} cannot be reached: {str(error) or type(error).__name__}")
    try:
        refused = client.send_message(message, channel.sender, list(mail.recipients))
    except smtplib.SMTPRecipientsRefused as error:
        return _refused(server, next(iter(error.recipients.values())))
    except smtplib.SMTPResponseException as error:
        return _refused(server, (error.smtp_code, error.smtp_error))
    except (OSError, smtplib.SMTPException) as error:
        return MaybeSent(f"{server} ended in the middle: {str(error) or type(error).__name__}")
    finally:
        client.close()
    if refused:
        return NotTaken(f"{server} refuses {', '.join(sorted(refused))}, and took the mail for the others")
    return Sent()


def _connect(channel: MailChannel) -> smtplib.SMTP:
    context = ssl.create_default_context()
    client: smtplib.SMTP
    if channel.security is MailSecurity.TLS:
        client = smtplib.SMTP_SSL(channel.host, channel.port, timeout=_TIMEOUT, context=context)
    else:
        client = smtplib.SMTP(channel.host, channel.port, timeout=_TIMEOUT)
    try:
        if channel.security is MailSecurity.STARTTLS:
            client.starttls(context=context)
        if channel.username:
            client.login(channel.username, channel.password)
    except BaseException:
        client.close()
        raise
    return client


def _refused(server: str, answer: tuple[int, bytes | str]) -> Delivered:
    code, said = answer
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    reason = f"{server} answered {code} {text[:200]}"
    return NotSent(reason, 60.0) if 400 <= code < 500 else NotTaken(reason)


def _message(channel: MailChannel, mail: Mail) -> EmailMessage:
    message = EmailMessage()
    message["From"] = channel.sender
    message["To"] = ", ".join(mail.recipients)
    message["Subject"] = mail.subject
    message["Message-ID"] = f"<{mail.identity}@lockstep>"
    message.set_content(mail.body, subtype="html" if mail.html else "plain")
    return message


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _text(value: Json) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
