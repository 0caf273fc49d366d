"""Kargo's functions: what each takes and gives, answered from facts (Kargo, expression language reference).

Every function gets its arguments free of marks. `secret` and `sharedSecret` give maps whose values are sensitive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bot.domain.freight import FreightOrigin
from bot.domain.model import (
    ChartSubscription,
    GenericSubscription,
    GitSubscription,
    ImageSubscription,
    Subscription,
)
from bot.domain.semver import parse_version, semver_diff
from bot.domain.urls import normalize_chart_url, normalize_git_url, normalize_image_url
from bot.domain.values import Sensitive, Unknown
from bot.expressions.errors import ExpressionError
from bot.expressions.facts import DataFacts, DiscoveredArtifacts, FreightFacts, SecretData, StepMeta
from bot.expressions.gotext import quote_text, write_json
from bot.expressions.goyaml import write_yaml
from bot.expressions.meter import Meter
from bot.expressions.operands import Function, Operand, StringMap, Struct, name_type
from bot.expressions.structs import (
    ORIGIN_TYPE,
    artifact_struct,
    chart_struct,
    commit_struct,
    discovered_commit_struct,
    discovered_image_struct,
    image_struct,
    origin_struct,
    status_map,
    version_struct,
)

ALIAS_SEPARATOR = "::"
"""Stands between a task's alias and that of its step."""

_FAILURES = frozenset({"Failed", "Errored"})


def _count(arguments: Sequence[Operand], name: str, least: int, most: int) -> None:
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise ExpressionError(f"{name} takes {wanted} arguments, not {len(arguments)}")


def _text(arguments: Sequence[Operand], name: str, *, index: int = 0, filled: bool = False) -> str:
    value = arguments[index]
    if not isinstance(value, str):
        raise ExpressionError(f"{name} takes a text as argument {index + 1}, not {name_type(value)}")
    if filled and not value:
        raise ExpressionError(f"{name} takes a name that is not empty")
    return value


def _one_text(arguments: Sequence[Operand], name: str, *, filled: bool = False) -> str:
    _count(arguments, name, 1, 1)
    return _text(arguments, name, filled=filled)


def _origin(arguments: Sequence[Operand], name: str, index: int) -> FreightOrigin | None:
    if len(arguments) <= index:
        return None
    value = arguments[index]
    if not isinstance(value, Struct) or value.type_name != ORIGIN_TYPE:
        raise ExpressionError(
            f"{name} takes what warehouse(name) gives as argument {index + 1}, not {name_type(value)}"
        )
    return FreightOrigin(str(value.fields["Name"]), str(value.fields["Kind"]))


# -- templates and versions --------------------------------------------------------------------------------


def _quote(arguments: Sequence[Operand]) -> Operand:
    _count(arguments, "quote", 1, 1)
    return quote_text(arguments[0]) if isinstance(arguments[0], str) else _unsafe_quote(arguments)


def _unsafe_quote(arguments: Sequence[Operand]) -> Operand:
    _count(arguments, "unsafeQuote", 1, 1)
    return f'"{write_json(arguments[0], Meter())}"'


def _as_yaml(arguments: Sequence[Operand]) -> Operand:
    _count(arguments, "asYAML", 1, 1)
    return f'"{write_yaml(arguments[0], Meter())}"'


def _as_json(arguments: Sequence[Operand]) -> Operand:
    _count(arguments, "asJSON", 1, 1)
    text = write_json(arguments[0], Meter(), indent="  ")
    return f'"{text}\n"'


def _semver_diff(arguments: Sequence[Operand]) -> Operand:
    _count(arguments, "semverDiff", 2, 2)
    return semver_diff(_text(arguments, "semverDiff"), _text(arguments, "semverDiff", index=1))


def _semver_parse(arguments: Sequence[Operand]) -> Operand:
    text = _one_text(arguments, "semverParse")
    version = parse_version(text, strict=False)
    if version is None:
        raise ExpressionError(f"{text[:60]!r} is no semantic version")
    return version_struct(version)


TEMPLATE_FUNCTIONS: Mapping[str, Function] = {
    "quote": _quote,
    "unsafeQuote": _unsafe_quote,
    "asYAML": _as_yaml,
    "asJSON": _as_json,
}
"""Functions of every template: a value as a text that is not coerced."""

UTILITY_FUNCTIONS: Mapping[str, Function] = {"semverDiff": _semver_diff, "semverParse": _semver_parse}
"""Functions on semantic versions."""


def _normalize(name: str, normalize: Callable[[str], str]) -> Function:
    return lambda arguments: normalize(_one_text(arguments, name))


URL_FUNCTIONS: Mapping[str, Function] = {
    "normalizeGit": _normalize("normalizeGit", normalize_git_url),
    "normalizeImage": _normalize("normalizeImage", normalize_image_url),
    "normalizeChart": _normalize("normalizeChart", normalize_chart_url),
}
"""Functions of a generic webhook receiver's expressions: the spelling of a URL in which Warehouses are compared."""


# -- Freight of a Promotion --------------------------------------------------------------------------------


def freight_functions(facts: FreightFacts) -> dict[str, Function]:
    """`warehouse`, `commitFrom`, `imageFrom`, `chartFrom` and `artifactFrom` of a Promotion."""

    def commit_from(arguments: Sequence[Operand]) -> Operand:
        _count(arguments, "commitFrom", 1, 2)
        url = normalize_git_url(_text(arguments, "commitFrom"))
        given = _origin(arguments, "commitFrom", 1)
        origin = given or _find_origin(
            facts,
            f"a commit of {url}",
            lambda s: isinstance(s, GitSubscription) and normalize_git_url(s.repo_url) == url,
        )
        found = (c for f in facts.freight if f.origin == origin for c in f.commits)
        return next((commit_struct(c) for c in found if normalize_git_url(c.repo_url) == url), None)

    def image_from(arguments: Sequence[Operand]) -> Operand:
        _count(arguments, "imageFrom", 1, 2)
        url = _text(arguments, "imageFrom")
        given = _origin(arguments, "imageFrom", 1)
        origin = given or _find_origin(
            facts, f"an image of {url}", lambda s: isinstance(s, ImageSubscription) and s.repo_url == url
        )
        found = (i for f in facts.freight if f.origin == origin for i in f.images)
        return next((image_struct(i) for i in found if i.repo_url == url), None)

    def chart_from(arguments: Sequence[Operand]) -> Operand:
        url, name, given = _chart_arguments(arguments)
        origin = given or _find_origin(
            facts,
            f"the chart {name or url}",
            lambda s: isinstance(s, ChartSubscription) and (s.repo_url, s.chart) == (url, name),
        )
        if origin is None:
            raise ExpressionError(f"no requested Freight holds the chart {name} of {url}".replace("  ", " "))
        found = (c for f in facts.freight if f.origin == origin for c in f.charts)
        return next((chart_struct(c) for c in found if (c.repo_url, c.name) == (url, name)), None)

    def artifact_from(arguments: Sequence[Operand]) -> Operand:
        _count(arguments, "artifactFrom", 1, 2)
        name = _text(arguments, "artifactFrom")
        given = _origin(arguments, "artifactFrom", 1)
        origin = given or _find_origin(
            facts, f"the artifact {name}", lambda s: isinstance(s, GenericSubscription) and s.name == name
        )
        found = (a for f in facts.freight if f.origin == origin for a in f.artifacts)
        return next((artifact_struct(a) for a in found if a.subscription_name == name), None)

    return {
        "warehouse": _warehouse,
        "commitFrom": commit_from,
        "imageFrom": image_from,
        "chartFrom": chart_from,
        "artifactFrom": artifact_from,
    }


def _warehouse(arguments: Sequence[Operand]) -> Operand:
    return origin_struct(FreightOrigin(_one_text(arguments, "warehouse", filled=True)))


def _chart_arguments(arguments: Sequence[Operand]) -> tuple[str, str, FreightOrigin | None]:
    """Repository, chart name (may be empty) and origin, in Kargo's four forms."""
    _count(arguments, "chartFrom", 1, 3)
    url = _text(arguments, "chartFrom")
    if len(arguments) == 2 and not isinstance(arguments[1], str):
        return url, "", _origin(arguments, "chartFrom", 1)
    name = _text(arguments, "chartFrom", index=1, filled=len(arguments) == 3) if len(arguments) > 1 else ""
    return url, name, _origin(arguments, "chartFrom", 2)


def _find_origin(
    facts: FreightFacts, what: str, fits: Callable[[Subscription], bool]
) -> FreightOrigin | None:
    """The one requested Warehouse that subscribes to it; raises ExpressionError if there are several."""
    found: FreightOrigin | None = None
    for request in facts.requests:
        warehouse = facts.warehouses.get(request.origin.name)
        if warehouse is None:
            raise ExpressionError(
                f"the Warehouse {request.origin.name}, whose Freight is requested, does not exist"
            )
        for subscription in warehouse.subscriptions:
            if fits(subscription):
                if found is not None:
                    raise ExpressionError(
                        f"several requested Warehouses could give {what}; name one with warehouse('NAME') as last "
                        "argument"
                    )
                found = request.origin
    return found


# -- what a Warehouse discovered ---------------------------------------------------------------------------


def discovered_functions(found: DiscoveredArtifacts | None) -> dict[str, Function]:
    """The same names as in a Promotion, for `freightCreationCriteria`: each gives the newest find or nil."""
    facts = found or DiscoveredArtifacts()

    def commit_from(arguments: Sequence[Operand]) -> Operand:
        url = normalize_git_url(_one_text(arguments, "commitFrom"))
        finds = (items[0] for repo, items in facts.commits if normalize_git_url(repo) == url and items)
        return next((discovered_commit_struct(item) for item in finds), None)

    def image_from(arguments: Sequence[Operand]) -> Operand:
        url = normalize_image_url(_one_text(arguments, "imageFrom"))
        finds = (items[0] for repo, items in facts.images if normalize_image_url(repo) == url and items)
        return next((discovered_image_struct(item) for item in finds), None)

    def chart_from(arguments: Sequence[Operand]) -> Operand:
        _count(arguments, "chartFrom", 1, 2)
        url = normalize_chart_url(_text(arguments, "chartFrom"))
        name = _text(arguments, "chartFrom", index=1) if len(arguments) == 2 else ""
        for repo, items in facts.charts:
            if normalize_chart_url(repo) == url and items and name in ("", items[0].name):
                struct = chart_struct(items[0])
                return Struct(
                    struct.type_name,
                    {**struct.fields, "RepoURL": url},
                    {key: item for key, item in (("repoURL", url), ("name", items[0].name)) if item}
                    | {"version": items[0].version},
                )
        return None

    def artifact_from(arguments: Sequence[Operand]) -> Operand:
        name = _one_text(arguments, "artifactFrom")
        finds = (items[0] for subscription, items in facts.artifacts if subscription == name and items)
        return next((artifact_struct(item) for item in finds), None)

    return {
        "commitFrom": commit_from,
        "imageFrom": image_from,
        "chartFrom": chart_from,
        "artifactFrom": artifact_from,
    }


# -- Secrets, ConfigMaps, metadata -------------------------------------------------------------------------


def data_functions(facts: DataFacts) -> dict[str, Function]:
    """`secret`, `configMap`, their shared forms, `freightMetadata`, `freightStatus` and `stageMetadata`."""

    def config_map(name: str, objects: Mapping[str, Mapping[str, str]]) -> Function:
        return lambda arguments: StringMap(objects.get(_one_text(arguments, name), {}))

    def freight_metadata(arguments: Sequence[Operand]) -> Operand:
        status = facts.freight.get(_one_text(arguments, "freightMetadata", filled=True))
        return dict(status.metadata) if status is not None and status.metadata else None

    def freight_status(arguments: Sequence[Operand]) -> Operand:
        status = facts.freight.get(_one_text(arguments, "freightStatus", filled=True))
        return status_map(status) if status is not None else None

    def stage_metadata(arguments: Sequence[Operand]) -> Operand:
        metadata = facts.stage_metadata.get(_one_text(arguments, "stageMetadata", filled=True))
        return dict(metadata) if metadata else None

    return {
        "secret": _secret_function("secret", facts.secrets),
        "sharedSecret": _secret_function("sharedSecret", facts.shared_secrets, generic=True),
        "configMap": config_map("configMap", facts.config_maps),
        "sharedConfigMap": config_map("sharedConfigMap", facts.shared_config_maps),
        "freightMetadata": freight_metadata,
        "freightStatus": freight_status,
        "stageMetadata": stage_metadata,
    }


def _secret_function(function: str, secrets: Mapping[str, SecretData], *, generic: bool = False) -> Function:
    """A map of sensitive values, empty if the Secret does not exist or may not be read; one Secret is looked up."""

    def read(arguments: Sequence[Operand]) -> Operand:
        name = _one_text(arguments, function)
        found = secrets.get(name)
        if found is None or (generic and not found.generic):
            return StringMap()
        return StringMap(
            {key: Sensitive(f"{function}('{name}').{key}", value) for key, value in found.data.items()}
        )

    return read


# -- how steps went ----------------------------------------------------------------------------------------


def alias_namespace(alias: str) -> str:
    """The task's part of a step's alias; empty for a step that came from no task."""
    parts = alias.split(ALIAS_SEPARATOR)
    return parts[0] if len(parts) == 2 else ""


def has_failures(metas: Sequence[StepMeta]) -> bool:
    """Whether a step failed or errored that was not allowed to; an unknown status counts as success."""
    return any(
        not isinstance(meta.status, Unknown) and meta.status in _FAILURES and not meta.continue_on_error
        for meta in metas
    )


def status_functions(alias: str, metas: Sequence[StepMeta]) -> dict[str, Function]:
    """`always`, `success`, `failure` and `status`, for the step with this alias."""
    namespace = alias_namespace(alias)

    def answer(name: str, value: Operand) -> Function:
        def function(arguments: Sequence[Operand]) -> Operand:
            _count(arguments, name, 0, 0)
            return value

        return function

    def status(arguments: Sequence[Operand]) -> Operand:
        wanted = _one_text(arguments, "status", filled=True)
        for meta in metas:
            inner = alias_namespace(meta.alias)
            short = meta.alias.split(ALIAS_SEPARATOR)[1] if inner else meta.alias
            if inner == namespace and short == wanted:
                return meta.status
        return ""

    failed = has_failures(metas)
    return {
        "always": answer("always", True),
        "success": answer("success", not failed),
        "failure": answer("failure", failed),
        "status": status,
    }
