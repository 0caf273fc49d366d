"""Which discovered artifacts a subscription takes, newest first.

The orders and filters are Kargo's. Everything that costs a request (metadata of a tag, changed paths of a commit)
is left to the caller: `order_*` says in which order to ask, `keep_*` what to keep of the answers. Expression
filters come in as functions, since this layer knows no expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cmp_to_key
from itertools import islice
from typing import Protocol, TypeVar

from bot.domain.model import (
    ChartSubscription,
    CommitSelectionStrategy,
    GitSubscription,
    ImageSelectionStrategy,
    ImageSubscription,
)
from bot.domain.patterns import compile_path_filter
from bot.domain.regex import compile_regex
from bot.domain.semver import Version, compare, parse_constraint, parse_tag, parse_version

DEFAULT_BRANCHES = ("main", "master")
"""Branches that a pushed ref may name when the subscription names none."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class GitTag:
    """A tag as discovery sees it; `author` and `tagger` read `Name <address>`, empty where there is none."""

    tag: str
    id: str
    created_at: datetime | None = None
    author: str = ""
    committer: str = ""
    subject: str = ""
    tagger: str = ""
    annotation: str = ""


@dataclass(frozen=True, slots=True)
class BranchCommit:
    """A commit of a branch as discovery sees it."""

    id: str
    committed_at: datetime | None = None
    author: str = ""
    committer: str = ""
    subject: str = ""


class _TagFilter(Protocol):
    """The part of a subscription that filters tags by regular expressions."""

    @property
    def allow_tags_regexes(self) -> tuple[str, ...]: ...

    @property
    def ignore_tags_regexes(self) -> tuple[str, ...]: ...


# -- Tags ----------------------------------------------------------------------------------------------------


def filter_tags(subscription: _TagFilter, tags: Iterable[str]) -> list[str]:
    """The tags that no ignore expression finds and (if there are any) some allow expression does."""
    allow = [compile_regex(pattern) for pattern in subscription.allow_tags_regexes]
    ignore = [compile_regex(pattern) for pattern in subscription.ignore_tags_regexes]
    return [
        tag
        for tag in tags
        if not any(regex.search(tag) for regex in ignore)
        and (not allow or any(regex.search(tag) for regex in allow))
    ]


def sort_versions(texts: Iterable[str], constraint: str, parse: Callable[[str], Version | None]) -> list[str]:
    """The texts that are versions and satisfy the constraint (empty: all), newest first; ties by text, descending."""
    wanted = parse_constraint(constraint) if constraint else None
    found: list[tuple[Version, str]] = []
    for text in texts:
        version = parse(text)
        if version is not None and (wanted is None or wanted.admits(version)):
            found.append((version, text))
    found.sort(key=_by_text, reverse=True)
    found.sort(key=cmp_to_key(_newest_first))
    return [text for _, text in found]


def _by_text(item: tuple[Version, str]) -> str:
    return item[1]


def _newest_first(one: tuple[Version, str], other: tuple[Version, str]) -> int:
    return compare(other[0], one[0])


def order_image_tags(subscription: ImageSubscription, tags: Iterable[str]) -> tuple[str, ...]:
    """The tags worth asking metadata for, in the order in which to ask; the limit is not applied.

    NewestBuild needs the metadata of all of them, in any order; Digest has at most one. Raises ValueError for a
    wrong expression or constraint.
    """
    match subscription.strategy:
        case ImageSelectionStrategy.DIGEST:
            if not subscription.constraint:
                raise ValueError("the strategy Digest needs the tag to follow as constraint")
            return (subscription.constraint,) if subscription.constraint in set(tags) else ()
        case ImageSelectionStrategy.NEWEST_BUILD:
            return tuple(filter_tags(subscription, tags))
        case ImageSelectionStrategy.LEXICAL:
            return tuple(sorted(filter_tags(subscription, tags), reverse=True))
        case ImageSelectionStrategy.SEMVER:
            strict = subscription.strict_semvers
            return tuple(
                sort_versions(
                    filter_tags(subscription, tags),
                    subscription.constraint,
                    lambda tag: parse_tag(tag, strict=strict),
                )
            )


def keep_newest_builds(created: Mapping[str, datetime], limit: int) -> tuple[str, ...]:
    """Tags by time of creation, newest first, ties by tag descending; `limit` below one means no limit."""
    newest = sorted(created, reverse=True)
    newest.sort(key=lambda tag: created[tag], reverse=True)
    return tuple(newest[:limit] if limit > 0 else newest)


def matches_platform(constraint: str, os: str, arch: str, variant: str = "") -> bool:
    """Whether an image for this platform is what `os/arch[/variant]` asks for; no constraint takes every image.

    Raises ValueError for a constraint of another form.
    """
    if not constraint:
        return True
    wanted = constraint.split("/")
    if len(wanted) not in {2, 3} or not all(wanted):
        raise ValueError(f"{constraint!r} is no platform; write it like linux/amd64")
    return [*wanted, ""][:3] == [os, arch, variant]


def accepts_image_tag(subscription: ImageSubscription, tag: str) -> bool:
    """Whether a push of this tag could change what the subscription selects."""
    return tag in order_image_tags(subscription, [tag])


# -- Charts --------------------------------------------------------------------------------------------------


def order_chart_versions(
    subscription: ChartSubscription, versions: Iterable[str], *, oci: bool
) -> tuple[str, ...]:
    """The chart versions that the subscription takes, newest first; the limit is not applied.

    An OCI registry's tags must be strict versions, with `_` standing for `+`; a chart index may be lenient.
    """
    texts = (version.replace("_", "+") for version in versions) if oci else versions
    return tuple(
        sort_versions(texts, subscription.semver_constraint, lambda text: parse_version(text, strict=oci))
    )


# -- Git -----------------------------------------------------------------------------------------------------


def order_git_tags(
    subscription: GitSubscription, tags: Sequence[GitTag], keeps: Callable[[GitTag], bool] | None = None
) -> tuple[GitTag, ...]:
    """The tags that pass expressions and constraint, in the strategy's order; paths and limit are not applied.

    `tags` come newest first; `keeps` is the subscription's `expressionFilter`.
    """
    passing = set(filter_tags(subscription, (tag.tag for tag in tags)))
    found = [tag for tag in tags if tag.tag in passing]
    if subscription.strategy is CommitSelectionStrategy.SEMVER:
        strict = subscription.strict_semvers
        versions = sort_versions(
            (tag.tag for tag in found),
            subscription.semver_constraint,
            lambda text: parse_tag(text, strict=strict),
        )
        by_name = {tag.tag: tag for tag in found}
        found = [by_name[version] for version in versions]
    elif subscription.strategy is CommitSelectionStrategy.LEXICAL:
        found.sort(key=lambda tag: tag.tag, reverse=True)
    return tuple(found if keeps is None else filter(keeps, found))


def order_branch_commits(
    subscription: GitSubscription,
    commits: Iterable[BranchCommit],
    keeps: Callable[[BranchCommit], bool] | None = None,
) -> tuple[BranchCommit, ...]:
    """The commits (newest first) that are not older than `since` and pass the expression; no paths, no limit."""
    since = subscription.since
    return tuple(
        commit
        for commit in commits
        if (since is None or commit.committed_at is None or commit.committed_at >= since)
        and (keeps is None or keeps(commit))
    )


def keep_by_paths(
    subscription: GitSubscription, items: Iterable[Item], changed: Callable[[Item], Sequence[str]]
) -> tuple[Item, ...]:
    """The first items whose changed paths pass the filter, up to the discovery limit.

    `changed` is asked only if the subscription filters paths, and no more often than needed.
    """
    keeps = compile_path_filter(subscription.include_paths, subscription.exclude_paths)
    if subscription.include_paths or subscription.exclude_paths:
        items = (item for item in items if keeps(changed(item)))
    return tuple(islice(items, subscription.discovery_limit) if subscription.discovery_limit > 0 else items)


def accepts_git_ref(subscription: GitSubscription, ref: str) -> bool:
    """Whether a push of this full ref could change what the subscription selects.

    Without a branch, `main` and `master` count, since the default branch is not known from the event.
    """
    if subscription.strategy is CommitSelectionStrategy.NEWEST_FROM_BRANCH:
        branch = ref.removeprefix("refs/heads/")
        if branch == ref:
            return False
        return branch == subscription.branch if subscription.branch else branch in DEFAULT_BRANCHES
    tag = ref.removeprefix("refs/tags/")
    return tag != ref and bool(tag) and bool(order_git_tags(subscription, [GitTag(tag=tag, id="")]))
