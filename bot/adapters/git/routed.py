"""The port `Git` over several others: each address is sent to one of them, always to the same one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from bot.adapters.git.environment import check_url
from bot.domain.files import CommitId, Entry, File, TreeId
from bot.domain.selection import GitTag
from bot.ports import Commit, Conflicted, Git, Merged, PushOutcome, Signature


class RoutedGit:
    """Asks `choose` once for every address whose mirror it is in, and stays with the answer.

    `choose` raises what `Git` raises.
    """

    def __init__(self, choose: Callable[[str], Awaitable[Git]]) -> None:
        self._choose = choose
        self._chosen: dict[str, Git] = {}

    async def _at(self, url: str) -> Git:
        if url not in self._chosen:
            # An address that may not be used is refused before anybody is asked for a login to it.
            chosen = await self._choose(check_url(url))
            self._chosen.setdefault(url, chosen)
        return self._chosen[url]

    async def fetch(self, url: str, *refs: str) -> None:
        """See `Git.fetch`."""
        await (await self._at(url)).fetch(url, *refs)

    async def resolve(self, url: str, revision: str) -> CommitId | None:
        """See `Git.resolve`."""
        return await (await self._at(url)).resolve(url, revision)

    async def default_branch(self, url: str) -> str:
        """See `Git.default_branch`."""
        return await (await self._at(url)).default_branch(url)

    async def list_files(self, url: str, tree: CommitId | TreeId) -> Mapping[str, Entry]:
        """See `Git.list_files`."""
        return await (await self._at(url)).list_files(url, tree)

    async def read_files(self, url: str, entries: Mapping[str, Entry]) -> Mapping[str, File]:
        """See `Git.read_files`."""
        return await (await self._at(url)).read_files(url, entries)

    async def write_tree(
        self, url: str, base: CommitId | TreeId | None, changes: Mapping[str, File | None]
    ) -> TreeId:
        """See `Git.write_tree`."""
        return await (await self._at(url)).write_tree(url, base, changes)

    async def commit(
        self, url: str, tree: TreeId, parents: Sequence[CommitId], message: str, signature: Signature
    ) -> CommitId:
        """See `Git.commit`."""
        return await (await self._at(url)).commit(url, tree, parents, message, signature)

    async def read_commit(self, url: str, commit: CommitId) -> Commit:
        """See `Git.read_commit`."""
        return await (await self._at(url)).read_commit(url, commit)

    async def read_commits(self, url: str, commits: Sequence[CommitId]) -> Sequence[Commit]:
        """See `Git.read_commits`."""
        return await (await self._at(url)).read_commits(url, commits)

    async def log(
        self, url: str, base: CommitId | None, head: CommitId, *, limit: int = 250
    ) -> Sequence[Commit]:
        """See `Git.log`."""
        return await (await self._at(url)).log(url, base, head, limit=limit)

    async def list_mainline(
        self, url: str, head: CommitId, *, skip: int = 0, limit: int = 250
    ) -> Sequence[Commit]:
        """See `Git.list_mainline`."""
        return await (await self._at(url)).list_mainline(url, head, skip=skip, limit=limit)

    async def list_tags(self, url: str) -> Sequence[GitTag]:
        """See `Git.list_tags`."""
        return await (await self._at(url)).list_tags(url)

    async def list_changed_paths(
        self, url: str, commits: Sequence[Commit]
    ) -> Mapping[CommitId, tuple[str, ...]]:
        """See `Git.list_changed_paths`."""
        return await (await self._at(url)).list_changed_paths(url, commits)

    async def merge_trees(self, url: str, ours: CommitId, theirs: CommitId) -> Merged | Conflicted:
        """See `Git.merge_trees`."""
        return await (await self._at(url)).merge_trees(url, ours, theirs)

    async def diff(
        self, url: str, before: CommitId | TreeId | None, after: CommitId | TreeId
    ) -> Sequence[tuple[str, Entry | None, Entry | None]]:
        """See `Git.diff`."""
        return await (await self._at(url)).diff(url, before, after)

    async def is_ancestor(self, url: str, ancestor: CommitId, descendant: CommitId) -> bool:
        """See `Git.is_ancestor`."""
        return await (await self._at(url)).is_ancestor(url, ancestor, descendant)

    async def is_related(self, url: str, one: CommitId, other: CommitId) -> bool:
        """See `Git.is_related`."""
        return await (await self._at(url)).is_related(url, one, other)

    async def push(
        self, url: str, commit: CommitId | None, branch: str, *, expected: CommitId | None
    ) -> PushOutcome:
        """See `Git.push`."""
        return await (await self._at(url)).push(url, commit, branch, expected=expected)

    async def push_tag(self, url: str, commit: CommitId, tag: str, *, force: bool) -> PushOutcome:
        """See `Git.push_tag`."""
        return await (await self._at(url)).push_tag(url, commit, tag, force=force)
