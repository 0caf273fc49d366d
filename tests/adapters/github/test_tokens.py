"""Tokens: narrowed, shared, refreshed in time, dropped when refused; and addresses that stay what they are."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import httpx
import jwt
import pytest
import respx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.adapters.github import GitHubApp, GitHubSettings
from bot.adapters.github.connection import join_path
from bot.domain.github import PullNumber, Repository
from bot.ports import TerminalError, TransientError
from tests.adapters.github.conftest import APP_ID, REPOSITORY, FixedClock

LIST = "/repos/acme/ops/pulls"


def mint(text: str, minutes: int) -> httpx.Response:
    until = f"2026-05-01T{12 + minutes // 60:02d}:{minutes % 60:02d}:00Z"
    return httpx.Response(201, json={"token": text, "expires_at": until})


async def test_a_token_reaches_one_repository_with_one_permission(
    github: GitHubApp, wire: respx.Router
) -> None:
    route = wire.get(LIST).respond(json=[])
    await github.list_pull_requests(REPOSITORY)
    asked = wire["mint"].calls[0].request
    assert json.loads(asked.content) == {"repositories": ["ops"], "permissions": {"pull_requests": "read"}}
    claims = jwt.decode(
        asked.headers["authorization"].removeprefix("Bearer "), options={"verify_signature": False}
    )
    assert claims["iss"] == str(APP_ID)
    request = route.calls[0].request
    assert request.headers["authorization"] == "Bearer ghs_one"
    assert request.headers["x-github-api-version"] == "2022-11-28"


async def test_concurrent_calls_share_one_token_and_one_look_for_the_installation(
    github: GitHubApp, wire: respx.Router
) -> None:
    wire.get(LIST).respond(json=[])
    await asyncio.gather(*(github.list_pull_requests(REPOSITORY) for _ in range(8)))
    assert (wire["mint"].call_count, wire["installation"].call_count) == (1, 1)


async def test_a_token_with_five_minutes_left_is_replaced(
    github: GitHubApp, wire: respx.Router, clock: FixedClock
) -> None:
    wire["mint"].mock(side_effect=[mint("ghs_one", 60), mint("ghs_two", 119)])
    url = "https://ghe.example/acme/ops.git"
    assert await github.token_for(url) == "ghs_one"
    clock.at += timedelta(minutes=54)
    assert await github.token_for(url) == "ghs_one"
    clock.at += timedelta(minutes=1)
    assert await github.token_for(url) == "ghs_two"


async def test_a_refused_token_is_replaced_once(github: GitHubApp, wire: respx.Router) -> None:
    wire["mint"].mock(side_effect=[mint("ghs_one", 60), mint("ghs_two", 60)])
    route = wire.get(LIST).mock(
        side_effect=[httpx.Response(401, json={"message": "Bad credentials"}), httpx.Response(200, json=[])]
    )
    assert await github.list_pull_requests(REPOSITORY) == ()
    assert [call.request.headers["authorization"] for call in route.calls] == [
        "Bearer ghs_one",
        "Bearer ghs_two",
    ]


async def test_a_token_that_stays_refused_points_to_key_and_clock(
    github: GitHubApp, wire: respx.Router
) -> None:
    wire.get(LIST).respond(
        401, json={"message": "Bad credentials"}, headers={"date": "Fri, 01 May 2026 12:00:00 GMT"}
    )
    with pytest.raises(TerminalError, match=r"private key, and this machine's clock .*Fri, 01 May 2026"):
        await github.list_pull_requests(REPOSITORY)


async def test_a_permission_that_was_not_granted_stops_the_minting(
    github: GitHubApp, wire: respx.Router
) -> None:
    message = "The permissions requested are not granted to this installation."
    wire["mint"].respond(422, json={"message": message})
    with pytest.raises(TerminalError, match="are not granted"):
        await github.list_pull_requests(REPOSITORY)


async def test_a_repository_that_moved_to_another_installation_is_found_again(
    github: GitHubApp, wire: respx.Router
) -> None:
    wire.get(LIST).respond(json=[])
    await github.list_pull_requests(REPOSITORY)
    wire["installation"].respond(json={"id": 10})
    wire.post("/app/installations/10/access_tokens").mock(return_value=mint("ghs_ten", 60))
    route = wire.get("/repos/acme/ops/pulls/7").respond(404, json={"message": "Not Found"})
    with pytest.raises(TerminalError, match="does not exist"):
        await github.get_pull_request(REPOSITORY, PullNumber(7))
    with pytest.raises(TerminalError, match="does not exist"):
        await github.get_pull_request(REPOSITORY, PullNumber(7))
    assert route.calls[1].request.headers["authorization"] == "Bearer ghs_ten"


async def test_the_next_page_is_asked_of_the_same_address(github: GitHubApp, wire: respx.Router) -> None:
    link = '<https://evil.example/steal?per_page=100&page=2>; rel="next"'
    second = wire.get(LIST, params={"page": "2"}).respond(json=[])
    first = wire.get(LIST).respond(json=[], headers={"link": link})
    assert await github.list_pull_requests(REPOSITORY) == ()
    assert (first.call_count, second.call_count) == (1, 1)


async def test_a_list_without_end_is_given_up(github: GitHubApp, wire: respx.Router) -> None:
    link = f'<https://ghe.example/api/v3{LIST}?page=2>; rel="next"'
    wire.get(LIST).respond(json=[], headers={"link": link})
    with pytest.raises(TerminalError, match="more than 60 pages"):
        await github.list_pull_requests(REPOSITORY)


async def test_a_lost_token_request_is_transient(github: GitHubApp, wire: respx.Router) -> None:
    wire["mint"].mock(side_effect=httpx.ReadTimeout("slow"))
    with pytest.raises(TransientError, match="access_tokens"):
        await github.list_pull_requests(REPOSITORY)


async def test_two_apps_in_one_process_do_not_share_what_they_sign_with(
    github: GitHubApp, wire: respx.Router, private_key: str, clock: FixedClock
) -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = other.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()
    wire.get(LIST).respond(json=[])
    await github.list_pull_requests(REPOSITORY)
    settings = GitHubSettings(
        APP_ID, pem, api_url="https://ghe.example/api/v3/", web_url="https://ghe.example/"
    )
    async with GitHubApp(settings, clock) as second:
        await second.list_pull_requests(REPOSITORY)
    signed = wire["mint"].calls[1].request.headers["authorization"].removeprefix("Bearer ")
    # The App's clock is the machine's, so the times in the token are not the fixed ones of this test.
    jwt.decode(signed, other.public_key(), algorithms=["RS256"])


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        (("repos", "acme", "ops", "pulls", 7), "repos/acme/ops/pulls/7"),
        (("a", "b/c#d e?f"), "a/b%2Fc%23d%20e%3Ff"),
        (("a", "%2e%2e"), "a/%252e%252e"),
    ],
)
def test_parts_of_a_path_are_quoted(parts: tuple[str | int, ...], path: str) -> None:
    assert join_path(*parts) == path


@pytest.mark.parametrize("part", ["", ".", ".."])
def test_parts_that_would_lead_elsewhere_are_refused(part: str) -> None:
    with pytest.raises(TerminalError, match="a part is empty or dots"):
        join_path("repos", part, "x")


@pytest.mark.parametrize(
    ("url", "repository"),
    [
        ("https://ghe.example/acme/ops.git", Repository("acme", "ops")),
        ("https://ghe.example/acme/ops", Repository("acme", "ops")),
        ("https://GHE.example:443/acme/ops/", Repository("acme", "ops")),
        ("https://ghe.example/acme/ops.git.git", Repository("acme", "ops.git")),
        ("http://ghe.example/acme/ops", None),
        ("https://ghe.example:8443/acme/ops", None),
        ("https://ghe.example:x/acme/ops", None),
        ("https://ghe.example.evil.example/acme/ops", None),
        ("https://evil.example/https://ghe.example/acme/ops", None),
        ("https://ghe.example/acme", None),
        ("https://ghe.example/acme/ops/tree/main", None),
        ("https://ghe.example/../ops", None),
        ("git@ghe.example:acme/ops.git", None),
        ("", None),
    ],
)
def test_which_addresses_are_ours(private_key: str, url: str, repository: Repository | None) -> None:
    settings = GitHubSettings(APP_ID, private_key, web_url="https://ghe.example/")
    assert GitHubApp(settings, FixedClock()).repository_of(url) == repository


def test_the_key_is_not_shown(private_key: str) -> None:
    assert "PRIVATE KEY" not in repr(GitHubSettings(APP_ID, private_key))
