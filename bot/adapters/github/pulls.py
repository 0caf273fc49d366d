"""Pull requests, their files, labels and reviews, and the merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.adapters.github.connection import Connection, join_path
from bot.adapters.github.errors import Rejected
from bot.adapters.github.tokens import Scope
from bot.domain.files import CommitId
from bot.domain.github import PullNumber, PullRequest, Repository, Review, ReviewState
from bot.payloads.github import read_commit, read_user
from bot.payloads.reading import Node
from bot.ports import MergeDone, MergeRefused, TerminalError

_TITLE_LIMIT = 256
_BODY_LIMIT = 65_536
_MOST_COMMITS = 250


class Pulls:
    """The part of the port `GitHub` that is about pull requests."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def find(self, repository: Repository, head_branch: str, state: str) -> PullRequest | None:
        """The newest pull request of a head branch in the repository itself, forks left out."""
        number = await self._find_number(repository, head_branch, state=state)
        return None if number is None else await self.get(repository, number)

    async def find_of(self, repository: Repository, head: CommitId) -> Sequence[PullRequest]:
        """Open pull requests whose head is that commit, forks included.

        GitHub's own list by commit leaves out open ones whose commit is in the default branch already.
        """
        return tuple(pull for pull in await self.list_open(repository) if pull.head == head)

    async def get(self, repository: Repository, number: PullNumber) -> PullRequest:
        """One pull request as it is now; who closed it is asked for only where it was closed unmerged."""
        scope = _scope(repository, pull_requests="read")
        node = await self._connection.get(scope, _path(repository, number))
        closed_by = ""
        if node.text("state") == "closed" and not node.has("merged_at"):
            issue = await self._connection.find(
                _scope(repository, issues="read"),
                join_path("repos", repository.owner, repository.name, "issues", number),
            )
            if issue is not None and issue.has("closed_by"):
                closed_by = issue.text("closed_by", "login")
        return read_pull(repository, node, closed_by=closed_by)

    async def list_open(self, repository: Repository) -> Sequence[PullRequest]:
        """All open ones, newest first; `mergeable` and `merged_by` are not known from a list."""
        listed = await self._connection.list_all(
            _scope(repository, pull_requests="read"), _path(repository), {"state": "open"}
        )
        return tuple(read_pull(repository, item) for item in listed)

    async def list_files(self, repository: Repository, number: PullNumber) -> Sequence[str]:
        """Paths that it touches, former names of renamed files included; GitHub lists at most 3,000."""
        listed = await self._connection.list_all(
            _scope(repository, pull_requests="read"), f"{_path(repository, number)}/files"
        )
        paths = [item.text("filename") for item in listed]
        paths += [item.text("previous_filename") for item in listed if item.has("previous_filename")]
        return tuple(dict.fromkeys(paths))

    async def open(
        self, repository: Repository, *, head_branch: str, base_branch: str, title: str, body: str
    ) -> PullRequest:
        """Open it, or give back the open one of that head and base."""
        _check_texts(title, body)

        async def look() -> PullNumber | None:
            return await self._find_number(repository, head_branch, base=base_branch)

        async def create() -> PullNumber:
            node = await self._connection.write(
                _scope(repository, pull_requests="write"),
                "POST",
                _path(repository),
                {"title": title, "body": body, "head": head_branch, "base": base_branch},
                creates=True,
            )
            return PullNumber(node.number("number"))

        number = await look()
        if number is not None:
            return await self.get(repository, number)
        try:
            number = await self._connection.write_once(create, look)
        except Rejected:
            # A concurrent twin may have opened it between our look and our request.
            number = await look()
            if number is None:
                raise
        fresh = await self._connection.get_fresh(
            _scope(repository, pull_requests="read"), _path(repository, number)
        )
        return read_pull(repository, fresh)

    async def update(
        self,
        repository: Repository,
        number: PullNumber,
        *,
        title: str | None,
        body: str | None,
        state: str | None,
    ) -> None:
        """Set what is not None; nothing is sent if it is so already."""
        _check_texts(title or "", body or "")
        wanted = {
            key: value
            for key, value in (("title", title), ("body", body), ("state", state))
            if value is not None
        }
        scope = _scope(repository, pull_requests="write")

        async def look() -> Node | None:
            node = await self._connection.get(scope, _path(repository, number))
            return node if all(node.text(key, default="") == value for key, value in wanted.items()) else None

        async def change() -> Node:
            return await self._connection.write(scope, "PATCH", _path(repository, number), wanted)

        if wanted and await look() is None:
            await self._connection.write_once(change, look)

    async def set_labels(self, repository: Repository, number: PullNumber, labels: Sequence[str]) -> None:
        """Make these its labels; GitHub creates those that the repository does not have."""
        scope = _scope(repository, issues="write", pull_requests="write")
        path = join_path("repos", repository.owner, repository.name, "issues", number, "labels")

        async def look() -> Node | None:
            there = await self._connection.list_all(scope, path)
            return Node(None) if {item.text("name") for item in there} == set(labels) else None

        async def change() -> Node:
            return await self._connection.write(scope, "PUT", path, {"labels": list(labels)})

        if await look() is None:
            await self._connection.write_once(change, look)

    async def list_reviews(self, repository: Repository, number: PullNumber) -> Sequence[Review]:
        """All submitted reviews, oldest first."""
        listed = await self._connection.list_all(
            _scope(repository, pull_requests="read"), f"{_path(repository, number)}/reviews"
        )
        # A pending review is a draft that only its author sees; it has no time of submission.
        return tuple(_read_review(item) for item in listed if item.has("submitted_at"))

    async def list_commit_authors(
        self, repository: Repository, number: PullNumber
    ) -> Mapping[CommitId, Sequence[str]]:
        """Its commits with the logins of author and committer, as far as GitHub knows an account for them.

        Raises TerminalError at 250 commits: GitHub lists no more, and an author who is not listed could not be
        kept from approving.
        """
        listed = await self._connection.list_all(
            _scope(repository, pull_requests="read"), f"{_path(repository, number)}/commits"
        )
        if len(listed) >= _MOST_COMMITS:
            raise TerminalError(
                f"{repository}#{number} has {_MOST_COMMITS} commits or more, and GitHub does not list more than that;"
                " squash them"
            )
        return {read_commit(item.at("sha")): _logins(item) for item in listed}

    async def merge(
        self,
        repository: Repository,
        number: PullNumber,
        *,
        head: CommitId,
        method: str,
        title: str,
        message: str,
    ) -> MergeDone | MergeRefused:
        """Merge if `head` still is its head; a merge of that head that happened before counts as done."""
        scope = _scope(repository, contents="write", pull_requests="write")
        body = {"sha": head, "merge_method": method, "commit_title": title, "commit_message": message}

        async def merge() -> MergeDone | MergeRefused:
            node = await self._connection.write(scope, "PUT", f"{_path(repository, number)}/merge", body)
            return MergeDone(read_commit(node.at("sha")))

        async def look() -> MergeDone | MergeRefused | None:
            pull = await self.get(repository, number)
            if not pull.merged:
                return None
            if pull.merge_commit is None or pull.head != head:
                return MergeRefused(
                    f"it was merged already, at {pull.head} instead of {head}", head_moved=True
                )
            return MergeDone(pull.merge_commit)

        try:
            return await self._connection.write_once(merge, look)
        except Rejected as error:
            if error.status not in {405, 409}:
                raise
            done = await look()
            if done is not None:
                return done
            now = await self.get(repository, number)
            return MergeRefused(error.reason, head_moved=now.head != head)

    async def _find_number(
        self, repository: Repository, head_branch: str, *, state: str = "open", base: str = ""
    ) -> PullNumber | None:
        query = {
            "state": state,
            "head": f"{repository.owner}:{head_branch}",
            "sort": "created",
            "direction": "desc",
        }
        listed = await self._connection.list_all(
            _scope(repository, pull_requests="read"),
            _path(repository),
            query | ({"base": base} if base else {}),
        )
        for item in listed:
            # GitHub filters by the head's owner, which is ours for a fork within the same organisation too.
            pull = read_pull(repository, item)
            if not pull.from_fork and pull.head_branch == head_branch and base in {"", pull.base_branch}:
                return pull.number
        return None


def _scope(repository: Repository, **permissions: str) -> Scope:
    return Scope(tuple(permissions.items()), repository)


def _path(repository: Repository, number: PullNumber | None = None) -> str:
    rest = () if number is None else (number,)
    return join_path("repos", repository.owner, repository.name, "pulls", *rest)


def _check_texts(title: str, body: str) -> None:
    if len(title) > _TITLE_LIMIT:
        raise ValueError(f"the title has {len(title)} characters, GitHub takes {_TITLE_LIMIT}")
    if len(body.encode()) > _BODY_LIMIT:
        raise ValueError(f"the body has {len(body.encode())} bytes, GitHub takes {_BODY_LIMIT}")


def read_pull(repository: Repository, node: Node, *, closed_by: str = "") -> PullRequest:
    """A pull request of GitHub's answers; an entry of a list has no `mergeable` and no `merged_by`."""
    merged = node.boolean("merged") or node.has("merged_at")
    head_repository = node.find("head", "repo")
    from_fork = head_repository is None or head_repository.number("id") != node.number("base", "repo", "id")
    mergeable = node.find("mergeable")
    return PullRequest(
        repository=repository,
        number=PullNumber(node.number("number")),
        title=node.text("title"),
        body=node.text("body", default=""),
        open=node.text("state") == "open",
        merged=merged,
        head=read_commit(node.at("head", "sha")),
        head_branch=node.text("head", "ref"),
        base_branch=node.text("base", "ref"),
        author=read_user(node.find("user")),
        url=node.text("html_url"),
        # Before the merge GitHub keeps a test merge commit in this field, which means nothing to us.
        merge_commit=read_commit(node.at("merge_commit_sha")) if merged else None,
        mergeable=None if mergeable is None else node.boolean("mergeable"),
        from_fork=from_fork,
        draft=node.boolean("draft"),
        merged_by=node.text("merged_by", "login") if node.has("merged_by") else "",
        closed_by=closed_by,
    )


def _read_review(node: Node) -> Review:
    state = node.text("state").upper()
    if state not in ReviewState.__members__:
        raise TerminalError(f"a review has the state {state!r}, which this version does not know")
    commit = node.find("commit_id")
    return Review(
        node.number("id"),
        read_user(node.find("user")),
        ReviewState(state),
        None if commit is None else read_commit(commit),
        node.time("submitted_at"),
    )


def _logins(commit: Node) -> tuple[str, ...]:
    """Author and committer, as far as GitHub knows accounts for their addresses."""
    logins = [commit.text(role, "login") for role in ("author", "committer") if commit.has(role, "login")]
    return tuple(dict.fromkeys(logins))
