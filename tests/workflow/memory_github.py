"""A GitHub in memory: pull requests, reviews, checks and rights of one repository, over its git."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from bot.domain.files import CommitId
from bot.domain.github import (
    CheckId,
    CheckRun,
    CheckStatus,
    Comment,
    CommentId,
    DeploymentId,
    DeploymentState,
    Permission,
    PostedCheck,
    PullNumber,
    PullRequest,
    Repository,
    Review,
    ReviewState,
    User,
)
from bot.domain.values import Json
from bot.ports import Merged, MergeDone, MergeRefused, Signature
from tests.workflow.memory_git import MemoryGit

OPS = Repository("acme", "ops")
APP = User("lockstep[bot]", 99, bot=True)


@dataclass
class MemoryGitHub:
    """One repository. Writes by the App are told to `tick` before and after, and `opened` of each new pull request."""

    git: MemoryGit
    now: Callable[[], datetime]
    tick: Callable[[str], None]
    opened: Callable[[PullRequest], None]
    pulls: dict[int, PullRequest] = field(default_factory=dict)
    reviews: dict[int, list[Review]] = field(default_factory=dict)
    checks: dict[tuple[str, str], PostedCheck] = field(default_factory=dict)
    comments: dict[tuple[int, str], str] = field(default_factory=dict)
    permissions: dict[str, Permission] = field(default_factory=dict)
    rule: str = ""
    """Why GitHub refuses every merge by the App, empty if it does not."""

    # -- what the App reads ------------------------------------------------------------------------------------------

    def clone_url(self, repository: Repository) -> str:
        return self.git.url

    def repository_of(self, url: str) -> Repository | None:
        return OPS if url == self.git.url else None

    async def app_id(self) -> int:
        return 1

    async def find_pull_request(
        self, repository: Repository, *, head_branch: str, state: str = "open"
    ) -> PullRequest | None:
        found = [self.seen(n) for n in self.pulls if self.pulls[n].head_branch == head_branch]
        wanted = [pull for pull in found if state == "all" or pull.open == (state == "open")]
        return wanted[-1] if wanted else None

    async def find_pull_requests_of(self, repository: Repository, head: CommitId) -> Sequence[PullRequest]:
        return [pull for pull in map(self.seen, self.pulls) if pull.open and pull.head == head]

    async def get_pull_request(self, repository: Repository, number: PullNumber) -> PullRequest:
        self.tick("read the pull request")
        return self.seen(number)

    async def list_pull_requests(self, repository: Repository) -> Sequence[PullRequest]:
        return [pull for pull in map(self.seen, self.pulls) if pull.open]

    async def list_pull_request_files(self, repository: Repository, number: PullNumber) -> Sequence[str]:
        pull = self.seen(number)
        return [path for path, _, _ in self.git.differences(self.git.tip(pull.base_branch), pull.head)]

    async def list_reviews(self, repository: Repository, number: PullNumber) -> Sequence[Review]:
        self.tick("read the reviews")
        return list(self.reviews.get(number, ()))

    async def list_commit_authors(
        self, repository: Repository, number: PullNumber
    ) -> Mapping[CommitId, Sequence[str]]:
        return self.authors(number)

    async def list_checks(self, repository: Repository, head: CommitId) -> Sequence[PostedCheck]:
        return [check for (commit, _), check in self.checks.items() if commit == head]

    async def list_comments(self, repository: Repository, number: PullNumber) -> Sequence[Comment]:
        return ()

    async def get_comment(self, repository: Repository, comment: CommentId) -> Comment | None:
        return None

    async def get_permission(self, repository: Repository, login: str) -> Permission:
        return self.permissions.get(login, Permission.NONE)

    async def is_team_member(self, organisation: str, team: str, login: str) -> bool:
        return False

    async def list_repositories(self) -> Sequence[Repository]:
        return (OPS,)

    async def list_failed_deliveries(self, since: datetime) -> Sequence[tuple[int, str]]:
        return ()

    async def redeliver(self, delivery: int) -> None:
        """There are no deliveries."""

    # -- what the App writes -------------------------------------------------------------------------------------------

    async def open_pull_request(
        self, repository: Repository, *, head_branch: str, base_branch: str, title: str, body: str
    ) -> PullRequest:
        self.tick("open a pull request")
        for pull in map(self.seen, self.pulls):
            if pull.open and (pull.head_branch, pull.base_branch) == (head_branch, base_branch):
                return pull
        number = PullNumber(len(self.pulls) + 1)
        pull = PullRequest(
            repository=OPS,
            number=number,
            title=title,
            body=body,
            open=True,
            merged=False,
            head=self.git.tip(head_branch),
            head_branch=head_branch,
            base_branch=base_branch,
            author=APP,
            url=f"https://github.example/acme/ops/pull/{number}",
        )
        self.pulls[number] = pull
        self.opened(pull)
        self.tick("opened a pull request")
        return self.seen(number)

    async def update_pull_request(
        self,
        repository: Repository,
        number: PullNumber,
        *,
        title: str | None = None,
        body: str | None = None,
        state: str | None = None,
    ) -> None:
        self.tick("change a pull request")
        pull = self.seen(number)
        is_open = pull.open if state is None else state == "open"
        self.pulls[number] = replace(
            pull, title=title or pull.title, body=body or pull.body, open=is_open and not pull.merged
        )

    async def set_labels(self, repository: Repository, number: PullNumber, labels: Sequence[str]) -> None:
        """Labels are not looked at."""

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
        self.tick("merge")
        pull = self.seen(number)
        if pull.merged and pull.merge_commit is not None:
            return MergeDone(pull.merge_commit)
        if pull.head != head:
            return MergeRefused("the head moved", head_moved=True)
        if self.rule:
            return MergeRefused(self.rule)
        done = self.merge(number, APP.login)
        self.tick("merged")
        return MergeDone(done) if done is not None else MergeRefused("not mergeable")

    async def post_check(self, repository: Repository, check: CheckRun) -> PostedCheck:
        self.tick("post a check")
        status = CheckStatus.COMPLETED if check.conclusion is not None else CheckStatus.IN_PROGRESS
        known = len(self.checks) + 1
        posted = PostedCheck(
            CheckId(known),
            check.name,
            check.head,
            1,
            status,
            check.conclusion,
            check.external_id,
            check.title,
        )
        self.checks[check.head, check.name] = posted
        return posted

    async def post_comment(
        self, repository: Repository, number: PullNumber, body: str, *, marker: str
    ) -> CommentId:
        self.tick("post a comment")
        self.comments[number, marker] = body
        return CommentId(list(self.comments).index((number, marker)) + 1)

    async def react(self, repository: Repository, comment: CommentId, content: str) -> None:
        self.tick("react")

    async def create_deployment(
        self,
        repository: Repository,
        *,
        ref: CommitId,
        environment: str,
        production: bool,
        payload: Mapping[str, Json],
    ) -> DeploymentId:
        return DeploymentId(1)

    async def set_deployment_state(
        self,
        repository: Repository,
        deployment: DeploymentId,
        state: DeploymentState,
        *,
        description: str,
        log_url: str,
    ) -> None:
        """Deployments are not looked at."""

    # -- what people do and see ----------------------------------------------------------------------------------------

    def seen(self, number: int) -> PullRequest:
        """A pull request as it is now: an open one follows its branch, and is closed with it."""
        pull = self.pulls[number]
        if not pull.open:
            return pull
        if not self.git.has(pull.head_branch):
            pull = replace(pull, open=False)
        else:
            head = self.git.tip(pull.head_branch)
            fits = isinstance(self.git.merged(self.git.tip(pull.base_branch), head), Merged)
            pull = replace(pull, head=head, mergeable=fits)
        self.pulls[number] = pull
        return pull

    def authors(self, number: int) -> dict[CommitId, list[str]]:
        """The commits of a pull request with their authors' logins; of a merged one as they were."""
        pull = self.seen(number)
        base = self.git.tip(pull.base_branch)
        if pull.merge_commit is not None:
            base = self.git.commits[pull.merge_commit].parents[0]
        return {c.id: [c.author.name] for c in self.git.between(base, pull.head)}

    def review(self, number: int, user: User, state: ReviewState) -> None:
        """A review of the present head."""
        reviews = self.reviews.setdefault(number, [])
        reviews.append(Review(len(reviews) + 1, user, state, self.seen(number).head, self.now()))

    def dismiss(self, number: int, user: User) -> None:
        """Dismiss a person's reviews."""
        self.reviews[number] = [
            replace(r, state=ReviewState.DISMISSED) if r.user == user else r
            for r in self.reviews.get(number, ())
        ]

    def close(self, number: int) -> None:
        """Close an open pull request."""
        pull = self.seen(number)
        self.pulls[number] = replace(pull, open=False, closed_by="" if pull.merged else "bob")

    def retarget(self, number: int, branch: str) -> None:
        """Have an open pull request go to another branch."""
        self.pulls[number] = replace(self.seen(number), base_branch=branch)

    def is_green(self, number: int) -> bool:
        """Whether the required check is green on the head."""
        check = self.checks.get((self.seen(number).head, "lockstep"))
        return check is not None and check.conclusion == "success"

    def merge(self, number: int, who: str, *, squash: bool = False) -> CommitId | None:
        """Merge as GitHub does; None if the branches conflict or it is not open."""
        pull = self.seen(number)
        if not pull.open:
            return None
        base = self.git.tip(pull.base_branch)
        merged = self.git.merged(base, pull.head)
        if not isinstance(merged, Merged):
            return None
        parents = [base] if squash else [base, pull.head]
        signature = Signature(who, f"{who}@example.com", self.now())
        commit = self.git.make(merged.tree, parents, f"Merge #{number}", signature)
        self.git.move(pull.base_branch, commit)
        self.pulls[number] = replace(pull, open=False, merged=True, merge_commit=commit, merged_by=who)
        return commit
