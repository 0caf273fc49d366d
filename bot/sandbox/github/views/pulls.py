"""Pull requests and reviews as JSON."""

from bot.sandbox.github.accounts import Team
from bot.sandbox.github.forks import head_repository
from bot.sandbox.github.records import Comment, Issue, Json, PullRequest, Repository, Review
from bot.sandbox.github.views.issues import association
from bot.sandbox.github.views.lens import Lens, node_id
from bot.sandbox.github.views.people import team, user, user_by_id
from bot.sandbox.github.views.repositories import label, repository


def simple_pull(lens: Lens, repo: Repository, pull: PullRequest) -> Json:
    """A pull request as lists show it."""
    found = lens.world.issue(repo, pull.number)
    store = lens.world.store
    assignees = [user_by_id(lens, id) for id in found.assignees]
    return {
        **_links(lens, repo, pull),
        "id": pull.id,
        "node_id": node_id("PR", pull.id),
        "number": pull.number,
        "state": found.state,
        "locked": False,
        "title": found.title,
        "user": user_by_id(lens, found.author_id),
        "body": found.body,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
        "closed_at": found.closed_at,
        "merged_at": pull.merged_at,
        "merge_commit_sha": pull.merge_commit_sha,
        "assignee": assignees[0] if assignees else None,
        "assignees": assignees,
        "requested_reviewers": [user_by_id(lens, id) for id in pull.reviewers],
        "requested_teams": [team(lens, store.need(Team, id)) for id in pull.team_reviewers],
        "labels": [{**label(lens, repo, name), "description": ""} for name in found.labels],
        "milestone": None,
        "draft": pull.draft,
        "head": _side(lens, head_repository(lens.world, pull), pull.head_ref, pull.head_sha),
        "base": _side(lens, repo, pull.base_ref, pull.base_sha),
        "author_association": association(lens, repo, found.author_id),
        "auto_merge": None,
        "active_lock_reason": None,
    }


def _links(lens: Lens, repo: Repository, pull: PullRequest) -> Json:
    url = f"{lens.repo_api(repo)}/pulls/{pull.number}"
    issue = f"{lens.repo_api(repo)}/issues/{pull.number}"
    web = f"{lens.repo_web(repo)}/pull/{pull.number}"
    links = {
        "self": url,
        "html": web,
        "issue": issue,
        "comments": issue + "/comments",
        "review_comments": url + "/comments",
        "review_comment": f"{lens.repo_api(repo)}/pulls/comments{{/number}}",
        "commits": url + "/commits",
        "statuses": f"{lens.repo_api(repo)}/statuses/{pull.head_sha}",
    }
    return {
        "url": url,
        "html_url": web,
        "diff_url": web + ".diff",
        "patch_url": web + ".patch",
        "issue_url": issue,
        "commits_url": links["commits"],
        "review_comments_url": links["review_comments"],
        "review_comment_url": links["review_comment"],
        "comments_url": links["comments"],
        "statuses_url": links["statuses"],
        "_links": {name: {"href": href} for name, href in links.items()},
    }


def _side(lens: Lens, repo: Repository, ref: str, sha: str) -> Json:
    owner = lens.world.owner(repo)
    return {
        "label": f"{owner.login}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": user(lens, owner),
        "repo": repository(lens, repo),
    }


def pull_request(lens: Lens, repo: Repository, pull: PullRequest, mergeable_state: str) -> Json:
    """A pull request as its own page of the API shows it; `mergeable` is null until it has been computed."""
    git = lens.world.git(repo)
    base = git.merge_base(pull.base_sha, pull.head_sha) or pull.base_sha
    files = git.diff(base, pull.head_sha, patches=False)
    return {
        **simple_pull(lens, repo, pull),
        "merged": pull.merged,
        "mergeable": None if pull.merged else pull.mergeable,
        "rebaseable": None if pull.merged else pull.rebaseable,
        "mergeable_state": mergeable_state,
        "merged_by": user_by_id(lens, pull.merged_by),
        "comments": lens.world.store.count(Comment, repo_id=repo.id, number=pull.number),
        "review_comments": 0,
        "maintainer_can_modify": False,
        "commits": git.count(f"{base}..{pull.head_sha}"),
        "additions": sum(item.additions for item in files),
        "deletions": sum(item.deletions for item in files),
        "changed_files": len(files),
    }


def minimal_pull(lens: Lens, repo: Repository, pull: PullRequest) -> Json:
    """A pull request as check runs and suites name it."""
    short = {"id": repo.id, "url": lens.repo_api(repo), "name": repo.name}
    return {
        "id": pull.id,
        "number": pull.number,
        "url": f"{lens.repo_api(repo)}/pulls/{pull.number}",
        "head": {"ref": pull.head_ref, "sha": pull.head_sha, "repo": short},
        "base": {"ref": pull.base_ref, "sha": pull.base_sha, "repo": short},
    }


def pulls_of_commit(lens: Lens, repo: Repository, sha: str) -> list[Json]:
    """The open pull requests whose head is the commit, in the minimal form."""
    found = lens.world.store.find(PullRequest, repo_id=repo.id, head_sha=sha)
    # GitHub does not name pull requests from forks here.
    open_ones = [item for item in found if not item.head_repo_id and is_open(lens, repo, item)]
    return [minimal_pull(lens, repo, item) for item in open_ones]


def is_open(lens: Lens, repo: Repository, pull: PullRequest) -> bool:
    """Whether the pull request is open."""
    found = lens.world.store.first(Issue, repo_id=repo.id, number=pull.number)
    return found is not None and found.state == "open"


def review(lens: Lens, repo: Repository, item: Review) -> Json:
    """A submitted review."""
    pull_url = f"{lens.repo_api(repo)}/pulls/{item.number}"
    web = f"{lens.repo_web(repo)}/pull/{item.number}#pullrequestreview-{item.id}"
    return {
        "id": item.id,
        "node_id": node_id("PRR", item.id),
        "user": user_by_id(lens, item.author_id),
        "body": item.body,
        "state": item.state,
        "html_url": web,
        "pull_request_url": pull_url,
        "author_association": association(lens, repo, item.author_id),
        "_links": {"html": {"href": web}, "pull_request": {"href": pull_url}},
        "submitted_at": item.submitted_at,
        "commit_id": item.commit_id,
    }
