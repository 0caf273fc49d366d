"""kustomize-build with the real kustomize."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.adapters.rendering import CommandRenderer
from bot.domain.promotion import StepStatus
from bot.domain.values import Text, Unknown, Value
from bot.ports import TerminalError
from bot.steps.contract import Config
from bot.steps.kustomize_build import KustomizeBuild
from tests.adapters.rendering_bed import make_renderer
from tests.steps.bench import Bench
from tests.steps.rendered import plain_bench, write

URL = Unknown("known after apply: url")


BASE = {
    "src/base/kustomization.yaml": "resources: [app.yaml]\n",
    "src/base/app.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n",
    "src/dev/kustomization.yaml": (
        "resources: [../base, ns.yaml]\nnamespace: dev\npatches: [{path: patch.yaml}]\n"
        "configMapGenerator: [{name: c, files: [conf=../shared/c.txt]}]\n"
        "generatorOptions: {disableNameSuffixHash: true}\n"
    ),
    "src/dev/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: dev}\n",
    "src/dev/patch.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n",
    "src/shared/c.txt": "shared\n",
    "src/unrelated/x.yaml": "a: b\n",
}
BUILD: Config = {"path": "src/dev", "outPath": "out"}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return plain_bench(tmp_path)


@pytest.fixture
def renderer(tmp_path: Path) -> CommandRenderer:
    return make_renderer(tmp_path / "rendering")


async def test_a_kustomization_is_built_into_a_file_from_what_it_names(
    bench: Bench, renderer: CommandRenderer
) -> None:
    await write(bench, BASE)
    result = await bench.preview(KustomizeBuild(renderer), {**BUILD, "outPath": "out/all.yaml"})
    assert result.status is StepStatus.SUCCEEDED, result.message
    text = await bench.tree.read_text("out/all.yaml")
    assert text.count("---\n") == 2
    assert "  namespace: dev\nspec:\n  replicas: 3\n" in text
    assert "conf: |\n    shared\n" in text
    reads = bench.reports[-1].reads
    assert {"src/base/app.yaml", "src/shared/c.txt", "src/dev/patch.yaml"} <= reads
    assert "src/unrelated/x.yaml" not in reads


@pytest.mark.parametrize(
    ("options", "names"),
    [
        pytest.param(
            {}, ["dev-configmap-c.yaml", "dev-deployment-web.yaml", "namespace-dev.yaml"], id="Kargo's"
        ),
        pytest.param(
            {"outputFormat": "kustomize"},
            ["apps_v1_deployment_web.yaml", "v1_configmap_c.yaml", "v1_namespace_dev.yaml"],
            id="Kustomize's",
        ),
    ],
)
async def test_a_directory_gets_a_file_per_resource(
    bench: Bench, renderer: CommandRenderer, options: dict[str, Value], names: list[str]
) -> None:
    await write(bench, BASE)
    await bench.preview(KustomizeBuild(renderer), {**BUILD, **options})
    assert bench.tree.list("out") == [f"out/{name}" for name in names]


async def test_an_unknown_value_in_a_base_is_a_hole(bench: Bench, renderer: CommandRenderer) -> None:
    await write(bench, {**BASE, "src/shared/c.txt": f"{bench.tree.sentinels.write(URL)}\n"})
    await bench.preview(KustomizeBuild(renderer), {**BUILD, "outPath": "o.yaml"})
    text = bench.tree.sentinels.read(await bench.tree.read_text("o.yaml"))
    assert isinstance(text, Text)
    assert URL in text.parts


@pytest.mark.parametrize(
    ("files", "said"),
    [
        pytest.param(
            {"src/dev/kustomization.yaml": "resources: [gone.yaml]\n"}, "gone.yaml", id="a missing file"
        ),
        pytest.param(
            {"src/dev/kustomization.yaml": "resources: [/etc/passwd]\n"},
            "/etc/passwd",
            id="a file of the machine",
        ),
    ],
)
async def test_a_kustomization_that_cannot_be_built_fails_with_its_own_words(
    bench: Bench, renderer: CommandRenderer, files: dict[str, str], said: str
) -> None:
    await write(bench, files)
    result = await bench.preview(KustomizeBuild(renderer), BUILD)
    assert result.status is StepStatus.FAILED
    assert said in result.message
    assert bench.tree.list("out") == []


@pytest.mark.parametrize(
    ("files", "said"),
    [
        pytest.param({}, "'src/dev' holds none of kustomization.yaml", id="no kustomization"),
        pytest.param(
            {"src/dev/kustomization.yaml": "resources: ['https://g.example/r?ref=--upload-pack=x']\n"},
            "the ref of an option",
            id="a ref that git would take for an option",
        ),
    ],
)
async def test_a_kustomization_is_refused(
    bench: Bench, renderer: CommandRenderer, files: dict[str, str], said: str
) -> None:
    await write(bench, files)
    with pytest.raises(TerminalError, match=said):
        await bench.preview(KustomizeBuild(renderer), BUILD)
