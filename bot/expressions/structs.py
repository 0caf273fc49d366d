"""Kargo's Go structs as an expression sees them: fields by Go name, JSON by YAML key, methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from bot.domain.freight import Artifact, Chart, FreightOrigin, FreightStatus, GitCommit, Image
from bot.domain.semver import Version, compare, parse_version
from bot.domain.values import Unknown
from bot.expressions.errors import ExpressionError
from bot.expressions.facts import DiscoveredCommit, DiscoveredImage, StepMeta
from bot.expressions.gotime import format_moment, format_span, make_moment
from bot.expressions.operands import Function, Operand, StringMap, Struct, name_type

_API = "github.com/akuity/kargo/api/v1alpha1."
ORIGIN_TYPE = f"{_API}FreightOrigin"
_VERSION_TYPE = "github.com/Masterminds/semver/v3.Version"
_RFC3339 = "2006-01-02T15:04:05Z07:00"


def _struct(name: str, fields: Mapping[str, tuple[str, Operand]]) -> Struct:
    """A struct from Go name -> (JSON key, value); empty values have no place in the JSON."""
    json = {key: value for key, value in fields.values() if value not in ("", None, {}, 0, False)}
    return Struct(f"{_API}{name}", {field: value for field, (_, value) in fields.items()}, json)


def origin_struct(origin: FreightOrigin) -> Struct:
    """What `warehouse(name)` gives."""
    return Struct(
        ORIGIN_TYPE,
        {"Kind": origin.kind, "Name": origin.name},
        {"kind": origin.kind, "name": origin.name},
        {"String": lambda _: str(origin)},
        text=str(origin),
    )


def commit_struct(commit: GitCommit) -> Struct:
    """What `commitFrom` gives in a Promotion."""
    return _struct(
        "GitCommit",
        {
            "RepoURL": ("repoURL", commit.repo_url),
            "ID": ("id", commit.id),
            "Branch": ("branch", commit.branch),
            "Tag": ("tag", commit.tag),
            "Message": ("message", commit.message),
            "Author": ("author", commit.author),
            "Committer": ("committer", commit.committer),
            "SubscriptionName": ("subscriptionName", commit.subscription_name),
        },
    )


def image_struct(image: Image) -> Struct:
    """What `imageFrom` gives in a Promotion."""
    return _struct(
        "Image",
        {
            "RepoURL": ("repoURL", image.repo_url),
            "Tag": ("tag", image.tag),
            "Digest": ("digest", image.digest),
            "Annotations": ("annotations", StringMap(image.annotations)),
            "SubscriptionName": ("subscriptionName", image.subscription_name),
        },
    )


def chart_struct(chart: Chart) -> Struct:
    """What `chartFrom` gives."""
    return _struct(
        "Chart",
        {
            "RepoURL": ("repoURL", chart.repo_url),
            "Name": ("name", chart.name),
            "Version": ("version", chart.version),
            "SubscriptionName": ("subscriptionName", chart.subscription_name),
        },
    )


def artifact_struct(artifact: Artifact) -> Struct:
    """What `artifactFrom` gives; its JSON has the Go names, since Kargo's own type for it has no tags."""
    fields: dict[str, Operand] = {
        "ArtifactType": artifact.artifact_type,
        "SubscriptionName": artifact.subscription_name,
        "Version": artifact.version,
        "Metadata": {} if artifact.metadata is None else artifact.metadata,
    }
    return Struct(
        "github.com/akuity/kargo/pkg/expressions/function.expressionFriendlyArtifactReference", fields, fields
    )


def discovered_commit_struct(commit: DiscoveredCommit) -> Struct:
    """What `commitFrom` gives in a Warehouse's criteria."""
    return _struct(
        "DiscoveredCommit",
        {
            "ID": ("id", commit.id),
            "Branch": ("branch", commit.branch),
            "Tag": ("tag", commit.tag),
            "Subject": ("subject", commit.subject),
            "Author": ("author", commit.author),
            "Committer": ("committer", commit.committer),
            "CreatorDate": ("creatorDate", _time(commit.creator_date)),
        },
    )


def discovered_image_struct(image: DiscoveredImage) -> Struct:
    """What `imageFrom` gives in a Warehouse's criteria."""
    return _struct(
        "DiscoveredImageReference",
        {
            "Tag": ("tag", image.tag),
            "Digest": ("digest", image.digest),
            "Annotations": ("annotations", StringMap(image.annotations)),
            "CreatedAt": ("createdAt", _time(image.created_at)),
        },
    )


def meta_struct(meta: StepMeta) -> Struct:
    """What `stepMetas.alias` gives."""
    return _struct(
        "StepExecutionMetadata",
        {
            "Alias": ("alias", meta.alias),
            "ContinueOnError": ("continueOnError", meta.continue_on_error),
            "StartedAt": ("startedAt", _time(meta.started_at)),
            "FinishedAt": ("finishedAt", _time(meta.finished_at)),
            "ErrorCount": ("errorCount", meta.error_count),
            "Status": ("status", meta.status),
            "Message": ("message", meta.message),
        },
    )


def _time(at: datetime | Unknown | None) -> Operand:
    return make_moment(at) if isinstance(at, datetime) else at


def status_map(status: FreightStatus) -> dict[str, Operand]:
    """What `freightStatus` gives: the status as JSON, empty parts absent."""

    def text(at: datetime) -> str:
        return format_moment(make_moment(at), _RFC3339)

    whole: dict[str, dict[str, Operand]] = {
        "currentlyIn": {stage: {"since": text(at)} for stage, at in status.currently_in.items()},
        "verifiedIn": {
            stage: {"verifiedAt": text(verified.verified_at)}
            | (
                {"longestSoak": format_span(round(verified.longest_soak * 1e9))}
                if verified.longest_soak
                else {}
            )
            for stage, verified in status.verified_in.items()
        },
        "approvedFor": {stage: {"approvedAt": text(at)} for stage, at in status.approved_for.items()},
        "metadata": dict(status.metadata),
    }
    return {key: part for key, part in whole.items() if part}


# -- semantic versions -------------------------------------------------------------------------------------


def version_struct(version: Version) -> Struct:
    """What `semverParse` gives: no fields, the methods of Masterminds' Version."""
    return Struct(
        _VERSION_TYPE, {"original": version.original}, str(version), _version_methods(version), str(version)
    )


def _version_methods(version: Version) -> dict[str, Function]:
    def read(value: Callable[[], Operand]) -> Function:
        def method(arguments: Sequence[Operand]) -> Operand:
            if arguments:
                raise ExpressionError(f"the method takes no arguments, not {len(arguments)}")
            return value()

        return method

    def with_other(value: Callable[[int], Operand]) -> Function:
        return lambda arguments: value(compare(version, _other_version(arguments)))

    return {
        "Major": read(lambda: version.major),
        "Minor": read(lambda: version.minor),
        "Patch": read(lambda: version.patch),
        "Prerelease": read(lambda: version.prerelease),
        "Metadata": read(lambda: version.metadata),
        "Original": read(lambda: version.original),
        "String": read(lambda: str(version)),
        "IncMajor": read(lambda: _raised(version, version.major + 1, 0, 0)),
        "IncMinor": read(lambda: _raised(version, version.major, version.minor + 1, 0)),
        "IncPatch": read(
            lambda: _raised(
                version, version.major, version.minor, version.patch + (0 if version.prerelease else 1)
            )
        ),
        "SetPrerelease": lambda arguments: _changed(version, arguments, "-"),
        "SetMetadata": lambda arguments: _changed(version, arguments, "+"),
        "Compare": with_other(lambda order: order),
        "LessThan": with_other(lambda order: order < 0),
        "LessThanEqual": with_other(lambda order: order <= 0),
        "GreaterThan": with_other(lambda order: order > 0),
        "GreaterThanEqual": with_other(lambda order: order >= 0),
        "Equal": with_other(lambda order: order == 0),
    }


def _other_version(arguments: Sequence[Operand]) -> Version:
    other = arguments[0] if len(arguments) == 1 else None
    if isinstance(other, Struct) and other.type_name == _VERSION_TYPE:
        parsed = parse_version(str(other.fields["original"]), strict=False)
        if parsed is not None:
            return parsed
    raise ExpressionError(f"a version is compared with what semverParse gives, not with {name_type(other)}")


def _raised(version: Version, major: int, minor: int, patch: int) -> Struct:
    raised = Version(major, minor, patch)
    return version_struct(replace(raised, original=_prefix(version) + str(raised)))


def _prefix(version: Version) -> str:
    return "v" if version.original.startswith("v") else ""


def _changed(version: Version, arguments: Sequence[Operand], sign: str) -> Struct:
    """The version with another pre-release (`-`) or metadata (`+`)."""
    text = arguments[0] if len(arguments) == 1 else None
    if not isinstance(text, str):
        raise ExpressionError("the method takes one text")
    changed = replace(version, prerelease=text) if sign == "-" else replace(version, metadata=text)
    if parse_version(str(changed), strict=False) is None:
        raise ExpressionError(f"{text[:60]!r} cannot stand after {sign} in a version")
    return version_struct(replace(changed, original=_prefix(version) + str(changed)))
