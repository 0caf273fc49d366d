"""The page acts for whoever looks at it; the webhook refreshes what follows a pushed branch."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.sandbox.argocd import ArgoCD
from tests.sandbox.argocd.conftest import Repo, open_client, phase, until, values

DEV = "/api/v1/applications/otel-app-dev"
PUSH: dict[str, Any] = {
    "ref": "refs/heads/main",
    "repository": {"html_url": "https://github.example/acme/operations", "default_branch": "main"},
    "commits": [{"added": [], "modified": ["env/dev/helm/values.yaml"], "removed": []}],
}


class TestPage:
    async def test_it_shows_what_runs_and_can_sync(
        self, argocd: ArgoCD, repo: Repo, client: httpx.AsyncClient
    ) -> None:
        repo.commit({"env/dev/helm/values.yaml": values("1.1.0", "https://<x>.example")})
        answer = await client.post("/_sandbox/applications/otel-app-dev/sync")
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        await until(lambda: phase(argocd.application("otel-app-dev")) == "Succeeded")
        page = (await client.get("/")).text
        for text in ("otel-app-dev", "Synced", "Healthy", "1.1.0", "https://&lt;x&gt;.example", "Succeeded"):
            assert text in page
        await client.post("/_sandbox/applications/otel-app-dev/refresh")
        assert argocd.application("otel-app-dev")["status"]["sync"]["status"] == "Synced"

    async def test_another_sites_page_may_not_sync(self, client: httpx.AsyncClient) -> None:
        headers = {"Origin": "https://elsewhere.example"}
        answer = await client.post("/_sandbox/applications/otel-app-dev/sync", headers=headers)
        assert answer.status_code == 403
        assert (await client.post("/_sandbox/applications/otel-app-dev/delete")).status_code == 404


class TestWebhook:
    async def push(
        self, client: httpx.AsyncClient, body: bytes, event: str = "push", **headers: str
    ) -> httpx.Response:
        return await client.post("/api/webhook", content=body, headers={"X-GitHub-Event": event, **headers})

    async def test_a_push_refreshes_what_follows_the_branch(
        self, argocd: ArgoCD, repo: Repo, client: httpx.AsyncClient
    ) -> None:
        tip = repo.commit({"env/dev/helm/values.yaml": values("1.1.0")})
        answer = await self.push(client, json.dumps(PUSH).encode())
        assert (answer.status_code, answer.text) == (200, "")
        await until(lambda: argocd.application("otel-app-dev")["status"]["sync"]["revision"] == tip)

    @pytest.mark.parametrize(
        ("change", "annotation", "refreshed"),
        [
            ({"ref": "refs/heads/other"}, "", False),
            ({}, ".", True),
            ({}, "/env/prod", False),
            ({}, "/env/prod;/env/dev", True),
            ({"commits": []}, "/env/prod", True),
        ],
        ids=["another branch", "its own path", "another path", "one of two paths", "files are not known"],
    )
    async def test_which_ones(
        self,
        argocd: ArgoCD,
        repo: Repo,
        client: httpx.AsyncClient,
        change: dict[str, Any],
        annotation: str,
        refreshed: bool,
    ) -> None:
        patch = json.dumps(
            {"metadata": {"annotations": {"argocd.argoproj.io/manifest-generate-paths": annotation}}}
        )
        await client.patch(DEV, json={"patch": patch, "patchType": "merge"})
        # The patch caused a comparison too, which the second refresh certainly comes after.
        for _ in range(2):
            await argocd.refresh("otel-app-dev")
        tip = repo.commit({"env/dev/helm/values.yaml": values("1.1.0")})
        await self.push(client, json.dumps(PUSH | change).encode())
        # The other Application follows main without an annotation: its refresh shows that the push was handled.
        if change.get("ref") is None:
            await until(lambda: argocd.application("otel-app-prod")["status"]["sync"]["revision"] == tip)
        await argocd.refresh("otel-app-prod")
        if refreshed:
            await until(lambda: argocd.application("otel-app-dev")["status"]["sync"]["revision"] == tip)
        assert (argocd.application("otel-app-dev")["status"]["sync"]["revision"] == tip) is refreshed

    async def test_what_it_does_not_understand(self, client: httpx.AsyncClient) -> None:
        assert (await client.post("/api/webhook", content=b"{}")).text == "Unknown webhook event"
        for body, event in ((b"{", "push"), (b"{}", "push"), (b"{}", "issues"), (b"[]", "push")):
            answer = await self.push(client, body, event)
            assert answer.status_code == 400
            assert answer.text.startswith("Webhook processing failed: ")
        assert (await self.push(client, b"{}", "ping")).status_code == 200
        assert (await client.get("/api/webhook")).status_code == 405

    async def test_a_secret_makes_the_signature_mandatory(self, tmp_path: Path) -> None:
        argocd = ArgoCD(tmp_path / "signed", webhook_secret="s3cret")
        body = json.dumps(PUSH).encode()
        signature = "sha256=" + hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
        async with open_client(argocd, None) as client:
            assert (await self.push(client, body)).status_code == 400
            assert (await self.push(client, body, **{"X-Hub-Signature-256": signature})).status_code == 200
