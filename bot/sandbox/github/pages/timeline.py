"""What happened on a pull request, in order: commits, comments, reviews, merge, deployments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from bot.sandbox.github import rules
from bot.sandbox.github.accounts import User
from bot.sandbox.github.git import Commit
from bot.sandbox.github.pages.checkviews import Check, checks_of
from bot.sandbox.github.pages.history import brought
from bot.sandbox.github.pages.markdown import NOTHING, render_comment
from bot.sandbox.github.pages.people import Who, who
from bot.sandbox.github.records import (
    Comment,
    Deployment,
    DeploymentStatus,
    Issue,
    PullRequest,
    Repository,
    Review,
)
from bot.sandbox.github.world import World

_REVIEWED: Final = {
    "APPROVED": ("good", "approved these changes"),
    "CHANGES_REQUESTED": ("bad", "requested changes"),
    "COMMENTED": ("soft", "reviewed"),
    "DISMISSED": ("soft", "reviewed, and the review was dismissed"),
}
_DEPLOYED: Final = {"success": "good", "inactive": "soft", "failure": "bad", "error": "bad"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened. `kind` is `comment`, `review`, `commit`, `merge`, `close` or `deployment`.

    `text` goes after the person's name, `sha` leads to a commit, `notes` are small print about it.
    """

    key: str
    kind: str
    at: str
    text: str
    who: Who | None = None
    author: str = ""
    tone: str = "soft"
    body: Markup = NOTHING
    sha: str = ""
    notes: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    link: str = ""


def timeline(world: World, repo: Repository, issue: Issue, pull: PullRequest | None) -> list[Entry]:
    """Everything after the description, oldest first; an issue (`pull` None) has comments alone."""
    home = world.full_name(repo)
    entries = [_comment(world, home, item) for item in _comments(world, issue)]
    if pull is not None:
        entries += [_commit(item) for item in brought(world.git(repo), pull).commits]
        entries += [_review(world, repo, pull, item) for item in _reviews(world, pull)]
        entries += _deployments(world, repo, pull)
        if pull.merged:
            entries.append(_merge(world, repo, pull))
    if issue.state == "closed" and not (pull and pull.merged) and issue.closed_by is not None:
        closer = who(world, issue.closed_by)
        entries.append(Entry("closed", "close", issue.closed_at or "", "closed this", closer, tone="bad"))
    # Times have whole seconds, so within one second what is listed first here stays first.
    order = ("commit", "review", "comment", "merge", "deployment", "close")
    return sorted(entries, key=lambda each: (each.at, order.index(each.kind)))


def _comments(world: World, issue: Issue) -> list[Comment]:
    return world.store.find(Comment, repo_id=issue.repo_id, number=issue.number)


def _reviews(world: World, pull: PullRequest) -> list[Review]:
    return world.store.find(Review, repo_id=pull.repo_id, number=pull.number)


def _comment(world: World, home: str, item: Comment) -> Entry:
    notes: tuple[str, ...] = ("edited",) if item.updated_at != item.created_at else ()
    if item.minimized_reason:
        notes += (f"hidden as {item.minimized_reason.lower()}",)
    return Entry(
        f"issuecomment-{item.id}",
        "comment",
        item.created_at,
        "commented",
        who(world, item.author_id),
        body=render_comment(item.body, home),
        notes=notes,
    )


def _commit(item: Commit) -> Entry:
    title = item.message.partition("\n")[0]
    return Entry(
        f"commit-{item.sha}", "commit", item.committer.date, title, author=item.author.name, sha=item.sha
    )


def _review(world: World, repo: Repository, pull: PullRequest, item: Review) -> Entry:
    tone, text = _REVIEWED.get(item.state, ("soft", item.state.lower()))
    notes: tuple[str, ...] = ()
    if not world.has_role(world.store.need(User, item.author_id), repo, "write"):
        tone, notes = "soft", (*notes, "does not count: no write permission here")
    if item.commit_id != pull.head_sha:
        notes = (*notes, f"of {item.commit_id[:7]}, which is not the head")
    latest = rules.latest_reviews(world, repo, pull).get(item.author_id)
    if item.state in ("APPROVED", "CHANGES_REQUESTED") and latest and latest.id != item.id:
        notes = (*notes, "a later review replaces it")
    if item.dismissal_message:
        notes = (*notes, item.dismissal_message)
    return Entry(
        f"pullrequestreview-{item.id}",
        "review",
        item.submitted_at,
        text,
        who(world, item.author_id),
        tone=tone,
        body=render_comment(item.body, world.full_name(repo)),
        notes=notes,
    )


def _merge(world: World, repo: Repository, pull: PullRequest) -> Entry:
    merger = who(world, pull.merged_by) if pull.merged_by is not None else None
    sha = pull.merge_commit_sha or ""
    return Entry(
        "merged",
        "merge",
        pull.merged_at or "",
        f"merged this into {pull.base_ref} as",
        merger,
        tone="merged",
        sha=sha,
        checks=tuple(checks_of(world, repo, sha)),
    )


def _deployments(world: World, repo: Repository, pull: PullRequest) -> list[Entry]:
    shas = {pull.head_sha, pull.merge_commit_sha}
    entries = []
    for item in world.store.find(Deployment, repo_id=repo.id):
        if item.sha not in shas:
            continue
        status = world.store.last(DeploymentStatus, deployment_id=item.id)
        state = status.state if status else "pending"
        entries.append(
            Entry(
                f"deployment-{item.id}",
                "deployment",
                item.created_at,
                f"deployed to {item.environment}: {state.replace('_', ' ')}",
                who(world, item.creator_id),
                tone=_DEPLOYED.get(state, "busy"),
                notes=(status.description,) if status and status.description else (),
                link=(status.environment_url or status.log_url) if status else "",
            )
        )
    return entries
