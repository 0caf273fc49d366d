"""Long-lived keys of cloud providers and GitHub Apps exchanged for a login that lives an hour or half a day."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlencode

import jwt

from bot.adapters.oci.wire import Answer, Wire
from bot.payloads.reading import Node, read_json
from bot.ports import Clock, TerminalError

_CAP = 256 * 1024
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d{1,2}")
_NUMBER = re.compile(r"\d{1,20}")
_GOOGLE_TOKENS = "https://oauth2.googleapis.com/token"
_GOOGLE_SCOPE = "https://www.googleapis.com/auth/devstorage.read_only"
_GOOGLE_ARTIFACTS = "https://www.googleapis.com/auth/cloud-platform.read-only"
_AMAZON_TARGET = "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken"


@dataclass(frozen=True, slots=True)
class Exchanged:
    """User and password, and when they end."""

    username: str
    password: str = field(repr=False)
    until: datetime


async def exchange_amazon(wire: Wire, clock: Clock, values: Mapping[str, str]) -> Exchanged:
    """A login for every ECR registry that the key may read, by `GetAuthorizationToken`; it lives twelve hours."""
    region = values.get("awsRegion", "")
    if _REGION.fullmatch(region) is None:
        raise TerminalError(f"awsRegion is {region!r}; name a region such as eu-central-1")
    host = f"api.ecr.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"
    headers = {
        "content-type": "application/x-amz-json-1.1",
        "host": host,
        "x-amz-target": _AMAZON_TARGET,
        "x-amz-date": clock.now().strftime("%Y%m%dT%H%M%SZ"),
    }
    body = b"{}"
    key = values["awsAccessKeyID"], values.get("awsSecretAccessKey", "")
    signed = sign_amazon(headers, body, f"{region}/ecr", key)
    answer = await wire.send(
        "POST", f"https://{host}/", cap=_CAP, insecure=False, headers=headers | signed, content=body
    )
    root = _read(answer, "Amazon ECR")
    data = next(root.items("authorizationData"), None)
    if data is None:
        raise root.fail("authorizationData is empty")
    try:
        user, _, password = base64.b64decode(data.text("authorizationToken")).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise data.fail("the token is no base64") from error
    return Exchanged(user, password, clock.now() + timedelta(hours=12))


def sign_amazon(headers: Mapping[str, str], body: bytes, place: str, key: tuple[str, str]) -> dict[str, str]:
    """The `Authorization` header of a POST to `/` (AWS Signature Version 4).

    Header names are lower case, `x-amz-date` and `host` among them; `place` is `region/service`, `key` the id of a
    key and its secret.
    """
    stamp, names = headers["x-amz-date"], ";".join(sorted(headers))
    listed = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = f"POST\n/\n\n{listed}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{stamp[:8]}/{place}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    derived = f"AWS4{key[1]}".encode()
    for part in scope.split("/"):
        derived = hmac.digest(derived, part.encode(), "sha256")
    signature = hmac.digest(derived, text.encode(), "sha256").hex()
    credential = f"AWS4-HMAC-SHA256 Credential={key[0]}/{scope}"
    return {"authorization": f"{credential}, SignedHeaders={names}, Signature={signature}"}


async def exchange_google(wire: Wire, clock: Clock, values: Mapping[str, str]) -> Exchanged:
    """An access token of a service account, by a JWT that its key signs (RFC 7523); it lives an hour.

    The key's own `token_uri` is not asked, since a key that somebody else wrote could name any address.
    """
    try:
        key = json.loads(base64.b64decode(values["gcpServiceAccountKey"]))
        email, private = str(key["client_email"]), str(key["private_key"])
    except (binascii.Error, ValueError, KeyError, TypeError) as error:
        raise TerminalError("gcpServiceAccountKey is not the JSON of a key in base64") from error
    issued = int(clock.now().timestamp())
    claims = {
        "iss": email,
        "scope": f"{_GOOGLE_SCOPE} {_GOOGLE_ARTIFACTS}",
        "aud": _GOOGLE_TOKENS,
        "iat": issued,
        "exp": issued + 3600,
    }
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": _sign(claims, private, "gcpServiceAccountKey"),
    }
    answer = await wire.send(
        "POST",
        _GOOGLE_TOKENS,
        cap=_CAP,
        insecure=False,
        headers={"content-type": "application/x-www-form-urlencoded"},
        content=urlencode(form).encode(),
    )
    root = _read(answer, "Google")
    until = clock.now() + timedelta(seconds=root.number("expires_in", default=3600))
    return Exchanged("oauth2accesstoken", root.text("access_token"), until)


async def exchange_github(
    wire: Wire, clock: Clock, values: Mapping[str, str], host: str, *, write: bool = False
) -> Exchanged:
    """A token of an installation of another GitHub App, for reading or writing contents alone; it lives an hour."""
    installation = values.get("githubAppInstallationID", "").strip()
    if _NUMBER.fullmatch(installation) is None:
        raise TerminalError("githubAppInstallationID must be the number of an installation")
    now = int(clock.now().timestamp())
    issuer = values.get("githubAppClientID") or values.get("githubAppID", "")
    # GitHub takes ten minutes at most, and clocks differ.
    token = _sign(
        {"iss": issuer.strip(), "iat": now - 60, "exp": now + 540},
        _key_text(values.get("githubAppPrivateKey", "")),
        "githubAppPrivateKey",
    )
    api = "https://api.github.com" if host == "github.com" else f"https://{host}/api/v3"
    answer = await wire.send(
        "POST",
        f"{api}/app/installations/{installation}/access_tokens",
        cap=_CAP,
        insecure=False,
        headers={"authorization": f"Bearer {token}", "accept": "application/vnd.github+json"},
        content=json.dumps({"permissions": {"contents": "write" if write else "read"}}).encode(),
    )
    root = _read(answer, "GitHub")
    return Exchanged("x-access-token", root.text("token"), root.time("expires_at"))


def _key_text(text: str) -> str:
    """A private key in PEM; Kargo takes it in base64 as well."""
    if "-----BEGIN" in text:
        return text
    try:
        return base64.b64decode(text).decode()
    except (binascii.Error, UnicodeDecodeError):
        return text


def _sign(claims: Mapping[str, object], key: str, name: str) -> str:
    try:
        return jwt.encode(dict(claims), key, algorithm="RS256")
    except (ValueError, TypeError, jwt.PyJWTError) as error:
        raise TerminalError(f"{name} holds no private key in PEM") from error


def _read(answer: Answer, who: str) -> Node:
    """The answer's JSON; its body is part of no message, since it may hold a token."""
    if answer.status not in {200, 201}:
        raise TerminalError(
            f"{who} answered {answer.status} to the exchange; check the key and what it may read"
        )

    def problem(path: str, message: str) -> Exception:
        return TerminalError(f"{who} answered the exchange with something else: {path} {message}".strip())

    return read_json(answer.body, problem)
