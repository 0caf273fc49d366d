"""Kargo's functions, beyond what the conformance cases ask."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from bot.domain.freight import (
    Chart,
    Freight,
    FreightName,
    FreightOrigin,
    FreightStatus,
    Image,
    Verified,
)
from bot.domain.model import (
    FreightRequest,
    FreightSources,
    ImageSubscription,
    Metadata,
    Warehouse,
)
from bot.domain.values import Sensitive, Text, Unknown, Value
from bot.expressions.errors import ExpressionError
from bot.expressions.evaluator import compile_expression
from bot.expressions.facts import (
    DataFacts,
    DiscoveredArtifacts,
    DiscoveredCommit,
    DiscoveredImage,
    FreightFacts,
    SecretData,
    StepMeta,
)
from bot.expressions.functions import (
    URL_FUNCTIONS,
    UTILITY_FUNCTIONS,
    data_functions,
    discovered_functions,
    freight_functions,
    status_functions,
)
from bot.expressions.operands import Function, Operand
from bot.expressions.scopes import meets_criteria
from bot.expressions.templates import Scope, evaluate_text

WEB = "registry.example/web"
APP = FreightOrigin("app")
AT = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


def warehouse(name: str, *images: str) -> Warehouse:
    return Warehouse(Metadata(name, "proj"), tuple(ImageSubscription(url) for url in images))


def freight(origin: FreightOrigin, tag: str) -> Freight:
    return Freight(
        FreightName("f"), "proj", "", origin, AT, images=(Image(WEB, tag, annotations={"k": "v"}),)
    )


def facts(*warehouses: Warehouse) -> FreightFacts:
    origins = [FreightOrigin(item.metadata.name) for item in warehouses]
    return FreightFacts(
        tuple(FreightRequest(origin, FreightSources()) for origin in origins),
        {item.metadata.name: item for item in warehouses},
        tuple(freight(origin, f"{origin.name}-1") for origin in origins),
    )


def call(source: str, functions: dict[str, Function], **names: Operand) -> Value:
    return compile_expression(source).evaluate(names, functions)


def test_one_requested_warehouse_is_found_without_being_named() -> None:
    functions = freight_functions(facts(warehouse("app", WEB), warehouse("other", "registry.example/db")))
    assert call(f"imageFrom('{WEB}').Tag", functions) == "app-1"
    assert call(f"imageFrom('{WEB}').Annotations.k", functions) == "v"
    assert call(f"imageFrom('{WEB}').Annotations.missing", functions) == ""
    assert call(f"imageFrom('{WEB}')", functions) == {
        "repoURL": WEB,
        "tag": "app-1",
        "annotations": {"k": "v"},
    }


def test_several_requested_warehouses_need_a_name() -> None:
    functions = freight_functions(facts(warehouse("app", WEB), warehouse("other", WEB)))
    with pytest.raises(ExpressionError, match=r"name one with warehouse\('NAME'\)"):
        call(f"imageFrom('{WEB}')", functions)
    assert call(f"imageFrom('{WEB}', warehouse('other')).Tag", functions) == "other-1"
    assert call("string(warehouse('other'))", functions) == "Warehouse/other"


def test_a_requested_warehouse_that_does_not_exist_is_an_error() -> None:
    broken = FreightFacts((FreightRequest(APP, FreightSources()),))
    with pytest.raises(ExpressionError, match="Warehouse app"):
        call(f"imageFrom('{WEB}')", freight_functions(broken))


def test_an_unknown_argument_makes_a_look_up_unknown() -> None:
    later = Unknown("known after step: pick.url")
    functions = freight_functions(facts(warehouse("app", WEB))) | data_functions(DataFacts())
    for source in (
        "imageFrom(u)",
        "imageFrom(u).Tag",
        "secret(u).k",
        "warehouse(u)",
        "configMap(u)",
        "freightStatus(u)",
    ):
        assert call(source, functions, u=later) == later


SECRETS = data_functions(
    DataFacts(
        secrets={"db": SecretData({"password": "hunter2"})},
        shared_secrets={"open": SecretData({"k": "v"}, generic=True), "git": SecretData({"k": "v"})},
    )
)


def test_a_secret_is_sensitive_by_key() -> None:
    password = Sensitive("secret('db').password", "hunter2")
    assert call("secret('db')", SECRETS) == {"password": password}
    assert call("secret('db').password", SECRETS) == password
    assert call("secret('db').missing", SECRETS) == ""
    assert call("secret('db')['pass' + 'word'] + '!'", SECRETS) == Sensitive(password.name, "hunter2!")
    assert evaluate_text("pw=${{ secret('db').password }}", Scope({}, SECRETS)) == Text(("pw=", password))


def test_only_generic_shared_secrets_are_read() -> None:
    assert call("sharedSecret('open').k", SECRETS) == Sensitive("sharedSecret('open').k", "v")
    assert call("sharedSecret('git')", SECRETS) == {}
    assert call("sharedSecret('none')", SECRETS) == {}


def test_a_freight_status_is_shown_as_kargo_stores_it() -> None:
    status = FreightStatus({"dev": AT}, {"dev": Verified(AT, 3600)}, {"prod": AT}, {"note": {"a": 1}})
    functions = data_functions(DataFacts(freight={"f1": status, "f2": FreightStatus()}))
    assert call("freightStatus('f1')", functions) == {
        "currentlyIn": {"dev": {"since": "2024-05-06T07:08:09Z"}},
        "verifiedIn": {"dev": {"verifiedAt": "2024-05-06T07:08:09Z", "longestSoak": "1h0m0s"}},
        "approvedFor": {"prod": {"approvedAt": "2024-05-06T07:08:09Z"}},
        "metadata": {"note": {"a": 1}},
    }
    assert call("freightMetadata('f1').note.a", functions) == 1
    assert call("freightMetadata('f2')", functions) is None


STEPS = (StepMeta("build", "Succeeded"), StepMeta("t::build", "Failed", continue_on_error=True))


@pytest.mark.parametrize(
    ("alias", "metas", "source", "expected"),
    [
        ("x", STEPS, "status('build')", "Succeeded"),
        ("t::x", STEPS, "status('build')", "Failed"),
        ("x", STEPS, "status('t::build')", ""),
        ("x", STEPS, "success() && !failure() && always()", True),
        ("x", (StepMeta("a", "Errored"),), "failure()", True),
        (
            "x",
            (StepMeta("a", Unknown("known after step: a")),),
            "status('a')",
            Unknown("known after step: a"),
        ),
        ("x", (StepMeta("a", Unknown("known after step: a")),), "success()", True),
    ],
)
def test_how_steps_went(alias: str, metas: Sequence[StepMeta], source: str, expected: Value) -> None:
    assert call(source, status_functions(alias, metas)) == expected


FOUND = DiscoveredArtifacts(
    commits=(("https://git.example/app.git", (DiscoveredCommit("abc", subject="fix", creator_date=AT),)),),
    images=((WEB, (DiscoveredImage("2.0.0", created_at=AT), DiscoveredImage("1.0.0"))),),
    charts=(
        ("oci://registry.example/charts/web", (Chart("oci://registry.example/charts/web", "", "0.9.0"),)),
    ),
)


def test_criteria_see_the_newest_finds() -> None:
    functions = discovered_functions(FOUND)
    assert call("commitFrom('https://git.example/app')", functions) == {
        "id": "abc",
        "subject": "fix",
        "creatorDate": "2024-05-06T07:08:09Z",
    }
    assert call("commitFrom('https://git.example/app').CreatorDate.Year()", functions) == 2024
    assert call(f"imageFrom('{WEB}').Tag", functions) == "2.0.0"
    assert meets_criteria(f"imageFrom('{WEB}').Tag == '2.0.0'", FOUND)
    assert not meets_criteria(f"semverDiff(imageFrom('{WEB}').Tag, '1.0.0') != 'Major'", FOUND)
    assert meets_criteria("", None)
    with pytest.raises(ExpressionError):
        meets_criteria(f"imageFrom('{WEB}').Tag", FOUND)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("semverParse('v1.2.3-rc.1+b5').Original()", "v1.2.3-rc.1+b5"),
        ("semverParse('v1.2.3').IncMinor().Original()", "v1.3.0"),
        ("semverParse('1.2.3').IncMajor()", "2.0.0"),
        ("semverParse('1.2.3').LessThan(semverParse('1.10.0'))", True),
        ("semverParse('1.2.3').Compare(semverParse('1.2.3+x'))", 0),
        ("semverParse('1.2.3').SetPrerelease('rc.1')", "1.2.3-rc.1"),
        ("string(semverParse('1.2'))", "1.2.0"),
        ("'v' + string(semverParse('1.2.3').Major())", "v1"),
    ],
)
def test_versions_have_their_methods(source: str, expected: Value) -> None:
    assert call(source, dict(UTILITY_FUNCTIONS)) == expected


@pytest.mark.parametrize(
    "source",
    [
        "semverParse('1.2.3').Major(1)",
        "semverParse('1.2.3').LessThan('1.2.4')",
        "semverParse('1.2.3').SetPrerelease('_')",
        "semverParse('1.2.3').major",
        "semverParse('1.2.3').Nope()",
    ],
)
def test_a_wrong_use_of_a_version_is_an_error(source: str) -> None:
    with pytest.raises(ExpressionError):
        call(source, dict(UTILITY_FUNCTIONS))


def test_urls_are_spelled_as_warehouses_compare_them() -> None:
    functions = dict(URL_FUNCTIONS)
    assert call("normalizeGit('https://ann@Git.example/App.git')", functions) == "https://git.example/app"
    assert call("normalizeImage('docker.io/library/nginx')", functions) == "nginx"
    assert (
        call("normalizeChart('oci://registry.example/charts/web')", functions)
        == "registry.example/charts/web"
    )
