"""What each refusal of GitHub means to the caller."""

from __future__ import annotations

import httpx
import pytest
import respx

from bot.adapters.github import GitHubApp
from bot.adapters.github.errors import RATE_MARKS, Unanswered
from bot.domain.github import CommentId, PullNumber
from bot.ports import TerminalError, TransientError
from tests.adapters.github.conftest import REPOSITORY

PULL = "/repos/acme/ops/pulls/7"


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        pytest.param(
            httpx.Response(403, headers={"retry-after": "17"}), 17.0, id="403 with Retry-After waits as long"
        ),
        pytest.param(httpx.Response(429, headers={"retry-after": "3"}), 3.0, id="429 waits as told"),
        pytest.param(httpx.Response(429), 60.0, id="429 that says nothing waits a minute"),
        pytest.param(
            httpx.Response(403, headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1777636830"}),
            31.0,
            id="the hourly limit waits until its reset",
        ),
        pytest.param(
            httpx.Response(429, headers={"retry-after": "Fri, 01 May 2026 12:00:10 GMT"}),
            60.0,
            id="a date in Retry-After waits a minute",
        ),
        pytest.param(
            httpx.Response(403, headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}),
            60.0,
            id="a reset that is no number waits a minute",
        ),
        *(
            pytest.param(
                httpx.Response(403, json={"message": f"You have exceeded a {mark}."}),
                60.0,
                id=f"text: {mark}",
            )
            for mark in RATE_MARKS
        ),
    ],
)
async def test_rate_limits_are_transient(
    github: GitHubApp, wire: respx.Router, answer: httpx.Response, wait: float
) -> None:
    wire.get(PULL).mock(return_value=answer)
    with pytest.raises(TransientError) as caught:
        await github.get_pull_request(REPOSITORY, PullNumber(7))
    assert caught.value.retry_after == wait
    assert not isinstance(caught.value, Unanswered)


async def test_a_missing_permission_says_what_to_grant(github: GitHubApp, wire: respx.Router) -> None:
    wire.get(PULL).respond(
        403,
        headers={"x-accepted-github-permissions": "pull_requests=read"},
        json={"message": "Resource not accessible by integration"},
    )
    with pytest.raises(TerminalError, match="grant the App one of these permissions: pull_requests: read"):
        await github.get_pull_request(REPOSITORY, PullNumber(7))


async def test_a_suspended_installation_is_named(github: GitHubApp, wire: respx.Router) -> None:
    wire.get(PULL).respond(403, json={"message": "This installation has been suspended"})
    with pytest.raises(TerminalError, match="must lift the suspension"):
        await github.get_pull_request(REPOSITORY, PullNumber(7))


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_a_server_error_is_transient(github: GitHubApp, wire: respx.Router, status: int) -> None:
    wire.get(PULL).respond(status, text="<html>unicorn</html>")
    with pytest.raises(TransientError, match=str(status)):
        await github.get_pull_request(REPOSITORY, PullNumber(7))


@pytest.mark.parametrize("error", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow")])
async def test_a_broken_line_is_transient(
    github: GitHubApp, wire: respx.Router, error: httpx.TransportError
) -> None:
    wire.get(PULL).mock(side_effect=error)
    with pytest.raises(TransientError, match="GET /repos/acme/ops/pulls/7"):
        await github.get_pull_request(REPOSITORY, PullNumber(7))


async def test_a_missing_installation_says_so(github: GitHubApp, wire: respx.Router) -> None:
    wire.get("/repos/acme/ops/installation").respond(404, json={"message": "Not Found"})
    with pytest.raises(TerminalError, match="the App is not installed there"):
        await github.get_pull_request(REPOSITORY, PullNumber(7))


async def test_an_answer_of_another_shape_is_terminal_and_names_the_field(
    github: GitHubApp, wire: respx.Router
) -> None:
    wire.get(PULL).respond(json={"state": "open", "number": "seven"})
    with pytest.raises(
        TerminalError, match=r"not what GitHub documents at number: a whole number was expected"
    ):
        await github.get_pull_request(REPOSITORY, PullNumber(7))


async def test_a_page_of_a_proxy_is_no_answer(github: GitHubApp, wire: respx.Router) -> None:
    wire.get(PULL).respond(200, text="<html>sign in</html>")
    with pytest.raises(TerminalError, match="is no JSON"):
        await github.get_pull_request(REPOSITORY, PullNumber(7))


async def test_a_limit_on_reading_holds_back_writing(github: GitHubApp, wire: respx.Router) -> None:
    wire.get(PULL).respond(429, headers={"retry-after": "60"})
    with pytest.raises(TransientError, match="trying again in 60 s"):
        await github.get_pull_request(REPOSITORY, PullNumber(7))
    reaction = wire.post("/repos/acme/ops/issues/comments/1/reactions").respond(201, json={"id": 1})
    with pytest.raises(TransientError, match="asked us to stop writing"):
        await github.react(REPOSITORY, CommentId(1), "eyes")
    assert not reaction.called
