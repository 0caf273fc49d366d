"""Pull requests: opening, editing, following their branches, and the late answer to "is it mergeable?"."""

from dataclasses import dataclass

from bot.sandbox.github import rules
from bot.sandbox.github.auth import Actor
from bot.sandbox.github.errors import Refused, invalid, too_long
from bot.sandbox.github.events import Notice, emit
from bot.sandbox.github.forks import bring, find_head, head_of, head_repository, pulls_from
from bot.sandbox.github.git import Git
from bot.sandbox.github.records import (
    CheckRun,
    CommitStatus,
    Issue,
    Json,
    PullRequest,
    Repository,
    Review,
)
from bot.sandbox.github.signing import Draft, server_commit
from bot.sandbox.github.views.lens import Lens
from bot.sandbox.github.views.pulls import pull_request, review
from bot.sandbox.github.world import World

BODY_LIMIT = 65536
TITLE_LIMIT = 256


@dataclass(frozen=True, slots=True)
class NewPull:
    """What a pull request is opened with; `head` is a branch, or `owner:branch` in a fork."""

    title: str
    head: str
    base: str
    body: str | None = None
    draft: bool = False


def check_texts(resource: str, title: str | None, body: str | None) -> None:
    """422 for a title or body over GitHub's limit."""
    if title is not None and not title.strip():
        raise invalid(resource, "title", code="missing_field")
    if title is not None and len(title) > TITLE_LIMIT:
        raise too_long(resource, "title", TITLE_LIMIT)
    if body is not None and len(body) > BODY_LIMIT:
        raise too_long(resource, "body", BODY_LIMIT)


def next_number(world: World, repo: Repository) -> int:
    """The number of the repository's next issue or pull request."""
    newest = world.store.last(Issue, repo_id=repo.id)
    return newest.number + 1 if newest else 1


def open_pull(world: World, actor: Actor, repo: Repository, new: NewPull) -> PullRequest:
    """Open a pull request; 422 for a missing branch, nothing to merge, or a twin that is open."""
    check_texts("PullRequest", new.title, new.body)
    source, branch = find_head(world, repo, new.head)
    head, base = _sides(world, repo, new)
    now = world.now()
    with world.store.transaction():
        number = next_number(world, repo)
        world.store.add(
            Issue(
                repo.id,
                number,
                True,
                new.title,
                new.body,
                actor.account.id,
                actor.app_id,
                created_at=now,
                updated_at=now,
            )
        )
        pull = world.store.add(
            PullRequest(
                repo.id,
                number,
                branch,
                head,
                new.base,
                base,
                new.draft,
                last_pusher_id=actor.account.id,
                head_repo_id=0 if source.id == repo.id else source.id,
            )
        )
        world.git(repo).set_ref(f"refs/pull/{number}/head", head)
        tell(world, actor, pull, "opened")
        world.wake()
        return pull


def _sides(world: World, repo: Repository, new: NewPull) -> tuple[str, str]:
    """The commits at head and base, after GitHub's checks."""
    git = world.git(repo)
    source, branch = find_head(world, repo, new.head)
    head, base = world.git(source).ref(f"refs/heads/{branch}"), git.ref(f"refs/heads/{new.base}")
    if base is None:
        raise invalid("PullRequest", "base")
    if head is None:
        raise invalid("PullRequest", "head")
    if any(
        home.id == repo.id and one.base_ref == new.base for home, one in pulls_from(world, source, branch)
    ):
        raise _custom(f"A pull request already exists for {world.owner(source).login}:{branch}.")
    bring(world, repo, source, head)
    if git.merge_base(base, head) is None:
        raise _custom(f"The {new.head} branch has no history in common with {new.base}")
    if git.is_ancestor(head, base):
        raise _custom(f"No commits between {new.base} and {new.head}")
    return head, base


def _custom(message: str) -> Refused:
    error = {"resource": "PullRequest", "code": "custom", "message": message}
    return Refused(422, "Validation Failed", errors=[error])


def tell(world: World, actor: Actor, pull: PullRequest, action: str, more: Json | None = None) -> None:
    """Send `pull_request` with the action to every App that wants it."""
    repo = world.store.need(Repository, pull.repo_id)

    def build(lens: Lens) -> Json:
        state = mergeable_state(world, repo, pull)
        view = pull_request(lens, repo, pull, state)
        return {"number": pull.number, "pull_request": view, **(more or {})}

    emit(world, repo, Notice("pull_request", action, actor), build)


def edit_pull(world: World, actor: Actor, repo: Repository, pull: PullRequest, changes: Json) -> PullRequest:
    """Change title, body or base; the event `edited` carries the old values."""
    issue = world.issue(repo, pull.number)
    check_texts("PullRequest", changes.get("title"), changes.get("body"))
    old: Json = {}
    with world.store.transaction():
        for name in ("title", "body"):
            if name in changes and changes[name] != getattr(issue, name):
                old[name] = {"from": getattr(issue, name) or ""}
                issue = world.store.change(issue, **{name: changes[name]})
        base = changes.get("base")
        if base is not None and base != pull.base_ref:
            old["base"] = {"ref": {"from": pull.base_ref}, "sha": {"from": pull.base_sha}}
            pull = _retarget(world, repo, pull, base)
        world.store.change(issue, updated_at=world.now())
        if old:
            tell(world, actor, pull, "edited", {"changes": old})
        return pull


def _retarget(world: World, repo: Repository, pull: PullRequest, base: str) -> PullRequest:
    if world.issue(repo, pull.number).state != "open":
        raise invalid(
            "PullRequest", "base", message="Cannot change the base branch of a closed pull request."
        )
    label = f"{world.owner(head_repository(world, pull)).login}:{pull.head_ref}"
    _, sha = _sides(world, repo, NewPull("t", label, base))
    return forget_mergeable(world, world.store.change(pull, base_ref=base, base_sha=sha))


def set_state(world: World, actor: Actor, repo: Repository, pull: PullRequest, state: str) -> PullRequest:
    """Close or reopen; 422 if it is merged, or if its branch is gone or was replaced meanwhile."""
    issue = world.issue(repo, pull.number)
    if issue.state == state:
        return pull
    if state == "closed":
        return close_pull(world, actor, repo, pull)
    git = world.git(repo)
    head = head_of(world, pull)
    if pull.merged or head is None:
        raise invalid("PullRequest", "state", message=_NOT_REOPENED.format(f"{pull.head_ref} branch is gone"))
    source = head_repository(world, pull)
    bring(world, repo, source, head)
    if not git.is_ancestor(pull.head_sha, head):
        raise invalid(
            "PullRequest",
            "state",
            message=_NOT_REOPENED.format(f"{pull.head_ref} branch was force-pushed or recreated"),
        )
    twins = [one for home, one in pulls_from(world, source, pull.head_ref) if home.id == repo.id]
    if any(one.base_ref == pull.base_ref for one in twins):
        raise invalid(
            "PullRequest", "state", message=_NOT_REOPENED.format("there is an open one for this branch")
        )
    with world.store.transaction():
        world.store.change(
            issue, state="open", closed_at=None, closed_by=None, state_reason=None, updated_at=world.now()
        )
        pull = forget_mergeable(world, world.store.change(pull, head_sha=head))
        git.set_ref(f"refs/pull/{pull.number}/head", head)
        tell(world, actor, pull, "reopened")
        return pull


_NOT_REOPENED = "state cannot be changed. The {}."


def close_pull(
    world: World, actor: Actor, repo: Repository, pull: PullRequest, merged: Json | None = None
) -> PullRequest:
    """Close the pull request, as merged if `merged` holds what that changes."""
    issue = world.issue(repo, pull.number)
    now = world.now()
    with world.store.transaction():
        world.store.change(issue, state="closed", closed_at=now, updated_at=now, closed_by=actor.account.id)
        if merged:
            pull = world.store.change(
                pull, merged=True, merged_at=now, merged_by=actor.account.id, mergeable=None, **merged
            )
        tell(world, actor, pull, "closed")
        return pull


# ---- following the branches


def head_moved(world: World, actor: Actor, repo: Repository, branch: str, new: str) -> None:
    """Take the new head into every open pull request from this branch, be it in a fork."""
    for home, pull in pulls_from(world, repo, branch):
        git, old = world.git(home), pull.head_sha
        if old == new:
            continue
        bring(world, home, repo, new)
        base = git.ref(f"refs/heads/{pull.base_ref}") or pull.base_sha
        same_diff = _diff_text(git, base, old) == _diff_text(git, base, new)
        pull = world.store.change(pull, head_sha=new, base_sha=base, last_pusher_id=actor.account.id)
        pull = forget_mergeable(world, pull)
        world.store.change(world.issue(home, pull.number), updated_at=world.now())
        git.set_ref(f"refs/pull/{pull.number}/head", new)
        if not same_diff:
            _dismiss_stale(world, actor, home, pull)
        tell(world, actor, pull, "synchronize", {"before": old, "after": new})


def _diff_text(git: Git, base: str, head: str) -> bytes:
    return git.run("diff", "--no-color", git.merge_base(base, head) or base, head, "--")


def _dismiss_stale(world: World, actor: Actor, repo: Repository, pull: PullRequest) -> None:
    """Where the rules ask for it, a push that changes the diff dismisses approvals of older commits."""
    wanted = rules.rules_of(rules.rulesets_for(world, repo, pull.base_ref), "pull_request")
    if not any(item["dismiss_stale_reviews_on_push"] for item in wanted):
        return
    for item in rules.latest_reviews(world, repo, pull).values():
        if item.state == "APPROVED" and item.commit_id != pull.head_sha:
            dismissed = world.store.change(item, state="DISMISSED")
            tell_review(world, actor, pull, dismissed, "dismissed")


def tell_review(world: World, actor: Actor, pull: PullRequest, item: Review, action: str) -> None:
    """Send `pull_request_review` with the action to every App that wants it."""
    repo = world.store.need(Repository, pull.repo_id)

    def build(lens: Lens) -> Json:
        view = review(lens, repo, item)
        state = mergeable_state(world, repo, pull)
        return {
            # In webhooks the state is written in small letters, unlike in the REST API.
            "review": {**view, "state": view["state"].lower()},
            "pull_request": pull_request(lens, repo, pull, state),
        }

    emit(world, repo, Notice("pull_request_review", action, actor), build)


def base_moved(world: World, actor: Actor, repo: Repository, branch: str, new: str) -> None:
    """Mark pull requests into this branch as merged if it now holds their head, else as to be looked at."""
    git = world.git(repo)
    for pull in world.open_pulls(repo, base_ref=branch):
        if git.is_ancestor(pull.head_sha, new):
            close_pull(world, actor, repo, pull, {"merge_commit_sha": new})
        else:
            forget_mergeable(world, pull)


def branch_deleted(world: World, actor: Actor, repo: Repository, branch: str) -> None:
    """Close the open pull requests from or into a branch that is gone."""
    for home, pull in pulls_from(world, repo, branch):
        close_pull(world, actor, home, pull)
    for pull in world.open_pulls(repo, base_ref=branch):
        close_pull(world, actor, repo, pull)


# ---- mergeability


def forget_mergeable(world: World, pull: PullRequest) -> PullRequest:
    """Have the background task compute mergeability again; until then it is null."""
    world.wake()
    return world.store.change(pull, mergeable=None, rebaseable=None)


def compute_mergeable(world: World, repo: Repository, pull: PullRequest) -> PullRequest:
    """Try the merge and remember its outcome and the test merge commit at `refs/pull/N/merge`."""
    git = world.git(repo)
    base = git.ref(f"refs/heads/{pull.base_ref}")
    if base is None:
        return pull
    tree = git.merge_tree(base, pull.head_sha)
    if tree is None:
        return world.store.change(pull, mergeable=False, rebaseable=False)
    message = f"Merge {pull.head_sha} into {base}\n"
    sha = server_commit(world, repo, Draft(tree, [base, pull.head_sha], message, None))
    git.set_ref(f"refs/pull/{pull.number}/merge", sha)
    return world.store.change(pull, mergeable=True, rebaseable=True, merge_commit_sha=sha)


def mergeable_state(world: World, repo: Repository, pull: PullRequest) -> str:
    """GitHub's one-word summary: unknown, dirty, draft, behind, blocked, unstable or clean."""
    if pull.mergeable is None or world.issue(repo, pull.number).state != "open":
        return "unknown"
    if not pull.mergeable:
        return "dirty"
    if pull.draft:
        return "draft"
    found = rules.rulesets_for(world, repo, pull.base_ref)
    problems = rules.merge_problems(world, repo, found, pull)
    if problems:
        return "behind" if all("up to date" in text for text in problems) else "blocked"
    runs = world.store.find(CheckRun, repo_id=repo.id, head_sha=pull.head_sha)
    statuses = world.store.find(CommitStatus, repo_id=repo.id, sha=pull.head_sha)
    newest = {run.name: run.conclusion in rules.SATISFIED for run in runs}
    newest |= {item.context: item.state == "success" for item in statuses}
    return "clean" if all(newest.values()) else "unstable"
