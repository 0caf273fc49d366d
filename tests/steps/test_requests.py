"""What is said of an answer holds none of the secrets that were sent, in whatever form and wherever they stood."""

from __future__ import annotations

import pytest

from bot.domain.values import Sensitive, Text, Value
from bot.ports import HttpResponse
from bot.steps.requests import Request, describe_response

SECRET = 'p&ss "word"/1'
MARK = Sensitive("secret('api').token", SECRET)


def request(
    url: Value = "https://api.example/", query: Value = "q", header: Value = "h", body: Value = "b"
) -> Request:
    return Request("POST", url, (("X-Key", header),), (("key", query),), body, 10.0, False, "")


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(request(url=Text(("https://api.example/", MARK))), id="in the address"),
        pytest.param(request(query=MARK), id="in the query"),
        pytest.param(request(header=MARK), id="in a header"),
        pytest.param(request(body={"deep": [MARK]}), id="deep in the body"),
    ],
)
@pytest.mark.parametrize(
    "echo", [SECRET, "p%26ss%20%22word%22%2F1", 'p&ss \\"word\\"/1'], ids=["as it is", "in a URL", "in JSON"]
)
def test_a_secret_that_comes_back_is_not_shown(sent: Request, echo: str) -> None:
    response = HttpResponse(403, (), f"no access for {echo}, sorry".encode())
    assert describe_response(response, sent) == "403: no access for ***, sorry"


def test_a_secret_that_the_cut_would_halve_is_not_shown_in_part() -> None:
    response = HttpResponse(500, (), ("x" * 295 + SECRET).encode())
    assert SECRET[:3] not in describe_response(response, request(query=MARK))


def test_an_answer_without_a_body_is_its_status() -> None:
    assert describe_response(HttpResponse(204, (), b""), request()) == "204"
