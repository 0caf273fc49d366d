"""oci-download and oci-push on the sandbox's registry."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.adapters.git import GitMirror
from bot.adapters.oci import ProjectArtifacts, ProjectRegistries
from bot.domain.promotion import StepStatus
from bot.domain.review import EffectRecord, FrozenRecord
from bot.domain.values import Text, Unknown
from bot.ports import TerminalError
from bot.steps.contract import Config
from bot.steps.oci_download import OciDownload
from bot.steps.oci_push import OciPush
from tests.adapters.oci.registries import PASSWORD, USER, push_artifact, run_sandbox
from tests.steps.bench import Bench

LATER = Unknown("known after apply: tag")
KIND = "text/plain"


async def no_token(url: str) -> str | None:
    return None


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(GitMirror(tmp_path / "mirrors", no_token))


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[str]:
    async with run_sandbox(tmp_path) as running:
        yield running


async def _login(project: str, repository: str) -> tuple[str, str] | None:
    return (USER, PASSWORD) if project == "acme" else None


@pytest.fixture
async def artifacts(host: str) -> AsyncIterator[ProjectArtifacts]:
    async with ProjectRegistries(_login) as opened:
        yield ProjectArtifacts(opened)


async def test_a_layer_is_written_and_must_stay_what_it_was(
    bench: Bench, host: str, artifacts: ProjectArtifacts
) -> None:
    await push_artifact(host, "acme/files", "1", (KIND, b"one"))
    step = OciDownload(artifacts, bench.vault)
    config: Config = {"imageRef": f"{host}/acme/files:1", "outPath": "in/file.txt", "mediaType": KIND}
    result = await bench.preview(step, config)
    assert isinstance(result.record, FrozenRecord)
    assert await bench.tree.read_text("in/file.txt") == "one"
    bench.again()
    assert (await bench.fulfil(step, config)).status is StepStatus.SUCCEEDED
    bench.again()
    await push_artifact(host, "acme/files", "1", (KIND, b"two"))
    stopped = await bench.fulfil(step, config)
    assert stopped.stop is not None
    assert "holds other content than was approved" in stopped.stop.reason
    assert not bench.tree.exists("in/file.txt")


async def test_a_file_is_replaced_only_if_that_is_asked_for(
    bench: Bench, host: str, artifacts: ProjectArtifacts
) -> None:
    await push_artifact(host, "acme/files", "1", (KIND, b"one"))
    await bench.tree.write("x", b"mine")
    step = OciDownload(artifacts, bench.vault)
    config: Config = {"imageRef": f"{host}/acme/files:1", "outPath": "x"}
    assert "set allowOverwrite" in (await bench.preview(step, config)).message
    await bench.preview(step, {**config, "allowOverwrite": True})
    assert await bench.tree.read_text("x") == "one"


async def test_a_missing_layer_fails_and_an_unknown_reference_is_an_unknown_file(
    bench: Bench, host: str, artifacts: ProjectArtifacts
) -> None:
    await push_artifact(host, "acme/files", "1", (KIND, b"one"))
    step = OciDownload(artifacts, bench.vault)
    config: Config = {"imageRef": f"{host}/acme/files:1", "outPath": "x", "mediaType": "a/b"}
    assert "has no layer of the type a/b" in (await bench.preview(step, config)).message
    await bench.preview(step, {"imageRef": Text((f"{host}/acme/files:", LATER)), "outPath": "x"})
    text = await bench.tree.read_text("x")
    assert bench.tree.sentinels.read(text) == Unknown("known after step: oci-download")


async def test_a_push_is_shown_by_digest_and_made_of_what_was_shown(
    bench: Bench, host: str, artifacts: ProjectArtifacts
) -> None:
    digest = await push_artifact(host, "acme/app", "latest", (KIND, b"one"))
    step = OciPush(artifacts)
    config: Config = {
        "srcRef": f"{host}/acme/app:latest",
        "destRef": f"oci://{host}/prod/app:1.0.0",
        "annotations": {"by": "lockstep"},
    }
    shown = await bench.preview(step, config)
    assert isinstance(shown.record, EffectRecord)
    assert ("source digest", digest) in shown.record.details
    assert await (await artifacts.of("acme")).resolve(f"{host}/prod/app:1.0.0") is None
    assert (shown.output["image"], shown.output["tag"]) == (f"{host}/prod/app:1.0.0", "1.0.0")

    await push_artifact(host, "acme/app", "latest", (KIND, b"another"))
    bench.again()
    done = await bench.fulfil(step, config)
    assert done.output == shown.output
    assert await (await artifacts.of("acme")).resolve(f"{host}/prod/app:1.0.0") == shown.output["digest"]
    assert (await bench.fulfil(step, config)).output == shown.output


async def test_a_source_that_is_not_known_yet_is_a_hole(
    bench: Bench, host: str, artifacts: ProjectArtifacts
) -> None:
    config: Config = {"srcRef": Text((f"{host}/acme/app:", LATER)), "destRef": f"{host}/prod/app:1"}
    shown = await bench.preview(OciPush(artifacts), config)
    assert shown.output["digest"] == Unknown("known after step: oci-push.digest")
    with pytest.raises(TerminalError, match="where this writes is known only after"):
        await bench.preview(OciPush(artifacts), {**config, "destRef": LATER})


async def test_a_source_that_does_not_exist_fails_the_preview(
    bench: Bench, host: str, artifacts: ProjectArtifacts
) -> None:
    config: Config = {"srcRef": f"{host}/acme/app:gone", "destRef": f"{host}/prod/app:1"}
    with pytest.raises(TerminalError, match="does not exist, or may not be read"):
        await bench.preview(OciPush(artifacts), config)
