"""Receivers end to end: from a vendor's request by its address to the Warehouse that is looked at."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import AsyncIterator

import pytest

from bot.adapters.secrets import SecretStore
from bot.app import load
from bot.domain.pipeline import Pipeline
from bot.web.receivers import CAP
from bot.workflow.receivers import ReceivedIntake, describe_receivers
from tests.web.receiver_bed import CONFIG, LOOKED_AT, SECRET, SENT, SUBSCRIPTIONS, Bed, proof, read, sign


def test_every_receiver_that_is_open_is_tried() -> None:
    assert set(SENT) == set(SUBSCRIPTIONS) | {"actions"}


@pytest.mark.parametrize("name", sorted(SENT))
async def test_a_push_makes_its_warehouse_look(bed: Bed, name: str) -> None:
    answer = await bed.post(name)
    assert (answer.status_code, answer.json()) == (202, {"message": "stored"})
    assert bed.nudges == ["once"]
    assert await bed.looks() == [("warehouse", f"shop/{LOOKED_AT[name]}")]
    assert await bed.count() == 0


BY_ADDRESS = {"azure", "hub", "generic", "quay"}


@pytest.mark.parametrize("name", sorted(set(SENT) - BY_ADDRESS))
async def test_who_cannot_prove_who_he_is_is_refused(bed: Bed, name: str) -> None:
    right = proof(name, read(SENT[name][0]))
    (header, value), *_ = right.items()
    flipped = value[:-1] + ("0" if value[-1] != "0" else "1")
    for headers in (
        {},
        {header: ""},
        {header: flipped},
        {header: "sha256=\u00e9"},
        {header: value.upper() + "x"},
    ):
        answer = await bed.post(name, headers=headers)
        assert (answer.status_code, await bed.count()) == (401, 0)
    if "secret" not in value.lower() and "Bearer" not in value and value != SECRET:
        changed = read(SENT[name][0]) + b" "
        assert (await bed.post(name, body=changed, headers=right)).status_code == 401


async def test_artifactory_may_send_its_secret_as_it_is(bed: Bed) -> None:
    assert (await bed.post("jfrog", headers={"X-JFrog-Event-Auth": SECRET})).status_code == 202


@pytest.mark.parametrize("header", ["X-Gitea-Signature", "X-Forgejo-Signature"])
async def test_gitea_may_sign_without_a_prefix(bed: Bed, header: str) -> None:
    assert (await bed.post("gitea", headers={header: sign(read("gitea.push"))})).status_code == 202


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(f"/quay/{'0' * 64}", id="a guess"),
        pytest.param("/quay/", id="nothing"),
        pytest.param("/quay/\u00e9%ff", id="no ASCII"),
        pytest.param("/nobody/x", id="an unknown kind"),
    ],
)
async def test_no_other_address_exists(bed: Bed, path: str) -> None:
    assert (await bed.post("quay", path=path)).status_code == 404


async def test_the_address_of_one_kind_is_none_of_another(bed: Bed) -> None:
    path = bed.path("hub")
    assert (await bed.post("quay", path=path.replace("dockerhub", "quay"))).status_code == 404
    assert (await bed.client.get(path)).status_code == 405


async def test_a_body_over_the_cap_is_refused_unread(bed: Bed) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * (1024 * 1024)

    assert (await bed.client.post(bed.path("quay"), content=endless())).status_code == 413
    declared = {"Content-Length": str(CAP + 1)}
    assert (await bed.client.post(bed.path("quay"), content=b"", headers=declared)).status_code == 413
    assert await bed.count() == 0


@pytest.mark.parametrize(
    ("name", "headers", "body", "note"),
    [
        ("github", {"X-GitHub-Event": "star"}, {"action": "created"}, "of no interest: the event 'star'"),
        ("github", {"X-GitHub-Event": "ping"}, {"zen": "x"}, "of no interest"),
        ("harbor", {}, {"type": "DELETE_ARTIFACT"}, "of no interest: the type 'DELETE_ARTIFACT'"),
        ("quay", {}, {"docker_url": "quay.io/other/thing", "updated_tags": ["1.0.0"]}, "of no interest"),
        ("quay", {}, "{", "the body is no JSON"),
        ("google", {}, {"message": {"data": "%"}}, "JSON in base64 was expected"),
        ("registry", {}, {"events": [{"action": "pull"}]}, "of no interest"),
        ("generic", {"X-Event-Type": "published"}, {}, "normalizeImage"),
    ],
)
async def test_noise_of_an_authentic_sender_is_taken_and_noted(
    bed: Bed, name: str, headers: dict[str, str], body: object, note: str
) -> None:
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    answer = await bed.post(name, body=content, headers={**proof(name, content), **headers})
    assert answer.status_code == 202
    (delivery,) = await bed.store.list_pending_deliveries()
    looks, said = await bed.intake.received.read(delivery)
    assert looks == []
    assert note in said
    assert await bed.looks() == []


async def test_a_repeated_delivery_is_kept_once(bed: Bed) -> None:
    for _ in range(3):
        assert (await bed.post("github")).status_code == 202
        bed.clock.turn(300)
    assert await bed.count() == 1
    assert bed.nudges == ["once"]


async def test_the_same_body_a_minute_later_is_another_push(bed: Bed) -> None:
    for _ in range(3):
        await bed.post("quay")
    assert await bed.count() == 1
    bed.clock.turn(60)
    await bed.post("quay")
    assert await bed.count() == 2


async def test_an_id_that_two_receivers_use_is_two_deliveries(bed: Bed) -> None:
    await bed.post("github")
    await bed.post("gitea")
    await bed.post("github", body=read("github.push") + b"\n")
    assert await bed.count() == 3


async def test_a_new_secret_is_a_new_address(bed: Bed) -> None:
    old = bed.path("quay")
    assert (await bed.post("quay")).status_code == 202
    (bed.folder / "secret").write_text("another")
    new = bed.path("quay")
    assert new != old
    bed.clock.turn(11)
    assert (await bed.post("quay", path=old)).status_code == 404
    assert (await bed.post("quay", path=new)).status_code == 202


async def test_during_a_rotation_the_old_secret_holds_too(bed: Bed) -> None:
    old_path, old_proof = bed.path("github"), proof("github", read("github.push"))
    (bed.folder / "secret").write_text("another")
    (bed.folder / "secret-old").write_text(SECRET, encoding="utf-8")
    bed.clock.turn(11)
    assert (await bed.post("github", headers=old_proof, path=old_path)).status_code == 202
    assert (await bed.post("github", headers=old_proof)).status_code == 401
    lines = describe_receivers(bed.pipeline, bed.secrets, "").splitlines()
    assert f"shop/github (github, old): {old_path}" in lines
    (bed.folder / "secret-old").unlink()
    bed.clock.turn(11)
    assert (await bed.post("github", headers=old_proof, path=old_path)).status_code == 404


async def test_a_secret_that_is_gone_closes_the_receiver(bed: Bed) -> None:
    path = bed.path("quay")
    (bed.folder / "secret").write_text("")
    bed.clock.turn(11)
    assert (await bed.post("quay", path=path)).status_code == 404


async def test_a_flood_of_guesses_reads_no_secrets(bed: Bed) -> None:
    path = bed.path("quay")
    assert (await bed.post("quay", path=f"/quay/{'1' * 64}")).status_code == 404
    (bed.folder / "secret").unlink()
    for _ in range(20):
        assert (await bed.post("quay", path=f"/quay/{'1' * 64}")).status_code == 404
    # Within ten seconds what was read stays in force.
    assert (await bed.post("quay", path=path)).status_code == 202


async def test_the_clusters_receiver_looks_in_every_project(bed: Bed) -> None:
    assert (await bed.post("quay", path=bed.path("all"))).status_code == 202
    (delivery,) = await bed.store.list_pending_deliveries()
    assert delivery.receiver == "/all"
    assert await bed.looks() == [("warehouse", "shop/quay")]


async def test_a_receiver_that_was_removed_meanwhile_does_nothing(bed: Bed) -> None:
    await bed.post("quay")
    (delivery,) = await bed.store.list_pending_deliveries()
    gone = ReceivedIntake(bed.store, bed.intake.github, Pipeline)
    assert await gone.read(delivery) == ([], "the receiver shop/quay is no longer configured")


async def test_no_log_tells_the_address(bed: Bed, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await bed.post("quay", body=b"{")
    await bed.post("quay", path=f"{bed.path('quay')}0")
    assert await bed.looks() == []
    assert any(record.name == "bot.workflow.receivers" for record in caplog.records)
    digest = bed.path("quay").rpartition("/")[2]
    ours = [record for record in caplog.records if not record.name.startswith("httpx")]
    assert not [record for record in ours if digest in str(vars(record))]


async def test_neither_address_nor_credentials_are_kept(bed: Bed) -> None:
    headers = {"Authorization": "Bearer hush", "X-Event-Type": "published"}
    await bed.post("generic", headers=headers)
    (delivery,) = await bed.store.list_pending_deliveries()
    assert b"hush" not in delivery.body
    assert bed.path("generic").rpartition("/")[2].encode() not in delivery.body
    assert bed.path("generic").rpartition("/")[2] not in delivery.id


def test_the_operator_sees_every_address() -> None:
    pipeline, _ = load({"config.yaml": CONFIG}, "r1")
    secrets = SecretStore(lambda: pipeline, environment={"LOCKSTEP_SECRET_SHOP_HOOKS_SECRET_TOKEN": SECRET})
    lines = describe_receivers(pipeline, secrets, "https://bot.example").splitlines()
    digest = hashlib.sha256(f"shopgitlab{SECRET}".encode()).hexdigest()
    assert f"shop/gitlab (gitlab): https://bot.example/gitlab/{digest}" in lines
    assert any(line.startswith("/all (quay): https://bot.example/quay/") for line in lines)
    forgotten = next(line for line in lines if line.startswith("shop/forgotten"))
    assert forgotten == (
        "shop/forgotten (quay): closed, the Secret 'nowhere' has no value under the key 'secret', which quay needs"
    )
    assert describe_receivers(Pipeline(), secrets, "") == "the configuration has no webhook receivers"
