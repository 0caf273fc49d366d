"""How a registry wants to be asked: challenges, and Bearer tokens that concurrent requests share."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

import httpx

from bot.adapters.oci.references import Reference, is_loopback
from bot.adapters.oci.wire import Answer, Wire
from bot.payloads.reading import read_json
from bot.ports import TerminalError

Credentials = Callable[[str], Awaitable["tuple[str, str] | None"]]
"""User and password for `host/path`, None to ask without."""

_TOKEN_CAP = 256 * 1024

_LEAST_LIFE = 60.0
"""Seconds that a token lives whose answer does not say (Distribution's token specification)."""

_PARAMETER = re.compile(r'([A-Za-z_][\w-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')


@dataclass(frozen=True, slots=True)
class Challenge:
    """One `WWW-Authenticate` header: its scheme in lower case and its parameters."""

    scheme: str
    parameters: dict[str, str]


class Purpose(StrEnum):
    """What a request is for; a registry may want a token of its own for each, as Azure's does."""

    LIST = "list"
    PULL = "pull"
    PUSH = "push"


@dataclass(frozen=True, slots=True)
class Asked:
    """The request that was refused: what for, and with which header."""

    purpose: Purpose
    sent: str
    insecure: bool


@dataclass(frozen=True, slots=True)
class _Kept:
    header: str
    until: float


def parse_challenge(header: str) -> Challenge:
    """The first challenge of a header; unknown schemes are given back as they are."""
    scheme, _, rest = header.strip().partition(" ")
    parameters = {match[1].lower(): match[2] or match[3] or "" for match in _PARAMETER.finditer(rest)}
    return Challenge(scheme.lower(), parameters)


class Signer:
    """The `Authorization` header per repository, learnt from the registry's challenge and kept while it is valid.

    Where one header does for every purpose, as it does nearly everywhere, one is asked for.
    """

    def __init__(self, credentials: Credentials, insecure_hosts: frozenset[str], wire: Wire) -> None:
        self._wire = wire
        self._credentials = credentials
        self._insecure_hosts = insecure_hosts
        self._kept: dict[tuple[Reference, Purpose], _Kept] = {}
        self._locks: dict[Reference, asyncio.Lock] = {}

    def header(self, reference: Reference, purpose: Purpose) -> str:
        """What is known to be accepted there; empty until a challenge was answered, and when it has expired."""
        now = asyncio.get_running_loop().time()
        for wanted in (purpose, *(other for other in Purpose if other is not purpose)):
            kept = self._kept.get((reference, wanted))
            if kept is not None and kept.until > now:
                return kept.header
        return ""

    async def answer(self, reference: Reference, refused: Answer, asked: Asked) -> str:
        """The header that answers a 401.

        Requests that were refused at the same time share one token request.
        Raises TerminalError if there is nothing (more) that could be tried.
        """
        sent, insecure = asked.sent, asked.insecure
        async with self._locks.setdefault(reference, asyncio.Lock()):
            known = self.header(reference, asked.purpose)
            if known and known != sent:
                return known
            challenge = parse_challenge(refused.headers.get("www-authenticate", ""))
            user = await self._credentials(str(reference))
            if challenge.scheme == "basic":
                kept = self._basic(reference, user, sent)
            elif challenge.scheme == "bearer":
                kept = await self._bearer(reference, challenge, user, insecure=insecure)
            else:
                raise TerminalError(
                    f"{reference.host} refuses to show {reference.path} and names no way to sign in"
                    f" ({challenge.scheme or 'no challenge'})"
                )
            self._kept[reference, asked.purpose] = kept
            return kept.header

    def _basic(self, reference: Reference, user: tuple[str, str] | None, sent: str) -> _Kept:
        if user is None:
            raise TerminalError(
                f"{reference.host} wants a user and password for {reference.path}; add a Secret with the label"
                " kargo.akuity.io/cred-type: image for it"
            )
        header = _basic_header(user)
        if header == sent:
            raise refuse_credentials(reference)
        return _Kept(header, float("inf"))

    async def _bearer(
        self, reference: Reference, challenge: Challenge, user: tuple[str, str] | None, *, insecure: bool
    ) -> _Kept:
        realm = challenge.parameters.get("realm", "")
        parts = urlsplit(realm)
        is_plain = parts.scheme == "http" and (
            is_loopback(parts.netloc) or parts.netloc.lower() in self._insecure_hosts
        )
        if not parts.netloc or (parts.scheme != "https" and not is_plain):
            raise TerminalError(
                f"{reference.host} sends us to {realm[:200]!r} for a token; credentials go to https addresses only"
            )
        query = {
            "service": challenge.parameters.get("service", ""),
            "scope": challenge.parameters.get("scope", "") or f"repository:{reference.path}:pull",
        }
        url = str(httpx.URL(realm).copy_merge_params({key: value for key, value in query.items() if value}))
        headers = {"Authorization": _basic_header(user)} if user else {}
        answer = await self._wire.send("GET", url, cap=_TOKEN_CAP, insecure=insecure, headers=headers)
        if answer.status in {400, 401, 403}:
            raise refuse_credentials(reference)
        if answer.status != 200:
            raise TerminalError(
                f"{parts.netloc} answered {answer.status} when asked for a token for {reference}"
            )
        root = read_json(answer.body, _problem_of(parts.netloc))
        token = root.text("token", default="") or root.text("access_token")
        life = max(root.number("expires_in", default=0), _LEAST_LIFE)
        return _Kept(f"Bearer {token}", asyncio.get_running_loop().time() + life * 0.9)


def refuse_credentials(reference: Reference) -> TerminalError:
    """The error for a repository that the given user (or nobody) may not read."""
    return TerminalError(
        f"{reference.host} refuses to show {reference.path}; check that the repository exists and that the user of"
        " its Secret may pull from it"
    )


def _basic_header(user: tuple[str, str]) -> str:
    name, password = user
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"


def _problem_of(host: str) -> Callable[[str, str], Exception]:
    def problem(path: str, message: str) -> Exception:
        return TerminalError(f"{host} answered a token request with something else: {path} {message}".strip())

    return problem
