"""Areas 09 (versions, images, charts, git refs): what a subscription selects."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bot.domain import selection, semver
from bot.domain.model import (
    ChartSubscription,
    CommitSelectionStrategy,
    GitSubscription,
    ImageSelectionStrategy,
    ImageSubscription,
)

Case = dict[str, Any]


def parse_time(text: str) -> datetime:
    """The moment of an RFC 3339 text."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def semver_parse(case: Case) -> str | None:
    version = semver.parse_tag(case["version"], strict=case["strict"])
    return None if version is None else str(version)


def semver_constraint(case: Case) -> bool:
    version = semver.parse_version(case["version"], strict=False)
    if version is None:
        raise ValueError(f"{case['version']!r} is no version")
    return semver.parse_constraint(case["constraint"]).admits(version)


def semver_sort(case: Case) -> list[str]:
    versions = [semver.parse_version(text, strict=False) for text in case["versions"]]
    return [version.original for version in sorted(version for version in versions if version is not None)]


def _image(given: Case) -> ImageSubscription:
    return ImageSubscription(
        repo_url="reg.example/a/b",
        strategy=ImageSelectionStrategy(given.get("imageSelectionStrategy") or "SemVer"),
        constraint=given.get("constraint", ""),
        strict_semvers=given.get("strictSemvers", False),
        allow_tags_regexes=tuple(given.get("allowTagsRegexes", ())),
        ignore_tags_regexes=tuple(given.get("ignoreTagsRegexes", ())),
        discovery_limit=given.get("discoveryLimit", 0),
    )


def image_selection(case: Case) -> list[str]:
    subscription = _image(case["subscription"])
    tags = [item if isinstance(item, str) else item["tag"] for item in case["tags"]]
    ordered = selection.order_image_tags(subscription, tags)
    if subscription.strategy is ImageSelectionStrategy.NEWEST_BUILD:
        created = {item["tag"]: parse_time(item["created"]) for item in case["tags"]}
        ordered = selection.keep_newest_builds(
            {tag: created[tag] for tag in ordered}, subscription.discovery_limit
        )
    limit = subscription.discovery_limit
    return list(ordered[:limit] if limit else ordered)


def image_platform(case: Case) -> bool:
    return selection.matches_platform(case["constraint"], case["os"], case["arch"], case["variant"])


def chart_selection(case: Case) -> list[str]:
    given = case["subscription"]
    oci = case["source"] == "oci"
    subscription = ChartSubscription(
        repo_url="oci://reg.example/charts/web" if oci else "https://charts.example",
        chart=given.get("name", ""),
        semver_constraint=given.get("semverConstraint", ""),
    )
    if oci:
        versions = case["tags"]
    else:
        versions = [entry["version"] for entry in case["index"]["entries"].get(subscription.chart, [])]
    found = selection.order_chart_versions(subscription, versions, oci=oci)
    return list(found[: given.get("discoveryLimit", len(found))])


def build_git(given: Case) -> GitSubscription:
    """A git subscription without defaults, as the cases state it."""
    return GitSubscription(
        repo_url="https://git.example/acme/app",
        strategy=CommitSelectionStrategy(given.get("commitSelectionStrategy") or "NewestFromBranch"),
        branch=given.get("branch", ""),
        semver_constraint=given.get("semverConstraint", ""),
        strict_semvers=given.get("strictSemvers", False),
        allow_tags_regexes=tuple(given.get("allowTagsRegexes", ())),
        ignore_tags_regexes=tuple(given.get("ignoreTagsRegexes", ())),
        expression_filter=given.get("expressionFilter", ""),
        include_paths=tuple(given.get("includePaths", ())),
        exclude_paths=tuple(given.get("excludePaths", ())),
        discovery_limit=given.get("discoveryLimit", 0),
    )


def git_ref_match(case: Case) -> bool:
    return selection.accepts_git_ref(build_git(case["subscription"]), case["ref"])
