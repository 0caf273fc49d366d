"""Applications go through sync and health in Argo CD's order, the treacherous moments included."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.sandbox.argocd import ArgoCD, ArgoFaults, NewApplication, Timing
from bot.sandbox.registry import Registry
from bot.sandbox.serving import Listener
from tests.sandbox.argocd.conftest import FAST, URL, Repo, phase, until, values

DEV = "/api/v1/applications/otel-app-dev"
SYNC = {"name": "otel-app-dev", "project": "acme"}


async def test_a_new_application_is_synced_and_healthy_at_the_tip(argocd: ArgoCD, repo: Repo) -> None:
    status = argocd.application("otel-app-dev")["status"]
    assert (status["sync"]["status"], status["health"]["status"]) == ("Synced", "Healthy")
    assert status["summary"] == {"images": ["registry.example/otel-app:1.0.0"]}
    assert [entry["id"] for entry in status["history"]] == [0]
    assert argocd.live("otel-app-dev") == (["registry.example/otel-app:1.0.0"], {"LAMBDA_URL": ""})


async def test_a_refresh_sees_the_new_tip_and_leaves_the_cluster_alone(
    argocd: ArgoCD, repo: Repo, client: httpx.AsyncClient
) -> None:
    tip = repo.commit({"env/dev/helm/values.yaml": values("1.1.0")})
    assert argocd.application("otel-app-dev")["status"]["sync"]["revision"] != tip
    app = (await client.get(DEV, params={"refresh": "normal", "project": "acme"})).json()
    assert (app["status"]["sync"]["status"], app["status"]["sync"]["revision"]) == ("OutOfSync", tip)
    assert app["status"]["health"]["status"] == "Healthy"
    assert "argocd.argoproj.io/refresh" not in app["metadata"]["annotations"]
    other = (await client.get("/api/v1/applications/otel-app-prod", params={"refresh": "hard"})).json()
    assert (other["status"]["sync"]["status"], other["status"]["sync"]["revision"]) == ("Synced", tip)


async def test_health_is_stale_after_the_operation_then_progressing_then_healthy(
    argocd: ArgoCD, repo: Repo, client: httpx.AsyncClient
) -> None:
    before = argocd.application("otel-app-dev")["status"]["sync"]["revision"]
    tip = repo.commit({"env/dev/helm/values.yaml": values("1.1.0", "https://x.example")})
    asked = (await client.post(f"{DEV}/sync", json=SYNC)).json()
    assert asked["operation"]["sync"]["revision"] == tip
    assert "operationState" not in asked["status"]
    seen: list[tuple[Any, ...]] = []

    def look() -> bool:
        app = argocd.application("otel-app-dev")
        sync, health = app["status"]["sync"], app["status"]["health"]
        now = (phase(app), sync["status"], sync["revision"] == tip, health["status"], "operation" in app)
        if not seen or seen[-1] != now:
            seen.append(now)
        return now[1:4] == ("Synced", True, "Healthy")

    await until(look)
    assert seen == [
        (None, "Synced", False, "Healthy", True),
        ("Running", "Synced", False, "Healthy", True),
        ("Succeeded", "Synced", False, "Healthy", False),
        ("Succeeded", "Synced", True, "Progressing", False),
        ("Succeeded", "Synced", True, "Healthy", False),
    ]
    status = argocd.application("otel-app-dev")["status"]
    assert status["reconciledAt"] >= status["operationState"]["finishedAt"]
    assert status["operationState"]["syncResult"]["revision"] == tip
    assert [entry["revision"] for entry in status["history"]] == [before, tip]
    assert argocd.live("otel-app-dev")[1] == {"LAMBDA_URL": "https://x.example"}


async def test_health_may_look_good_for_a_moment_before_the_rollout_shows(tmp_path: Path, repo: Repo) -> None:
    timing = Timing(interval=3600, queue=0, operation=0.01, stale=0.05, momentary=0.1, rollout=0.1)
    argocd = ArgoCD(tmp_path / "momentary", timing=timing)
    argocd.register_repository(URL, path=repo.path)
    argocd.create_project("acme")
    await argocd.create_application(
        NewApplication("app", project="acme", repo_url=URL, path="env/dev/helm", auto_sync=True)
    )
    tip = repo.commit({"env/dev/helm/values.yaml": values("1.1.0")})
    await argocd.start()
    seen: list[str] = []

    def look() -> bool:
        status = argocd.application("app")["status"]
        if status["sync"]["revision"] == tip and status["sync"]["status"] == "Synced":
            health = status["health"]["status"]
            if not seen or seen[-1] != health:
                seen.append(health)
        return seen == ["Healthy", "Progressing", "Healthy"]

    await until(look)
    await argocd.stop()


async def test_a_comment_in_the_values_rolls_nothing_out(
    argocd: ArgoCD, repo: Repo, client: httpx.AsyncClient
) -> None:
    tip = repo.commit({"env/dev/helm/values.yaml": "# A comment.\n" + values("1.0.0")})
    app = (await client.get(DEV, params={"refresh": "normal"})).json()
    assert (app["status"]["sync"]["status"], app["status"]["sync"]["revision"]) == ("Synced", tip)
    repo.commit({"env/dev/helm/templates/service.yaml": "kind: Service\n"})
    app = (await client.get(DEV, params={"refresh": "normal"})).json()
    assert app["status"]["sync"]["status"] == "OutOfSync"


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (
            {"env/dev/helm/values.yaml": None, "env/dev/helm/Chart.yaml": None},
            "env/dev/helm: app path does not exist",
        ),
        ({"env/dev/helm/values.yaml": "image: [\n"}, "cannot load values.yaml"),
        ({"env/dev/helm/values.yaml": "- a\n"}, "cannot load values.yaml: it holds no mapping"),
    ],
    ids=["no path", "no YAML", "a list"],
)
async def test_files_that_cannot_be_rendered_are_a_comparison_error(
    argocd: ArgoCD, repo: Repo, client: httpx.AsyncClient, files: dict[str, str | None], reason: str
) -> None:
    repo.commit(files)
    app = (await client.get(DEV, params={"refresh": "normal"})).json()
    assert (app["status"]["sync"]["status"], app["status"]["health"]["status"]) == ("Unknown", "Healthy")
    [condition] = app["status"]["conditions"]
    assert condition["type"] == "ComparisonError"
    assert reason in condition["message"]
    await client.post(f"{DEV}/sync", json=SYNC)
    await until(lambda: phase(argocd.application("otel-app-dev")) == "Error")
    repo.commit({"env/dev/helm/values.yaml": values("1.0.0"), "env/dev/helm/Chart.yaml": "name: otel-app\n"})
    app = (await client.get(DEV, params={"refresh": "normal"})).json()
    assert "conditions" not in app["status"]


async def test_a_branch_that_is_gone_is_a_comparison_error(argocd: ArgoCD, client: httpx.AsyncClient) -> None:
    patch = {
        "patch": '{"spec": {"source": {"targetRevision": "gone"}}}',
        "patchType": "merge",
        "name": "otel-app-dev",
    }
    assert (await client.patch(DEV, json=patch)).status_code == 200
    app = (await client.get(DEV, params={"refresh": "normal"})).json()
    assert "unable to resolve 'gone' to a commit SHA" in app["status"]["conditions"][0]["message"]


class TestOperations:
    async def test_a_failed_one_changes_nothing_in_the_cluster(
        self, argocd: ArgoCD, repo: Repo, client: httpx.AsyncClient
    ) -> None:
        argocd.faults = ArgoFaults(sync_fails=("otel-app-dev",))
        repo.commit({"env/dev/helm/values.yaml": values("1.1.0")})
        await client.post(f"{DEV}/sync", json=SYNC)
        await until(lambda: phase(argocd.application("otel-app-dev")) == "Failed")
        state = argocd.application("otel-app-dev")["status"]["operationState"]
        assert state["message"].startswith("one or more objects failed to apply, reason: ")
        assert {resource["status"] for resource in state["syncResult"]["resources"]} == {"SyncFailed"}
        assert argocd.live("otel-app-dev")[0] == ["registry.example/otel-app:1.0.0"]
        assert len(argocd.application("otel-app-dev")["status"]["history"]) == 1

    async def test_a_retry_strategy_is_followed(self, argocd: ArgoCD, client: httpx.AsyncClient) -> None:
        argocd.faults = ArgoFaults(sync_fails=("*",))
        await client.post(f"{DEV}/sync", json=SYNC | {"retryStrategy": {"limit": 2}})
        await until(lambda: phase(argocd.application("otel-app-dev")) == "Failed")
        assert argocd.application("otel-app-dev")["status"]["operationState"]["retryCount"] == 2

    async def test_a_terminated_one_is_failed(self, argocd: ArgoCD, client: httpx.AsyncClient) -> None:
        argocd.faults = ArgoFaults(slow_sync=30)
        await client.post(f"{DEV}/sync", json=SYNC)
        await until(lambda: phase(argocd.application("otel-app-dev")) == "Running")
        headers = {"Content-Type": "application/json"}
        assert (await client.delete(f"{DEV}/operation", headers=headers)).json() == {}
        await until(lambda: phase(argocd.application("otel-app-dev")) == "Failed")
        assert (
            argocd.application("otel-app-dev")["status"]["operationState"]["message"]
            == "Operation terminated"
        )
        again = await client.delete(f"{DEV}/operation", headers=headers)
        assert (again.status_code, again.json()["code"]) == (400, 3)
        assert again.json()["message"] == "Unable to terminate operation. No operation is in progress"

    async def test_a_dry_run_changes_nothing(
        self, argocd: ArgoCD, repo: Repo, client: httpx.AsyncClient
    ) -> None:
        repo.commit({"env/dev/helm/values.yaml": values("1.1.0")})
        await client.post(f"{DEV}/sync", json=SYNC | {"dryRun": True})
        await until(lambda: phase(argocd.application("otel-app-dev")) == "Succeeded")
        assert argocd.live("otel-app-dev")[0] == ["registry.example/otel-app:1.0.0"]
        assert len(argocd.application("otel-app-dev")["status"]["history"]) == 1

    async def test_an_older_commit_can_be_synced_and_leaves_it_out_of_sync(
        self, argocd: ArgoCD, repo: Repo, client: httpx.AsyncClient
    ) -> None:
        older = repo.commit({"env/dev/helm/values.yaml": values("1.1.0")})
        repo.commit({"env/dev/helm/values.yaml": values("1.2.0")})
        await client.post(f"{DEV}/sync", json=SYNC | {"revision": older})
        await until(lambda: argocd.application("otel-app-dev")["status"]["sync"]["status"] == "OutOfSync")
        assert argocd.live("otel-app-dev")[0] == ["registry.example/otel-app:1.1.0"]

    async def test_a_rollback_brings_an_entry_of_the_history_back(
        self, argocd: ArgoCD, repo: Repo, client: httpx.AsyncClient
    ) -> None:
        repo.commit({"env/dev/helm/values.yaml": values("1.1.0")})
        await client.post(f"{DEV}/sync", json=SYNC)
        await until(lambda: argocd.live("otel-app-dev")[0] == ["registry.example/otel-app:1.1.0"])
        await until(lambda: "operation" not in argocd.application("otel-app-dev"))
        answer = await client.post(
            f"{DEV}/rollback", json={"name": "otel-app-dev", "id": 0, "project": "acme"}
        )
        assert answer.status_code == 200
        await until(lambda: argocd.live("otel-app-dev")[0] == ["registry.example/otel-app:1.0.0"])

    async def test_who_asked_is_written_down(self, argocd: ArgoCD, client: httpx.AsyncClient) -> None:
        infos = [{"name": "Reason", "value": "Promotion dev.01"}]
        app = (await client.post(f"{DEV}/sync", json=SYNC | {"infos": infos, "prune": True})).json()
        assert app["operation"]["initiatedBy"] == {"username": "proj:acme:lockstep"}
        assert app["operation"]["info"] == infos
        assert app["operation"]["sync"]["prune"] is True

    async def test_one_that_a_stop_interrupted_goes_on_after_the_start(
        self, argocd: ArgoCD, repo: Repo, client: httpx.AsyncClient, tmp_path: Path
    ) -> None:
        tip = repo.commit({"env/dev/helm/values.yaml": values("1.1.0")})
        argocd.faults = ArgoFaults(slow_sync=30)
        await client.post(f"{DEV}/sync", json=SYNC)
        await until(lambda: phase(argocd.application("otel-app-dev")) == "Running")
        await argocd.stop()
        again = ArgoCD(tmp_path / "argocd", timing=FAST)
        assert phase(again.application("otel-app-dev")) == "Running"
        await again.start()
        await until(lambda: again.live("otel-app-dev")[0] == ["registry.example/otel-app:1.1.0"])
        await again.stop()
        assert again.application("otel-app-dev")["status"]["history"][-1]["revision"] == tip


class TestHealth:
    async def test_an_image_that_does_not_exist_degrades_until_it_does(
        self, argocd: ArgoCD, repo: Repo, client: httpx.AsyncClient, tmp_path: Path
    ) -> None:
        listener = Listener()
        registry = Registry(tmp_path / "registry", host=listener.host, accounts={"ci": "s"})
        await listener.start(registry.asgi)
        registry.publish("otel-app", "1.0.0")
        repo.commit({"env/dev/helm/values.yaml": values("2.0.0", repository=f"{listener.host}/otel-app")})
        await client.post(f"{DEV}/sync", json=SYNC)
        await until(lambda: argocd.application("otel-app-dev")["status"]["health"]["status"] == "Degraded")
        health = argocd.application("otel-app-dev")["status"]["health"]
        assert health["message"] == f'Back-off pulling image "{listener.host}/otel-app:2.0.0": not found'
        registry.publish("otel-app", "2.0.0", platforms=("linux/amd64", "linux/arm64"))
        assert (await argocd.refresh("otel-app-dev"))["status"]["health"]["status"] == "Healthy"
        registry.delete("otel-app", "2.0.0")
        assert (await argocd.refresh("otel-app-dev"))["status"]["health"]["status"] == "Healthy"
        await listener.stop()

    @pytest.mark.parametrize(
        ("faults", "expected"),
        [
            (ArgoFaults(degraded=("otel-app-dev",)), "Degraded"),
            (ArgoFaults(suspended=("otel-app-dev",)), "Suspended"),
            (ArgoFaults(progressing=("*",)), "Progressing"),
            (ArgoFaults(degraded=("otel-app-prod",)), "Healthy"),
        ],
        ids=["degraded", "suspended", "progressing", "another application"],
    )
    async def test_a_switch_changes_it_at_once(
        self, argocd: ArgoCD, faults: ArgoFaults, expected: str
    ) -> None:
        argocd.faults = faults
        await argocd.refresh("otel-app-dev")
        assert argocd.application("otel-app-dev")["status"]["health"]["status"] == expected
        argocd.faults = ArgoFaults()
        await until(lambda: argocd.application("otel-app-dev")["status"]["health"]["status"] == "Healthy")


class TestAutoSync:
    async def test_it_syncs_each_commit_once_by_itself(
        self, argocd: ArgoCD, repo: Repo, client: httpx.AsyncClient
    ) -> None:
        policy = '{"spec": {"syncPolicy": {"automated": {}}}}'
        await client.patch(DEV, json={"patch": policy, "patchType": "merge"})
        argocd.faults = ArgoFaults(sync_fails=("otel-app-dev",))
        repo.commit({"env/dev/helm/values.yaml": values("1.1.0")})
        await client.get(DEV, params={"refresh": "normal"})
        await until(lambda: phase(argocd.application("otel-app-dev")) == "Failed")
        operation = argocd.application("otel-app-dev")["status"]["operationState"]["operation"]
        assert operation["initiatedBy"] == {"automated": True}
        argocd.faults = ArgoFaults()
        await client.get(DEV, params={"refresh": "normal"})
        assert "operation" not in argocd.application("otel-app-dev")
        repo.commit({"env/dev/helm/values.yaml": values("1.2.0")})
        await client.get(DEV, params={"refresh": "normal"})
        await until(lambda: argocd.live("otel-app-dev")[0] == ["registry.example/otel-app:1.2.0"])

    async def test_it_can_be_switched_off_in_place(
        self, argocd: ArgoCD, repo: Repo, client: httpx.AsyncClient
    ) -> None:
        policy = '{"spec": {"syncPolicy": {"automated": {"enabled": false}}}}'
        await client.patch(DEV, json={"patch": policy, "patchType": "merge"})
        repo.commit({"env/dev/helm/values.yaml": values("1.1.0")})
        app = (await client.get(DEV, params={"refresh": "normal"})).json()
        assert app["status"]["sync"]["status"] == "OutOfSync"
        assert "operation" not in app


async def test_several_sources_have_several_revisions(
    argocd: ArgoCD, repo: Repo, client: httpx.AsyncClient
) -> None:
    kustomization = "images:\n  - name: web\n    newName: registry.example/web\n    newTag: {}\n"
    repo.commit({"web/kustomization.yaml": kustomization.format("1.0.0")})
    side = repo.commit({"extra/config.yaml": "a: 1\n"}, branch="side")
    spec = {
        "project": "acme",
        "destination": {"namespace": "web"},
        "sources": [
            {"repoURL": URL, "path": "web", "targetRevision": "main"},
            {"repoURL": URL, "path": "extra", "targetRevision": "side"},
        ],
    }
    await argocd.add_application({"metadata": {"name": "web"}, "spec": spec})
    tip = repo.commit({"web/kustomization.yaml": kustomization.format("1.1.0")})
    app = (await client.get("/api/v1/applications/web", params={"refresh": "hard", "project": "acme"})).json()
    assert app["status"]["sync"]["revisions"] == [tip, side]
    assert app["status"]["sync"]["status"] == "OutOfSync"
    body = {"name": "web", "revisions": [tip], "sourcePositions": ["1"], "project": "acme"}
    asked = await client.post("/api/v1/applications/web/sync", json=body)
    assert asked.json()["operation"]["sync"]["revisions"] == [tip, side]
    await until(lambda: argocd.live("web")[0] == ["registry.example/web:1.1.0"])
    outside = body | {"sourcePositions": ["3"]}
    await until(lambda: "operation" not in argocd.application("web"))
    refused = await client.post("/api/v1/applications/web/sync", json=outside)
    assert refused.json()["message"] == "source position is out of range"


async def test_overrides_in_the_source_count(argocd: ArgoCD, client: httpx.AsyncClient) -> None:
    helm = {"parameters": [{"name": "image.tag", "value": "9.9.9"}, {"name": "env.NEW", "value": "x"}]}
    spec = argocd.application("otel-app-dev")["spec"]
    changed = {**spec, "source": {**spec["source"], "helm": helm}}
    assert (await client.put(f"{DEV}/spec", json=changed, params={"project": "acme"})).json() == changed
    await client.post(f"{DEV}/sync", json=SYNC)
    await until(lambda: argocd.live("otel-app-dev")[0] == ["registry.example/otel-app:9.9.9"])
    assert argocd.live("otel-app-dev")[1]["NEW"] == "x"


async def test_applications_are_compared_in_intervals(tmp_path: Path, repo: Repo) -> None:
    argocd = ArgoCD(tmp_path / "loop", timing=Timing(interval=0.02))
    argocd.register_repository(URL, path=repo.path)
    argocd.create_project("acme")
    await argocd.create_application(NewApplication("app", project="acme", repo_url=URL, path="env/dev/helm"))
    await argocd.start()
    tip = repo.commit({"env/dev/helm/values.yaml": values("1.1.0")})
    await until(lambda: argocd.application("app")["status"]["sync"]["revision"] == tip)
    await argocd.stop()


async def test_two_refreshes_at_once_both_come_back(argocd: ArgoCD, client: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(client.get(DEV, params={"refresh": "hard"}) for _ in range(5)))
    assert {answer.status_code for answer in answers} == {200}


async def test_an_application_that_exists_or_cannot_be_read_is_not_created(argocd: ArgoCD) -> None:
    with pytest.raises(ValueError, match="there is an application otel-app-dev already"):
        await argocd.create_application(
            NewApplication("otel-app-dev", project="acme", repo_url=URL, path="x")
        )
    with pytest.raises(ValueError, match="references project other which does not exist"):
        await argocd.create_application(NewApplication("new", project="other", repo_url=URL, path="x"))
    assert argocd.applications() == ["otel-app-dev", "otel-app-prod"]
