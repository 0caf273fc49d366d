"""Receivers whose senders prove by a signed token who they are."""

from __future__ import annotations

import hmac

import pytest

from bot.domain.values import Json
from bot.web.receivers import GITHUB_ISSUER, GOOGLE_ISSUER
from tests.web.receiver_bed import Bed, read

JOB: dict[str, Json] = {"repository": "acme/api", "ref": "refs/heads/main", "event_name": "push"}
PUSH: dict[str, Json] = {"email": "push@acme.example", "email_verified": True}


@pytest.mark.parametrize(
    ("name", "token", "issuer", "claims", "status"),
    [
        pytest.param("actions", "job", GITHUB_ISSUER, JOB, 202, id="the job"),
        pytest.param(
            "actions", "job", GITHUB_ISSUER, JOB | {"repository": "evil/api"}, 401, id="of another owner"
        ),
        pytest.param(
            "actions", "job", GITHUB_ISSUER, JOB | {"ref": "refs/heads/x"}, 401, id="of another branch"
        ),
        pytest.param("actions", "job", GITHUB_ISSUER, {"repository": "acme/api"}, 401, id="without a claim"),
        pytest.param("actions", "job", GITHUB_ISSUER, JOB | {"ref": 7}, 401, id="a claim that is no text"),
        pytest.param(
            "actions", "job", GITHUB_ISSUER, JOB | {"event_name": "pull_request"}, 401, id="of a pull request"
        ),
        pytest.param(
            "actions",
            "job",
            GITHUB_ISSUER,
            JOB | {"event_name": "pull_request_target"},
            401,
            id="of a pull request's target",
        ),
        pytest.param("actions", "job", "https://evil.example", JOB, 401, id="of another issuer"),
        pytest.param("google", "google", GOOGLE_ISSUER, PUSH, 202, id="the subscription"),
        pytest.param(
            "google",
            "google",
            GOOGLE_ISSUER,
            PUSH | {"email": "x@evil.example"},
            401,
            id="of another account",
        ),
        pytest.param(
            "google",
            "google",
            GOOGLE_ISSUER,
            PUSH | {"email_verified": False},
            401,
            id="an unverified address",
        ),
        pytest.param(
            "google",
            "google",
            GOOGLE_ISSUER,
            {"email": "push@acme.example"},
            401,
            id="an address of unknown standing",
        ),
        pytest.param("google", "job", GITHUB_ISSUER, JOB, 401, id="a job's token at Google's receiver"),
    ],
)
async def test_whose_token_is_taken(
    bed: Bed, name: str, token: str, issuer: str, claims: dict[str, Json], status: int
) -> None:
    bed.issuers.known = {token: (issuer, claims)}
    answer = await bed.post(name, headers={"Authorization": f"Bearer {token}"})
    assert (answer.status_code, await bed.count()) == (status, 1 if status == 202 else 0)


async def test_a_token_that_cannot_be_verified_now_is_asked_for_again(bed: Bed) -> None:
    bed.issuers.down = True
    assert (await bed.post("actions")).status_code == 503
    assert await bed.count() == 0


async def test_without_a_secret_a_signature_proves_nothing(bed: Bed) -> None:
    body = read("ci.image")
    empty = hmac.new(b"", body, "sha256").hexdigest()
    assert (await bed.post("actions", headers={"X-Signature": f"sha256={empty}"})).status_code == 401


async def test_where_only_signatures_are_taken_a_token_proves_nothing(bed: Bed) -> None:
    assert (await bed.post("signed", headers={"Authorization": "Bearer job"})).status_code == 401
