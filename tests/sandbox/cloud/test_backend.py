"""The state backend speaks Terraform's http protocol and remembers what it was told."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from bot.sandbox.cloud import Cloud, CloudFaults

STATE = {
    "version": 4,
    "serial": 1,
    "outputs": {"lambda_url": {"value": "https://x.example", "type": "string"}},
}
LOCK = {"ID": "11111111-2222-3333-4444-555555555555", "Operation": "OperationTypeApply", "Who": "ada@desk"}


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    return Cloud(tmp_path / "cloud")


@pytest.fixture
async def client(cloud: Cloud) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=cloud.asgi)
    async with httpx.AsyncClient(transport=transport, base_url="http://cloud.example") as opened:
        yield opened


async def test_a_state_is_absent_until_it_is_written(client: httpx.AsyncClient, cloud: Cloud) -> None:
    assert (await client.get("/state/acme/dev")).status_code == 404
    assert (await client.post("/state/acme/dev", json=STATE)).status_code == 200
    assert (await client.get("/state/acme/dev")).json() == STATE
    assert (await client.get("/state/acme/staging")).status_code == 404
    assert cloud.outputs("acme/dev") == {"lambda_url": "https://x.example"}


async def test_every_version_is_kept(client: httpx.AsyncClient, cloud: Cloud) -> None:
    for serial in (1, 2, 3):
        await client.post("/state/acme/dev", json=STATE | {"serial": serial})
    await client.delete("/state/acme/dev")
    assert cloud.read_state("acme/dev") is None
    assert [state["serial"] for state in cloud.versions("acme/dev")] == [1, 2, 3]


async def test_a_body_that_does_not_match_its_checksum_is_refused(
    client: httpx.AsyncClient, cloud: Cloud
) -> None:
    body = json.dumps(STATE).encode()
    right = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
    refused = await client.post("/state/acme/dev", content=body[:-1], headers={"Content-MD5": right})
    assert refused.status_code == 400
    assert cloud.read_state("acme/dev") is None
    assert (
        await client.post("/state/acme/dev", content=body, headers={"Content-MD5": right})
    ).status_code == 200


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null"], ids=["empty", "a list", "cut short", "null"])
async def test_what_is_no_state_is_refused(client: httpx.AsyncClient, body: bytes) -> None:
    assert (await client.post("/state/acme/dev", content=body)).status_code == 400


async def test_the_second_locker_learns_who_holds_the_lock(client: httpx.AsyncClient) -> None:
    assert (await client.request("LOCK", "/state/acme/dev", json=LOCK)).status_code == 200
    second = await client.request("LOCK", "/state/acme/dev", json=LOCK | {"ID": "other", "Who": "bob@desk"})
    assert second.status_code == 423
    assert second.json() == LOCK


async def test_only_the_holder_writes_while_a_state_is_locked(client: httpx.AsyncClient) -> None:
    await client.request("LOCK", "/state/acme/dev", json=LOCK)
    assert (await client.post("/state/acme/dev?ID=other", json=STATE)).status_code == 423
    assert (await client.post("/state/acme/dev", json=STATE)).status_code == 423
    assert (await client.delete("/state/acme/dev")).status_code == 423
    assert (await client.post(f"/state/acme/dev?ID={LOCK['ID']}", json=STATE)).status_code == 200


async def test_a_lock_is_given_back_by_its_holder_or_by_force(
    client: httpx.AsyncClient, cloud: Cloud
) -> None:
    await client.request("LOCK", "/state/acme/dev", json=LOCK)
    assert (await client.request("UNLOCK", "/state/acme/dev", json={"ID": "other"})).status_code == 423
    assert cloud.lock("acme/dev") == LOCK
    assert (await client.request("UNLOCK", "/state/acme/dev", json=LOCK)).status_code == 200
    await client.request("LOCK", "/state/acme/dev", json=LOCK)
    assert (await client.request("UNLOCK", "/state/acme/dev")).status_code == 200
    assert cloud.lock("acme/dev") is None


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]"], ids=["empty", "no id", "a list"])
async def test_a_lock_without_an_id_is_refused(client: httpx.AsyncClient, body: bytes) -> None:
    assert (await client.request("LOCK", "/state/acme/dev", content=body)).status_code == 400


async def test_the_log_counts_requests_by_method_and_state(client: httpx.AsyncClient, cloud: Cloud) -> None:
    assert cloud.counts() == {}
    await client.get("/state/acme/dev")
    await client.post("/state/acme/dev", json=STATE)
    await client.get("/state/acme/prod")
    shown = (await client.get("/_sandbox/log", params={"state": "acme/dev"})).json()
    assert shown["counts"] == {"GET": 1, "POST": 1}
    assert [(entry["method"], entry["status"]) for entry in shown["requests"]] == [
        ("GET", 404),
        ("POST", 200),
    ]
    assert cloud.counts() == {"GET": 2, "POST": 1}
    assert (await client.delete("/_sandbox/log")).json()["counts"] == {}
    assert cloud.requests() == ()


async def test_writing_a_state_in_place_is_not_in_the_log(cloud: Cloud) -> None:
    cloud.write_state("acme/account", STATE)
    assert cloud.read_state("acme/account") == STATE
    assert cloud.counts() == {}


async def test_it_goes_on_after_a_restart(client: httpx.AsyncClient, tmp_path: Path) -> None:
    await client.request("LOCK", "/state/acme/dev", json=LOCK)
    await client.post(f"/state/acme/dev?ID={LOCK['ID']}", json=STATE)
    with (tmp_path / "cloud" / "log.jsonl").open("a") as log:
        log.write('{"at": "2026-')  # The process died while it wrote this line.
    again = Cloud(tmp_path / "cloud")
    assert again.read_state("acme/dev") == STATE
    assert again.lock("acme/dev") == LOCK
    assert again.counts() == {"LOCK": 1, "POST": 1}
    assert again.names() == ("acme/dev",)


async def test_a_name_that_climbs_stays_inside_the_directory(cloud: Cloud, tmp_path: Path) -> None:
    cloud.write_state("../../outside", STATE)
    cloud.write_state("..", STATE)
    assert cloud.names() == ("..", "../../outside")
    assert [entry.name for entry in tmp_path.iterdir()] == ["cloud"]


class TestFaults:
    async def test_down_answers_503_to_everything(self, client: httpx.AsyncClient, cloud: Cloud) -> None:
        cloud.faults = CloudFaults(down=True)
        assert (await client.get("/state/acme/dev")).status_code == 503
        cloud.faults = CloudFaults()
        assert (await client.get("/state/acme/dev")).status_code == 404

    async def test_refuse_touches_only_the_states_it_names(
        self, client: httpx.AsyncClient, cloud: Cloud
    ) -> None:
        cloud.faults = CloudFaults(refuse=("acme/prod",))
        assert (await client.get("/state/acme/prod")).status_code == 403
        assert (await client.get("/state/acme/dev")).status_code == 404

    async def test_somebody_else_holds_a_lock(self, client: httpx.AsyncClient, cloud: Cloud) -> None:
        cloud.faults = CloudFaults(hold=("acme/dev",), holder="carol@laptop")
        answer = await client.request("LOCK", "/state/acme/dev", json=LOCK)
        assert answer.status_code == 423
        assert answer.json()["Who"] == "carol@laptop"
        assert (await client.request("LOCK", "/state/acme/prod", json=LOCK)).status_code == 200

    async def test_a_limited_fault_ends_by_itself(self, client: httpx.AsyncClient) -> None:
        await client.post("/_sandbox/faults", json={"status": 429, "retry_after": 2, "times": 1})
        first = await client.get("/state/acme/dev")
        assert (first.status_code, first.headers["retry-after"]) == (429, "2")
        assert (await client.get("/state/acme/dev")).status_code == 404

    async def test_another_sites_page_may_not_set_them(self, client: httpx.AsyncClient, cloud: Cloud) -> None:
        headers = {"Origin": "https://elsewhere.example", "Content-Type": "text/plain"}
        answer = await client.post("/_sandbox/faults", content=b'{"down": true}', headers=headers)
        assert answer.status_code == 403
        assert cloud.faults == CloudFaults()

    async def test_the_switches_can_be_read_and_cleared(self, client: httpx.AsyncClient) -> None:
        await client.post("/_sandbox/faults", json={"down": True, "slow": 0})
        assert (await client.get("/_sandbox/faults")).json()["down"] is True
        assert (await client.delete("/_sandbox/faults")).json()["down"] is False

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            ({"dwon": True}, "unknown fault dwon"),
            ({"down": "yes"}, 'fault down must be a bool, not "yes"'),
            ({"refuse": "acme/dev"}, "fault refuse must be a list of strings"),
            ({"times": True}, "fault times must be a int, not true"),
            ([], "the faults must be a JSON object"),
        ],
        ids=["a misspelt name", "a word for a bool", "a string for a list", "a bool for a number", "a list"],
    )
    async def test_a_wrong_switch_changes_nothing(
        self, client: httpx.AsyncClient, cloud: Cloud, body: object, message: str
    ) -> None:
        answer = await client.post("/_sandbox/faults", json=body)
        assert answer.status_code == 400
        assert message in answer.json()["message"]
        assert cloud.faults == CloudFaults()
