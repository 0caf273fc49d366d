"""helm-template and helm-update-chart, with a strict stand-in for helm."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.adapters.rendering import CommandRenderer
from bot.domain.promotion import StepStatus
from bot.domain.review import FrozenRecord
from bot.domain.values import Sensitive, Text, Unknown, Value
from bot.ports import TerminalError
from bot.steps.contract import Config
from bot.steps.helm_template import HelmTemplate
from bot.steps.helm_update_chart import HelmUpdateChart
from tests.adapters.rendering_bed import make_renderer
from tests.steps.bench import Bench
from tests.steps.rendered import plain_bench, write

URL = Unknown("known after apply: url")
SERVICE = "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ release }}\n"
DEPLOYMENT = (
    "apiVersion: apps.example.com/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: {{ namespace }}\n"
    "spec:\n  tag: {{ set.tag }}\n"
)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return plain_bench(tmp_path)


@pytest.fixture
def renderer(tmp_path: Path) -> CommandRenderer:
    return make_renderer(tmp_path / "rendering")


async def chart(bench: Bench, **templates: str) -> None:
    files = {"src/chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n"}
    await write(bench, files | {f"src/chart/templates/{name}.yaml": text for name, text in templates.items()})


def rendering(**more: Value) -> Config:
    return {"path": "src/chart", "outPath": "out", "releaseName": "shop", **more}


def setting(key: str, value: Value, *, literal: bool = False) -> Value:
    return [{"key": key, "value": value, "literal": literal}]


# -- helm-template: where the manifests go -----------------------------------------------------------------------


async def test_a_file_gets_all_manifests(bench: Bench, renderer: CommandRenderer) -> None:
    await chart(bench, a=SERVICE, b=DEPLOYMENT)
    config = rendering(outPath="out/all.yaml", setValues=setting("tag", "1.2.3"))
    assert (await bench.preview(HelmTemplate(renderer), config)).status is StepStatus.SUCCEEDED
    text = await bench.tree.read_text("out/all.yaml")
    assert "name: shop\n" in text
    assert "namespace: acme\nspec:\n  tag: 1.2.3\n" in text
    assert text.endswith("1.2.3\n")


@pytest.mark.parametrize(
    ("options", "paths"),
    [
        pytest.param({}, ["out/web/templates/a.yaml", "out/web/templates/b.yaml"], id="by chart"),
        pytest.param(
            {"useReleaseName": True},
            ["out/shop/web/templates/a.yaml", "out/shop/web/templates/b.yaml"],
            id="by release",
        ),
        pytest.param(
            {"outLayout": "flat"},
            ["out/apps_example_com-deployment-acme-web.yaml", "out/service-shop.yaml"],
            id="flat",
        ),
    ],
)
async def test_a_directory_gets_a_file_each(
    bench: Bench, renderer: CommandRenderer, options: dict[str, Value], paths: list[str]
) -> None:
    await chart(bench, a=SERVICE, b=DEPLOYMENT)
    await bench.preview(HelmTemplate(renderer), rendering(setValues=setting("tag", "1"), **options))
    assert bench.tree.list("out") == paths


async def test_manifests_of_one_name_are_not_lost_in_the_flat_layout(
    bench: Bench, renderer: CommandRenderer
) -> None:
    await chart(bench, a=SERVICE, b=SERVICE)
    with pytest.raises(TerminalError, match=r"two manifests would be written to 'service-shop\.yaml'"):
        await bench.preview(HelmTemplate(renderer), rendering(outLayout="flat"))


async def test_every_option_reaches_helm(bench: Bench, renderer: CommandRenderer) -> None:
    options = (
        "include_crds",
        "no_hooks",
        "skip_tests",
        "kube_version",
        "api_versions",
        "namespace",
        "values.size",
        "set.tag",
    )
    await chart(bench, a="\n".join(f"{name}: '{{{{ {name} }}}}'" for name in options))
    await write(bench, {"src/big.yaml": "size: big\n"})
    config = rendering(
        outPath="o.yml",
        includeCRDs=True,
        disableHooks=True,
        skipTests=True,
        kubeVersion="1.30.0",
        apiVersions=["a/v1", "b/v1"],
        namespace="elsewhere",
        valuesFiles=["src/big.yaml", "src/none.yaml"],
        ignoreMissingValueFiles=True,
        setValues=setting("tag", "a,b=c", literal=True),
    )
    await bench.preview(HelmTemplate(renderer), config)
    assert (await bench.tree.read_text("o.yml")).splitlines()[2:] == [
        "include_crds: 'True'",
        "no_hooks: 'True'",
        "skip_tests: 'True'",
        "kube_version: '1.30.0'",
        "api_versions: '['a/v1', 'b/v1']'",
        "namespace: 'elsewhere'",
        "values.size: 'big'",
        "set.tag: 'a,b=c'",
    ]


async def test_only_what_the_chart_lives_on_is_read(bench: Bench, renderer: CommandRenderer) -> None:
    await chart(bench, a=SERVICE)
    await write(
        bench,
        {
            "src/chart/Chart.yaml": "name: web\ndependencies: [{name: lib, repository: 'file://../lib'}]\n",
            "src/lib/Chart.yaml": "name: lib\n",
            "src/other/file.txt": "nobody's",
        },
    )
    await bench.preview(HelmTemplate(renderer), rendering())
    reads = bench.reports[-1].reads
    assert {"src/chart/Chart.yaml", "src/lib/Chart.yaml"} <= reads
    assert "src/other/file.txt" not in reads


# -- helm-template: what it refuses ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "config", "said"),
    [
        pytest.param("a: {{ random }}", {}, "not reproducible: out/web/templates/a.yaml", id="random values"),
        pytest.param("a: b", {"releaseName": "--post-renderer=x"}, "invalid release name", id="an option"),
    ],
)
async def test_what_cannot_be_reviewed_fails(
    bench: Bench, renderer: CommandRenderer, template: str, config: dict[str, Value], said: str
) -> None:
    await chart(bench, a=template)
    result = await bench.preview(HelmTemplate(renderer), rendering(**config))
    assert result.status is StepStatus.FAILED
    assert said in result.message
    assert bench.tree.list("out") == []


async def test_a_missing_values_file_is_named(bench: Bench, renderer: CommandRenderer) -> None:
    await chart(bench, a="a: b")
    with pytest.raises(TerminalError, match=r"values file 'src/none.yaml' does not exist"):
        await bench.preview(HelmTemplate(renderer), rendering(valuesFiles=["src/none.yaml"]))


async def test_a_directory_without_chart_is_none(bench: Bench, renderer: CommandRenderer) -> None:
    with pytest.raises(TerminalError, match=r"'src/chart' holds no Chart\.yaml"):
        await bench.preview(HelmTemplate(renderer), rendering())


async def test_a_secret_reaches_no_manifest(bench: Bench, renderer: CommandRenderer) -> None:
    await chart(bench, a=DEPLOYMENT)
    with pytest.raises(TerminalError, match="sensitive value token"):
        await bench.preview(
            HelmTemplate(renderer), rendering(setValues=setting("tag", Sensitive("token", "hunter2")))
        )


# -- helm-template: what is not known yet ------------------------------------------------------------------------


async def test_an_unknown_setting_is_a_hole_where_it_is_used(bench: Bench, renderer: CommandRenderer) -> None:
    await chart(bench, a="url: {{ set.url }}\nhash: {{ base64 set.url }} # of it\nsame: 1\n")
    url = Text(("https://", URL, "/x"))
    await bench.preview(HelmTemplate(renderer), rendering(outPath="o.yaml", setValues=setting("url", url)))
    lines = (await bench.tree.read_text("o.yaml")).splitlines()[2:]
    assert [bench.tree.sentinels.read(line) for line in lines] == [
        Text(("url: https://", URL, "/x")),
        Text(("hash: ", Unknown("known after step: helm-template"), " # of it")),
        "same: 1",
    ]


async def test_a_file_whose_length_depends_on_an_unknown_is_unknown(
    bench: Bench, renderer: CommandRenderer
) -> None:
    await chart(bench, a="{{ repeat set.url }}")
    await bench.preview(HelmTemplate(renderer), rendering(outPath="o.yaml", setValues=setting("url", URL)))
    text = await bench.tree.read_text("o.yaml")
    assert bench.tree.sentinels.read(text) == Unknown("known after step: helm-template")


async def test_a_values_file_with_an_unknown_leaves_a_hole(bench: Bench, renderer: CommandRenderer) -> None:
    await chart(bench, a="url: {{ values.url }}")
    await write(bench, {"v.yaml": f"url: {bench.tree.sentinels.write(URL)}\n"})
    await bench.preview(HelmTemplate(renderer), rendering(outPath="o.yaml", valuesFiles=["v.yaml"]))
    line = (await bench.tree.read_text("o.yaml")).splitlines()[-1]
    assert bench.tree.sentinels.read(line) == Text(("url: ", URL))


# -- helm-update-chart -------------------------------------------------------------------------------------------

REPOSITORY = "https://charts.example"
CHART = (
    "apiVersion: v2\nname: web # the shop\ndependencies:\n"
    "- repository: https://charts.example\n  name: cache\n  version: 1.0.0 # pinned\n"
)


def updating(version: Value, name: str = "cache") -> Config:
    return {"path": "src/chart", "charts": [{"repository": REPOSITORY, "name": name, "version": version}]}


async def update_chart(bench: Bench, step: HelmUpdateChart, version: Value) -> str:
    await write(bench, {"src/chart/Chart.yaml": CHART})
    result = await bench.preview(step, updating(version))
    assert result.status is StepStatus.SUCCEEDED, result.message
    return str(result.output.get("commitMessage", ""))


async def test_a_dependency_is_set_locked_and_fetched(bench: Bench, renderer: CommandRenderer) -> None:
    step = HelmUpdateChart(renderer, bench.vault)
    message = await update_chart(bench, step, "1.1.0")
    assert message == "Updated chart dependencies for src/chart\n\n- cache: 1.1.0"
    assert await bench.tree.read_text("src/chart/Chart.yaml") == CHART.replace("1.0.0 #", "1.1.0 #")
    assert bench.tree.list("src/chart/charts") == ["src/chart/charts/cache-1.1.0.tgz"]
    lock = await bench.tree.read_text("src/chart/Chart.lock")
    assert 'generated: "2026-03-04T05:06:07Z"' in lock
    assert isinstance(bench.reports[-1].record, FrozenRecord)

    await write(bench, {"src/chart/charts/mine/Chart.yaml": "name: mine\n"})
    result = await bench.preview(step, updating("1.2.0"))
    assert str(result.output["commitMessage"]).endswith("- cache: 1.1.0 -> 1.2.0")
    assert bench.tree.list("src/chart/charts") == [
        "src/chart/charts/cache-1.2.0.tgz",
        "src/chart/charts/mine/Chart.yaml",
    ]


async def test_nothing_new_leaves_every_byte(bench: Bench, renderer: CommandRenderer) -> None:
    step = HelmUpdateChart(renderer, bench.vault)
    await update_chart(bench, step, "1.1.0")
    lock = (await bench.tree.read_text("src/chart/Chart.lock")).replace("2026-03-04", "2020-01-01")
    await write(bench, {"src/chart/Chart.lock": lock})
    result = await bench.preview(step, updating("1.1.0"))
    assert result.output == {}
    assert await bench.tree.read_text("src/chart/Chart.lock") == lock
    assert bench.reports[-1].changes == ()


async def test_ranges_are_resolved_without_charts(bench: Bench, renderer: CommandRenderer) -> None:
    await write(bench, {"src/chart/Chart.yaml": CHART.replace("1.0.0 #", "^1.0.0 #")})
    result = await bench.preview(HelmUpdateChart(renderer, bench.vault), {"path": "src/chart"})
    assert str(result.output["commitMessage"]).endswith("- cache: 1.4.2")


async def test_other_dependencies_than_approved_stop_the_walk(
    bench: Bench, renderer: CommandRenderer
) -> None:
    step = HelmUpdateChart(renderer, bench.vault)
    await write(bench, {"src/chart/Chart.yaml": CHART})
    await bench.preview(step, updating("1.1.0"))
    bench.again()
    await write(bench, {"src/chart/Chart.yaml": CHART})
    assert (await bench.fulfil(step, updating("1.1.0"))).status is StepStatus.SUCCEEDED
    bench.again()
    await write(bench, {"src/chart/Chart.yaml": CHART})
    result = await bench.fulfil(step, updating("1.2.0"))
    assert result.stop is not None
    assert "are others than were approved" in result.stop.reason


@pytest.mark.parametrize(
    ("config", "said"),
    [
        pytest.param(
            updating("1.1.0", "cash"), "has no dependency 'cash' of https://charts.example", id="no such"
        ),
        pytest.param(updating("9.9.9"), "no chart version found for 9.9.9", id="no such version"),
    ],
)
async def test_what_cannot_be_updated_is_said(
    bench: Bench, renderer: CommandRenderer, config: Config, said: str
) -> None:
    await write(bench, {"src/chart/Chart.yaml": CHART})
    result = await bench.preview(HelmUpdateChart(renderer, bench.vault), config)
    assert result.status is StepStatus.FAILED
    assert said in result.message


async def test_a_version_that_is_not_known_is_refused(bench: Bench, renderer: CommandRenderer) -> None:
    with pytest.raises(TerminalError, match="a version is not known yet"):
        await bench.preview(HelmUpdateChart(renderer, bench.vault), updating(URL))
