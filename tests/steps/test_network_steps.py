"""http, http-download, dns-wait and argocd-wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.argocd import Operation
from bot.domain.promotion import StepStatus
from bot.domain.review import EffectRecord, FrozenRecord, GateRecord, Presence, StepReport
from bot.domain.step_kinds import StepClass
from bot.domain.values import Sensitive, Text, Unknown, Value
from bot.ports import TerminalError
from bot.steps.argocd_wait import ArgoCDWait
from bot.steps.contract import Config
from bot.steps.dns_wait import DnsWait
from bot.steps.http import HttpStep
from bot.steps.http_download import HttpDownload
from tests.steps.bench import Bench
from tests.steps.fakes import FakeDns, FakeHttp

API = "https://api.example/x"
ACT = StepReport(0, "act", "http", StepClass.ACT, Presence.CERTAIN, None)


@pytest.fixture
def http() -> FakeHttp:
    return FakeHttp()


def step_of(bench: Bench, http: FakeHttp) -> HttpStep:
    return HttpStep(http, bench.vault)


def outputs(**expressions: str) -> Value:
    return [{"name": name, "fromExpression": text} for name, text in expressions.items()]


async def test_a_read_is_asked_in_the_preview_and_frozen(bench: Bench, http: FakeHttp) -> None:
    http.answer("GET", API, 200, '{"tag": "v1"}')
    config: Config = {
        "url": API,
        "outputs": outputs(
            tag="response.body.tag", status="response.status", kind="response.header('Content-Type')"
        ),
    }
    result = await bench.preview(step_of(bench, http), config)
    assert result.output == {"tag": "v1", "status": 200, "kind": "application/json"}
    assert result.step_class is StepClass.READ
    assert isinstance(result.record, FrozenRecord)


async def test_a_read_behind_an_act_is_not_asked(bench: Bench, http: FakeHttp) -> None:
    bench.reports.append(ACT)
    result = await bench.preview(step_of(bench, http), {"url": API, "outputs": outputs(tag="response.body")})
    assert result.output == {"tag": Unknown("known after step: http.tag")}
    assert http.sent == []


async def test_an_unknown_address_is_asked_later(bench: Bench, http: FakeHttp) -> None:
    url = Text(("https://", Unknown("known after apply: host")))
    result = await bench.preview(step_of(bench, http), {"url": url})
    assert (result.status, http.sent) == (None, [])


async def test_a_failing_read_fails_the_preview(bench: Bench, http: FakeHttp) -> None:
    result = await bench.preview(step_of(bench, http), {"url": API})
    assert result.status is StepStatus.FAILED
    assert "answered 404: not found" in result.message


async def test_a_wait_is_a_gate_until_it_holds(bench: Bench, http: FakeHttp) -> None:
    config: Config = {
        "url": API,
        "successExpression": "response.body.ready",
        "failureExpression": "response.status >= 500",
        "outputs": outputs(v="response.body.v"),
        "pollInterval": "7s",
    }
    step = step_of(bench, http)
    http.answer("GET", API, 200, '{"ready": false, "v": 1}')
    result = await bench.preview(step, config)
    assert result.step_class is StepClass.WAIT
    assert isinstance(result.record, GateRecord)
    assert not result.record.open
    running = await bench.fulfil(step, config)
    assert (running.status, running.retry_after) == (StepStatus.RUNNING, 7.0)
    http.answer("GET", API, 200, '{"ready": true, "v": 2}')
    held = await bench.preview(step, config)
    assert (held.output, held.record) == ({"v": 2}, GateRecord(f"GET {API}", open=True))
    http.answer("GET", API, 503, "{}")
    assert (await bench.fulfil(step, config)).status is StepStatus.FAILED


POST: Config = {
    "method": "POST",
    "url": API,
    "headers": [{"name": "Authorization", "value": Text(("Bearer ", Sensitive("token", "hunter2")))}],
    "body": '{"migrate": true}',
}


async def test_an_act_is_shown_masked_and_not_sent(bench: Bench, http: FakeHttp) -> None:
    result = await bench.preview(step_of(bench, http), POST)
    assert isinstance(result.record, EffectRecord)
    assert result.record.title == f"POST {API}"
    assert ("body", '{"migrate": true}') in result.record.details
    assert "hunter2" not in str([str(value) for _, value in result.record.details])
    assert http.sent == []


async def test_an_act_is_sent_once_with_an_idempotency_key(bench: Bench, http: FakeHttp) -> None:
    http.answer("POST", API, 201, "{}")
    result = await bench.fulfil(step_of(bench, http), POST)
    assert result.status is StepStatus.SUCCEEDED
    (sent,) = http.sent
    assert dict(sent.headers) == {
        "Authorization": "Bearer hunter2",
        "Idempotency-Key": "dev.01abc.fffffff/http",
    }


async def test_an_act_whose_answer_was_lost_is_not_repeated(bench: Bench, http: FakeHttp) -> None:
    http.lost = True
    result = await bench.fulfil(step_of(bench, http), POST)
    assert result.status is StepStatus.ERRORED
    assert "outcome unknown" in result.message
    assert "hunter2" not in result.message


async def test_an_act_that_was_killed_is_not_repeated_but_by_a_retry(bench: Bench, http: FakeHttp) -> None:
    http.answer("POST", API, 200, "{}")
    step = step_of(bench, http)
    await bench.fulfil(step, POST)
    bench.journal["http"] = replace(bench.journal["http"], finished_at=None)
    unknown = await bench.fulfil(step, POST)
    assert unknown.status is StepStatus.ERRORED
    assert len(http.sent) == 1
    bench.attempt = 2
    assert (await bench.fulfil(step, POST)).status is StepStatus.SUCCEEDED
    assert len(http.sent) == 2


async def test_an_act_that_does_not_answer_as_wanted_fails(bench: Bench, http: FakeHttp) -> None:
    http.answer("POST", API, 202, '{"done": false}')
    result = await bench.fulfil(step_of(bench, http), {**POST, "successExpression": "response.body.done"})
    assert result.status is StepStatus.FAILED


async def test_a_secret_of_which_only_the_name_is_left_is_not_sent(bench: Bench, http: FakeHttp) -> None:
    header: Value = {"name": "Authorization", "value": Text(("Bearer ", Sensitive("token", None)))}
    with pytest.raises(TerminalError, match="the secret token is not at hand"):
        await bench.fulfil(step_of(bench, http), {**POST, "headers": [header]})
    assert http.sent == []


async def test_a_secret_that_the_server_echoes_is_masked(bench: Bench, http: FakeHttp) -> None:
    http.answer("POST", API, 400, "no such token: hunter2", "text/plain")
    result = await bench.fulfil(step_of(bench, http), POST)
    assert "hunter2" not in result.message


async def test_the_error_expression_says_what_is_wrong(bench: Bench, http: FakeHttp) -> None:
    http.answer("GET", API, 422, '{"why": "no quota"}')
    config: Config = {"url": API, "errorExpression": "response.body.why"}
    result = await bench.fulfil(step_of(bench, http), config)
    assert result.message == f"http: GET {API} answered no quota"


async def test_a_criterion_must_be_true_or_false(bench: Bench, http: FakeHttp) -> None:
    http.answer("GET", API, 200, "{}")
    with pytest.raises(TerminalError, match="must be true or false"):
        await bench.fulfil(step_of(bench, http), {"url": API, "successExpression": "response.status"})


async def test_a_body_may_come_from_a_file(bench: Bench, http: FakeHttp) -> None:
    http.answer("POST", API, 200, "{}")
    await bench.tree.write("body.json", b'{"a": 1}')
    await bench.fulfil(step_of(bench, http), {"method": "POST", "url": API, "bodyFromFile": "body.json"})
    assert http.sent[0].body == b'{"a": 1}'


# -- http-download -----------------------------------------------------------------------------------------------


async def test_a_download_must_be_the_approved_one(bench: Bench, http: FakeHttp) -> None:
    step = HttpDownload(http, bench.vault)
    config: Config = {"url": API, "outPath": "crds.yaml"}
    http.answer("GET", API, 200, "kind: A\n")
    await bench.preview(step, config)
    assert await bench.tree.read("crds.yaml") == b"kind: A\n"
    bench.again()
    assert (await bench.fulfil(step, config)).status is StepStatus.SUCCEEDED
    bench.again()
    bench.journal.clear()
    http.answer("GET", API, 200, "kind: Evil\n")
    stopped = await bench.fulfil(step, config)
    assert stopped.stop is not None
    assert not bench.tree.exists("crds.yaml")


async def test_an_existing_file_is_not_overwritten_unasked(bench: Bench, http: FakeHttp) -> None:
    http.answer("GET", API, 200, "new")
    await bench.tree.write("f", b"old")
    step = HttpDownload(http, bench.vault)
    assert (await bench.preview(step, {"url": API, "outPath": "f"})).status is StepStatus.FAILED
    await bench.preview(step, {"url": API, "outPath": "f", "allowOverwrite": True})
    assert await bench.tree.read("f") == b"new"


# -- dns-wait ----------------------------------------------------------------------------------------------------


async def test_a_name_gates_until_it_resolves_to_its_target(bench: Bench) -> None:
    dns = FakeDns()
    step = DnsWait(dns)
    config: Config = {"name": "app.example", "target": "LB.example."}
    missing = await bench.preview(step, config)
    subject = "app.example resolves to LB.example."
    assert missing.record == GateRecord(subject, open=False, reason="app.example does not resolve yet")
    dns.names["app.example"] = ("old.example", "192.0.2.1")
    wrong = await bench.fulfil(step, config)
    assert (wrong.status, wrong.message) == (
        StepStatus.RUNNING,
        "app.example resolves to old.example, 192.0.2.1, not to LB.example. yet",
    )
    dns.names["app.example"] = ("lb.example", "192.0.2.7")
    assert (await bench.fulfil(step, config)).output == {"addresses": ["lb.example", "192.0.2.7"]}
    assert (await bench.preview(step, config)).record == GateRecord(subject, open=True)


async def test_a_name_behind_an_act_is_asked_after_the_merge(bench: Bench) -> None:
    bench.reports.append(ACT)
    dns = FakeDns()
    dns.names["app.example"] = ("old.example",)
    result = await bench.preview(DnsWait(dns), {"name": "app.example"})
    assert result.record == GateRecord("app.example resolves", open=False, reason="asked after the merge")


# -- argocd-wait -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "wait_for", "waits_for"),
    [
        ({}, None, ""),
        ({"health": "Progressing"}, None, "otel-dev is Progressing, not Healthy"),
        ({"sync_status": "OutOfSync"}, None, "otel-dev is OutOfSync"),
        ({"operation": Operation("Running")}, None, "otel-dev has a running operation"),
        ({"health": "Suspended"}, ["health", "suspended"], ""),
        ({"sync_status": "OutOfSync"}, ["health"], ""),
    ],
    ids=["all well", "not healthy", "not synced", "operation", "an alternative", "not asked for"],
)
async def test_argocd_wait(bench: Bench, change: dict[str, object], wait_for: Value, waits_for: str) -> None:
    bench.argocd.add("otel-dev", bench.url, {})
    app = replace(bench.argocd.apps["otel-dev"], sync_status="Synced")
    bench.argocd.apps["otel-dev"] = replace(app, **change)  # type: ignore[arg-type]
    entry: dict[str, Value] = {"name": "otel-dev"}
    if wait_for is not None:
        entry["waitFor"] = wait_for
    result = await bench.fulfil(ArgoCDWait(bench.argocd), {"apps": [entry]})
    assert result.message == waits_for
    assert result.status is (StepStatus.RUNNING if waits_for else StepStatus.SUCCEEDED)
    gate = await bench.preview(ArgoCDWait(bench.argocd), {"apps": [entry]})
    assert gate.record == GateRecord("Argo CD: otel-dev", open=not waits_for, reason=waits_for)


async def test_argocd_wait_gives_up_on_a_broken_spec(bench: Bench) -> None:
    bench.argocd.add("otel-dev", bench.url, {})
    broken = replace(bench.argocd.apps["otel-dev"], conditions=(("InvalidSpecError", "no such path"),))
    bench.argocd.apps["otel-dev"] = broken
    result = await bench.fulfil(ArgoCDWait(bench.argocd), {"apps": [{"name": "otel-dev"}]})
    assert result.status is StepStatus.FAILED
    assert "InvalidSpecError: no such path" in result.message
