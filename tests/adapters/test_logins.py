"""Logins from Secrets, and keys that are exchanged for short-lived ones by the providers' own protocols."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

import httpx
import jwt
import pytest
import respx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.adapters.exchanges import sign_amazon
from bot.adapters.logins import Logins
from bot.adapters.oci.wire import Wire
from bot.adapters.secrets import CREDENTIAL_LABEL, SecretStore
from bot.domain.model import Document, Metadata
from bot.domain.pipeline import Pipeline
from bot.domain.values import Json
from bot.ports import TerminalError, TransientError

ECR = "111122223333.dkr.ecr.eu-central-1.amazonaws.com/app"
AMAZON = {
    "repoURL": ECR,
    "awsAccessKeyID": "AKID",
    "awsSecretAccessKey": "hidden",
    "awsRegion": "eu-central-1",
}


@dataclass
class Hands:
    """A clock that is turned by hand."""

    time: datetime = field(default_factory=lambda: datetime(2026, 1, 1, 12, tzinfo=UTC))

    def now(self) -> datetime:
        return self.time


@pytest.fixture
def router() -> Iterator[respx.Router]:
    with respx.mock() as router:
        yield router


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    async with Wire(concurrent=2, timeout=5) as wire:
        yield wire


@pytest.fixture(scope="module")
def key() -> str:
    """A private key in PEM."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def claims_of(token: str) -> dict[str, object]:
    claims: dict[str, object] = jwt.decode(token, options={"verify_signature": False})
    return claims


def logins(wire: Wire, kind: str, values: dict[str, str], clock: Hands | None = None) -> Logins:
    texts: Json = dict(values)
    secret = Document(
        "v1", "Secret", Metadata("key", "acme", {CREDENTIAL_LABEL: kind}), {"stringData": texts}
    )
    store = SecretStore(lambda: Pipeline(secrets={("acme", "key"): secret}))
    return Logins(store, wire, clock or Hands(), {"reg.example": ("operator", "pw")})


async def test_user_and_password_are_taken_as_they_are(wire: Wire) -> None:
    found = logins(wire, "git", {"repoURL": "https://git.example/x", "username": "u", "password": "p"})
    assert await found.of_git("acme", "https://git.example/x.git") == ("u", "p")
    assert await found.of_git("acme", "https://git.example/y.git") is None
    assert await found.of_git("other", "https://git.example/x.git") is None
    assert await found.of_git("acme", "http://git.example/x.git") is None


async def test_an_operators_login_for_a_registry_comes_first(wire: Wire) -> None:
    found = logins(wire, "image", {"repoURL": "reg.example/app", "username": "u", "password": "p"})
    assert await found.of_image("acme", "reg.example/app") == ("operator", "pw")
    assert await found.of_chart("acme", "reg.example/charts/app") == ("operator", "pw")
    assert await found.of_chart("acme", "https://reg.example/charts") is None


def test_a_request_is_signed_as_amazon_publishes_it() -> None:
    """The case `post-vanilla` of the test suite for Signature Version 4."""
    headers = {"host": "example.amazonaws.com", "x-amz-date": "20150830T123600Z"}
    key = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    signed = sign_amazon(headers, b"", "us-east-1/service", key)
    assert signed["authorization"].endswith(
        "Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
    )


async def test_a_key_of_amazon_becomes_a_login_for_half_a_day(wire: Wire, router: respx.Router) -> None:
    token = base64.b64encode(b"AWS:short-lived").decode()
    route = router.post("https://api.ecr.eu-central-1.amazonaws.com/").respond(
        json={"authorizationData": [{"authorizationToken": token}]}
    )
    clock = Hands()
    found = logins(wire, "image", AMAZON, clock)
    assert await found.of_image("acme", ECR) == ("AWS", "short-lived")
    assert await found.of_image("acme", ECR) == ("AWS", "short-lived")
    assert route.call_count == 1
    sent = route.calls[0].request
    assert sent.headers["x-amz-target"].endswith(".GetAuthorizationToken")
    assert sent.headers["authorization"].startswith(
        "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-central-1/ecr/aws4_request, "
    )
    assert "hidden" not in str(sent.headers)
    clock.time += timedelta(hours=11, minutes=56)
    assert await found.of_image("acme", ECR) == ("AWS", "short-lived")
    assert route.call_count == 2


async def test_a_service_account_of_google_becomes_an_access_token(
    wire: Wire, router: respx.Router, key: str
) -> None:
    document = {"client_email": "bot@acme.example", "private_key": key, "token_uri": "https://evil.example"}
    values = {
        "repoURL": "europe-docker.pkg.dev/acme/pay/app",
        "gcpServiceAccountKey": base64.b64encode(json.dumps(document).encode()).decode(),
    }
    route = router.post("https://oauth2.googleapis.com/token").respond(
        json={"access_token": "ya29", "expires_in": 3599}
    )
    found = logins(wire, "image", values)
    assert await found.of_image("acme", "europe-docker.pkg.dev/acme/pay/app") == ("oauth2accesstoken", "ya29")
    form = parse_qs(route.calls[0].request.content.decode())
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    claims = claims_of(form["assertion"][0])
    assert (claims["iss"], claims["aud"]) == ("bot@acme.example", "https://oauth2.googleapis.com/token")


@pytest.mark.parametrize(
    ("url", "api"),
    [
        pytest.param("https://github.com/acme/app.git", "https://api.github.com", id="github.com"),
        pytest.param(
            "https://ghe.example/acme/app", "https://ghe.example/api/v3", id="a server of one's own"
        ),
    ],
)
async def test_another_github_app_becomes_a_token_of_its_installation(
    wire: Wire, router: respx.Router, key: str, url: str, api: str
) -> None:
    values = {
        "repoURL": url,
        "githubAppClientID": "Iv1.abc",
        "githubAppInstallationID": "77",
        "githubAppPrivateKey": key,
    }
    route = router.post(f"{api}/app/installations/77/access_tokens").respond(
        201, json={"token": "ghs_x", "expires_at": "2026-01-01T13:00:00Z"}
    )
    found = logins(wire, "git", values)
    assert await found.of_git("acme", url) == ("x-access-token", "ghs_x")
    assert await found.of_git("acme", url) == ("x-access-token", "ghs_x")
    assert route.call_count == 1
    sent = route.calls[0].request
    assert json.loads(sent.content) == {"permissions": {"contents": "read"}}
    assert await found.of_git("acme", url, write=True) == ("x-access-token", "ghs_x")
    assert json.loads(route.calls[1].request.content) == {"permissions": {"contents": "write"}}
    claims = claims_of(sent.headers["authorization"].removeprefix("Bearer "))
    assert claims["iss"] == "Iv1.abc"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(AMAZON | {"awsRegion": "evil.example/x"}, "awsRegion is", id="a region that is none"),
        pytest.param({"repoURL": ECR, "gcpServiceAccountKey": "{}"}, "not the JSON of a key", id="no base64"),
        pytest.param(
            {
                "repoURL": ECR,
                "gcpServiceAccountKey": base64.b64encode(
                    b'{"client_email": "a", "private_key": "hidden"}'
                ).decode(),
            },
            "holds no private key",
            id="a key that is none",
        ),
    ],
)
async def test_a_key_that_cannot_be_used_names_its_secret(
    wire: Wire, values: dict[str, str], expected: str
) -> None:
    with pytest.raises(TerminalError, match=rf"Secret acme/key: .*{expected}") as caught:
        await logins(wire, "image", values).of_image("acme", ECR)
    assert "hidden" not in str(caught.value)


async def test_a_refusal_is_final_and_a_limit_is_not(wire: Wire, router: respx.Router) -> None:
    route = router.post("https://api.ecr.eu-central-1.amazonaws.com/")
    found = logins(wire, "image", AMAZON)
    route.mock(return_value=httpx.Response(400, json={"__type": "UnrecognizedClientException"}))
    with pytest.raises(TerminalError, match="Secret acme/key: Amazon ECR answered 400"):
        await found.of_image("acme", ECR)
    route.mock(return_value=httpx.Response(429, headers={"Retry-After": "7"}))
    with pytest.raises(TransientError) as caught:
        await found.of_image("acme", ECR)
    assert caught.value.retry_after == 7.0
