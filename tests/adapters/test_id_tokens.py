"""Which ID tokens are believed, and how often an issuer is asked for its keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from bot.adapters.id_tokens import PublishedKeys
from bot.ports import HttpRequest, HttpResponse, TransientError
from bot.ports.id_tokens import IdTokens

ISSUER = "https://issuer.example"
AUDIENCE = "lockstep"
RSA, OTHER = rsa.generate_private_key(65537, 2048), rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())


@dataclass
class Hands:
    """A clock that is turned by hand; it starts now, since tokens end by the real time."""

    time: datetime = field(default_factory=lambda: datetime.now(UTC))

    def now(self) -> datetime:
        return self.time


def jwk(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, name: str, **more: str) -> dict[str, Any]:
    maker: Any = (
        jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    )
    return {**json.loads(maker.to_jwk(key.public_key())), "kid": name, "use": "sig", **more}


@dataclass
class Issuer:
    """An issuer's documents, by address; `asked` counts."""

    pages: dict[str, object] = field(
        default_factory=lambda: {
            f"{ISSUER}/.well-known/openid-configuration": {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"},
            f"{ISSUER}/keys": {
                "keys": [
                    jwk(RSA, "one", alg="RS256"),
                    jwk(EC, "curve"),
                    jwk(OTHER, "for encryption", use="enc"),
                    {"kty": "strange", "kid": "strange"},
                ]
            },
        }
    )
    asked: list[str] = field(default_factory=list)
    status: int = 200

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.asked.append(request.url)
        return HttpResponse(self.status, (), json.dumps(self.pages.get(request.url)).encode())


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def tokens(issuer: Issuer, clock: Hands) -> PublishedKeys:
    return PublishedKeys(issuer, clock)


def token(key: Any = RSA, name: str | None = "one", algorithm: str = "RS256", **changes: object) -> str:
    """A token made now; a claim that is a duration is a time from now."""
    now = datetime.now(UTC)
    claims: dict[str, object] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "iat": now,
        "exp": now + timedelta(minutes=5),
        "repository": "acme/api",
    }
    wanted = {name: now + v if isinstance(v, timedelta) else v for name, v in (claims | changes).items()}
    given = {name: value for name, value in wanted.items() if value is not None}
    return jwt.encode(given, key, algorithm=algorithm, headers={"kid": name} if name else {})


async def verify(tokens: IdTokens, given: str, issuer: str = ISSUER) -> Mapping[str, object] | None:
    return await tokens.verify(given, issuer=issuer, audience=AUDIENCE)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(token, id="RSA"),
        pytest.param(partial(token, EC, "curve", "ES256"), id="an elliptic curve"),
        pytest.param(partial(token, aud=["other", AUDIENCE]), id="one of several audiences"),
        pytest.param(
            partial(token, iss="issuer.example"), id="the issuer without its scheme, as Google writes it"
        ),
        pytest.param(partial(token, exp=timedelta(seconds=-20)), id="over, by less than clocks may differ"),
    ],
)
async def test_a_token_of_the_issuer_gives_its_claims(
    tokens: PublishedKeys, given: Callable[[], str]
) -> None:
    claims = await verify(tokens, given())
    assert claims is not None
    assert claims["repository"] == "acme/api"


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(partial(token, OTHER), id="another key under a known name"),
        pytest.param(partial(token, OTHER, "for encryption"), id="a key that is not for signatures"),
        pytest.param(partial(token, OTHER, "unknown"), id="an unknown key"),
        pytest.param(partial(token, name=None), id="a key without a name"),
        pytest.param(partial(token, "x" * 32, "one", "HS256"), id="signed with a shared text"),
        pytest.param(partial(token, None, "one", "none"), id="not signed"),
        pytest.param(partial(token, aud="other"), id="for somebody else"),
        pytest.param(partial(token, aud=None), id="for nobody"),
        pytest.param(partial(token, iss="https://evil.example"), id="of another issuer"),
        pytest.param(partial(token, exp=timedelta(minutes=-5)), id="over"),
        pytest.param(partial(token, exp=None), id="without an end"),
        pytest.param(partial(token, nbf=timedelta(minutes=5)), id="not yet"),
        pytest.param(lambda: token()[:-4] + "AAAA", id="another signature"),
        pytest.param(lambda: "x.y.z", id="no token"),
        pytest.param(lambda: "", id="nothing"),
        pytest.param(lambda: "\u00e9.\u00e9.\u00e9", id="no ASCII"),
        pytest.param(partial(token, padding="x" * 20_000), id="endless"),
    ],
)
async def test_any_other_token_is_nobody(tokens: PublishedKeys, given: Callable[[], str]) -> None:
    assert await verify(tokens, given()) is None


async def test_keys_are_read_once_an_hour(tokens: PublishedKeys, issuer: Issuer, clock: Hands) -> None:
    for _ in range(3):
        assert await verify(tokens, token()) is not None
    assert len(issuer.asked) == 2
    clock.time += timedelta(minutes=61)
    assert await verify(tokens, token()) is not None
    assert len(issuer.asked) == 4


async def test_a_new_key_is_found_and_invented_ones_cost_one_reading_a_minute(
    tokens: PublishedKeys, issuer: Issuer, clock: Hands
) -> None:
    assert await verify(tokens, token()) is not None
    issuer.pages[f"{ISSUER}/keys"] = {"keys": [jwk(OTHER, "two")]}
    for _ in range(3):
        assert await verify(tokens, token(OTHER, "two")) is None
    assert len(issuer.asked) == 2
    clock.time += timedelta(seconds=61)
    assert await verify(tokens, token(OTHER, "two")) is not None
    assert await verify(tokens, token()) is None
    assert len(issuer.asked) == 4


@pytest.mark.parametrize(
    "pages",
    [
        pytest.param({}, id="no documents"),
        pytest.param({f"{ISSUER}/.well-known/openid-configuration": {"jwks_uri": 7}}, id="an odd document"),
        pytest.param(
            {f"{ISSUER}/.well-known/openid-configuration": {"jwks_uri": "http://issuer.example/keys"}},
            id="keys in clear",
        ),
    ],
)
async def test_an_issuer_without_keys_is_asked_again_later(
    tokens: PublishedKeys, issuer: Issuer, clock: Hands, pages: dict[str, object]
) -> None:
    good, issuer.pages = issuer.pages, pages
    for _ in range(3):
        with pytest.raises(TransientError, match=r"https://issuer\.example"):
            await verify(tokens, token())
    assert len(issuer.asked) == 1
    issuer.pages = good
    clock.time += timedelta(seconds=11)
    assert await verify(tokens, token()) is not None


async def test_an_issuer_that_fails_is_said_so(tokens: PublishedKeys, issuer: Issuer) -> None:
    issuer.status = 503
    with pytest.raises(TransientError, match="503"):
        await verify(tokens, token())
