"""Requests as the `http` and `http-download` steps describe them, and responses as their expressions see them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from bot.domain.values import Sensitive, Text, Unknown, Value, find_sensitive, is_tainted
from bot.editors.errors import EditError
from bot.editors.json import parse_json
from bot.expressions.errors import ExpressionError
from bot.expressions.operands import Operand, Struct
from bot.ports import HttpRequest, HttpResponse, TerminalError
from bot.steps.marks import show_scalar
from bot.steps.options import Options, open_value, plain_text
from bot.steps.parsing import parse_yaml

_SHOWN_BODY = 300
_READ_BODY = 64 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """A request whose parts may hold marks; `method` is known."""

    method: str
    url: Value
    headers: tuple[tuple[str, Value], ...]
    query: tuple[tuple[str, Value], ...]
    body: Value
    timeout: float
    insecure: bool
    proxy: str

    @property
    def is_known(self) -> bool:
        """Whether it can be sent."""
        parts: list[Value] = [self.url, self.body]
        parts += [value for _, value in (*self.headers, *self.query)]
        return not any(is_tainted(part) for part in parts)

    @property
    def title(self) -> str:
        """Method and address, secrets masked."""
        return f"{self.method} {show_scalar(self.url)}"

    def build(self, extra: Sequence[tuple[str, str]] = ()) -> HttpRequest:
        """The request to send, secrets opened, with further headers where it has none of that name."""
        headers = [(name, plain_text(value)) for name, value in self.headers]
        given = {name.lower() for name, _ in headers}
        headers += [(name, value) for name, value in extra if name.lower() not in given]
        return HttpRequest(
            method=self.method,
            url=plain_text(self.url),
            headers=tuple(headers),
            query=tuple((name, plain_text(value)) for name, value in self.query),
            body=body_text(self.body).encode(),
            timeout=self.timeout,
            insecure=self.insecure,
            proxy=self.proxy,
        )

    def describe(self) -> tuple[tuple[str, Value], ...]:
        """Everything that is sent, as a reviewer sees it."""
        details: list[tuple[str, Value]] = [("url", self.url)]
        details += [(f"header {name}", value) for name, value in self.headers]
        details += [(f"query {name}", value) for name, value in self.query]
        return (*details, ("body", self.body)) if self.body else tuple(details)


def parse_request(options: Options, *, timeout: float) -> Request:
    """The request that a config describes; raises TerminalError for an unknown method or proxy."""
    return Request(
        method=options.address("method", "GET").upper(),
        url=options.text("url"),
        headers=_pairs(options, "headers"),
        query=_pairs(options, "queryParams"),
        body=options.value("body") or "",
        timeout=options.duration("timeout", timeout),
        insecure=options.flag("insecureSkipTLSVerify"),
        proxy=options.address("proxy"),
    )


def _pairs(options: Options, name: str) -> tuple[tuple[str, Value], ...]:
    return tuple((item.address("name"), item.text("value")) for item in options.each(name))


def body_text(body: Value) -> str:
    """A body as it is sent: lists and mappings as JSON."""
    plain = open_value(body)
    return json.dumps(plain) if isinstance(plain, list | dict) else plain_text(plain)


def read_response(response: HttpResponse, content_type: str, where: str) -> dict[str, Operand]:
    """The name `response` of the step's expressions; raises TerminalError for a body that is not what it says."""
    headers: dict[str, list[str]] = {}
    for name, value in response.headers:
        headers.setdefault("-".join(part.capitalize() for part in name.split("-")), []).append(value)
    first = {name.lower(): values[0] for name, values in headers.items()}

    def header(arguments: Sequence[Operand]) -> Operand:
        if len(arguments) != 1 or not isinstance(arguments[0], str):
            raise ExpressionError("response.header takes the name of one header")
        return first.get(arguments[0].lower(), "")

    kind = content_type or first.get("content-type", "").partition(";")[0].strip()
    fields: dict[str, Operand] = {
        "status": response.status,
        "headers": headers,
        "body": _body(response, kind, where),
    }
    return {"response": Struct("response", fields, dict(fields), {"header": header})}


def _body(response: HttpResponse, kind: str, where: str) -> Operand:
    text = response.body.decode("utf-8", "replace")
    if not text.strip():
        return {}
    try:
        if kind.endswith(("/json", "+json")):
            return parse_json(text)
        if kind.endswith(("/yaml", "+yaml", "/x-yaml")):
            return parse_yaml(text)
    except EditError as error:
        raise TerminalError(f"{where}: the answer says {kind}, but: {error}") from error
    return text


def describe_response(response: HttpResponse, request: Request) -> str:
    """Status and the beginning of the body, with every secret of the request taken out before it is cut."""
    text = " ".join(response.body[:_READ_BODY].decode("utf-8", "replace").split())
    sent: list[Value] = [request.url, request.body]
    sent += [value for _, value in (*request.headers, *request.query)]
    for secret in sorted(_opened(sent), key=len, reverse=True):
        for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1]):
            text = text.replace(form, "***")
    text = text[:_SHOWN_BODY]
    return f"{response.status}: {text}" if text else str(response.status)


def _opened(value: Value) -> list[str]:
    if not find_sensitive(value):
        return []
    match value:
        case Sensitive(value=inner):
            return [str(inner)] if inner else []
        case Text(parts=parts):
            return [text for part in parts for text in _opened(part)]
        case list():
            return [text for item in value for text in _opened(item)]
        case dict():
            return [text for item in value.values() for text in _opened(item)]
        case Unknown() | _:
            return []
