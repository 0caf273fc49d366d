"""Webhook receivers: at which address each is reached, and whom that which they were told concerns.

Addresses and matching are Kargo's ("Webhook Receivers" in its documentation). A Warehouse is concerned if one of its
subscriptions has the URL, in normal spelling, and would take the ref or tag; of git subscriptions also some changed
path must pass their filter, where the sender lists the paths. A push without any tag concerns nobody (in Kargo every
subscriber): it is a part of an index, whose own push follows. A payload says where to look and nothing else: tags and
commits are found again by discovery, and an address that stands in it is compared, never asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from bot.domain.model import (
    ChartSubscription,
    GenericSubscription,
    GitSubscription,
    ImageSubscription,
    LabelRequirement,
    Subscription,
    Warehouse,
    WebhookReceiver,
)
from bot.domain.patterns import compile_path_filter, matches_labels
from bot.domain.promotion import State, StepRun
from bot.domain.selection import accepts_git_ref, accepts_image_tag, order_chart_versions
from bot.domain.urls import normalize_chart_url, normalize_git_url, normalize_image_url

SECRET_KEYS: Mapping[str, str] = {
    "artifactory": "secret-token",
    "azure": "secret",
    "bitbucket": "secret",
    "dockerhub": "secret",
    "generic": "secret",
    "gitea": "secret",
    "github": "secret",
    "gitlab": "secret-token",
    "harbor": "auth-header",
    "quay": "secret",
    "ci": "secret",
    "distribution": "secret",
    "ecr": "secret",
    "gar": "secret",
    "nexus": "secret",
}
"""Every kind of receiver, and the key of its Secret that holds the credential. The first ten are Kargo's."""

TOKEN_VENDORS = ("ci", "gar")
"""Senders that prove by a signed token who they are; they need no Secret, which only makes their address longer."""


_MOST = 1000
"""Refs, tags or paths of one notice that are matched one by one; with more of them we look without asking which."""


@dataclass(frozen=True, slots=True)
class RefsMoved:
    """Refs of a git repository moved; `urls` are the addresses by which it may be known.

    `refs` are whole, such as `refs/heads/main`. `changed` has the paths that were touched; empty: not known.
    """

    urls: tuple[str, ...]
    refs: tuple[str, ...]
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TagsPushed:
    """Tags of an image or of a chart in an OCI registry were pushed; senders seldom say which of the two it is."""

    repository: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PullRequestEnded:
    """A pull request was merged or closed; `url` is its page."""

    url: str


@dataclass(frozen=True, slots=True)
class TargetsChosen:
    """What an action of a generic receiver chose: all that is given must hold.

    `kind` is Warehouse or Promotion. `subscribed` has pairs of a URL in normal spelling and whether the Warehouse must
    (True) or must not subscribe to it.
    """

    kind: str
    name: str = ""
    match_labels: Mapping[str, str] | None = None
    requirements: tuple[LabelRequirement, ...] = ()
    subscribed: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class ActionFailed:
    """An action of a generic receiver could not be evaluated; its other actions are carried out all the same."""

    reason: str


Notice = RefsMoved | TagsPushed | PullRequestEnded | TargetsChosen | ActionFailed
"""What a receiver was told."""


# -- Addresses -----------------------------------------------------------------------------------------------


def receiver_path(project: str, receiver: WebhookReceiver, secret: Mapping[str, str]) -> str:
    """`/<kind>/<sha256>` of project (empty for the cluster), name and credential: it cannot be guessed.

    Raises ValueError if the Secret lacks the credential that this kind needs.
    """
    key = SECRET_KEYS[receiver.vendor]
    value = secret.get(key, "")
    if not value and (receiver.secret or receiver.vendor not in TOKEN_VENDORS):
        raise ValueError(
            f"the Secret {receiver.secret!r} has no value under the key {key!r}, which {receiver.vendor} needs"
        )
    digest = hashlib.sha256(f"{project}{receiver.name}{value}".encode()).hexdigest()
    return f"/{receiver.vendor}/{digest}"


# -- Whom it concerns ----------------------------------------------------------------------------------------


def find_warehouses(
    notice: Notice, warehouses: Mapping[tuple[str, str], Warehouse], project: str
) -> tuple[tuple[str, str], ...]:
    """The Warehouses, as (project, name), that a notice concerns; an empty `project` looks in all of them."""
    if isinstance(notice, RefsMoved):
        notice = replace(notice, urls=tuple(normalize_git_url(url) for url in notice.urls if url))
    return tuple(
        key
        for key, warehouse in warehouses.items()
        if (not project or key[0] == project) and _concerns(notice, key[1], warehouse)
    )


def _concerns(notice: Notice, name: str, warehouse: Warehouse) -> bool:
    match notice:
        case RefsMoved():
            return any(_takes_refs(item, notice) for item in warehouse.subscriptions)
        case TagsPushed():
            return any(_takes_tags(item, notice) for item in warehouse.subscriptions)
        case PullRequestEnded() | ActionFailed():
            return False
        case TargetsChosen():
            return notice.kind == "Warehouse" and _is_chosen(notice, name, warehouse)
        case _:
            assert_never(notice)


def _takes_refs(subscription: Subscription, notice: RefsMoved) -> bool:
    if not isinstance(subscription, GitSubscription):
        return False
    if normalize_git_url(subscription.repo_url) not in notice.urls:
        return False
    if len(notice.refs) > _MOST:
        return True
    try:
        if not any(accepts_git_ref(subscription, ref) for ref in notice.refs if ref):
            return False
        keeps = compile_path_filter(subscription.include_paths, subscription.exclude_paths)
        return not notice.changed or len(notice.changed) > _MOST or keeps(notice.changed)
    except ValueError:
        # A pattern that is wrong: the look at the Warehouse says so, and no other Warehouse waits for it.
        return True


def _takes_tags(subscription: Subscription, notice: TagsPushed) -> bool:
    try:
        match subscription:
            case ImageSubscription():
                if _image_url(subscription.repo_url) != _image_url(notice.repository):
                    return False
                accepted = (accepts_image_tag(subscription, tag) for tag in notice.tags if tag)
                return len(notice.tags) > _MOST or any(accepted)
            case ChartSubscription():
                if normalize_chart_url(subscription.repo_url) != normalize_chart_url(notice.repository):
                    return False
                versions = order_chart_versions(subscription, filter(None, notice.tags[:_MOST]), oci=True)
                return len(notice.tags) > _MOST or bool(versions)
            case GitSubscription() | GenericSubscription():
                return False
            case _:
                assert_never(subscription)
    except ValueError:
        return True


def _image_url(url: str) -> str:
    # What is no valid reference comes back as it was written.
    return normalize_image_url(url).lower()


def _is_chosen(notice: TargetsChosen, name: str, warehouse: Warehouse) -> bool:
    if notice.name and notice.name != name:
        return False
    if not matches_labels(notice.match_labels or {}, notice.requirements, warehouse.metadata.labels):
        return False
    known = set(subscribed_urls(warehouse.subscriptions))
    return all((url in known) is wanted for url, wanted in notice.subscribed)


def subscribed_urls(subscriptions: Iterable[Subscription]) -> Iterator[str]:
    """The repositories of subscriptions, in normal spelling: Kargo's index `subscribedURLs`."""
    for subscription in subscriptions:
        match subscription:
            case GitSubscription():
                yield normalize_git_url(subscription.repo_url)
            case ImageSubscription():
                yield normalize_image_url(subscription.repo_url)
            case ChartSubscription():
                yield normalize_chart_url(subscription.repo_url)
            case GenericSubscription():
                continue
            case _:
                assert_never(subscription)


def waits_for_pull(state: State, runs: Sequence[StepRun], url: str) -> bool:
    """Whether a Promotion whose steps run has come to a `git-wait-for-pr` of the pull request with this page.

    `runs` are the steps that were begun.
    """
    return state is State.FULFILLING and any(
        run.kind == "git-wait-for-pr" and _page_of(run) == url.rstrip("/") for run in runs
    )


def _page_of(run: StepRun) -> str | None:
    pull = run.output.get("pr")
    page = pull.get("url") if isinstance(pull, Mapping) else None
    return page.rstrip("/") if isinstance(page, str) else None
