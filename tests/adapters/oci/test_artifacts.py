"""What the port `Artifacts` promises, on the sandbox's registry and on Debian's real one."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from bot.adapters.oci import OciArtifacts, OciRegistries
from bot.ports import TerminalError
from bot.ports.artifacts import Copy
from tests.adapters.oci.registries import (
    PASSWORD,
    USER,
    digest_of,
    push_artifact,
    push_image,
    push_index,
    run_distribution,
    run_sandbox,
)

RUNNERS = {"sandbox": run_sandbox, "docker-registry": run_distribution}
CHART = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
TEXT = "text/plain"


@pytest.fixture(params=sorted(RUNNERS))
async def host(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    async with RUNNERS[request.param](tmp_path) as running:
        yield running


async def _login(repository: str) -> tuple[str, str]:
    return USER, PASSWORD


async def _login_outside_prod(repository: str) -> tuple[str, str] | None:
    return None if "prod" in repository else (USER, PASSWORD)


@pytest.fixture
async def registries(host: str) -> AsyncIterator[OciRegistries]:
    async with OciRegistries(_login) as opened:
        yield opened


@pytest.fixture
def artifacts(registries: OciRegistries) -> OciArtifacts:
    return OciArtifacts(registries)


async def test_layers_are_read_by_media_type(host: str, artifacts: OciArtifacts) -> None:
    digest = await push_artifact(host, "acme/files", "1.0.0", (TEXT, b"notes"), (CHART, b"the chart"))
    for reference in (f"{host}/acme/files:1.0.0", f"oci://{host}/acme/files@{digest}"):
        first = await artifacts.download(reference)
        assert first is not None
        assert (first.data, first.media_type, first.digest) == (b"notes", TEXT, digest_of(b"notes"))
        chart = await artifacts.download(reference, media_type=CHART)
        assert chart is not None
        assert chart.data == b"the chart"
        assert await artifacts.download(reference, media_type="application/x") is None


async def test_a_reference_is_resolved(host: str, artifacts: OciArtifacts) -> None:
    digest = await push_image(host, "acme/app", "1.0.0")
    assert await artifacts.resolve(f"{host}/acme/app:1.0.0") == digest
    assert await artifacts.resolve(f"{host}/acme/app:2.0.0") is None
    with pytest.raises(TerminalError, match="does not exist, or may not be read"):
        await artifacts.download(f"{host}/acme/app:2.0.0")


@pytest.mark.parametrize(
    "reference", ["app", "h.example/app", "h.example:5000/app", "h.example/a@sha256:1", "h/a:"]
)
async def test_what_names_no_artifact_is_refused(artifacts: OciArtifacts, reference: str) -> None:
    with pytest.raises(TerminalError, match=r"names no (artifact|image repository)"):
        await artifacts.resolve(reference)


async def test_a_retag_keeps_the_digest(host: str, artifacts: OciArtifacts) -> None:
    digest = await push_artifact(host, "acme/app", "1.0.0", (TEXT, b"layer"))
    copy = Copy(f"{host}/acme/app@{digest}", f"{host}/acme/app:stable")
    assert await artifacts.foresee(copy) == digest
    assert await artifacts.resolve(f"{host}/acme/app:stable") is None
    assert await artifacts.copy(copy) == digest
    assert await artifacts.copy(copy) == digest
    assert await artifacts.resolve(f"{host}/acme/app:stable") == digest


async def test_a_copy_to_another_repository_takes_every_layer(host: str, artifacts: OciArtifacts) -> None:
    digest = await push_artifact(host, "acme/app", "1.0.0", (TEXT, b"layer"), (CHART, b"x" * 300_000))
    copy = Copy(f"{host}/acme/app@{digest}", f"{host}/prod/app:1.0.0")
    assert await artifacts.copy(copy) == digest
    layer = await artifacts.download(f"{host}/prod/app:1.0.0", media_type=CHART)
    assert layer is not None
    assert layer.data == b"x" * 300_000


async def test_annotations_make_another_digest_that_is_known_before(
    host: str, artifacts: OciArtifacts, registries: OciRegistries
) -> None:
    digest = await push_image(host, "acme/app", "1.0.0", annotations={"kept": "as it was", "old": "1"})
    copy = Copy(
        f"{host}/acme/app@{digest}",
        f"{host}/acme/app:noted",
        {"by": "lockstep", "manifest:old": "2", "index:nobody": "x"},
    )
    foreseen = await artifacts.foresee(copy)
    assert foreseen != digest
    assert await artifacts.copy(copy) == foreseen
    facts = await registries.find_image(f"{host}/acme/app", "noted")
    assert facts is not None
    assert dict(facts.annotations) == {"kept": "as it was", "old": "2", "by": "lockstep"}


async def test_an_index_is_copied_with_its_images_and_annotated_in_both_places(
    host: str, artifacts: OciArtifacts, registries: OciRegistries
) -> None:
    children = {}
    for architecture in ("amd64", "arm64"):
        digest = await push_image(
            host, "acme/multi", "", platform=("linux", architecture, ""), labels={"on": architecture}
        )
        children[digest] = {"os": "linux", "architecture": architecture}
    index = await push_index(host, "acme/multi", "1.0.0", children)
    plain = Copy(f"{host}/acme/multi@{index}", f"{host}/prod/multi:1.0.0")
    assert await artifacts.copy(plain) == index
    noted = Copy(plain.source, f"{host}/prod/multi:noted", {"index:top": "1", "below": "2"})
    assert await artifacts.copy(noted) == await artifacts.foresee(noted)
    facts = await registries.find_image(f"{host}/prod/multi", "noted")
    assert facts is not None
    assert (dict(facts.annotations), set(facts.platforms)) == ({"top": "1"}, {"linux/amd64", "linux/arm64"})


async def test_what_skopeo_reads_is_what_was_copied(host: str, artifacts: OciArtifacts) -> None:
    program = shutil.which("skopeo")
    assert program, "the Debian package skopeo is missing: apt-get install -y skopeo"
    digest = await push_image(host, "acme/app", "1.0.0")
    await artifacts.copy(Copy(f"{host}/acme/app@{digest}", f"{host}/prod/app:1", {"by": "lockstep"}))
    credentials = f"{USER}:{PASSWORD}"
    asked = [program, "inspect", "--raw", "--tls-verify=false", "--creds", credentials]
    process = await asyncio.create_subprocess_exec(
        *asked, f"docker://{host}/prod/app:1", stdout=asyncio.subprocess.PIPE
    )
    seen, _ = await process.communicate()
    assert digest_of(seen) == await artifacts.resolve(f"{host}/prod/app:1")


async def test_between_registries_the_layers_travel(tmp_path: Path) -> None:
    for name in ("from", "to"):
        (tmp_path / name).mkdir()
    async with (
        run_sandbox(tmp_path / "from") as source,
        run_distribution(tmp_path / "to") as destination,
        OciRegistries(_login) as opened,
    ):
        digest = await push_artifact(source, "acme/app", "1", (TEXT, b"x" * 1_000_000))
        copy = Copy(f"{source}/acme/app@{digest}", f"{destination}/prod/app:1")
        assert await OciArtifacts(opened).copy(copy) == digest
        layer = await OciArtifacts(opened).download(copy.destination)
        assert layer is not None
        assert layer.data == b"x" * 1_000_000


async def test_who_may_not_push_is_told_so(tmp_path: Path) -> None:
    async with run_distribution(tmp_path) as host:
        digest = await push_artifact(host, "acme/app", "1", (TEXT, b"layer"))
        async with OciRegistries(_login_outside_prod) as opened:
            with pytest.raises(TerminalError, match="wants a user and password for prod/app"):
                await OciArtifacts(opened).copy(Copy(f"{host}/acme/app@{digest}", f"{host}/prod/app:1"))
        assert httpx.get(f"http://{host}/v2/prod/app/tags/list", auth=(USER, PASSWORD)).status_code == 404
