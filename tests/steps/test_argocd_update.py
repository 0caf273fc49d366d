"""argocd-update: who may, what is asked, and when it is done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.argocd import Operation
from bot.domain.promotion import StepStatus
from bot.domain.review import EffectRecord
from bot.domain.values import Json, Unknown, Value
from bot.ports import SyncRefused, TerminalError
from bot.steps.argocd_update import ArgoCDUpdate
from bot.steps.contract import Config, StepResult
from bot.steps.git_clone import GitClone
from bot.steps.git_commit import GitCommit
from bot.steps.git_push import GitPush
from bot.steps.yaml_update import YamlUpdate
from tests.adapters.git_server import commit_files
from tests.steps.bench import Bench

ALLOWED = {"kargo.akuity.io/authorized-stage": "acme:dev, acme:staging"}


def sync(bench: Bench, **source: Value) -> Config:
    sources: list[Value] = [{"repoURL": bench.url, **source}] if source else []
    app: Value = {"name": "otel-dev", "sources": sources}
    return {"apps": [app]}


@pytest.fixture
def step(bench: Bench) -> ArgoCDUpdate:
    bench.argocd.add("otel-dev", bench.url, ALLOWED)
    return ArgoCDUpdate(bench.argocd, bench.git)


async def push(bench: Bench) -> str:
    """Release a new tag; gives the commit."""
    checkout: Value = {"path": "src", "branch": "main"}
    item: Value = {"key": "image.tag", "value": "1.2.3"}
    await bench.fulfil(GitClone(bench.git), {"repoURL": bench.url, "checkout": [checkout]})
    await bench.fulfil(YamlUpdate(), {"path": "src/env/dev/values.yaml", "updates": [item]})
    await bench.fulfil(GitCommit(bench.git), {"path": "src", "message": "Release"})
    pushed = await bench.fulfil(GitPush(bench.git), {"path": "src"})
    commit = pushed.output["commit"]
    assert isinstance(commit, str)
    bench.argocd.head = commit
    return commit


async def settle(bench: Bench, step: ArgoCDUpdate, config: Config, *, passes: int = 60) -> StepResult:
    """Look again whenever it asks to, as the engine does."""
    for _ in range(passes):
        result = await bench.fulfil(step, config)
        if result.status is not StepStatus.RUNNING:
            return result
        assert result.retry_after is not None
        bench.wait(result.retry_after)
    raise AssertionError(f"never done: {result.message}")


async def test_a_preview_shows_applications_and_changes_nothing(bench: Bench, step: ArgoCDUpdate) -> None:
    result = await bench.preview(step, sync(bench, desiredRevision=Unknown("known after merge: commit")))
    record = result.record
    assert isinstance(record, EffectRecord)
    assert (record.title, record.address, record.quiet) == ("sync otel-dev", "Argo CD default", True)
    assert ("revision", Unknown("known after merge: commit")) in record.details
    assert bench.argocd.syncs == []


async def test_changing_a_source_is_not_quiet(bench: Bench, step: ArgoCDUpdate) -> None:
    config = sync(bench, desiredRevision="v1", updateTargetRevision=True)
    result = await bench.preview(step, config)
    assert isinstance(result.record, EffectRecord)
    assert not result.record.quiet


async def test_an_image_that_is_not_known_yet_is_shown(bench: Bench, step: ArgoCDUpdate) -> None:
    tag = Unknown("known after apply: tag")
    images: Value = [{"repoURL": "ghcr.io/acme/app", "tag": tag}]
    result = await bench.preview(step, sync(bench, kustomize={"images": images}))
    assert isinstance(result.record, EffectRecord)
    assert ("image ghcr.io/acme/app", tag) in result.record.details
    with pytest.raises(TerminalError, match="not known"):
        await bench.fulfil(step, sync(bench, kustomize={"images": images}))


async def test_an_application_that_does_not_allow_the_stage_fails_the_preview(bench: Bench) -> None:
    bench.argocd.add("otel-dev", bench.url, {"kargo.akuity.io/authorized-stage": "acme:prod"})
    step = ArgoCDUpdate(bench.argocd, bench.git)
    result = await bench.preview(step, sync(bench))
    assert result.status is StepStatus.FAILED
    assert 'kargo.akuity.io/authorized-stage: "acme:dev"' in result.message
    assert (await bench.fulfil(step, sync(bench))).status is StepStatus.FAILED
    assert bench.argocd.syncs == []


async def test_it_waits_for_our_revision_and_the_settle_time(bench: Bench, step: ArgoCDUpdate) -> None:
    commit = await push(bench)
    config = sync(bench, desiredRevision=commit)
    asked = await bench.fulfil(step, config)
    assert asked.status is StepStatus.RUNNING
    assert [(name, revision) for name, revision, _ in bench.argocd.syncs] == [("otel-dev", commit)]
    start = bench.now
    result = await settle(bench, step, config)
    assert result.output == {"apps": [{"name": "otel-dev", "namespace": "argocd"}]}
    assert (bench.now - start).total_seconds() >= bench.policy.argocd_settle
    assert len(bench.argocd.syncs) == 1


async def test_the_revision_follows_from_the_push_where_none_is_named(
    bench: Bench, step: ArgoCDUpdate
) -> None:
    commit = await push(bench)
    await bench.fulfil(step, sync(bench))
    assert bench.argocd.syncs[0][1] == commit


async def test_a_newer_commit_that_leaves_our_paths_counts(
    bench: Bench, step: ArgoCDUpdate, repository: Path
) -> None:
    commit = await push(bench)
    bench.argocd.head = commit_files(repository, "main", {"env/staging/values.yaml": "a: 1\n"})
    result = await settle(bench, step, sync(bench, desiredRevision=commit))
    assert result.status is StepStatus.SUCCEEDED


async def test_a_newer_commit_with_other_values_does_not(
    bench: Bench, step: ArgoCDUpdate, repository: Path
) -> None:
    bench.policy = replace(bench.policy, argocd_timeout=60.0)
    commit = await push(bench)
    bench.argocd.head = commit_files(repository, "main", {"env/dev/values.yaml": "image: {tag: 9}\n"})
    result = await settle(bench, step, sync(bench, desiredRevision=commit), passes=500)
    assert result.status is StepStatus.FAILED
    assert "not done within 60 s" in result.message
    assert "still sees revision" in result.message


async def test_an_older_revision_is_waited_out(bench: Bench, step: ArgoCDUpdate) -> None:
    commit = await push(bench)
    bench.argocd.head = "0" * 40
    config = sync(bench, desiredRevision=commit)
    await bench.fulfil(step, config)
    bench.wait(30)
    assert (await bench.fulfil(step, config)).status is StepStatus.RUNNING
    bench.argocd.head = commit
    assert (await settle(bench, step, config)).status is StepStatus.SUCCEEDED


async def test_a_second_run_adopts_the_operation(bench: Bench, step: ArgoCDUpdate) -> None:
    commit = await push(bench)
    config = sync(bench, desiredRevision=commit)
    await bench.fulfil(step, config)
    # The process dies before the answer is journaled.
    bench.journal["argocd-update"] = replace(bench.journal["argocd-update"], detail={}, finished_at=None)
    assert (await settle(bench, step, config)).status is StepStatus.SUCCEEDED
    assert len(bench.argocd.syncs) == 1


async def test_a_new_attempt_syncs_again(bench: Bench, step: ArgoCDUpdate) -> None:
    commit = await push(bench)
    config = sync(bench, desiredRevision=commit)
    await settle(bench, step, config)
    bench.attempt = 2
    await settle(bench, step, config)
    assert len(bench.argocd.syncs) == 2


async def test_an_operation_of_others_is_waited_for(bench: Bench, step: ArgoCDUpdate) -> None:
    commit = await push(bench)
    app = bench.argocd.apps["otel-dev"]
    bench.argocd.apps["otel-dev"] = replace(app, operation=Operation("Running"))
    waiting = await bench.fulfil(step, sync(bench, desiredRevision=commit))
    assert "another sync operation is running" in waiting.message
    assert bench.argocd.syncs == []
    bench.wait(5)
    assert (await settle(bench, step, sync(bench, desiredRevision=commit))).status is StepStatus.SUCCEEDED


async def test_a_refusal_is_shown_until_the_time_is_up(bench: Bench, step: ArgoCDUpdate) -> None:
    await push(bench)
    bench.argocd.refuse = SyncRefused("blocked by sync window")
    result = await settle(bench, step, sync(bench), passes=100)
    assert result.status is StepStatus.FAILED
    assert "blocked by sync window" in result.message


async def test_lasting_bad_health_fails(bench: Bench, step: ArgoCDUpdate) -> None:
    await push(bench)
    bench.argocd.sick = True
    result = await settle(bench, step, sync(bench), passes=100)
    assert result.status is StepStatus.FAILED
    assert "Degraded" in result.message


async def test_sources_are_patched_once_with_kargos_meaning(bench: Bench) -> None:
    helm: dict[str, Json] = {"parameters": [{"name": "a", "value": "1"}, {"name": "tag", "value": "old"}]}
    bench.argocd.add("otel-dev", bench.url, ALLOWED, {"helm": helm})
    step = ArgoCDUpdate(bench.argocd, bench.git)
    commit = await push(bench)
    images: Value = [{"repoURL": "ghcr.io/acme/app", "newName": "mirror/app", "tag": "1.2.3"}]
    parameters: Value = [{"key": "tag", "value": "1.2.3"}, {"key": "new", "value": True}]
    config = sync(
        bench,
        desiredRevision=commit,
        updateTargetRevision=True,
        kustomize={"images": images},
        helm={"images": parameters},
    )
    await settle(bench, step, config)
    ((_, sources),) = bench.argocd.patched
    assert sources == [
        {
            "repoURL": bench.url,
            "path": "helm",
            "targetRevision": commit,
            "kustomize": {"images": ["ghcr.io/acme/app=mirror/app:1.2.3"]},
            "helm": {
                "parameters": [
                    {"name": "a", "value": "1"},
                    {"name": "tag", "value": "1.2.3"},
                    {"name": "new", "value": "true"},
                ]
            },
        }
    ]


async def test_a_source_that_the_application_does_not_have_is_refused(
    bench: Bench, step: ArgoCDUpdate
) -> None:
    config: Config = {"apps": [{"name": "otel-dev", "sources": [{"repoURL": "https://elsewhere.example/x"}]}]}
    with pytest.raises(TerminalError, match=r"has no source https://elsewhere\.example/x"):
        await bench.preview(step, config)


async def test_a_missing_application_is_waited_for(bench: Bench) -> None:
    step = ArgoCDUpdate(bench.argocd, bench.git)
    assert (await bench.preview(step, sync(bench))).status is StepStatus.SUCCEEDED
    waiting = await bench.fulfil(step, sync(bench))
    assert waiting.status is StepStatus.RUNNING
    assert "otel-dev does not exist" in waiting.message


async def test_applications_are_found_by_labels(bench: Bench, step: ArgoCDUpdate) -> None:
    await push(bench)
    selector: Value = {"matchLabels": {"app": "otel-dev"}}
    await settle(bench, step, {"apps": [{"selector": selector}]})
    assert [name for name, _, _ in bench.argocd.syncs] == ["otel-dev"]
