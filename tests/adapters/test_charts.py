"""Versions of charts: indexes as web servers give them, and the sandbox's registry for OCI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
import respx

from bot.adapters.charts import HelmRepositories, read_index
from bot.ports import Charts, TerminalError, TransientError
from tests.adapters.oci.registries import PASSWORD, USER, push_image, run_sandbox

URL = "https://charts.example/stable"
INDEX = """\
apiVersion: v1
entries:
  other:
    - name: other
      version: 9.9.9
  app:
    - &newest
      apiVersion: v2
      name: app
      version: 1.2.0
      dependencies:
        - name: lib
          version: 7.7.7
      annotations: {version: 8.8.8, "a b": "- version: 6.6.6"}
    - <<: *newest
      version: "1.10"
    - version: 1.0.0+build
      urls: [app-1.0.0.tgz]
generated: "2026-01-01T00:00:00Z"
"""


@pytest.fixture
def wire() -> Iterator[respx.Router]:
    with respx.mock(assert_all_called=False) as router:
        yield router


@pytest.fixture
async def charts() -> AsyncIterator[HelmRepositories]:
    async def login(project: str, repository: str) -> tuple[str, str] | None:
        return (USER, PASSWORD) if project == "acme" else None

    async with HelmRepositories(login) as repositories:
        yield repositories


def test_it_is_the_port() -> None:
    async def login(project: str, repository: str) -> None:
        return None

    charts: Charts = HelmRepositories(login)
    assert charts is not None


async def test_the_versions_of_a_chart_come_in_the_order_of_the_index(
    charts: HelmRepositories, wire: respx.Router
) -> None:
    route = wire.get(f"{URL}/index.yaml").respond(text=INDEX)
    assert await charts.list_versions("acme", f"{URL}/", "app") == ("1.2.0", "1.10", "1.0.0+build")
    assert await charts.list_versions("acme", URL, "unknown") == ()
    assert route.calls[0].request.headers["authorization"] == httpx.BasicAuth(USER, PASSWORD)._auth_header
    await charts.list_versions("other", URL, "app")
    assert "authorization" not in route.calls[2].request.headers


async def test_an_index_that_has_not_changed_is_not_read_again(
    charts: HelmRepositories, wire: respx.Router
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.headers.get("if-none-match") == '"1"':
            return httpx.Response(304)
        return httpx.Response(200, text=INDEX, headers={"ETag": '"1"'})

    route = wire.get(f"{URL}/index.yaml").mock(side_effect=answer)
    first = await charts.list_versions("acme", URL, "app")
    assert await charts.list_versions("acme", URL, "app") == first
    assert [call.response.status_code for call in route.calls] == [200, 304]
    # What one project was shown is nothing that another may see.
    await charts.list_versions("other", URL, "app")
    assert route.calls[2].response.status_code == 200


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("<html>not found</html>", "no entries", id="a web page"),
        pytest.param("entries: {app: [", "is no index of charts", id="half an index"),
        pytest.param("a: [" * 100 + "]" * 100, "nested more than", id="very deep"),
        pytest.param("entries: \x00", "is no index of charts", id="no YAML"),
    ],
)
def test_what_is_no_index_says_so(text: str, expected: str) -> None:
    with pytest.raises(TerminalError, match=expected):
        read_index(text.encode(), "app", f"{URL}/index.yaml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("entries: {}", (), id="an empty index"),
        pytest.param('{"entries": {"app": [{"version": "1.0.0"}]}}', ("1.0.0",), id="an index in JSON"),
        pytest.param("entries: {app: {version: 1}}", (), id="a chart that is no list"),
        pytest.param(
            "x: &a [b]\n? *a\n: {version: 2}\nentries: {app: [{version: 3}]}", ("3",), id="an alias as key"
        ),
    ],
)
def test_odd_indexes_are_read(text: str, expected: tuple[str, ...]) -> None:
    assert read_index(text.encode(), "app", f"{URL}/index.yaml") == expected


@pytest.mark.parametrize(
    ("response", "error", "expected"),
    [
        pytest.param(httpx.Response(401), TerminalError, "cred-type: helm", id="refused"),
        pytest.param(httpx.Response(404), TerminalError, "check the address", id="not there"),
        pytest.param(httpx.Response(503), TransientError, "answered 503", id="out of order"),
        pytest.param(
            httpx.Response(200, content=b" " * (48 * 1024 * 1024 + 1)),
            TerminalError,
            "larger",
            id="too large",
        ),
    ],
)
async def test_a_repository_that_does_not_answer_well(
    charts: HelmRepositories,
    wire: respx.Router,
    response: httpx.Response,
    error: type[Exception],
    expected: str,
) -> None:
    wire.get(f"{URL}/index.yaml").mock(return_value=response)
    with pytest.raises(error, match=expected):
        await charts.list_versions("acme", URL, "app")


@pytest.mark.parametrize("url", ["ftp://charts.example", "https://u:p@charts.example", "charts.example"])
async def test_an_address_that_cannot_be_used(charts: HelmRepositories, url: str) -> None:
    with pytest.raises(TerminalError, match="is no chart repository"):
        await charts.list_versions("acme", url, "app")


async def test_charts_in_a_registry_are_its_tags(charts: HelmRepositories, tmp_path: Path) -> None:
    async with run_sandbox(tmp_path) as host:
        await push_image(host, "charts/app", "1.0.0")
        await push_image(host, "charts/app", "1.1.0_build")
        found = await charts.list_versions("acme", f"oci://{host}/charts/app", "")
        assert sorted(found) == ["1.0.0", "1.1.0_build"]
        with pytest.raises(TerminalError, match="Secret"):
            await charts.list_versions("other", f"oci://{host}/charts/app", "")
