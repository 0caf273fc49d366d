"""Who is let in: JWTs, installation tokens and personal tokens, and what each may do."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.sandbox.github import installing
from bot.sandbox.github.accounts import Installation
from tests.contract.openapi import contract
from tests.sandbox.github.conftest import Caller, Stage

REPO = "/repos/acme/shop"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"exp": -5}, "exp", id="a JWT that has expired"),
        pytest.param({"exp": 1200}, "too far", id="a JWT that lives too long"),
        pytest.param({"iat": 300}, "iat", id="a JWT from the future"),
        pytest.param({"iss": "nobody"}, "iss", id="a JWT of an unknown App"),
        pytest.param({"exp": "soon"}, "exp", id="a JWT whose expiry is no number"),
    ],
)
async def test_a_bad_jwt_is_refused(github: Stage, changes: dict[str, Any], words: str) -> None:
    # Numbers are seconds from now, which is not when the parameters are made.
    now = int(time.time())
    claims = {name: now + value if isinstance(value, int) else value for name, value in changes.items()}
    app = Caller(github.base, github.jwt(**claims), contract())
    answer = await app("GET", "/app")
    assert answer.status_code == 401
    assert words in answer.json()["message"]


async def test_a_jwt_of_another_key_is_refused(github: Stage) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    now = int(time.time())
    claims = {"iat": now, "exp": now + 60, "iss": str(github.credentials.app_id)}
    app = Caller(github.base, jwt.encode(claims, key, algorithm="RS256"), contract())
    assert (await app("GET", "/app")).status_code == 401
    unsigned = Caller(github.base, jwt.encode(claims, "", algorithm="none"), contract())
    assert (await unsigned("GET", "/app")).status_code == 401


async def test_a_jwt_may_name_the_app_id(github: Stage) -> None:
    app = Caller(github.base, github.jwt(iss=str(github.credentials.app_id)), contract())
    assert (await app.ok("GET", "/app"))["id"] == github.credentials.app_id


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(
            {"permissions": {"administration": "read"}}, "not granted", id="a permission never granted"
        ),
        pytest.param({"permissions": {"members": "write"}}, "not granted", id="more than granted"),
        pytest.param({"permissions": {"contents": "own"}}, "not a permission level", id="an unknown level"),
        pytest.param(
            {"repositories": ["vault"]}, "not accessible", id="a repository outside the installation"
        ),
        pytest.param({"repository_ids": [1]}, "not accessible", id="an unknown repository id"),
        pytest.param({"repository": ["shop"]}, "not a permitted key", id="a misspelt field"),
        pytest.param({"repositories": "shop"}, "not an array", id="a wrong type"),
    ],
)
async def test_a_token_for_more_than_granted_is_refused(
    github: Stage, body: dict[str, Any], words: str
) -> None:
    github.github.create_repository("acme", "vault", {"a": b"1"})
    path = f"/app/installations/{github.installation}/access_tokens"
    answer = await github.app("POST", path, body)
    assert answer.status_code == 422
    assert words in answer.json()["message"]


async def test_a_narrowed_token_does_only_what_it_was_narrowed_to(github: Stage) -> None:
    github.github.create_repository("acme", "vault", {"a": b"1"})
    github.github.install_app(github.credentials.app_id, "acme", ["shop", "vault"])
    narrow = await github.token(permissions={"contents": "read"}, repositories=["shop"])
    assert (await narrow.ok("GET", REPO))["permissions"]["push"] is False
    assert (await narrow("GET", "/repos/acme/vault")).status_code == 404
    answer = await narrow("POST", f"{REPO}/git/refs", {"ref": "refs/heads/x", "sha": "0" * 40})
    assert answer.status_code == 403
    assert answer.json()["message"] == "Resource not accessible by integration"
    assert (await narrow("GET", f"{REPO}/pulls")).status_code == 403


async def test_tokens_have_the_long_form(github: Stage) -> None:
    assert len(github.bot.token) > 400
    assert github.bot.token.startswith(f"ghs_{github.credentials.app_id}_")
    assert github.bot.token.count(".") == 2


async def test_a_token_ends_after_an_hour(github: Stage) -> None:
    later = datetime.now(UTC) + timedelta(hours=1, seconds=1)
    github.github.world.clock = lambda: later
    answer = await github.bot("GET", REPO)
    assert (answer.status_code, answer.json()["message"]) == (401, "Bad credentials")


async def test_a_token_of_a_suspended_or_removed_installation_is_refused(github: Stage) -> None:
    world = github.github.world
    found = world.store.need(Installation, github.installation)
    suspended = installing.set_suspended(world, found, suspended=True)
    assert (await github.bot("GET", REPO)).status_code == 403
    again = installing.set_suspended(world, suspended, suspended=False)
    assert (await github.bot("GET", REPO)).status_code == 200
    installing.uninstall(world, again)
    assert (await github.bot("GET", REPO)).status_code == 401
    await github.github.settled()
    actions = [event["action"] for event in github.receiver.events("installation")]
    assert actions == ["created", "suspend", "unsuspend", "deleted"]


async def test_a_repository_taken_out_of_the_installation_is_hidden(github: Stage) -> None:
    world = github.github.world
    found = world.store.need(Installation, github.installation)
    installing.remove_repositories(world, found, ["shop"])
    assert (await github.bot("GET", REPO)).status_code == 404
    assert (await github.app("GET", f"{REPO}/installation")).status_code == 404


@pytest.mark.parametrize(
    ("login", "method", "path", "status"),
    [
        pytest.param("", "GET", REPO, 404, id="nobody sees a private repository"),
        pytest.param("eve", "GET", REPO, 404, id="a stranger does not see it either"),
        pytest.param("uma", "GET", REPO, 200, id="a reader sees it"),
        pytest.param("uma", "DELETE", f"{REPO}/git/refs/heads/main", 403, id="a reader does not write"),
        pytest.param("rafael", "PATCH", REPO, 403, id="a writer does not administer"),
        pytest.param("dana", "GET", "/app", 401, id="a person is not an App"),
        pytest.param("dana", "GET", "/nowhere", 404, id="there is no such operation"),
    ],
)
async def test_people_may_do_what_their_role_allows(
    github: Stage, login: str, method: str, path: str, status: int
) -> None:
    github.github.create_user("eve")
    token = github.github.create_token(login) if login else ""
    caller = Caller(github.base, token, None)
    assert (await caller(method, path, {} if method == "PATCH" else None)).status_code == status


async def test_unknown_tokens_and_missing_agents_are_refused(github: Stage) -> None:
    assert (await Caller(github.base, "ghs_wrong", contract())("GET", REPO)).status_code == 401
    assert (await Caller(github.base, "x", contract(), "Digest")("GET", REPO)).status_code == 401
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{github.base}/api/v3/meta", headers={"user-agent": ""})
    assert answer.status_code == 403
    answer = await github.bot("GET", "/meta", **{"x-github-api-version": "2020-01-01"})
    assert answer.status_code == 400


async def test_people_and_apps_see_what_is_public(github: Stage) -> None:
    github.github.create_repository("acme", "site", {"a": b"1"}, private=False)
    assert (await Caller(github.base, "", contract())("GET", "/repos/acme/site")).status_code == 200
    answer = await github.bot("POST", "/repos/acme/site/issues", {"title": "t"})
    assert answer.status_code == 403


async def test_members_are_only_read_with_the_permission(github: Stage) -> None:
    path = "/orgs/acme/teams/platform/memberships"
    assert (await github.bot("GET", f"{path}/uma")).status_code == 404
    assert (await github.bot("GET", f"{path}/olivia")).status_code == 200
    narrow = await github.token(permissions={"contents": "read"})
    assert (await narrow("GET", f"{path}/olivia")).status_code == 403
    assert (await github.bot("GET", "/orgs/other/teams/x/members")).status_code == 404
