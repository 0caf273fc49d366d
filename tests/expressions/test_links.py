"""Deep links as Kargo's users write them: a Go template for the address, a bare expression for the condition."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.domain.freight import Freight, FreightName, FreightOrigin, GitCommit, Image
from bot.domain.model import DeepLink, FreightRequest, FreightSources, Metadata, Stage, Variable, Verification
from bot.domain.resources import freight_resource, stage_resource
from bot.domain.values import Json
from bot.domain.view import Link
from bot.expressions.links import check_link, resolve_links

FREIGHT = Freight(
    name=FreightName("f" * 40),
    project="acme",
    alias="calm otter",
    origin=FreightOrigin("otel"),
    discovered_at=datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC),
    commits=(GitCommit("https://github.com/acme/app", "c" * 40, message='say "hi"'),),
    images=(Image("ghcr.io/acme/app", "1.2.3", "sha256:" + "a" * 64, {"team": "web"}),),
)
STAGE = Stage(
    Metadata("prod", "acme", {"team": "web"}),
    (FreightRequest(FreightOrigin("otel"), FreightSources(stages=("dev",))),),
    (Variable("region", "eu-central-1"),),
    verification=Verification((("AnalysisTemplate", "smoke"),)),
)
NAMES: dict[str, Json] = {"freight": freight_resource(FREIGHT), "stage": stage_resource(STAGE)}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        pytest.param("https://x.example/a?b=c#d", "https://x.example/a?b=c#d", id="an address as it is"),
        pytest.param(
            "https://x.example/{{ .freight.metadata.name }}/{{.freight.origin.name}}",
            f"https://x.example/{'f' * 40}/otel",
            id="fields",
        ),
        pytest.param(
            'https://x.example/{{ get .freight "alias" | urlquery }}',
            "https://x.example/calm+otter",
            id="get and a pipe",
        ),
        pytest.param(
            'https://x.example/{{ get .freight "nothing" }}', "https://x.example/", id="get of nothing"
        ),
        pytest.param(
            "https://x.example/{{ (index .freight.images 0).tag }}", "https://x.example/1.2.3", id="index"
        ),
        pytest.param(
            'https://x.example/{{ index .freight.images 0 "annotations" "team" | upper | trunc 2 }}',
            "https://x.example/WE",
            id="several keys and pipes",
        ),
        pytest.param(
            "https://x.example/{{- /* a note */ -}} {{ `a` }}", "https://x.example/a", id="comments and trims"
        ),
        pytest.param(
            'https://x.example/{{ default "none" (get .stage.metadata.labels "tier") }}',
            "https://x.example/none",
            id="a default",
        ),
        pytest.param(
            'https://x.example/{{ replace "https://" "" (index .freight.commits 0).repoURL }}',
            "https://x.example/github.com/acme/app",
            id="replace",
        ),
        pytest.param(
            "https://x.example/${{ stage.metadata.name }}?r=${{ stage.spec.vars[0].value }}",
            "https://x.example/prod?r=eu-central-1",
            id="Kargo's own delimiters",
        ),
    ],
)
def test_an_address_is_worked_out(url: str, shown: str) -> None:
    assert resolve_links([DeepLink("go", url, "why")], NAMES) == ((Link("go", shown, "why"),), ())
    assert list(check_link(DeepLink("go", url))) == []


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://x.example/", "does not begin with https://"),
        ("javascript:alert(1)", "does not begin with https://"),
        ("https://user:pw@x.example/", "does not begin with https://"),
        ("{{ .freight.alias }}", "does not begin with https://"),
        ("https://x.example/{{ .freight.alias }}", "must be escaped; use urlquery"),
        ("https://x.example/{{ (index .freight.commits 0).message }}", "must be escaped; use urlquery"),
        ("https://x.example/a)](https://evil.example", ""),
        ("https://x.example/{{ .freight.charts }}", "it has no value for this one"),
        ("https://x.example/{{ .freight.images }}", "a map or list has no place"),
        ("https://x.example/{{ .freight.alias.x }}", "has no field 'x'"),
        ("https://x.example/{{ index .freight.images 7 }}", "index cannot be called"),
        ("https://x.example/" + "{{ .freight.metadata.name }}" * 60, "too long"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_link_that_leads_nowhere_is_left_out_with_the_reason(url: str, why: str) -> None:
    found, problems = resolve_links([DeepLink("go", url), DeepLink("other", "https://ok.example/")], NAMES)
    assert found[-1] == Link("other", "https://ok.example/")
    if why:
        assert len(found) == 1
        assert why in problems[0]
        assert problems[0].startswith("the link 'go' is left out: ")
    else:
        assert found[0].url == url


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("freight.images != nil", True),
        ("freight.charts != nil", False),
        ('freight.origin.name == "otel"', True),
        ("stage.spec.verification != nil", True),
        ('stage.metadata.labels?.env == "prod"', False),
        ('stage.metadata.labels?.team == "web"', True),
        ("${{ stage.metadata.name == 'prod' }}", True),
        ("", True),
    ],
)
def test_a_link_is_shown_if_its_condition_holds(condition: str, holds: bool) -> None:
    found, problems = resolve_links([DeepLink("go", "https://x.example/", condition=condition)], NAMES)
    assert (bool(found), problems) == (holds, ())


@pytest.mark.parametrize("condition", ["1", "freight.images[9].tag == ''", "len(freight.charts) > 0"])
def test_a_condition_that_cannot_be_told_leaves_the_link_out(condition: str) -> None:
    found, problems = resolve_links([DeepLink("go", "https://x.example/", condition=condition)], NAMES)
    assert found == ()
    assert problems[0].startswith("the link 'go' is left out: ")


@pytest.mark.parametrize(
    ("link", "key", "why"),
    [
        (DeepLink("go", "https://x/{{ if .a }}"), "url", "the action 'if' is not supported"),
        (DeepLink("go", "https://x/{{ env `HOME` }}"), "url", "the function env is not supported"),
        (DeepLink("go", "https://x/{{ .a"), "url", "is not closed"),
        (DeepLink("go", "https://x/{{ .a | | lower }}"), "url", "is no value"),
        (DeepLink("go", "https://x/{{ $x := 1 }}"), "url", "cannot be read"),
        (DeepLink("go", "https://x/{{ }}"), "url", "empty"),
        (DeepLink("go", "https://x/{{ (.a }}"), "url", "parenthesis"),
        (DeepLink("go", "https://x/${{ a( }}"), "url", "cannot be worked out"),
        (DeepLink("go", "http://x/"), "url", "only https"),
        (DeepLink("go", "https://x/", condition="a =="), "if", "cannot be read"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_link_that_can_never_be_shown_is_warned_of(link: DeepLink, key: str, why: str) -> None:
    ((where, message),) = check_link(link)
    assert where == key
    assert why in message
