"""One measurement: what is sent, and what is made of each answer."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast
from urllib.parse import parse_qs

import pytest

from bot.domain.analysis import Measurement, Metric, Phase, PrometheusQuery, WebQuery
from bot.ports import Commands, HttpRequest, HttpResponse, TransientError
from bot.workflow.measuring import Meter, hide
from tests.web.site import Hands

SECRETS = {"token": 'hush "hush"/4711'}
WEB = WebQuery("https://probe.example/ok", json_path="{$.value}")
PROMETHEUS = PrometheusQuery("https://prometheus.example", "sum(up)")


@dataclass
class Answers:
    """HTTP that answers by a list, and remembers what it was asked."""

    responses: list[HttpResponse | Exception]
    requests: list[HttpRequest] = field(default_factory=list)

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        answer = self.responses.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def response(body: object, status: int = 200) -> HttpResponse:
    text = body if isinstance(body, str) else json.dumps(body)
    return HttpResponse(status, (), text.encode())


def samples(*values: str, kind: str = "vector") -> HttpResponse:
    result: object = [{"metric": {}, "value": [1.0, value]} for value in values]
    if kind == "scalar":
        result = [1.0, values[0]]
    return response({"status": "success", "data": {"resultType": kind, "result": result}})


async def measure(metric: Metric, *answers: HttpResponse | Exception) -> tuple[Measurement, Answers]:
    http = Answers(list(answers))
    meter = Meter(http, Hands(datetime(2026, 5, 1, tzinfo=UTC)), cast(Commands, None))
    return await meter.measure(metric, SECRETS), http


@pytest.mark.parametrize(
    ("query", "condition", "answer", "phase", "said"),
    [
        pytest.param(WEB, "result > 1", response({"value": 2}), Phase.SUCCESSFUL, "2", id="a number"),
        pytest.param(WEB, "result > 1", response({"value": 0}), Phase.FAILED, "0", id="another number"),
        pytest.param(WEB, "result", response({"other": 1}), Phase.ERROR, "nothing is found", id="no value"),
        pytest.param(WEB, "result", response("<html>"), Phase.ERROR, "no JSON", id="a page"),
        pytest.param(WEB, "result", response("busy", 503), Phase.ERROR, "503: busy", id="an error"),
        pytest.param(WEB, "result", TransientError("no way"), Phase.ERROR, "no way", id="no answer"),
        pytest.param(
            WEB, "result.x.y", response({"value": {}}), Phase.ERROR, "condition", id="a condition that fails"
        ),
        pytest.param(
            PROMETHEUS, "result[0] >= 0.95", samples("0.97"), Phase.SUCCESSFUL, "[0.97]", id="a vector"
        ),
        pytest.param(
            PROMETHEUS, "result == 3", samples("3", kind="scalar"), Phase.SUCCESSFUL, "3", id="a scalar"
        ),
        pytest.param(PROMETHEUS, "len(result) == 0", samples(), Phase.SUCCESSFUL, "[]", id="no samples"),
        pytest.param(
            PROMETHEUS, "isNaN(result[0])", samples("NaN"), Phase.SUCCESSFUL, "[nan]", id="not a number"
        ),
        pytest.param(
            PROMETHEUS, "isInf(result[0])", samples("+Inf"), Phase.SUCCESSFUL, "[inf]", id="endless"
        ),
        pytest.param(
            PROMETHEUS, "true", samples("1", kind="matrix"), Phase.ERROR, "a matrix of no use", id="a matrix"
        ),
        pytest.param(
            PROMETHEUS,
            "true",
            response({"status": "error", "error": "parse error"}, 400),
            Phase.ERROR,
            "Prometheus answered 400: parse error",
            id="a bad query",
        ),
        pytest.param(PROMETHEUS, "true", response("gone", 502), Phase.ERROR, "502: gone", id="a gateway"),
        pytest.param(
            PROMETHEUS,
            "true",
            response({"status": "success", "data": {"resultType": "vector", "result": [{}]}}),
            Phase.ERROR,
            "samples that cannot be read",
            id="a sample without a value",
        ),
    ],
)
async def test_what_an_answer_comes_to(
    query: WebQuery | PrometheusQuery,
    condition: str,
    answer: HttpResponse | Exception,
    phase: Phase,
    said: str,
) -> None:
    taken, _ = await measure(Metric("m", query, success=condition), answer)
    assert taken.phase is phase, taken
    assert said in (taken.message if phase is Phase.ERROR else taken.value)


async def test_secrets_are_sent_and_not_shown() -> None:
    query = WebQuery(
        "https://probe.example/ok",
        method="POST",
        headers=(("Authorization", "Bearer {{ args.token }}"),),
        body='{"key": "{{ args.token }}"}',
        is_json=True,
    )
    echo = {"you": SECRETS["token"], "raw": base64.b64encode(SECRETS["token"].encode()).decode()}
    taken, http = await measure(Metric("m", query), response(echo))
    assert http.requests[0].headers == (("Authorization", f"Bearer {SECRETS['token']}"),)
    assert json.loads(http.requests[0].body) == {"key": SECRETS["token"]}
    assert json.loads(taken.value) == {"you": "***", "raw": "***"}


async def test_a_header_that_cannot_be_sent_is_an_error() -> None:
    query = WebQuery("https://probe.example", headers=(("X-Name", "zoë\n"),))
    taken, http = await measure(Metric("m", query))
    assert (taken.phase, http.requests) == (Phase.ERROR, [])
    assert "the header X-Name" in taken.message


async def test_prometheus_is_asked_by_post_and_by_get_where_post_is_not_allowed() -> None:
    taken, http = await measure(Metric("m", PROMETHEUS), response("", 405), samples("1"))
    assert taken.phase is Phase.SUCCESSFUL
    post, get = http.requests
    assert (post.method, post.url) == ("POST", "https://prometheus.example/api/v1/query")
    assert parse_qs(post.body.decode()) == {"query": ["sum(up)"]}
    assert (get.method, get.query, get.body) == ("GET", (("query", "sum(up)"),), b"")


def test_a_short_secret_blacks_out_nothing() -> None:
    assert hide("the answer is 1", {"flag": "1"}) == "the answer is 1"
