"""The pipeline author's links on the bot's pages, and in the pull request's body."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.model import DeepLink, Metadata, ProjectConfig
from bot.domain.view import Link
from bot.reports.body import render_body
from tests.reports import views
from tests.web.site import Site, open_site

HOSTILE = '"><script>alert(1)</script> [x](http://evil.example) @acme/team'


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


def configure(site: Site) -> None:
    """Links of the cluster and of the project, one of which cannot be worked out."""
    configuration = site.dashboard.reading.configuration
    cluster = ProjectConfig(
        Metadata("cluster"),
        cluster=True,
        stage_links=(DeepLink("Graphs", "https://graphs.example/{{ .stage.metadata.name }}", HOSTILE),),
    )
    own = ProjectConfig(
        Metadata("acme", "acme"),
        freight_links=(
            DeepLink("Build", 'https://ci.example/{{ get .freight "alias" }}?a=1&b=2'),
            DeepLink(HOSTILE, "https://x.example/"),
            DeepLink("Broken", "https://x.example/{{ .freight.nothing }}"),
            DeepLink("Never", "https://x.example/", condition="freight.charts != nil"),
        ),
    )
    configuration.pipeline = replace(
        configuration.pipeline, cluster_config=cluster, project_configs={"acme": own}
    )


async def test_the_pages_show_the_links_that_hold(site: Site) -> None:
    await site.put(views.promotion(), views.preview())
    configure(site)
    async with site.browser() as browser:
        overview = (await site.sign_in(browser, "uma")).text
        page = (await browser.get("/promotions/staging.01jx.1101101")).text
    for text in (overview, page):
        assert '?a=1&amp;b=2" rel="noreferrer">Build</a>' in text
        assert 'href="https://graphs.example/staging"' in text
        assert "<script>alert" not in text
        assert "Never" not in text
        assert ">Broken<" not in text
    assert 'href="https://graphs.example/prod"' in overview
    assert 'href="https://ci.example/solar-marmot?' in page
    assert "the link &#39;Broken&#39; is left out: it has no value for this one" in overview


def test_the_body_shows_links_that_nothing_in_them_can_break() -> None:
    links = (
        Link("Build", "https://ci.example/solar-marmot?a=1&b=(2)"),
        Link(HOSTILE, "https://x.example/a)](https://evil.example"),
    )
    body = render_body(views.view(links=links))
    assert "[Build](<https://ci.example/solar-marmot?a=1&b=(2)>) · [" in body
    assert "<script>" not in body
    assert "[x](http" not in body
    assert body.index("[Build]") > body.index("### Pipeline")
