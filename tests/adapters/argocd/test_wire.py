"""Answers of Argo CD that the sandbox does not give: older and newer shapes, lost answers, pages of a proxy."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import respx

from bot.adapters.argocd import BUSY, REFRESH_DEADLINE, SYNC_WINDOW, ArgoCDServer, ArgoCDServers
from bot.domain.argocd import Application, Operation
from bot.ports import SyncRefused, SyncStarted, TerminalError, TransientError

API = "https://argo.example/api/v1"
APP = f"{API}/applications/otel"


def body(**status: object) -> dict[str, object]:
    return {
        "metadata": {"name": "otel", "namespace": "argocd", "annotations": {"a": "b"}},
        "spec": {"project": "shop", "source": {"repoURL": "https://git.example/ops", "path": "env/dev"}},
        "status": status,
    }


@pytest.fixture
def wire() -> Iterator[respx.Router]:
    with respx.mock(assert_all_called=False) as router:
        yield router


@pytest.fixture
async def argocd(wire: respx.Router) -> AsyncIterator[ArgoCDServers]:
    async with ArgoCDServers(
        {"default": ArgoCDServer("https://argo.example/", "token", project="shop")}
    ) as servers:
        yield servers


@pytest.fixture
async def otel(argocd: ArgoCDServers, wire: respx.Router) -> Application:
    wire.get(APP).respond(json=body())
    found = await argocd.get_application("default", "otel")
    assert found is not None
    return found


async def test_the_project_is_always_sent(argocd: ArgoCDServers, wire: respx.Router) -> None:
    route = wire.get(APP).respond(json=body())
    await argocd.get_application("default", "otel", namespace="team", refresh="hard")
    request = route.calls[0].request
    assert dict(request.url.params) == {"appNamespace": "team", "project": "shop", "refresh": "hard"}
    assert request.headers["authorization"] == "Bearer token"


async def test_an_application_that_was_never_compared_is_read(
    argocd: ArgoCDServers, wire: respx.Router
) -> None:
    wire.get(APP).respond(json={"metadata": {"name": "otel"}, "spec": {}})
    found = await argocd.get_application("default", "otel")
    assert found is not None
    assert (found.sync_status, found.health, found.sources, found.operation) == (
        "Unknown",
        "Unknown",
        (),
        None,
    )


async def test_several_sources_have_their_revisions_in_order(
    argocd: ArgoCDServers, wire: respx.Router
) -> None:
    document = body(
        sync={"status": "Synced", "revisions": ["1.2.3", "a" * 40]},
        operationState={
            "phase": "Succeeded",
            "startedAt": "2026-05-01T12:00:00Z",
            "syncResult": {"revisions": ["1.2.3", "a" * 40]},
            "operation": {"info": [{"name": "promotion", "value": "p1"}]},
        },
    )
    document["spec"] = {
        "project": "shop",
        "sources": [
            {"repoURL": "https://charts.example", "chart": "otel"},
            {"repoURL": "https://git.example/ops"},
        ],
        "syncPolicy": {"automated": {"prune": True, "enabled": False}},
    }
    wire.get(APP).respond(json=document)
    found = await argocd.get_application("default", "otel")
    assert found is not None
    assert [source.revision for source in found.sources] == ["1.2.3", "a" * 40]
    assert found.operation is not None
    assert found.operation.revisions == ("1.2.3", "a" * 40)
    assert found.operation.infos == {"promotion": "p1"}
    assert not found.auto_sync


async def test_what_is_unhealthy_is_named(argocd: ArgoCDServers, wire: respx.Router) -> None:
    resources = [
        {"kind": "Service", "name": "otel", "health": {"status": "Healthy"}},
        {"kind": "ConfigMap", "name": "otel"},
        {"kind": "Deployment", "name": "otel", "health": {"status": "Degraded", "message": "quota exceeded"}},
    ]
    wire.get(APP).respond(json=body(resources=resources))
    found = await argocd.get_application("default", "otel")
    assert found is not None
    assert found.unhealthy == ("Deployment otel is Degraded (quota exceeded)",)


async def test_an_operation_without_a_result_has_no_revision(
    argocd: ArgoCDServers, wire: respx.Router
) -> None:
    wire.get(APP).respond(json=body(operationState={"phase": "Error", "message": "x", "finishedAt": None}))
    found = await argocd.get_application("default", "otel")
    assert found is not None
    assert found.operation == Operation("Error", "x")


def error(status: int, code: int, message: str) -> httpx.Response:
    return httpx.Response(status, json={"error": message, "code": code, "message": message})


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(error(400, *BUSY), SyncRefused(BUSY[1], busy=True), id="another operation runs"),
        pytest.param(
            error(403, SYNC_WINDOW[0], "cannot sync: blocked by sync window"),
            SyncRefused("cannot sync: blocked by sync window"),
            id="a sync window is closed",
        ),
        pytest.param(
            error(400, 9, "Cannot sync to x: auto-sync currently set to main"),
            SyncRefused("Cannot sync to x: auto-sync currently set to main"),
            id="another precondition",
        ),
    ],
)
async def test_refusals_of_a_sync(
    argocd: ArgoCDServers,
    wire: respx.Router,
    otel: Application,
    answer: httpx.Response,
    expected: SyncRefused,
) -> None:
    wire.post(f"{APP}/sync").mock(return_value=answer)
    assert await argocd.sync("default", otel, revision="", infos={}) == expected


async def test_the_words_of_a_refusal_count_only_with_their_code(
    argocd: ArgoCDServers, wire: respx.Router, otel: Application
) -> None:
    wire.post(f"{APP}/sync").mock(return_value=error(400, 3, BUSY[1]))
    refused = await argocd.sync("default", otel, revision="", infos={})
    assert isinstance(refused, SyncRefused)
    assert not refused.busy


async def test_a_sync_says_what_it_must(argocd: ArgoCDServers, wire: respx.Router, otel: Application) -> None:
    route = wire.post(f"{APP}/sync").respond(json=body())
    await argocd.sync("default", otel, revision="a" * 40, infos={"promotion": "p1"})
    assert json.loads(route.calls[0].request.content) == {
        "name": "otel",
        "appNamespace": "argocd",
        "project": "shop",
        "prune": False,
        "infos": [{"name": "promotion", "value": "p1"}],
        "revision": "a" * 40,
    }


@pytest.mark.parametrize("where", ["operation", "operationState"])
async def test_a_sync_whose_answer_was_lost_is_looked_for(
    argocd: ArgoCDServers, wire: respx.Router, otel: Application, where: str
) -> None:
    carried = {"info": [{"name": "promotion", "value": "p1"}]}
    running = (
        body(operationState={"phase": "Running", "operation": carried})
        if where == "operationState"
        else body()
    )
    if where == "operation":
        running["operation"] = carried
    wire.get(APP).mock(side_effect=[httpx.Response(200, json=body()), httpx.Response(200, json=running)])
    post = wire.post(f"{APP}/sync").mock(side_effect=httpx.ReadTimeout("slow"))
    assert await argocd.sync("default", otel, revision="", infos={"promotion": "p1"}) == SyncStarted()
    assert post.call_count == 1


async def test_a_sync_that_did_not_arrive_is_transient(
    argocd: ArgoCDServers, wire: respx.Router, otel: Application
) -> None:
    wire.post(f"{APP}/sync").mock(side_effect=httpx.ConnectError("refused"))
    with pytest.raises(TransientError, match="refused"):
        await argocd.sync("default", otel, revision="", infos={"promotion": "p1"})


async def test_a_missed_refresh_deadline_is_no_failure(argocd: ArgoCDServers, wire: respx.Router) -> None:
    wire.get(APP, params={"refresh": "normal"}).mock(return_value=error(500, *REFRESH_DEADLINE))
    wire.get(APP).respond(json=body())
    assert await argocd.get_application("default", "otel", refresh="normal") is not None


async def test_a_server_error_is_transient_with_its_message(
    argocd: ArgoCDServers, wire: respx.Router
) -> None:
    wire.get(APP).mock(return_value=error(500, 2, "rpc error: cache is gone"))
    with pytest.raises(TransientError, match="cache is gone"):
        await argocd.get_application("default", "otel", refresh="normal")


async def test_a_sign_in_page_is_named(argocd: ArgoCDServers, wire: respx.Router) -> None:
    wire.get(APP).respond(302, headers={"location": "https://sso.example/login"})
    with pytest.raises(TerminalError, match="a sign-in page stands before it"):
        await argocd.get_application("default", "otel")


async def test_a_page_instead_of_json_is_terminal(argocd: ArgoCDServers, wire: respx.Router) -> None:
    wire.get(APP).respond(200, text="<!doctype html>")
    with pytest.raises(TerminalError, match="is not what Argo CD documents"):
        await argocd.get_application("default", "otel")


@pytest.mark.parametrize("name", ["", "..", "."])
async def test_a_name_that_would_lead_elsewhere_is_refused(argocd: ArgoCDServers, name: str) -> None:
    with pytest.raises(TerminalError, match="no name of an Application"):
        await argocd.get_application("default", name)


async def test_a_slash_in_a_name_stays_in_the_name(argocd: ArgoCDServers, wire: respx.Router) -> None:
    route = wire.get(url__regex=r".*").respond(404, json={"code": 5, "message": "not found"})
    assert await argocd.get_application("default", "../../session") is None
    assert route.calls[0].request.url.raw_path.startswith(b"/api/v1/applications/..%2F..%2Fsession")
