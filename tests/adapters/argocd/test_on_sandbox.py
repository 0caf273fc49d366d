"""What the port `ArgoCD` promises, on the sandbox's Argo CD over real HTTP."""

from __future__ import annotations

import asyncio
import dataclasses
import subprocess
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.adapters.argocd import ArgoCDServer, ArgoCDServers
from bot.domain.argocd import Application
from bot.domain.argocd_health import Done, GoneWrong, Memory, NotYet, Verdict, Wanted, judge
from bot.domain.values import Json
from bot.ports import SyncRefused, SyncStarted, TerminalError, TransientError
from bot.sandbox.argocd.argocd import ArgoCD as Sandbox
from bot.sandbox.argocd.controller import ArgoFaults, Timing
from bot.sandbox.argocd.objects import NewApplication
from bot.sandbox.serving import Listener

URL = "https://github.example/acme/ops"
QUICK = Timing(interval=60.0, queue=0.05, operation=0.2, stale=0.2, momentary=0.1, rollout=0.2, deadline=0.5)
KUSTOMIZATION = """images:
  - name: reg.example/otel
    newTag: "{tag}"
"""


@dataclass
class World:
    """The sandbox, our adapter on it, and a repository to release from."""

    sandbox: Sandbox
    argocd: ArgoCDServers
    work: Path
    bare: Path

    def release(self, tag: str) -> str:
        """Commit and push an image tag; gives the commit."""
        folder = self.work / "env" / "dev"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kustomization.yaml").write_text(KUSTOMIZATION.format(tag=tag))
        git(self.work, "add", "-A")
        git(self.work, "commit", "-q", "-m", f"release {tag}")
        git(self.work, "push", "-q", str(self.bare), "HEAD:refs/heads/main")
        return git(self.work, "rev-parse", "HEAD")

    async def get(self, refresh: str = "", name: str = "otel") -> Application:
        """The Application, which must be there."""
        found = await self.argocd.get_application("default", name, refresh=refresh)
        assert found is not None
        return found

    async def until(self, condition: Callable[[Application], bool]) -> Application:
        """Read until it is so; fails after ten seconds."""
        for _ in range(200):
            seen = await self.get()
            if condition(seen):
                return seen
            await asyncio.sleep(0.05)
        raise AssertionError(f"it never came to be: {seen}")


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    work, bare = tmp_path / "work", tmp_path / "ops.git"
    for folder in (work, bare):
        folder.mkdir()
    git(work, "init", "-q")
    git(bare, "init", "-q", "--bare")
    sandbox = Sandbox(tmp_path / "argocd", timing=QUICK)
    sandbox.create_project("shop", roles={"bot": ("get", "sync", "update"), "reader": ("get",)})
    sandbox.register_repository(URL, path=bare)
    listener = Listener()
    await listener.start(sandbox.asgi)
    servers = {
        "default": ArgoCDServer(listener.url, sandbox.create_role_token("shop", "bot"), project="shop"),
        "reader": ArgoCDServer(listener.url, sandbox.create_role_token("shop", "reader"), project="shop"),
        "forged": ArgoCDServer(listener.url, "eyJhbGciOiJIUzI1NiJ9.e30.x", project="shop"),
        "hasty": ArgoCDServer(
            listener.url, sandbox.create_role_token("shop", "bot"), project="shop", timeout=0.3
        ),
    }
    async with ArgoCDServers(servers) as argocd:
        made = World(sandbox, argocd, work, bare)
        made.release("1.0")
        await sandbox.create_application(
            NewApplication(
                "otel",
                project="shop",
                repo_url=URL,
                path="env/dev",
                target_revision="main",
                labels={"app": "otel"},
            )
        )
        await sandbox.start()
        yield made
        await sandbox.stop()
        await listener.stop()


async def test_an_application_is_read_whole(world: World) -> None:
    seen = await world.get()
    assert (seen.name, seen.project, seen.sync_status, seen.health) == ("otel", "shop", "Synced", "Healthy")
    assert [(item.repo_url, item.path, item.target_revision) for item in seen.sources] == [
        (URL, "env/dev", "main")
    ]
    assert seen.sources[0].revision == git(world.work, "rev-parse", "HEAD")
    assert seen.raw_sources == ({"repoURL": URL, "path": "env/dev", "targetRevision": "main"},)
    assert seen.url.endswith("/applications/argocd/otel")
    assert not seen.auto_sync


async def test_a_missing_application_is_none(world: World) -> None:
    assert await world.argocd.get_application("default", "nothing") is None
    assert await world.argocd.get_application("default", "nothing", refresh="hard") is None


async def test_a_refresh_shows_the_new_commit(world: World) -> None:
    commit = world.release("1.1")
    seen = await world.get(refresh="normal")
    assert seen.sources[0].revision == commit
    assert seen.sync_status == "OutOfSync"


async def test_applications_are_found_by_label(world: World) -> None:
    assert [item.name for item in await world.argocd.list_applications("default", "app=otel")] == ["otel"]
    assert await world.argocd.list_applications("default", "app!=otel") == ()


async def test_a_sync_carries_our_infos_and_ends_well(world: World) -> None:
    commit = world.release("1.1")
    seen = await world.get(refresh="hard")
    assert (
        await world.argocd.sync("default", seen, revision=commit, infos={"promotion": "p1"}) == SyncStarted()
    )
    done = await world.until(lambda app: app.operation is not None and app.operation.phase == "Succeeded")
    assert done.operation is not None
    assert done.operation.infos == {"promotion": "p1"}
    assert done.operation.revisions == (commit,)


async def test_asking_again_while_ours_runs_starts_no_second(world: World) -> None:
    seen = await world.get()
    assert await world.argocd.sync("default", seen, revision="", infos={"promotion": "p1"}) == SyncStarted()
    assert await world.argocd.sync("default", seen, revision="", infos={"promotion": "p1"}) == SyncStarted()
    refused = await world.argocd.sync("default", seen, revision="", infos={"promotion": "p2"})
    assert isinstance(refused, SyncRefused)
    assert refused.busy


async def test_a_closed_sync_window_is_a_refusal(world: World) -> None:
    world.sandbox.faults = ArgoFaults(blocked=("otel",))
    refused = await world.argocd.sync("default", await world.get(), revision="", infos={})
    assert isinstance(refused, SyncRefused)
    assert not refused.busy
    assert "sync window" in refused.message


async def test_an_application_that_is_being_deleted_refuses(world: World) -> None:
    seen = await world.get()
    world.sandbox.mark_deleting("otel")
    assert isinstance(await world.argocd.sync("default", seen, revision="", infos={}), SyncRefused)


async def test_with_auto_sync_no_revision_is_sent_that_would_be_refused(world: World) -> None:
    await world.sandbox.create_application(
        NewApplication(
            "auto", project="shop", repo_url=URL, path="env/dev", target_revision="main", auto_sync=True
        )
    )
    seen = await world.get(name="auto")
    assert seen.auto_sync
    assert seen.auto_prune
    commit = git(world.work, "rev-parse", "HEAD")
    assert (
        await world.argocd.sync("default", seen, revision=commit, infos={"promotion": "p1"}) == SyncStarted()
    )


async def test_a_slow_refresh_is_left_to_argo_cd(world: World) -> None:
    world.sandbox.faults = ArgoFaults(slow_refresh=5.0)
    assert (await world.get(refresh="hard")).name == "otel"
    hasty = await world.argocd.get_application("hasty", "otel", refresh="hard")
    assert hasty is not None


async def test_a_server_that_is_down_is_transient(world: World) -> None:
    world.sandbox.faults = ArgoFaults(down=True)
    with pytest.raises(TransientError, match="503"):
        await world.get()


async def test_a_token_without_the_right_is_told_what_it_needs(world: World) -> None:
    with pytest.raises(TerminalError, match="needs applications get and sync"):
        await world.argocd.sync("reader", await world.get(), revision="", infos={})


async def test_a_forged_token_is_told_apart(world: World) -> None:
    with pytest.raises(TerminalError, match="make a new token"):
        await world.argocd.get_application("forged", "otel")


async def test_an_unknown_server_names_those_that_are_known(world: World) -> None:
    with pytest.raises(TerminalError, match="known are: default, forged, hasty, reader"):
        await world.argocd.get_application("prod", "otel")


async def test_sources_are_replaced(world: World) -> None:
    seen = await world.get()
    wanted: Json = {"repoURL": URL, "path": "env/dev", "targetRevision": "release"}
    await world.argocd.patch_sources("default", seen, [wanted])
    assert (await world.get()).raw_sources == (wanted,)
    await world.argocd.patch_sources("default", seen, [wanted])
    with pytest.raises(TerminalError, match="has one source"):
        await world.argocd.patch_sources("default", seen, [wanted, wanted])


async def follow(world: World, wanted: Wanted) -> tuple[Verdict, list[str]]:
    """Look until the judgement is final; gives it with the reasons on the way."""
    memory, reasons = Memory(), list[str]()
    for _ in range(300):
        verdict = judge(await world.get(), wanted, now=datetime.now(UTC), memory=memory)
        if not isinstance(verdict, NotYet):
            return verdict, reasons
        memory = Memory(verdict.good_since, verdict.degraded_since)
        if not reasons or reasons[-1] != verdict.reason:
            reasons.append(verdict.reason)
        await asyncio.sleep(0.05)
    raise AssertionError(f"no end after: {reasons}")


async def test_a_release_is_done_only_when_it_is(world: World) -> None:
    commit = world.release("1.1")
    wanted = Wanted(datetime.now(UTC), URL, frozenset({commit}), settle=0.4)
    seen = await world.get(refresh="hard")
    await world.argocd.sync("default", seen, revision=commit, infos={"promotion": "p1"})
    verdict, reasons = await follow(world, wanted)
    assert verdict == Done(), reasons
    assert any("operation" in reason for reason in reasons), reasons
    assert world.sandbox.live("otel")[0] == ["reg.example/otel:1.1"]


async def test_a_failed_operation_ends_the_waiting(world: World) -> None:
    commit = world.release("1.1")
    world.sandbox.faults = dataclasses.replace(ArgoFaults(), sync_fails=("otel",))
    wanted = Wanted(datetime.now(UTC), URL, frozenset({commit}), settle=0.4)
    await world.argocd.sync("default", await world.get(refresh="hard"), revision=commit, infos={})
    verdict, _ = await follow(world, wanted)
    assert isinstance(verdict, GoneWrong)


async def test_a_degraded_release_goes_wrong_after_the_grace(world: World) -> None:
    commit = world.release("1.1")
    world.sandbox.faults = dataclasses.replace(ArgoFaults(), degraded=("otel",))
    wanted = Wanted(datetime.now(UTC), URL, frozenset({commit}), settle=0.4, grace=0.5)
    await world.argocd.sync("default", await world.get(refresh="hard"), revision=commit, infos={})
    verdict, _ = await follow(world, wanted)
    assert isinstance(verdict, GoneWrong)
    assert "Degraded" in verdict.reason
