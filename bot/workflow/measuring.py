"""Taking one measurement: the request of a metric, the value in its answer, and what the conditions say of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never
from urllib.parse import quote, quote_plus, urlencode

from bot.domain.analysis import JobQuery, Measurement, Metric, Phase, PrometheusQuery, WebQuery
from bot.domain.json_path import JsonPathError, parse_json_path
from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.json import parse_json
from bot.expressions.conditions import judge
from bot.expressions.errors import ExpressionError
from bot.expressions.operands import Operand
from bot.pipeline.access import mapping_at, text_at
from bot.pipeline.analysis import fill
from bot.ports import Clock, Commands, Http, HttpRequest, HttpResponse, TerminalError, TransientError
from bot.reports.masking import hide_secrets
from bot.workflow.job_measuring import run_job

_HIDDEN = "***"
_SHORTEST = 4
"""Shorter secrets are not taken out: they would black out every number, and are no secret anyway."""
_NOT_ALLOWED = (405, 501)
"""How servers before Prometheus 2.1, and some that speak its language, answer to POST."""


class _NoAnswerError(Exception):
    """No value came back; the text says why, secrets not yet taken out."""


@dataclass(frozen=True, slots=True)
class Meter:
    """Takes measurements."""

    http: Http
    clock: Clock
    commands: Commands

    async def measure(self, metric: Metric, secrets: Mapping[str, str]) -> Measurement:
        """One measurement, fit to be shown; `secrets` are the secret arguments. What goes wrong is in its message."""
        begun = self.clock.now()
        shown, message = "", ""
        try:
            if isinstance(metric.query, JobQuery):
                # As in Argo Rollouts, its end is the measurement, and there is no value for conditions.
                phase, message = await run_job(self.commands, metric.query, secrets)
            else:
                value, shown = await self._ask(metric.query, secrets)
                success, failure = (fill(text, secrets) for text in (metric.success, metric.failure))
                phase = judge(value, success, failure)
        except _NoAnswerError as error:
            phase, message = Phase.ERROR, str(error)
        except ExpressionError as error:
            phase, message = Phase.ERROR, f"a condition cannot be evaluated: {error}"
        except (TransientError, TerminalError) as error:
            phase, message = Phase.ERROR, str(error)
        return Measurement(
            phase=phase,
            started_at=begun,
            finished_at=self.clock.now(),
            value=hide(shown, secrets),
            message=hide(message, secrets),
        )

    async def _ask(
        self, query: WebQuery | PrometheusQuery, secrets: Mapping[str, str]
    ) -> tuple[Operand, str]:
        match query:
            case WebQuery():
                return await self._ask_web(query, secrets)
            case PrometheusQuery():
                return await self._ask_prometheus(query, secrets)
            case _:
                assert_never(query)

    async def _ask_web(self, query: WebQuery, secrets: Mapping[str, str]) -> tuple[Operand, str]:
        escape: Callable[[str], str] = (lambda text: json.dumps(text)[1:-1]) if query.is_json else str
        request = HttpRequest(
            method=query.method,
            url=fill(query.url, secrets),
            headers=tuple((name, fill(value, secrets)) for name, value in query.headers),
            body=fill(query.body, secrets, escape).encode(),
            timeout=query.timeout,
            insecure=query.insecure,
        )
        answer = _read_json(await self._send(request))
        try:
            found = parse_json_path(fill(query.json_path, secrets)).find(answer)
        except JsonPathError as error:
            raise _NoAnswerError(f"{query.json_path or 'the answer'}: {error}") from error
        return found, json.dumps(found, ensure_ascii=False)

    async def _ask_prometheus(
        self, query: PrometheusQuery, secrets: Mapping[str, str]
    ) -> tuple[Operand, str]:
        url = f"{fill(query.address, secrets).rstrip('/')}/api/v1/query"
        headers = tuple((name, fill(value, secrets)) for name, value in query.headers)
        asked = fill(query.query, secrets)
        form = (*headers, ("Content-Type", "application/x-www-form-urlencoded"))
        body = urlencode({"query": asked}).encode()
        post = HttpRequest("POST", url, form, body=body, timeout=query.timeout, insecure=query.insecure)
        response = await self._send(post)
        if response.status in _NOT_ALLOWED:
            get = replace(post, method="GET", headers=headers, query=(("query", asked),), body=b"")
            response = await self._send(get)
        return _read_samples(response)

    async def _send(self, request: HttpRequest) -> HttpResponse:
        for name, value in request.headers:
            if not (name + value).isascii() or not value.isprintable():
                raise _NoAnswerError(f"the header {name} holds characters that no header can have")
        return await self.http.send(request)


def _read_json(response: HttpResponse) -> Json:
    if not 200 <= response.status < 300:
        begun = " ".join(response.body[:2000].decode("utf-8", "replace").split())
        raise _NoAnswerError(f"the answer is {response.status}" + (f": {begun}" if begun else ""))
    try:
        return parse_json(response.body.decode("utf-8", "replace"))
    except EditError as error:
        raise _NoAnswerError(f"the answer is no JSON: {error}") from error


def _read_samples(response: HttpResponse) -> tuple[Operand, str]:
    """A scalar as a number, a vector as the list of its numbers, as conditions see them in Argo Rollouts."""
    try:
        answer = parse_json(response.body.decode("utf-8", "replace"))
    except EditError:
        answer = _read_json(response)
    if text_at(answer, "status") != "success":
        said = text_at(answer, "error") or "no result"
        raise _NoAnswerError(f"Prometheus answered {response.status}: {said}")
    data = mapping_at(answer, "data")
    found, kind = data.get("result"), text_at(data, "resultType")
    try:
        if kind == "scalar" and isinstance(found, list):
            value = _number(found)
            return value, f"{value:g}"
        if kind == "vector" and isinstance(found, list):
            values: list[Operand] = [_number(mapping_at(sample).get("value")) for sample in found]
            return values, f"[{', '.join(f'{value:g}' for value in values)}]"
    except (ValueError, IndexError, TypeError) as error:
        raise _NoAnswerError(f"Prometheus answered with samples that cannot be read: {error}") from error
    raise _NoAnswerError(
        f"Prometheus answered with a {kind or 'result'} of no use; ask for a scalar or a vector"
    )


def _number(pair: Json) -> float:
    """The number of a sample, a pair of time and text; raises ValueError, IndexError or TypeError."""
    if not isinstance(pair, list):
        raise TypeError("a sample is no pair of time and value")
    return float(str(pair[1]))


def hide(text: str, secrets: Mapping[str, str]) -> str:
    """The text with every secret taken out, in each form in which it may have been sent, and what looks like one."""
    forms = {form for secret in secrets.values() if len(secret) >= _SHORTEST for form in _forms(secret)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, _HIDDEN)
    return hide_secrets(text)


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield secret.strip()
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield base64.b64encode(secret.encode()).decode()
