"""Commits that a git subscription offers: Kargo's four strategies on the mirrors, without our own commits."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from bot.domain.discovery import SUBJECT_LENGTH, Find, SubscriptionFinds
from bot.domain.files import CommitId
from bot.domain.freight import GitCommit
from bot.domain.model import CommitSelectionStrategy, GitSubscription
from bot.domain.patterns import compile_path_filter
from bot.domain.selection import BranchCommit, GitTag, order_branch_commits, order_git_tags
from bot.expressions.errors import ExpressionError
from bot.expressions.facts import DiscoveredCommit
from bot.expressions.filters import keeps_commit, keeps_tag
from bot.ports import Clock, Commit, Git, Signature, TerminalError, WatchedGit
from bot.workflow.own_commits import OwnCommits
from bot.workflow.taken import Taken, not_offered

_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_BATCH = 250
_MOST_COMMITS = 20_000
"""How far back a branch is read for commits that pass the filters."""
_MOST_TAGS = 2_000
"""How many tags that pass the other filters are asked for their changed paths."""
_TAG_BATCH = 50
_MOST_REMEMBERED = 500


@dataclass(frozen=True, slots=True)
class _Found:
    """Commits newest first, and what must be said of those that were left out."""

    commits: tuple[DiscoveredCommit, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Watched:
    """One repository as one subscription sees it."""

    git: Git
    subscription: GitSubscription

    @property
    def url(self) -> str:
        """The repository's address."""
        return self.subscription.repo_url

    @property
    def limit(self) -> int:
        """How many commits are offered."""
        return max(self.subscription.discovery_limit, 1)


@dataclass(frozen=True, slots=True)
class CommitFinder:
    """Finds commits. A subscription whose branch or tags have not moved since the last look is not read again."""

    watched: WatchedGit
    own: OwnCommits
    clock: Clock
    known: OrderedDict[tuple[object, ...], _Found] = field(default_factory=OrderedDict)

    async def find(self, project: str, subscription: GitSubscription) -> Taken:
        """What the subscription offers now. Raises TransientError and TerminalError as `Git` does."""
        found = await self._look(project, subscription)
        told = _told(subscription, found)
        return _taken(subscription, told, found.commits[0]) if found.commits else Taken(told)

    async def pick(self, project: str, subscription: GitSubscription, version: str) -> Taken:
        """The commit with this tag, or whose id begins so, if it is among what the subscription offers now."""
        found = await self._look(project, subscription)
        told = _told(subscription, found)
        fitting = [commit for commit in found.commits if commit.tag == version]
        if not fitting and _COMMIT.fullmatch(version.lower()) is not None:
            fitting = [commit for commit in found.commits if commit.id.startswith(version.lower())]
        if len({commit.id for commit in fitting}) > 1:
            return not_offered(told, version, f"several commits begin with {version}")
        return _taken(subscription, told, fitting[0]) if fitting else not_offered(told, version)

    async def _look(self, project: str, subscription: GitSubscription) -> _Found:
        url = subscription.repo_url
        git = await self.watched.open(
            project,
            url,
            insecure=subscription.insecure_skip_tls_verify,
            blobless=subscription.blobless,
        )
        await git.fetch(url)
        watched = _Watched(git, subscription)
        try:
            if subscription.strategy is CommitSelectionStrategy.NEWEST_FROM_BRANCH:
                return await self._from_branch(project, watched)
            return await self._from_tags(project, watched)
        except (ExpressionError, ValueError) as error:
            raise TerminalError(f"the subscription to {url} cannot be carried out: {error}") from error

    # -- branches ------------------------------------------------------------------------------------------------

    async def _from_branch(self, project: str, watched: _Watched) -> _Found:
        subscription = watched.subscription
        branch = subscription.branch or await watched.git.default_branch(watched.url)
        head = await watched.git.resolve(watched.url, f"refs/heads/{branch}")
        if head is None:
            return _Found((), f"there is no branch {branch}")
        key = (project, subscription, branch, head)
        known = self._remembered(key)
        if known is not None:
            return known
        kept: list[DiscoveredCommit] = []
        own = 0
        newer: deque[Commit] = deque(maxlen=_BATCH)
        async for commit, passes in self._mainline(watched, head):
            if passes:
                if await self.own.is_own(watched.git, watched.url, commit, tuple(newer)):
                    own += 1
                else:
                    kept.append(_discovered(commit, branch))
            newer.appendleft(commit)
            if len(kept) == watched.limit:
                break
        return self._remember(key, _Found(tuple(kept), _note(own, kept, f"no commit of {branch}")))

    async def _mainline(self, watched: _Watched, head: CommitId) -> AsyncIterator[tuple[Commit, bool]]:
        """The branch's commits, newest first, each with whether it passes the subscription's filters."""
        subscription = watched.subscription
        for skip in range(0, _MOST_COMMITS, _BATCH):
            batch = await watched.git.list_mainline(watched.url, head, skip=skip, limit=_BATCH)
            shown = {commit.id: _branch_commit(commit) for commit in batch}
            keeps = partial(keeps_commit, subscription.expression_filter, now=self.clock.now())
            wanted = {item.id for item in order_branch_commits(subscription, shown.values(), keeps)}
            passing = await _keep_by_paths(watched, [commit for commit in batch if commit.id in wanted])
            for commit in batch:
                yield commit, commit.id in passing
            since = subscription.since
            if len(batch) < _BATCH or (since is not None and all(c.committer.at < since for c in batch)):
                return

    # -- tags ----------------------------------------------------------------------------------------------------

    async def _from_tags(self, project: str, watched: _Watched) -> _Found:
        subscription = watched.subscription
        tags = tuple(await watched.git.list_tags(watched.url))
        key = (project, subscription, hash(tags), len(tags))
        known = self._remembered(key)
        if known is not None:
            return known
        keeps = partial(keeps_tag, subscription.expression_filter, now=self.clock.now())
        kept: list[DiscoveredCommit] = []
        own = 0
        ordered = await asyncio.to_thread(order_git_tags, subscription, tags, keeps)
        async for tag, commit in _passing_tags(watched, ordered[:_MOST_TAGS]):
            if await self.own.is_own(watched.git, watched.url, commit):
                own += 1
            else:
                kept.append(_discovered_tag(tag))
            if len(kept) == watched.limit:
                break
        return self._remember(key, _Found(tuple(kept), _note(own, kept, "no tag")))

    # -- what was found before -------------------------------------------------------------------------------------

    def _remembered(self, key: tuple[object, ...]) -> _Found | None:
        found = self.known.get(key)
        if found is not None:
            self.known.move_to_end(key)
        return found

    def _remember(self, key: tuple[object, ...], found: _Found) -> _Found:
        subscription = key[1]
        # An expression may ask for the time, and then tomorrow's answer is another.
        if isinstance(subscription, GitSubscription) and "now(" not in subscription.expression_filter:
            self.known[key] = found
            while len(self.known) > _MOST_REMEMBERED:
                self.known.popitem(last=False)
        return found


async def _keep_by_paths(watched: _Watched, commits: Sequence[Commit]) -> frozenset[CommitId]:
    """The commits whose changed paths pass the subscription's path filter."""
    subscription = watched.subscription
    if not subscription.include_paths and not subscription.exclude_paths:
        return frozenset(commit.id for commit in commits)
    keeps = compile_path_filter(subscription.include_paths, subscription.exclude_paths)
    changed = await watched.git.list_changed_paths(watched.url, commits)
    return frozenset(commit for commit, paths in changed.items() if keeps(paths))


async def _passing_tags(watched: _Watched, tags: Sequence[GitTag]) -> AsyncIterator[tuple[GitTag, Commit]]:
    """The tags whose commits pass the path filter, in the same order, read as far as they are asked for."""
    for start in range(0, len(tags), _TAG_BATCH):
        batch = tags[start : start + _TAG_BATCH]
        commits = await watched.git.read_commits(watched.url, [CommitId(tag.id) for tag in batch])
        passing = await _keep_by_paths(watched, list({commit.id: commit for commit in commits}.values()))
        for tag, commit in zip(batch, commits, strict=True):
            if commit.id in passing:
                yield tag, commit


def _note(own: int, kept: Sequence[DiscoveredCommit], nothing: str) -> str:
    """What must be said beside the finds."""
    said = [] if kept else [f"{nothing} passes the subscription's filters"]
    if own == 1:
        said.append("one commit that Lockstep made itself was passed over")
    elif own:
        said.append(f"{own} commits that Lockstep made itself were passed over")
    return "; ".join(said)


def _branch_commit(commit: Commit) -> BranchCommit:
    return BranchCommit(
        id=commit.id,
        committed_at=commit.committer.at,
        author=_person(commit.author),
        committer=_person(commit.committer),
        subject=_subject(commit),
    )


def _discovered(commit: Commit, branch: str) -> DiscoveredCommit:
    return DiscoveredCommit(
        id=commit.id,
        branch=branch,
        subject=_subject(commit)[:SUBJECT_LENGTH],
        author=_person(commit.author),
        committer=_person(commit.committer),
        creator_date=commit.committer.at,
    )


def _discovered_tag(tag: GitTag) -> DiscoveredCommit:
    return DiscoveredCommit(
        id=tag.id,
        tag=tag.tag,
        subject=tag.subject[:SUBJECT_LENGTH],
        author=tag.author,
        committer=tag.committer,
        creator_date=tag.created_at,
    )


def _told(subscription: GitSubscription, found: _Found) -> SubscriptionFinds:
    finds = tuple(
        Find(commit.tag or commit.id[:12], commit.id, commit.creator_date, commit.subject)
        for commit in found.commits
    )
    return SubscriptionFinds("git", subscription.repo_url, subscription.name, finds, found.note)


def _taken(subscription: GitSubscription, told: SubscriptionFinds, commit: DiscoveredCommit) -> Taken:
    return Taken(told, _artifact(subscription, commit), commit)


def _artifact(subscription: GitSubscription, commit: DiscoveredCommit) -> GitCommit:
    return GitCommit(
        repo_url=subscription.repo_url,
        id=commit.id,
        branch=commit.branch,
        tag=commit.tag,
        message=commit.subject,
        author=commit.author,
        committer=commit.committer,
        subscription_name=subscription.name,
    )


def _person(who: Signature) -> str:
    return f"{who.name} <{who.email}>"


def _subject(commit: Commit) -> str:
    """Git's subject: the lines of the first paragraph, joined."""
    return " ".join(commit.message.strip("\n").partition("\n\n")[0].split("\n")).strip()
