"""The REST API answers with Argo CD's statuses, codes and texts."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from bot.sandbox.argocd import ArgoCD, ArgoFaults, NewApplication, Timing
from bot.sandbox.serving import Listener
from tests.contract.argocd import check_definition
from tests.sandbox.argocd.conftest import FAST, URL, Repo, open_client, until, values

DEV = "/api/v1/applications/otel-app-dev"
MISSING = "/api/v1/applications/missing"
JSON = {"Content-Type": "application/json"}


def refusal(answer: httpx.Response) -> tuple[int, int, str]:
    """Status, gRPC code and text; the body holds the text twice."""
    body = answer.json()
    assert body["error"] == body["message"]
    return answer.status_code, body["code"], body["message"]


class TestSessions:
    async def test_the_version_is_for_everybody(self, argocd: ArgoCD, client: httpx.AsyncClient) -> None:
        async with open_client(argocd, None) as stranger:
            assert (await stranger.get("/api/version")).json() == {"Version": "v3.6.0"}
        assert (await client.get("/api/version")).json()["Platform"] == "linux/amd64"

    async def test_the_administrator_logs_in(self, argocd: ArgoCD) -> None:
        async with open_client(argocd, None) as stranger:
            answer = await stranger.post("/api/v1/session", json={"username": "admin", "password": "admin"})
            token = answer.json()["token"]
            wrong = await stranger.post("/api/v1/session", json={"username": "admin", "password": "x"})
        assert refusal(wrong) == (401, 16, "Invalid username or password")
        async with open_client(argocd, token) as admin:
            assert (await admin.get("/api/v1/session/userinfo")).json()["username"] == "admin"
            assert (await admin.get(DEV)).status_code == 200

    async def test_user_info(self, argocd: ArgoCD, client: httpx.AsyncClient) -> None:
        expected = {"loggedIn": True, "username": "proj:acme:lockstep", "iss": "argocd"}
        assert (await client.get("/api/v1/session/userinfo")).json() == expected
        async with open_client(argocd, None) as stranger:
            assert (await stranger.get("/api/v1/session/userinfo")).json() == {}

    async def test_no_token(self, argocd: ArgoCD) -> None:
        async with open_client(argocd, None) as stranger:
            assert refusal(await stranger.get(DEV)) == (401, 16, "no session information")

    @pytest.mark.parametrize("token", ["x", "a.b.c"], ids=["no token at all", "three parts"])
    async def test_a_bad_token(self, argocd: ArgoCD, token: str) -> None:
        async with open_client(argocd, token) as stranger:
            status, code, text = refusal(await stranger.get(DEV))
        assert (status, code) == (401, 16)
        assert text.startswith("invalid session: ")

    async def test_a_forged_token(self, argocd: ArgoCD) -> None:
        claims = {"iss": "argocd", "sub": "admin:login", "iat": int(time.time())}
        async with open_client(argocd, jwt.encode(claims, "k" * 32, algorithm="HS256")) as stranger:
            assert refusal(await stranger.get(DEV))[2].startswith("invalid session: ")

    async def test_role_tokens_are_signed_for_the_role_and_can_be_revoked(self, argocd: ArgoCD) -> None:
        async with open_client(argocd, await log_in(argocd)) as admin:
            path = "/api/v1/projects/acme/roles/lockstep/token"
            body = {"project": "acme", "role": "lockstep", "expiresIn": 3600, "id": "ci"}
            token = (await admin.post(path, json=body)).json()["token"]
            claims = jwt.decode(token, options={"verify_signature": False})
            assert (claims["iss"], claims["sub"], claims["jti"]) == ("argocd", "proj:acme:lockstep", "ci")
            assert claims["exp"] - claims["iat"] == 3600
            assert jwt.get_unverified_header(token)["alg"] == "HS256"
            async with open_client(argocd, token) as bot:
                assert (await bot.get(DEV)).status_code == 200
                await admin.delete(f"{path}/{claims['iat']}", params={"id": "ci"}, headers=JSON)
                assert refusal(await bot.get(DEV))[:2] == (401, 16)
            assert (await admin.post(path, json=body)).status_code == 200
            assert refusal(await admin.post(path, json=body))[:2] == (400, 3)
            unknown = "/api/v1/projects/acme/roles/unknown/token"
            assert refusal(await admin.post(unknown, json={}))[:2] == (404, 5)
            assert refusal(await admin.post("/api/v1/projects/no/roles/r/token", json={}))[:2] == (404, 5)

    async def test_an_expired_token(self, argocd: ArgoCD) -> None:
        token = argocd.create_role_token("acme", "lockstep", expires_in=-5)
        async with open_client(argocd, token) as bot:
            assert refusal(await bot.get(DEV))[2].startswith("invalid session: ")

    async def test_tokens_outlive_a_restart(self, argocd: ArgoCD, tmp_path: Path) -> None:
        token = argocd.create_role_token("acme", "lockstep")
        again = ArgoCD(tmp_path / "argocd", timing=FAST)
        async with open_client(again, token) as bot:
            assert (await bot.get(DEV)).json()["metadata"]["name"] == "otel-app-dev"


async def log_in(argocd: ArgoCD) -> str:
    async with open_client(argocd, None) as stranger:
        answer = await stranger.post("/api/v1/session", json={"username": "admin", "password": "admin"})
        return str(answer.json()["token"])


class TestRights:
    async def test_a_missing_application_is_forbidden_without_the_project_and_missing_with_it(
        self, client: httpx.AsyncClient
    ) -> None:
        assert refusal(await client.get(MISSING)) == (403, 7, "permission denied")
        expected = (404, 5, 'applications.argoproj.io "missing" not found')
        assert refusal(await client.get(MISSING, params={"project": "acme"})) == expected
        body = {"name": "missing", "project": "acme"}
        assert refusal(await client.post(f"{MISSING}/sync", json=body)) == expected
        assert refusal(await client.post(f"{MISSING}/sync", json={"name": "missing"}))[:2] == (403, 7)

    async def test_another_project_is_forbidden(self, argocd: ArgoCD, client: httpx.AsyncClient) -> None:
        argocd.create_project("other", roles={"r": ("get",)})
        assert refusal(await client.get(DEV, params={"project": "other"})) == (403, 7, "permission denied")
        async with open_client(argocd, argocd.create_role_token("other", "r")) as stranger:
            assert refusal(await stranger.get(DEV)) == (403, 7, "permission denied")
            assert refusal(await stranger.get(DEV, params={"project": "other"}))[:2] == (404, 5)
            assert (await stranger.get("/api/v1/applications")).json()["items"] == []

    async def test_a_missing_right_is_named(self, argocd: ArgoCD) -> None:
        async with open_client(argocd, argocd.create_role_token("acme", "reader")) as reader:
            assert (await reader.get(DEV, params={"refresh": "normal"})).status_code == 200
            for answer, action in (
                (await reader.post(f"{DEV}/sync", json={"name": "otel-app-dev"}), "sync"),
                (await reader.post(f"{DEV}/rollback", json={"id": 0}), "sync"),
                (await reader.patch(DEV, json={"patch": "{}", "patchType": "merge"}), "update"),
                (await reader.put(f"{DEV}/spec", json={}), "update"),
                (await reader.delete(f"{DEV}/operation", headers=JSON), "sync"),
            ):
                status, code, text = refusal(answer)
                assert (status, code) == (403, 7)
                assert text.startswith(
                    f"permission denied: applications, {action}, acme/otel-app-dev, sub: proj:acme"
                )

    async def test_local_manifests_need_a_right_of_their_own(self, client: httpx.AsyncClient) -> None:
        answer = await client.post(f"{DEV}/sync", json={"manifests": ["{}"]})
        assert "applications, override, acme/otel-app-dev" in refusal(answer)[2]

    @pytest.mark.parametrize("content_type", ["", "text/plain", "application/json; charset=utf-8"])
    async def test_only_json_may_change_anything(self, argocd: ArgoCD, content_type: str) -> None:
        transport = httpx.ASGITransport(app=argocd.asgi)
        async with httpx.AsyncClient(transport=transport, base_url="http://argocd.example") as stranger:
            answer = await stranger.post(f"{DEV}/sync", content=b"{}", headers={"Content-Type": content_type})
        assert (answer.status_code, answer.text) == (415, "Invalid content type")


class TestSync:
    async def test_a_second_operation_is_refused_while_one_runs(self, client: httpx.AsyncClient) -> None:
        assert (await client.post(f"{DEV}/sync", json={"name": "otel-app-dev"})).status_code == 200
        expected = (400, 9, "another operation is already in progress")
        assert refusal(await client.post(f"{DEV}/sync", json={"name": "otel-app-dev"})) == expected
        assert refusal(await client.post(f"{DEV}/rollback", json={"id": 0})) == expected

    async def test_auto_sync_refuses_another_revision(self, client: httpx.AsyncClient) -> None:
        policy = '{"spec": {"syncPolicy": {"automated": {}}}}'
        await client.patch(DEV, json={"patch": policy, "patchType": "merge"})
        answer = await client.post(f"{DEV}/sync", json={"revision": "f" * 40})
        assert refusal(answer) == (400, 9, f"Cannot sync to {'f' * 40}: auto-sync currently set to main")
        answer = await client.post(f"{DEV}/rollback", json={"id": 0})
        assert refusal(answer) == (400, 9, "rollback cannot be initiated when auto-sync is enabled")
        assert (await client.post(f"{DEV}/sync", json={"revision": "main"})).status_code == 200

    async def test_a_revision_that_does_not_exist(self, client: httpx.AsyncClient) -> None:
        answer = await client.post(f"{DEV}/sync", json={"revision": "gone"})
        assert refusal(answer) == (400, 9, "unable to resolve 'gone' to a commit SHA")

    async def test_a_sync_window(self, argocd: ArgoCD, client: httpx.AsyncClient) -> None:
        argocd.faults = ArgoFaults(blocked=("otel-app-dev",))
        answer = await client.post(f"{DEV}/sync", json={})
        assert refusal(answer) == (403, 7, "cannot sync: blocked by sync window")

    async def test_an_application_that_is_being_deleted(
        self, argocd: ArgoCD, client: httpx.AsyncClient
    ) -> None:
        argocd.mark_deleting("otel-app-dev")
        assert refusal(await client.post(f"{DEV}/sync", json={})) == (400, 9, "application is deleting")

    async def test_an_unknown_entry_of_the_history(self, client: httpx.AsyncClient) -> None:
        expected = (400, 3, "application otel-app-dev does not have deployment with id 7")
        assert refusal(await client.post(f"{DEV}/rollback", json={"id": 7})) == expected


class TestChanges:
    @pytest.mark.parametrize(
        ("kind", "patch"),
        [
            ("merge", '{"metadata": {"annotations": {"new": "1", "kargo.akuity.io/authorized-stage": null}}}'),
            ("json", '[{"op": "replace", "path": "/metadata/annotations", "value": {"new": "1"}}]'),
            ("", '[{"op": "add", "path": "/metadata/annotations/new", "value": "1"},'
                 ' {"op": "remove", "path": "/metadata/annotations/kargo.akuity.io~1authorized-stage"}]'),
        ],
        ids=["a merge patch", "a JSON patch", "JSON is the default"],
    )  # fmt: skip
    async def test_patches(self, argocd: ArgoCD, client: httpx.AsyncClient, kind: str, patch: str) -> None:
        body = {"name": "otel-app-dev", "patch": patch, "patchType": kind, "project": "acme"}
        answer = await client.patch(DEV, json=body)
        assert answer.json()["metadata"]["annotations"] == {"new": "1"}
        assert argocd.application("otel-app-dev")["metadata"]["annotations"] == {"new": "1"}

    async def test_a_patch_reaches_no_status(self, argocd: ArgoCD, client: httpx.AsyncClient) -> None:
        patch = '{"status": {"health": {"status": "Degraded"}}, "operation": {"sync": {}}, "metadata": {"name": "x"}}'
        answer = await client.patch(DEV, json={"patch": patch, "patchType": "merge"})
        assert answer.json()["status"]["health"]["status"] == "Healthy"
        assert "operation" not in answer.json()
        assert answer.json()["metadata"]["name"] == "otel-app-dev"

    async def test_a_patched_refresh_annotation_is_handled_and_removed(
        self, argocd: ArgoCD, repo: Repo, client: httpx.AsyncClient
    ) -> None:
        tip = repo.commit({"env/dev/helm/values.yaml": values("1.1.0")})
        patch = '{"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}}'
        answer = await client.patch(DEV, json={"patch": patch, "patchType": "merge"})
        assert answer.json()["metadata"]["annotations"]["argocd.argoproj.io/refresh"] == "hard"
        await until(lambda: argocd.application("otel-app-dev")["status"]["sync"]["revision"] == tip)
        assert (
            "argocd.argoproj.io/refresh" not in argocd.application("otel-app-dev")["metadata"]["annotations"]
        )

    @pytest.mark.parametrize(
        ("kind", "patch"),
        [
            ("merge", "{"),
            ("merge", "[]"),
            ("strategic", "{}"),
            ("json", "{}"),
            ("json", '[{"op": "replace", "path": "/spec/none", "value": 1}]'),
            ("json", '[{"op": "test", "path": "/spec/project", "value": "other"}]'),
            ("json", '[{"op": "add", "path": "spec", "value": 1}]'),
            ("json", '[{"path": "/spec"}]'),
            ("merge", '{"spec": {"source": null}}'),
            ("merge", '{"spec": {"project": "unknown"}}'),
            ("merge", '{"spec": {"sources": "main"}}'),
            ("merge", '{"spec": null}'),
        ],
    )
    async def test_what_does_not_fit_changes_nothing(
        self, argocd: ArgoCD, client: httpx.AsyncClient, kind: str, patch: str
    ) -> None:
        before = json.dumps(argocd.application("otel-app-dev")["spec"])
        answer = await client.patch(DEV, json={"patch": patch, "patchType": kind})
        assert refusal(answer)[:2] == (400, 3)
        assert json.dumps(argocd.application("otel-app-dev")["spec"]) == before

    @pytest.mark.parametrize("body", [b"{", b"[]", b'"x"'], ids=["cut short", "a list", "a string"])
    async def test_a_body_that_is_no_object(self, argocd: ArgoCD, body: bytes) -> None:
        token = argocd.create_role_token("acme", "lockstep")
        transport = httpx.ASGITransport(app=argocd.asgi)
        async with httpx.AsyncClient(transport=transport, base_url="http://argocd.example") as bot:
            headers = {**JSON, "Authorization": f"Bearer {token}"}
            answer = await bot.post(f"{DEV}/sync", content=body, headers=headers)
        assert refusal(answer)[:2] == (400, 3)


class TestLists:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ({}, ["otel-app-dev", "otel-app-prod"]),
            ({"selector": "stage=dev"}, ["otel-app-dev"]),
            ({"selector": "stage!=dev,stage"}, ["otel-app-prod"]),
            ({"selector": "!stage"}, []),
            ({"projects": "acme"}, ["otel-app-dev", "otel-app-prod"]),
            ({"projects": "other"}, []),
            ({"repo": "https://GitHub.example/acme/operations"}, ["otel-app-dev", "otel-app-prod"]),
            ({"repo": "https://github.example/acme/other"}, []),
            ({"name": "otel-app-prod"}, ["otel-app-prod"]),
            ({"appNamespace": "elsewhere"}, []),
        ],
        ids=str,
    )
    async def test_a_selection(
        self, client: httpx.AsyncClient, query: dict[str, str], expected: list[str]
    ) -> None:
        answer = await client.get("/api/v1/applications", params=query)
        assert [item["metadata"]["name"] for item in answer.json()["items"]] == expected

    async def test_a_selector_that_cannot_be_read(self, client: httpx.AsyncClient) -> None:
        answer = await client.get("/api/v1/applications", params={"selector": "stage in (dev)"})
        assert refusal(answer)[:2] == (400, 3)

    @pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
    async def test_the_stream_shows_what_is_and_then_what_changes(
        self, argocd: ArgoCD, repo: Repo, accept: str
    ) -> None:
        listener = Listener()
        await listener.start(argocd.asgi)
        token = argocd.create_role_token("acme", "lockstep")
        headers = {"Authorization": f"Bearer {token}", "Accept": accept}
        repo.commit({"env/dev/helm/values.yaml": values("1.1.0")})
        seen: list[tuple[str, str, str]] = []
        async with (
            asyncio.timeout(10),
            httpx.AsyncClient(base_url=listener.url, trust_env=False) as bot,
            bot.stream("GET", "/api/v1/stream/applications?name=otel-app-dev", headers=headers) as stream,
        ):
            async for line in stream.aiter_lines():
                if not line:
                    continue
                event = json.loads(line.removeprefix("data: "))["result"]
                app: dict[str, Any] = event["application"]
                seen.append((event["type"], app["metadata"]["name"], app["status"]["sync"]["status"]))
                if len(seen) == 1:
                    await argocd.refresh("otel-app-dev")
                if seen[-1][2] == "OutOfSync":
                    break
        assert seen[0] == ("ADDED", "otel-app-dev", "Synced")
        assert seen[-1] == ("MODIFIED", "otel-app-dev", "OutOfSync")
        await listener.stop()

    async def test_a_refused_stream_has_an_error_of_its_own_shape(self, argocd: ArgoCD) -> None:
        async with open_client(argocd, None) as stranger:
            answer = await stranger.get("/api/v1/stream/applications", params={"name": "otel-app-dev"})
        error = {
            "grpc_code": 16,
            "http_code": 401,
            "message": "no session information",
            "http_status": "Unauthorized",
        }
        assert (answer.status_code, answer.json()) == (401, {"error": error})
        check_definition("runtimeStreamError", error)

    async def test_an_unknown_path_has_the_gateways_body(
        self, client: httpx.AsyncClient, argocd: ArgoCD
    ) -> None:
        transport = httpx.ASGITransport(app=argocd.asgi)
        async with httpx.AsyncClient(transport=transport, base_url="http://argocd.example") as bot:
            assert refusal(await bot.get("/api/v1/nothing")) == (404, 5, "Not Found")
            assert refusal(await bot.post("/api/v1/applications", headers=JSON))[0] == 501


class TestFaults:
    async def test_down(self, argocd: ArgoCD, client: httpx.AsyncClient) -> None:
        argocd.faults = ArgoFaults(down=True, times=1)
        assert refusal(await client.get(DEV))[:2] == (503, 14)
        assert (await client.get(DEV)).status_code == 200

    async def test_a_refresh_that_takes_too_long(self, tmp_path: Path, repo: Repo) -> None:
        argocd = ArgoCD(tmp_path / "slow", timing=Timing(deadline=0.05))
        argocd.register_repository(URL, path=repo.path)
        argocd.create_project("acme", roles={"r": ("get",)})
        await argocd.create_application(
            NewApplication("app", project="acme", repo_url=URL, path="env/dev/helm")
        )
        argocd.faults = ArgoFaults(slow_refresh=5)
        async with open_client(argocd, argocd.create_role_token("acme", "r")) as bot:
            answer = await bot.get("/api/v1/applications/app", params={"refresh": "hard"})
            assert refusal(answer) == (500, 2, "application refresh deadline exceeded")
            assert "argocd.argoproj.io/refresh" in (await bot.get("/api/v1/applications/app")).text

    async def test_switches_over_http_take_effect_at_once(
        self, argocd: ArgoCD, client: httpx.AsyncClient
    ) -> None:
        await client.post("/_sandbox/faults", json={"degraded": ["otel-app-dev"]})
        await until(lambda: argocd.application("otel-app-dev")["status"]["health"]["status"] == "Degraded")
        await client.delete("/_sandbox/faults")
        await until(lambda: argocd.application("otel-app-dev")["status"]["health"]["status"] == "Healthy")
