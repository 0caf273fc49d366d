"""A GitHub that keeps pull requests with their checks and merges them with git."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot.domain.codec import decode
from bot.domain.files import CommitId
from bot.domain.github import (
    CheckId,
    CheckRun,
    CheckStatus,
    PostedCheck,
    PullNumber,
    PullRequest,
    Repository,
    User,
)
from bot.ports import MergeDone, MergeRefused, Post, TransientError
from tests.adapters.git_server import git

OPS = Repository("acme", "ops")


@dataclass
class Hub:
    """Pull requests of one repository with their checks; posts are shown at once, merges are made by git."""

    url: str
    path: Path
    pulls: dict[int, PullRequest] = field(default_factory=dict)
    checks: dict[str, CheckRun] = field(default_factory=dict)
    own: dict[int, str] = field(default_factory=dict)
    methods: frozenset[str] = frozenset({"merge", "squash", "rebase"})
    refusal: str = ""
    refusing: str = ""
    down: bool = False
    merges: list[str] = field(default_factory=list)

    # -- GitHub ----------------------------------------------------------------------------------------------------

    def repository_of(self, url: str) -> Repository | None:
        return OPS if url == self.url else None

    def clone_url(self, repository: Repository) -> str:
        return self.url

    def _now(self, pull: PullRequest) -> PullRequest:
        """The head of an open one is where its branch is; without its branch it is closed."""
        if not pull.open:
            return pull
        done = git(self.path, "for-each-ref", "--format=%(objectname)", f"refs/heads/{pull.head_branch}")
        return replace(pull, head=CommitId(done)) if done else replace(pull, open=False)

    async def find_pull_request(
        self, repository: Repository, *, head_branch: str, state: str = "open"
    ) -> PullRequest | None:
        found = [self._now(p) for p in self.pulls.values() if p.head_branch == head_branch]
        return next((p for p in reversed(found) if state == "all" or p.open), None)

    async def get_pull_request(self, repository: Repository, number: PullNumber) -> PullRequest:
        return self._now(self.pulls[number])

    async def open_pull_request(
        self, repository: Repository, *, head_branch: str, base_branch: str, title: str, body: str
    ) -> PullRequest:
        if self.down:
            raise TransientError("GitHub does not answer")
        number = PullNumber(12 + len(self.pulls))
        self.pulls[number] = PullRequest(
            repository=OPS,
            number=number,
            title=title,
            body=body,
            open=True,
            merged=False,
            head=CommitId(git(self.path, "rev-parse", f"refs/heads/{head_branch}")),
            head_branch=head_branch,
            base_branch=base_branch,
            author=User("lockstep[bot]", 3, bot=True),
            url=f"https://github.example/acme/ops/pull/{number}",
            mergeable=True,
        )
        return self.pulls[number]

    async def update_pull_request(
        self, repository: Repository, number: PullNumber, *, state: str | None = None, **_: str
    ) -> None:
        self.pulls[number] = replace(self._now(self.pulls[number]), open=state != "closed")

    async def list_checks(self, repository: Repository, head: CommitId) -> Sequence[PostedCheck]:
        check = self.checks.get(head)
        if check is None:
            return ()
        done = CheckStatus.COMPLETED
        return (PostedCheck(CheckId(1), check.name, head, 1, done, check.conclusion, check.external_id),)

    async def merge_pull_request(
        self,
        repository: Repository,
        number: PullNumber,
        *,
        head: CommitId,
        method: str,
        title: str,
        message: str,
    ) -> MergeDone | MergeRefused:
        pull = self._now(self.pulls[number])
        if pull.head != head:
            return MergeRefused("Head branch was modified", head_moved=True)
        if self.refusal:
            return MergeRefused(self.refusal)
        return MergeDone(self.merge(number, method, f"{title}\n\n{message}"))

    def merge(self, number: int, method: str = "merge", message: str = "Merged by hand") -> CommitId:
        """Merge a pull request as GitHub does."""
        pull = self._now(self.pulls[number])
        base = git(self.path, "rev-parse", f"refs/heads/{pull.base_branch}")
        tree = git(self.path, "merge-tree", "--write-tree", base, pull.head).splitlines()[0]
        parents = ["-p", base] + (["-p", pull.head] if method == "merge" else [])
        made = CommitId(git(self.path, "commit-tree", tree, *parents, "-F", "-", stdin=message))
        git(self.path, "update-ref", f"refs/heads/{pull.base_branch}", made, base)
        self.pulls[number] = replace(pull, open=False, merged=True, merge_commit=made)
        self.merges.append(method)
        return made

    def close(self, number: int) -> None:
        """Close it as rafael."""
        self.pulls[number] = replace(self._now(self.pulls[number]), open=False, closed_by="rafael")

    # -- rules and store -------------------------------------------------------------------------------------------

    async def why_no_push(self, repository: Repository, branch: str) -> str:
        return self.refusing

    async def merge_methods(self, repository: Repository, branch: str) -> frozenset[str]:
        return self.methods

    async def queue_post(self, post: Post) -> bool:
        check = decode(CheckRun, post.payload["check"])
        self.checks[check.head] = check
        return True

    async def note_own_pull(self, url: str, pull: int, merge: str) -> None:
        self.own[pull] = merge

    def shown(self, number: int = 12) -> CheckRun:
        """The check on the head of a pull request."""
        return self.checks[self._now(self.pulls[number]).head]
