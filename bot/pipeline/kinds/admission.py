"""What Kargo's admission asks of resources beyond their schemas: how fields go together, and what must be unique.

Every rule takes a `spec` of any shape and passes over what the schema has complained about already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from bot.domain.patterns import compile_name_pattern
from bot.domain.problems import Severity
from bot.domain.semver import parse_constraint
from bot.domain.tasks import is_reserved_alias
from bot.domain.urls import normalize_chart_url, normalize_git_url, normalize_image_url
from bot.domain.values import Json
from bot.pipeline.access import bool_at, int_at, list_at, mapping_at, mappings_at, text_at
from bot.pipeline.field_patterns import is_valid_field
from bot.pipeline.kinds.selectors import check_selector
from bot.pipeline.kinds.tables import RECEIVER_VENDORS
from bot.pipeline.reader import Path
from bot.pipeline.schema import Finding, listed, nearest, shown

BUILT_IN_SUBSCRIPTIONS = ("image", "git", "chart")
SPEC: Path = ("spec",)
_OWNER_CLAIMS = (
    "repository",
    "repository_id",
    "repository_owner",
    "repository_owner_id",
    "project_path",
    "project_id",
    "namespace_path",
    "namespace_id",
    "sub",
)
"""Claims of GitHub's and GitLab's tokens that say whose job it is."""


# -- Stage, PromotionTask ------------------------------------------------------------------------------------------


def admit_stage(spec: dict[str, Json]) -> Iterator[Finding]:
    """The rules of a Stage."""
    yield from _requested_freight(mappings_at(spec, "requestedFreight"))
    steps_path: Path = (*SPEC, "promotionTemplate", "spec", "steps")
    steps = mappings_at(spec, "promotionTemplate", "spec", "steps")
    yield from check_aliases(steps, steps_path)
    for index, step in enumerate(steps):
        if "task" in step:
            for key in ("if", "config", "retry", "continueOnError"):
                if step.get(key) not in (None, False, ""):
                    yield Finding(
                        (*steps_path, index, key), f"a step that stands for a task cannot have '{key}'"
                    )


def _requested_freight(requests: list[dict[str, Json]]) -> Iterator[Finding]:
    seen: set[tuple[str, str]] = set()
    for index, request in enumerate(requests):
        path: Path = (*SPEC, "requestedFreight", index)
        origin = mapping_at(request, "origin")
        key = (text_at(origin, "kind"), text_at(origin, "name"))
        if key in seen and all(key):
            yield Finding(path, f"Freight of {'/'.join(key)} is requested twice")
        seen.add(key)
        sources = mapping_at(request, "sources")
        policy = text_at(mapping_at(sources, "autoPromotionOptions"), "selectionPolicy")
        if policy == "MatchUpstream" and (bool_at(sources, "direct") or len(list_at(sources, "stages")) != 1):
            yield Finding(
                (*path, "sources", "autoPromotionOptions", "selectionPolicy"),
                "MatchUpstream needs exactly one upstream Stage, and no direct: true",
            )


def check_aliases(steps: list[dict[str, Json]], path: Path) -> Iterator[Finding]:
    """Aliases must be unique, and not of the form that steps without one get."""
    seen: dict[str, int] = {}
    for index, step in enumerate(steps):
        alias = text_at(step, "as").strip()
        if not alias:
            continue
        if alias in seen:
            yield Finding(
                (*path, index, "as"), f"{shown(alias)} is the name of step {seen[alias] + 1} already"
            )
        seen.setdefault(alias, index)
        if is_reserved_alias(alias):
            yield Finding(
                (*path, index, "as"),
                f"{shown(alias)} is reserved for steps without a name; choose another one",
            )


def admit_task(spec: dict[str, Json]) -> Iterator[Finding]:
    """The rules of a PromotionTask."""
    steps = mappings_at(spec, "steps")
    yield from check_aliases(steps, (*SPEC, "steps"))
    for index, step in enumerate(steps):
        if "task" in step:
            yield Finding((*SPEC, "steps", index, "task"), "a task cannot hold another task")


# -- Warehouse -------------------------------------------------------------------------------------------------


def admit_warehouse(spec: dict[str, Json]) -> Iterator[Finding]:
    """The rules of a Warehouse."""
    names: dict[str, int] = {}
    seen: dict[tuple[str, str], int] = {}
    for index, subscription in enumerate(mappings_at(spec, "subscriptions")):
        path: Path = (*SPEC, "subscriptions", index)
        name = text_at(subscription, "name").strip().lower()
        if name and name in names:
            yield Finding(
                (*path, "name"), f"{shown(name)} is the name of subscription {names[name] + 1} already"
            )
        names.setdefault(name, index)
        kinds = [key for key in subscription if key != "name"]
        if len(kinds) != 1:
            yield Finding(path, f"give exactly one of {listed(BUILT_IN_SUBSCRIPTIONS)}")
            continue
        yield from _subscription(kinds[0], subscription, path)
        identity = _identity(kinds[0], mapping_at(subscription, kinds[0]))
        if identity and (kinds[0], identity) in seen:
            earlier = seen[(kinds[0], identity)] + 1
            yield Finding((*path, kinds[0]), f"subscription {earlier} is to the same repository already")
        seen.setdefault((kinds[0], identity), index)


def _subscription(kind: str, subscription: dict[str, Json], path: Path) -> Iterator[Finding]:
    body = mapping_at(subscription, kind)
    below: Path = (*path, kind)
    if kind == "image":
        yield from _image(body, below)
    elif kind == "git":
        yield from _git(body, below)
    elif kind == "chart":
        yield from _chart(body, below)
    else:
        hint = nearest(kind, BUILT_IN_SUBSCRIPTIONS)
        if hint:
            yield Finding(below, f"unknown kind of subscription {shown(kind)}{hint}")
        if not text_at(subscription, "name"):
            yield Finding((*path, "name"), f"a subscription of kind {shown(kind)} needs a name")


def _identity(kind: str, body: dict[str, Json]) -> str:
    url = text_at(body, "repoURL")
    if not url:
        return ""
    if kind == "image":
        return normalize_image_url(url)
    if kind == "git":
        return normalize_git_url(url)
    chart = f":{text_at(body, 'name')}" if url.startswith("http") else ""
    return f"{normalize_chart_url(url)}{chart}" if kind == "chart" else ""


def _image(body: dict[str, Json], path: Path) -> Iterator[Finding]:
    strategy = text_at(body, "imageSelectionStrategy", "SemVer") or "SemVer"
    constraint = text_at(body, "constraint")
    if strategy == "SemVer":
        yield from _constraint(constraint, (*path, "constraint"))
    if strategy == "Digest" and not constraint:
        yield Finding((*path, "constraint"), "the strategy Digest needs the tag to follow as constraint")
    platform = text_at(body, "platform")
    if platform and not re.fullmatch(r"\w+/\w+(/\w+)?", platform, re.ASCII):
        yield Finding((*path, "platform"), f"{shown(platform)} is no platform; write it like linux/amd64")


def _git(body: dict[str, Json], path: Path) -> Iterator[Finding]:
    yield from _constraint(text_at(body, "semverConstraint"), (*path, "semverConstraint"))
    since = text_at(body, "since")
    if since and parse_time(since) is None:
        yield Finding((*path, "since"), f"{shown(since)} is no time; write it like 2026-01-31T00:00:00Z")
    url = text_at(body, "repoURL")
    if is_valid_field("git_url", url) and not url.startswith(("http://", "https://")):
        message = "ssh addresses are deprecated; write https://host/owner/repository"
        yield Finding((*path, "repoURL"), message, Severity.WARNING)


def _chart(body: dict[str, Json], path: Path) -> Iterator[Finding]:
    yield from _constraint(text_at(body, "semverConstraint"), (*path, "semverConstraint"))
    url, name = text_at(body, "repoURL"), text_at(body, "name")
    if url.startswith("oci://") and name:
        yield Finding((*path, "name"), "an oci:// repository is one chart: leave name out")
    if url.startswith(("http://", "https://")) and not name:
        yield Finding((*path, "name"), "'name' is missing: which chart of the repository?")


def _constraint(text: str, path: Path) -> Iterator[Finding]:
    if text:
        try:
            parse_constraint(text)
        except ValueError as error:
            yield Finding(path, str(error))


def parse_time(text: str) -> datetime | None:
    """The moment that an RFC 3339 text stands for, or None; a time without zone is none."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


# -- Project and cluster configuration -----------------------------------------------------------------------------


def admit_project(spec: dict[str, Json]) -> Iterator[Finding]:
    """The rules of a Project that still holds policies."""
    yield from _policies(mappings_at(spec, "promotionPolicies"))


def admit_project_config(spec: dict[str, Json]) -> Iterator[Finding]:
    """The rules of a ProjectConfig."""
    yield from _policies(mappings_at(spec, "promotionPolicies"))
    yield from admit_cluster_config(spec)


def admit_cluster_config(spec: dict[str, Json]) -> Iterator[Finding]:
    """The rules of a ClusterConfig."""
    for index, receiver in enumerate(mappings_at(spec, "webhookReceivers")):
        vendors = [vendor for vendor in RECEIVER_VENDORS if vendor in receiver]
        if len(vendors) != 1:
            found = f", not {len(vendors)} ({listed(vendors)})" if vendors else ""
            yield Finding((*SPEC, "webhookReceivers", index), f"give exactly one kind of receiver{found}")
        yield from _generic_receiver(
            mapping_at(receiver, "generic"), (*SPEC, "webhookReceivers", index, "generic")
        )
        if "ci" in receiver:
            yield from _ci_receiver(mapping_at(receiver, "ci"), (*SPEC, "webhookReceivers", index, "ci"))
    for index, window in enumerate(mappings_at(spec, "promotionWindows")):
        for key in ("stageSelector", "projectSelector"):
            path: Path = (*SPEC, "promotionWindows", index, key)
            yield from check_selector(mapping_at(window, key), path)


def _generic_receiver(body: dict[str, Json], path: Path) -> Iterator[Finding]:
    for index, action in enumerate(mappings_at(body, "actions")):
        where: Path = (*path, "actions", index)
        for number, target in enumerate(mappings_at(action, "targetSelectionCriteria")):
            labels = mapping_at(target, "labelSelector")
            indices = list_at(target, "indexSelector", "matchIndices")
            if not any((text_at(target, "name"), *map(bool, labels.values()), indices)):
                message = "give at least one of name, labelSelector and indexSelector"
                yield Finding((*where, "targetSelectionCriteria", number), message)


def _ci_receiver(body: dict[str, Json], path: Path) -> Iterator[Finding]:
    """GitHub's issuer signs tokens for everybody, so a receiver has to say whose it takes."""
    if "oidc" not in body:
        if not text_at(mapping_at(body, "secretRef"), "name"):
            yield Finding(path, "give secretRef (signed bodies), oidc (ID tokens) or both")
        return
    oidc = mapping_at(body, "oidc")
    claims = mapping_at(oidc, "claims")
    if not set(claims) & set(_OWNER_CLAIMS):
        message = f"give at least one claim that says whose job it is: {', '.join(_OWNER_CLAIMS)}"
        yield Finding((*path, "oidc", "claims"), message)
    issuer = text_at(oidc, "issuer")
    if issuer and not issuer.startswith("https://"):
        yield Finding((*path, "oidc", "issuer"), "the issuer's keys must come by https")
    for name, pattern in claims.items():
        try:
            compile_name_pattern(str(pattern))
        except ValueError as error:
            yield Finding((*path, "oidc", "claims", name), str(error))


def _policies(policies: list[dict[str, Json]]) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for index, policy in enumerate(policies):
        path: Path = (*SPEC, "promotionPolicies", index)
        yield from check_selector(mapping_at(policy, "stageSelector"), (*path, "stageSelector"))
        name = text_at(mapping_at(policy, "stageSelector"), "name") or text_at(policy, "stage")
        if not name or ":" in name:
            continue
        if name in seen:
            yield Finding(path, f"policy {seen[name] + 1} is for the Stage {shown(name)} already")
        seen.setdefault(name, index)


def admit_review_policy(spec: dict[str, Json]) -> Iterator[Finding]:
    """The rules of a ReviewPolicy."""
    yield from check_selector(mapping_at(spec, "stageSelector"), (*SPEC, "stageSelector"))
    if text_at(spec, "review") == "None" and text_at(spec, "apply") == "BeforeMerge":
        yield Finding((*SPEC, "apply"), "BeforeMerge means nothing where review is None: there is no merge")
    if spec.get("autoMerge") and int_at(mapping_at(spec, "approvals"), "count", 0) > 0:
        message = (
            "is not asked for with autoMerge, which merges without an approval; leave autoMerge out where a person is "
            "to approve"
        )
        yield Finding((*SPEC, "approvals", "count"), message, Severity.WARNING)
    yield from _masks(list_at(spec, "masks"))


def _masks(patterns: list[Json]) -> Iterator[Finding]:
    for index, pattern in enumerate(patterns):
        try:
            re.compile(str(pattern))
        except re.error as error:
            # With a mask that cannot be applied nothing at all would be shown.
            yield Finding((*SPEC, "masks", index), f"{shown(pattern)} is no regular expression: {error}")


def admit_anything(spec: dict[str, Json]) -> Iterator[Finding]:
    """No rules: what a document of another kind holds is its reader's business."""
    yield from ()
    del spec
