"""Which commits of a watched repository are our own, so that what a promotion writes is no new release."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bot.domain.files import CommitId
from bot.domain.github import PullNumber, PullRequest, Repository
from bot.domain.marker import is_signed_message
from bot.ports import Commit, Conflicted, Git

_MOST_REMEMBERED = 20_000
_NUMBER = re.compile(r"\(#(\d{1,9})\)\s*$")


class Promotions(Protocol):
    """What is asked of the store."""

    async def find_merge_of_pull(self, url: str, pull: int) -> str | None:
        """The commit that a promotion's pull request became, empty if not known; None if it is no promotion's."""


class Pulls(Protocol):
    """What is asked of GitHub."""

    def repository_of(self, url: str) -> Repository | None:
        """The repository that an address names, None if it lies elsewhere."""

    def clone_url(self, repository: Repository) -> str:
        """The address by which the store knows it."""

    async def get_pull_request(self, repository: Repository, number: PullNumber) -> PullRequest:
        """A pull request as it is now."""


@dataclass(frozen=True, slots=True)
class OwnCommits:
    """Tells our commits apart. `keyed` is the hash that trailers are signed with, `emails` gives the
    addresses we commit with.

    Ours is a commit

    * with a trailer `Lockstep-Marker` that we signed, which a squash or a rebase by GitHub keeps;
    * that merges a branch whose head is such a commit: the head of every promotion branch is, also under commits of
      people, since it carries the digest that they approve;
    * that GitHub made of a promotion's pull request, by what the store and GitHub say of the number in its subject: a
      repository may be set to squash without the messages of the commits;
    * that was written with our address and is followed by a signed commit on the same branch, if a promotion's
      branch of several commits was rebased: only its last one is signed.

    An address alone proves nothing, as anybody can commit with it.
    """

    keyed: Callable[[bytes], str]
    emails: Callable[[], Collection[str]]
    promotions: Promotions
    pulls: Pulls
    known: OrderedDict[tuple[str, CommitId], bool] = field(default_factory=OrderedDict)

    async def is_own(self, git: Git, url: str, commit: Commit, newer: Sequence[Commit] = ()) -> bool:
        """Whether a commit is ours; `newer` are those that follow it on its branch, the next one first."""
        key = (url, commit.id)
        if key not in self.known:
            self.known[key] = await self._is_signed(git, url, commit)
            while len(self.known) > _MOST_REMEMBERED:
                self.known.popitem(last=False)
        return self.known[key] or self._is_vouched_for(commit, newer)

    def _is_vouched_for(self, commit: Commit, newer: Sequence[Commit]) -> bool:
        if not self._is_written(commit):
            return False
        for following in newer:
            if not self._is_written(following):
                return False
            if self._says(following):
                return True
        return False

    def _is_written(self, commit: Commit) -> bool:
        """Whether it carries our address and is no merge."""
        return len(commit.parents) <= 1 and commit.author.email in self.emails()

    async def _is_signed(self, git: Git, url: str, commit: Commit) -> bool:
        if self._says(commit):
            return True
        for parent in commit.parents[1:]:
            if self._says(await git.read_commit(url, parent)):
                return True
        return await self._is_merge_of_promotion(url, commit)

    async def _is_merge_of_promotion(self, url: str, commit: Commit) -> bool:
        found = _NUMBER.search(commit.message.partition("\n")[0])
        repository = self.pulls.repository_of(url)
        if found is None or repository is None:
            return False
        number = PullNumber(int(found[1]))
        merge = await self.promotions.find_merge_of_pull(self.pulls.clone_url(repository), number)
        if merge is None:
            return False
        if merge == commit.id:
            return True
        # The Stage may not have been looked at since the merge.
        return (await self.pulls.get_pull_request(repository, number)).merge_commit == commit.id

    def _says(self, commit: Commit) -> bool:
        return is_signed_message(commit.message, self.keyed)


async def adds_nothing(git: Git, url: str, commit: Commit, tip: CommitId) -> bool:
    """Whether a commit is no merge, or exactly what git makes of merging the target, which is at `tip`, into it."""
    if len(commit.parents) <= 1:
        return True
    if len(commit.parents) > 2 or not await git.is_ancestor(url, commit.parents[1], tip):
        return False
    made = await git.merge_trees(url, commit.parents[1], commit.parents[0])
    return not isinstance(made, Conflicted) and made.tree == commit.tree
