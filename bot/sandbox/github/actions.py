"""What people do on the web: review, comment, merge, push, press buttons. Every call is by one person's login."""

from collections.abc import Mapping

from bot.sandbox.github import checks, discussion, merging, packages, pulls, pushes, queue, reviews
from bot.sandbox.github.auth import Actor, person, require_permission
from bot.sandbox.github.discussion import NewIssue
from bot.sandbox.github.errors import Refused, not_found
from bot.sandbox.github.forks import find_head
from bot.sandbox.github.git import ZERO, RefChange
from bot.sandbox.github.merging import MergeRequest
from bot.sandbox.github.packages import Package
from bot.sandbox.github.pulls import NewPull
from bot.sandbox.github.records import (
    CheckRun,
    CheckSuite,
    Comment,
    Issue,
    PullRequest,
    Repository,
    Review,
    WorkflowRun,
)
from bot.sandbox.github.signing import Draft, person_of, server_commit
from bot.sandbox.github.world import World


class Actions:
    """People's actions on `owner/name` repositories. They block, are refused with `Refused`, and send webhooks."""

    def __init__(self, world: World) -> None:
        self._world = world

    def _at(self, user: str, repository: str, role: str = "read") -> tuple[Actor, Repository]:
        """The person and the repository, if the person's role there is enough."""
        owner, _, name = repository.partition("/")
        actor, repo = person(self._world.need_user(user)), self._world.repository(owner, name)
        require_permission(self._world, actor, repo, "metadata:read", role)
        return actor, repo

    # ---- workflows

    def runs(self, repository: str) -> list[WorkflowRun]:
        """The runs of GitHub Actions in a repository, oldest first."""
        owner, _, name = repository.partition("/")
        return self._world.store.find(WorkflowRun, repo_id=self._world.repository(owner, name).id)

    def conclude_run(self, run_id: int, conclusion: str) -> WorkflowRun:
        """Let a run of GitHub Actions end: the runner's part, which is not simulated."""
        with self._world.store.lock:
            run = self._world.store.need(WorkflowRun, run_id)
            return self._world.store.change(
                run, status="completed", conclusion=conclusion, updated_at=self._world.now()
            )

    # ---- issues and comments

    def open_issue(self, user: str, repository: str, title: str, body: str = "") -> Issue:
        """Open an issue."""
        with self._world.store.lock:
            actor, repo = self._at(user, repository)
            return discussion.open_issue(self._world, actor, repo, NewIssue(title, body))

    def comment(self, user: str, repository: str, number: int, body: str) -> Comment:
        """Comment on an issue or pull request."""
        with self._world.store.lock:
            actor, repo = self._at(user, repository)
            return discussion.add_comment(self._world, actor, repo, self._world.issue(repo, number), body)

    def edit_comment(self, user: str, repository: str, comment_id: int, body: str) -> Comment:
        """Replace the text of a comment: one's own, or with write permission anybody's."""
        with self._world.store.lock:
            actor, repo = self._at(user, repository)
            return discussion.edit_comment(self._world, actor, repo, self._comment(repo, comment_id), body)

    def delete_comment(self, user: str, repository: str, comment_id: int) -> None:
        """Remove a comment: one's own, or with write permission anybody's."""
        with self._world.store.lock:
            actor, repo = self._at(user, repository)
            discussion.delete_comment(self._world, actor, repo, self._comment(repo, comment_id))

    def _comment(self, repo: Repository, id: int) -> Comment:
        found = self._world.store.get(Comment, id)
        if found is None or found.repo_id != repo.id:
            raise not_found()
        return found

    # ---- reviews

    def approve(self, user: str, repository: str, number: int, body: str = "") -> Review:
        """Approve the present head of a pull request."""
        return self._review(user, repository, number, "APPROVE", body)

    def request_changes(self, user: str, repository: str, number: int, body: str) -> Review:
        """Request changes to the present head of a pull request."""
        return self._review(user, repository, number, "REQUEST_CHANGES", body)

    def review_comment(self, user: str, repository: str, number: int, body: str) -> Review:
        """Submit a review that neither approves nor objects."""
        return self._review(user, repository, number, "COMMENT", body)

    def _review(self, user: str, repository: str, number: int, event: str, body: str) -> Review:
        with self._world.store.lock:
            actor, repo = self._at(user, repository)
            pull = self._world.pull(repo, number)
            return reviews.submit(self._world, actor, repo, pull, (event, body, None))

    def dismiss_review(self, user: str, repository: str, review_id: int, message: str) -> Review:
        """Dismiss somebody's review."""
        with self._world.store.lock:
            actor, repo = self._at(user, repository, "write")
            found = self._world.store.get(Review, review_id)
            if found is None or found.repo_id != repo.id:
                raise not_found()
            return reviews.dismiss(self._world, actor, repo, found, message)

    # ---- pull requests

    def open_pull(self, user: str, repository: str, new: NewPull) -> PullRequest:
        """Open a pull request from a branch, or from one's own fork (`head` is then `login:branch`)."""
        with self._world.store.lock:
            actor, repo = self._at(user, repository)
            source, _ = find_head(self._world, repo, new.head)
            self._at(user, self._world.full_name(source), "write")
            return pulls.open_pull(self._world, actor, repo, new)

    def edit(self, user: str, repository: str, number: int, changes: Mapping[str, str]) -> PullRequest:
        """Change `title`, `body` or `base` of a pull request: one's own, or with write permission anybody's."""
        with self._world.store.lock:
            actor, repo = self._at(user, repository)
            own = self._world.issue(repo, number).author_id == actor.account.id
            self._at(user, repository, "read" if own else "write")
            unknown = sorted(set(changes) - {"title", "body", "base"})
            if unknown:
                raise Refused(422, f"A pull request has no {', '.join(unknown)} that can be edited.")
            return pulls.edit_pull(self._world, actor, repo, self._world.pull(repo, number), dict(changes))

    def close(self, user: str, repository: str, number: int) -> PullRequest:
        """Close a pull request without merging it."""
        return self._set_state(user, repository, number, "closed")

    def reopen(self, user: str, repository: str, number: int) -> PullRequest:
        """Reopen a closed pull request."""
        return self._set_state(user, repository, number, "open")

    def _set_state(self, user: str, repository: str, number: int, state: str) -> PullRequest:
        with self._world.store.lock:
            actor, repo = self._at(user, repository)
            own = self._world.issue(repo, number).author_id == actor.account.id
            self._at(user, repository, "read" if own else "write")
            return pulls.set_state(self._world, actor, repo, self._world.pull(repo, number), state)

    def merge(
        self, user: str, repository: str, number: int, method: str = "merge", *, bypass: bool = False
    ) -> str:
        """Merge a pull request and return the commit; `bypass` is the box that admins tick to pass rules by."""
        if method not in merging.METHODS:
            raise Refused(422, f"{method} is not a merge method; it is one of {', '.join(merging.METHODS)}.")
        with self._world.store.lock:
            actor, repo = self._at(user, repository, "write")
            request = MergeRequest(method, use_bypass=bypass)
            return merging.merge(self._world, actor, repo, self._world.pull(repo, number), request)

    def enqueue(self, user: str, repository: str, number: int) -> None:
        """Put a pull request into the merge queue."""
        with self._world.store.lock:
            actor, repo = self._at(user, repository, "write")
            queue.enqueue(self._world, actor, repo, self._world.pull(repo, number), None)

    def update_branch(self, user: str, repository: str, number: int) -> str:
        """Press "Update branch": merge the base into the head, and return the new head."""
        with self._world.store.lock:
            actor, repo = self._at(user, repository, "write")
            return merging.update_branch(self._world, actor, repo, self._world.pull(repo, number), None)

    def revert(self, user: str, repository: str, number: int) -> PullRequest:
        """Press "Revert" on a merged pull request: a branch that undoes it, and a pull request from there."""
        with self._world.store.lock:
            actor, repo = self._at(user, repository, "write")
            pull = self._world.pull(repo, number)
            sha = merging.revert_commit(self._world, actor, repo, pull)
            branch = f"revert-{number}-{pull.head_ref}"
            old = self._world.git(repo).ref(f"refs/heads/{branch}") or ZERO
            if old != ZERO:
                raise Refused(422, f"The branch {branch} exists already.")
            pushes.move_ref(self._world, actor, repo, RefChange(f"refs/heads/{branch}", ZERO, sha))
            title = f'Revert "{self._world.issue(repo, number).title}"'
            new = NewPull(title, branch, pull.base_ref, f"Reverts {repository}#{number}")
            return pulls.open_pull(self._world, actor, repo, new)

    # ---- branches

    def push(
        self, user: str, repository: str, branch: str, files: Mapping[str, bytes | None], message: str
    ) -> str:
        """Commit files to a branch (None removes one) and return the commit; a new branch starts at the default."""
        with self._world.store.lock:
            actor, repo = self._at(user, repository, "write")
            git = self._world.git(repo)
            old = git.ref(f"refs/heads/{branch}")
            start = old or git.ref(f"refs/heads/{repo.default_branch}")
            tree = git.tree_with(start, files)
            who = person_of(self._world, actor.account)
            sha = server_commit(self._world, repo, Draft(tree, [start] if start else [], message, who))
            change = RefChange(f"refs/heads/{branch}", old or ZERO, sha)
            pushes.move_ref(self._world, actor, repo, change)
            return sha

    def delete_branch(self, user: str, repository: str, branch: str) -> None:
        """Delete a branch; pull requests from it are closed."""
        with self._world.store.lock:
            actor, repo = self._at(user, repository, "write")
            old = self._world.git(repo).ref(f"refs/heads/{branch}")
            if old is None:
                raise not_found()
            pushes.move_ref(self._world, actor, repo, RefChange(f"refs/heads/{branch}", old, ZERO))

    # ---- checks and packages

    def rerun_check(self, user: str, repository: str, check_run_id: int) -> None:
        """Press "Re-run" on a check run."""
        with self._world.store.lock:
            actor, repo = self._at(user, repository, "write")
            checks.rerequest_run(self._world, actor, self._run(repo, check_run_id))

    def rerun_all_checks(self, user: str, repository: str, check_suite_id: int) -> None:
        """Press "Re-run all checks" of a check suite."""
        with self._world.store.lock:
            actor, repo = self._at(user, repository, "write")
            found = self._world.store.get(CheckSuite, check_suite_id)
            if found is None or found.repo_id != repo.id:
                raise not_found()
            checks.rerequest_suite(self._world, actor, repo, found)

    def press(self, user: str, repository: str, check_run_id: int, identifier: str) -> None:
        """Press a button of a check run, as everybody with write permission can."""
        with self._world.store.lock:
            actor, repo = self._at(user, repository, "write")
            checks.press(self._world, actor, self._run(repo, check_run_id), identifier)

    def _run(self, repo: Repository, id: int) -> CheckRun:
        found = self._world.store.get(CheckRun, id)
        if found is None or found.repo_id != repo.id:
            raise not_found()
        return found

    def publish_package(self, user: str, repository: str, package: Package) -> None:
        """Push an image that is linked to the repository: Apps get `registry_package`."""
        with self._world.store.lock:
            actor, repo = self._at(user, repository, "write")
            packages.publish(self._world, actor, repo, package)
