"""Issues, comments and reactions as JSON."""

from bot.sandbox.github.accounts import User
from bot.sandbox.github.records import Comment, Issue, Json, PullRequest, Reaction, Repository
from bot.sandbox.github.views.lens import Lens, node_id
from bot.sandbox.github.views.people import app_by_id, user_by_id
from bot.sandbox.github.views.repositories import label

REACTIONS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")


def association(lens: Lens, repo: Repository, user_id: int) -> str:
    """GitHub's `author_association` of an account."""
    if user_id == repo.owner_id:
        return "OWNER"
    account = lens.world.store.need(User, user_id)
    if account.app_id is not None:
        return "CONTRIBUTOR"
    return "NONE" if lens.world.role(account, repo) == "none" else "COLLABORATOR"


def issue(lens: Lens, repo: Repository, item: Issue) -> Json:
    """An issue, or the issue half of a pull request."""
    url = f"{lens.repo_api(repo)}/issues/{item.number}"
    web = f"{lens.repo_web(repo)}/{'pull' if item.is_pull else 'issues'}/{item.number}"
    store = lens.world.store
    assignees = [user_by_id(lens, id) for id in item.assignees]
    view: Json = {
        "url": url,
        "repository_url": lens.repo_api(repo),
        "labels_url": url + "/labels{/name}",
        "comments_url": url + "/comments",
        "events_url": url + "/events",
        "html_url": web,
        "id": item.id,
        "node_id": node_id("I", item.id),
        "number": item.number,
        "title": item.title,
        "user": user_by_id(lens, item.author_id),
        "labels": [label(lens, repo, name) for name in item.labels],
        "state": item.state,
        "locked": False,
        "assignee": assignees[0] if assignees else None,
        "assignees": assignees,
        "milestone": None,
        "comments": store.count(Comment, repo_id=repo.id, number=item.number),
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "closed_at": item.closed_at,
        "closed_by": user_by_id(lens, item.closed_by),
        "author_association": association(lens, repo, item.author_id),
        "active_lock_reason": None,
        "body": item.body,
        "state_reason": item.state_reason,
        "performed_via_github_app": app_by_id(lens, item.app_id),
        "reactions": reactions(lens, "issue", item.id, url),
        "timeline_url": url + "/timeline",
    }
    if item.is_pull:
        view |= _pull_links(lens, repo, item)
    return view


def _pull_links(lens: Lens, repo: Repository, item: Issue) -> Json:
    pull = lens.world.store.first(PullRequest, repo_id=repo.id, number=item.number)
    web = f"{lens.repo_web(repo)}/pull/{item.number}"
    return {
        "draft": bool(pull and pull.draft),
        "pull_request": {
            "url": f"{lens.repo_api(repo)}/pulls/{item.number}",
            "html_url": web,
            "diff_url": web + ".diff",
            "patch_url": web + ".patch",
            "merged_at": pull.merged_at if pull else None,
        },
    }


def reactions(lens: Lens, subject: str, id: int, url: str) -> Json:
    """The counts of reactions under an issue or a comment."""
    found = [item.content for item in lens.world.store.find(Reaction, subject=subject, subject_id=id)]
    return {
        "url": url + "/reactions",
        "total_count": len(found),
        **{name: found.count(name) for name in REACTIONS},
    }


def comment(lens: Lens, repo: Repository, item: Comment) -> Json:
    """A comment of an issue or pull request."""
    url = f"{lens.repo_api(repo)}/issues/comments/{item.id}"
    found = lens.world.issue(repo, item.number)
    kind = "pull" if found.is_pull else "issues"
    return {
        "url": url,
        "html_url": f"{lens.repo_web(repo)}/{kind}/{item.number}#issuecomment-{item.id}",
        "issue_url": f"{lens.repo_api(repo)}/issues/{item.number}",
        "id": item.id,
        "node_id": node_id("IC", item.id),
        "user": user_by_id(lens, item.author_id),
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "author_association": association(lens, repo, item.author_id),
        "body": item.body,
        "reactions": reactions(lens, "comment", item.id, url),
        "performed_via_github_app": app_by_id(lens, item.app_id),
    }


def reaction(lens: Lens, item: Reaction) -> Json:
    """One reaction."""
    return {
        "id": item.id,
        "node_id": node_id("REA", item.id),
        "user": user_by_id(lens, item.user_id),
        "content": item.content,
        "created_at": item.created_at,
    }
