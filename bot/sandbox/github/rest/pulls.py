"""Pull requests, reviews and the people asked for one."""

from bot.sandbox.github import merging, pulls, reviews
from bot.sandbox.github.accounts import Team, User
from bot.sandbox.github.errors import Refused, forbidden, invalid, not_found
from bot.sandbox.github.forks import find_head, head_repository
from bot.sandbox.github.records import Json, PullRequest, Review
from bot.sandbox.github.rest.call import Answer, Call, Route
from bot.sandbox.github.views.people import team, user
from bot.sandbox.github.views.pulls import pull_request, review, simple_pull
from bot.sandbox.github.views.repositories import commit, file_change

MOST_FILES = 3000
MOST_COMMITS = 250


def _pull(call: Call) -> PullRequest:
    return call.world.pull(call.repo, call.number("number"))


def full(call: Call, pull: PullRequest) -> Json:
    """The whole pull request as the caller sees it now."""
    state = pulls.mergeable_state(call.world, call.repo, pull)
    return pull_request(call.lens, call.repo, pull, state)


def list_pulls(call: Call) -> Answer:
    """Pull requests, newest first; `state`, `head` (`owner:branch`), `base`, `sort` and `direction` select."""
    state, head, base = (call.query.get(name) for name in ("state", "head", "base"))
    sort = call.query.get("sort", "created")
    chosen = []
    for pull in call.world.store.find(PullRequest, repo_id=call.repo.id):
        issue = call.world.issue(call.repo, pull.number)
        if state != "all" and issue.state != (state or "open"):
            continue
        owner = call.world.owner(head_repository(call.world, pull)).login
        if (head and f"{owner}:{pull.head_ref}" != head) or (base and pull.base_ref != base):
            continue
        moment = issue.updated_at if sort == "updated" else issue.created_at
        chosen.append((moment, pull.number, pull))
    # GitHub lists the newest first unless another order than by creation is asked for.
    direction = call.query.get("direction", "desc" if sort == "created" else "asc")
    chosen.sort(key=lambda row: row[:2], reverse=direction == "desc")
    return call.page([row[2] for row in chosen], lambda pull: simple_pull(call.lens, call.repo, pull))


def create_pull(call: Call) -> Answer:
    """Open a pull request from a branch of the repository, or of a fork that the caller may write to."""
    fields = call.fields
    if "title" not in fields:
        raise invalid("PullRequest", "title", code="missing_field")
    new = pulls.NewPull(
        fields["title"], fields["head"], fields["base"], fields.get("body"), fields.get("draft", False)
    )
    source, _ = find_head(call.world, call.repo, new.head)
    if call.actor.kind == "user" and not call.world.has_role(call.actor.account, source, "write"):
        raise forbidden("Must have push access to repository")
    return Answer(201, full(call, pulls.open_pull(call.world, call.actor, call.repo, new)))


def get_pull(call: Call) -> Answer:
    """One pull request."""
    return Answer(200, full(call, _pull(call)))


def update_pull(call: Call) -> Answer:
    """Change title, body, base or state; the head branch cannot be changed."""
    pull = _pull(call)
    author = call.world.issue(call.repo, pull.number).author_id
    stranger = call.actor.kind == "user" and author != call.actor.account.id
    if stranger and not call.world.has_role(call.actor.account, call.repo, "write"):
        raise forbidden("Must have push access to repository")
    changes: Json = {name: call.fields[name] for name in ("title", "body", "base") if name in call.fields}
    if changes:
        pull = pulls.edit_pull(call.world, call.actor, call.repo, pull, changes)
    if "state" in call.fields:
        pull = pulls.set_state(call.world, call.actor, call.repo, pull, call.fields["state"])
    return Answer(200, full(call, pull))


def list_files(call: Call) -> Answer:
    """The files that a pull request changes, from the merge base."""
    pull = _pull(call)
    base = call.git.merge_base(pull.base_sha, pull.head_sha) or pull.base_sha
    files = call.git.diff(base, pull.head_sha)[:MOST_FILES]
    return call.page(files, lambda item: file_change(call.lens, call.repo, item, pull.head_sha))


def list_commits(call: Call) -> Answer:
    """The commits of a pull request, oldest first."""
    pull = _pull(call)
    items = call.git.commits("--reverse", f"{pull.base_sha}..{pull.head_sha}")[:MOST_COMMITS]
    return call.page(items, lambda item: commit(call.lens, call.repo, item))


def is_merged(call: Call) -> Answer:
    """204 if it was merged, else 404."""
    if not _pull(call).merged:
        raise not_found()
    return Answer(204)


def merge_pull(call: Call) -> Answer:
    """Merge a pull request, guarded by the expected head `sha`."""
    fields = call.fields
    request = merging.MergeRequest(
        fields.get("merge_method", "merge"),
        fields.get("sha"),
        fields.get("commit_title"),
        fields.get("commit_message"),
    )
    sha = merging.merge(call.world, call.actor, call.repo, _pull(call), request)
    return Answer(200, {"sha": sha, "merged": True, "message": "Pull Request successfully merged"})


def update_branch(call: Call) -> Answer:
    """Merge the base branch into the head branch."""
    pull = _pull(call)
    merging.update_branch(call.world, call.actor, call.repo, pull, call.fields.get("expected_head_sha"))
    url = f"{call.lens.repo_api(call.repo)}/pulls/{pull.number}"
    return Answer(202, {"message": "Updating pull request branch.", "url": url})


# ---- requested reviewers


def list_reviewers(call: Call) -> Answer:
    """Who is asked for a review."""
    pull, store = _pull(call), call.world.store
    people = [user(call.lens, store.need(User, id)) for id in pull.reviewers]
    teams = [team(call.lens, store.need(Team, id)) for id in pull.team_reviewers]
    return Answer(200, {"users": people, "teams": teams})


def _people(call: Call) -> tuple[list[str], list[str]]:
    return call.fields.get("reviewers", []), call.fields.get("team_reviewers", [])


def ask_reviewers(call: Call) -> Answer:
    """Ask people or teams for a review."""
    pull = reviews.request_reviewers(call.world, call.actor, call.repo, _pull(call), _people(call))
    return Answer(201, simple_pull(call.lens, call.repo, pull))


def unask_reviewers(call: Call) -> Answer:
    """Take requests for a review back."""
    pull = reviews.remove_reviewers(call.world, call.actor, call.repo, _pull(call), _people(call))
    return Answer(200, simple_pull(call.lens, call.repo, pull))


# ---- reviews


def _review(call: Call) -> Review:
    found = call.world.store.get(Review, call.number("review_id"))
    if found is None or (found.repo_id, found.number) != (call.repo.id, call.number("number")):
        raise not_found()
    return found


def list_reviews(call: Call) -> Answer:
    """The reviews of a pull request, oldest first."""
    found = call.world.store.find(Review, repo_id=call.repo.id, number=_pull(call).number)
    return call.page(found, lambda item: review(call.lens, call.repo, item))


def get_review(call: Call) -> Answer:
    """One review."""
    return Answer(200, review(call.lens, call.repo, _review(call)))


def create_review(call: Call) -> Answer:
    """Submit a review of the commit `commit_id` (default: the present head)."""
    fields = call.fields
    if "event" not in fields:
        raise Refused(422, "Pending reviews are not supported by the sandbox; send an event.")
    parts = (fields["event"], fields.get("body") or "", fields.get("commit_id"))
    item = reviews.submit(call.world, call.actor, call.repo, _pull(call), parts)
    return Answer(200, review(call.lens, call.repo, item))


def dismiss_review(call: Call) -> Answer:
    """Dismiss a review with a message."""
    item = reviews.dismiss(call.world, call.actor, call.repo, _review(call), call.fields["message"])
    return Answer(200, review(call.lens, call.repo, item))


_PULLS = "/repos/{owner}/{repo}/pulls"
_ONE = _PULLS + "/{number}"
_NEW = {
    "title": "string",
    "head!": "string",
    "base!": "string",
    "body?": "string",
    "draft": "boolean",
    "maintainer_can_modify": "boolean",
    "head_repo": "string",
}
_EDIT = {
    "title": "string",
    "body?": "string",
    "state": ("open", "closed"),
    "base": "string",
    "maintainer_can_modify": "boolean",
}
_MERGE = {
    "commit_title": "string",
    "commit_message": "string",
    "sha": "string",
    "merge_method": merging.METHODS,
}
_REVIEW = {"commit_id": "string", "body": "string", "event": tuple(reviews.STATES)}
_ASKED = {"reviewers": ["string"], "team_reviewers": ["string"]}
_READ, _WRITE = "pull_requests:read", "pull_requests:write"

ROUTES = [
    Route("GET", _PULLS, list_pulls, _READ),
    Route("POST", _PULLS, create_pull, _WRITE, body=_NEW),
    Route("GET", _ONE, get_pull, _READ),
    Route("PATCH", _ONE, update_pull, _WRITE, body=_EDIT),
    Route("GET", _ONE + "/files", list_files, _READ),
    Route("GET", _ONE + "/commits", list_commits, _READ),
    Route("GET", _ONE + "/merge", is_merged, "contents:read"),
    Route("PUT", _ONE + "/merge", merge_pull, "contents:write", "write", _MERGE),
    Route("PUT", _ONE + "/update-branch", update_branch, _WRITE, "write", {"expected_head_sha": "string"}),
    Route("GET", _ONE + "/requested_reviewers", list_reviewers, _READ),
    Route("POST", _ONE + "/requested_reviewers", ask_reviewers, _WRITE, "write", _ASKED),
    Route(
        "DELETE",
        _ONE + "/requested_reviewers",
        unask_reviewers,
        _WRITE,
        "write",
        {"reviewers!": ["string"], "team_reviewers": ["string"]},
    ),
    Route("GET", _ONE + "/reviews", list_reviews, _READ),
    Route("POST", _ONE + "/reviews", create_review, _WRITE, body=_REVIEW),
    Route("GET", _ONE + "/reviews/{review_id}", get_review, _READ),
    Route(
        "PUT",
        _ONE + "/reviews/{review_id}/dismissals",
        dismiss_review,
        _WRITE,
        body={"message!": "string", "event": ("DISMISS",)},
    ),
]
