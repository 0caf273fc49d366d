"""Reviews: submitting and dismissing them, and asking people for one."""

from bot.sandbox.github.accounts import Team
from bot.sandbox.github.auth import Actor
from bot.sandbox.github.errors import Refused, forbidden, too_long
from bot.sandbox.github.pulls import BODY_LIMIT, tell, tell_review
from bot.sandbox.github.records import PullRequest, Repository, Review
from bot.sandbox.github.views.lens import Lens
from bot.sandbox.github.views.people import team, user_by_id
from bot.sandbox.github.world import BASE_MARK, World

STATES = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}


def submit(
    world: World, actor: Actor, repo: Repository, pull: PullRequest, review: tuple[str, str, str | None]
) -> Review:
    """Submit a review of `(event, body, commit_id)`; no commit means the present head."""
    event, body, commit_id = review
    issue = world.issue(repo, pull.number)
    if len(body) > BODY_LIMIT:
        raise too_long("PullRequestReview", "body", BODY_LIMIT)
    if event != "COMMENT" and issue.author_id == actor.account.id:
        word = "approve" if event == "APPROVE" else "request changes on"
        raise Refused(422, "Unprocessable Entity", errors=[f"Can not {word} your own pull request"])
    if event != "APPROVE" and not body.strip():
        raise Refused(422, "Unprocessable Entity", errors=["Body can't be blank"])
    if commit_id is not None and not _is_commit_of(world, repo, pull, commit_id):
        raise Refused(422, "Unprocessable Entity", errors=["Commit is not part of the pull request"])
    with world.store.transaction():
        item = world.store.add(
            Review(
                repo.id,
                pull.number,
                actor.account.id,
                STATES[event],
                body,
                commit_id or pull.head_sha,
                world.now(),
            )
        )
        world.store.change(issue, updated_at=world.now())
        if actor.account.id in pull.reviewers:
            left = tuple(id for id in pull.reviewers if id != actor.account.id)
            pull = world.store.change(pull, reviewers=left)
        tell_review(world, actor, pull, item, "submitted")
        return item


def _is_commit_of(world: World, repo: Repository, pull: PullRequest, sha: str) -> bool:
    git = world.git(repo)
    return git.resolve(sha) == sha and (sha == pull.head_sha or git.is_ancestor(sha, pull.head_sha))


def dismiss(world: World, actor: Actor, repo: Repository, review: Review, message: str) -> Review:
    """Dismiss an approval or an objection; 422 for other reviews, 403 without write permission."""
    if review.state not in ("APPROVED", "CHANGES_REQUESTED"):
        raise Refused(422, "Unprocessable Entity", errors=["Can not dismiss a commented pull request review"])
    if actor.kind == "user" and not world.has_role(actor.account, repo, "write"):
        raise forbidden("Must have push access to repository")
    with world.store.transaction():
        item = world.store.change(review, state="DISMISSED", dismissal_message=message)
        tell_review(world, actor, world.pull(repo, review.number), item, "dismissed")
        return item


def request_reviewers(
    world: World, actor: Actor, repo: Repository, pull: PullRequest, people: tuple[list[str], list[str]]
) -> PullRequest:
    """Ask `(users, teams)` for a review; 422 for the author or somebody who cannot see the repository."""
    users, teams = _ids(world, repo, people)
    author = world.issue(repo, pull.number).author_id
    if author in users:
        raise Refused(422, "Review cannot be requested from pull request author.")
    new_users = [id for id in users if id not in pull.reviewers]
    new_teams = [id for id in teams if id not in pull.team_reviewers]
    lens = Lens(world, BASE_MARK)
    with world.store.transaction():
        pull = world.store.change(
            pull,
            reviewers=(*pull.reviewers, *new_users),
            team_reviewers=(*pull.team_reviewers, *new_teams),
        )
        for id in new_users:
            more = {"requested_reviewer": user_by_id(lens, id)}
            tell(world, actor, pull, "review_requested", more)
        for id in new_teams:
            more = {"requested_team": team(lens, world.store.need(Team, id))}
            tell(world, actor, pull, "review_requested", more)
        return pull


def remove_reviewers(
    world: World, actor: Actor, repo: Repository, pull: PullRequest, people: tuple[list[str], list[str]]
) -> PullRequest:
    """Take back the request for a review from `(users, teams)`."""
    users, teams = _ids(world, repo, people)
    lens = Lens(world, BASE_MARK)
    with world.store.transaction():
        gone = [id for id in pull.reviewers if id in users]
        pull = world.store.change(
            pull,
            reviewers=tuple(id for id in pull.reviewers if id not in users),
            team_reviewers=tuple(id for id in pull.team_reviewers if id not in teams),
        )
        for id in gone:
            more = {"requested_reviewer": user_by_id(lens, id)}
            tell(world, actor, pull, "review_request_removed", more)
        return pull


def _ids(world: World, repo: Repository, people: tuple[list[str], list[str]]) -> tuple[list[int], list[int]]:
    users = []
    for login in people[0]:
        found = world.user(login)
        if found is None or not world.has_role(found, repo, "read"):
            raise Refused(
                422,
                "Reviews may only be requested from collaborators. One or more of the users or teams you specified"
                f" is not a collaborator of the {world.full_name(repo)} repository.",
            )
        users.append(found.id)
    owner = world.owner(repo).login
    return users, [world.team(owner, slug).id for slug in people[1]]
