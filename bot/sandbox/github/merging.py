"""Merging pull requests: merge commit, squash or rebase, guarded by the expected head and the branch rules."""

from collections.abc import Callable
from dataclasses import dataclass

from bot.sandbox.github import rules
from bot.sandbox.github.accounts import App, User
from bot.sandbox.github.auth import Actor
from bot.sandbox.github.errors import Refused, forbidden
from bot.sandbox.github.forks import bring, head_repository
from bot.sandbox.github.git import ZERO, Commit, Git, RefChange, RefMoved
from bot.sandbox.github.pulls import close_pull, compute_mergeable
from bot.sandbox.github.pushes import apply_ref, move_ref, ref_changed
from bot.sandbox.github.records import Intent, PullRequest, Repository, Ruleset
from bot.sandbox.github.signing import Draft, person_of, server_commit
from bot.sandbox.github.world import World

METHODS = ("merge", "squash", "rebase")
_OFF = {
    "merge": "Merge commits are not allowed on this repository.",
    "squash": "Squash merges are not allowed on this repository.",
    "rebase": "Rebase merges are not allowed on this repository.",
}
NOT_MERGEABLE = "Pull Request is not mergeable"


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """How to merge: `sha` is the head that the caller saw; `use_bypass` lets a bypass actor pass the rules."""

    method: str = "merge"
    sha: str | None = None
    title: str | None = None
    message: str | None = None
    use_bypass: bool = True


def merge(world: World, actor: Actor, repo: Repository, pull: PullRequest, request: MergeRequest) -> str:
    """Merge and return the new commit of the base branch; 405 if it may not be merged, 409 if a side moved."""
    with world.store.transaction():
        pull = _check(world, actor, repo, pull, request)
        git = world.git(repo)
        base = git.ref(f"refs/heads/{pull.base_ref}")
        if base is None:
            raise Refused(405, NOT_MERGEABLE)
        new = _BUILD[request.method](_Work(world, actor, repo, pull, request), git, base)
        intent = world.store.add(
            Intent(repo.id, pull.number, base, new, request.method, actor.account.id, actor.app_id)
        )
    # The intent is on disk before the ref moves, so that a crash in between can be finished at the next start.
    try:
        git.update_ref(f"refs/heads/{pull.base_ref}", new, base)
    except RefMoved:
        world.store.remove(intent)
        raise Refused(409, "Base branch was modified. Review and try the merge again.") from None
    with world.store.transaction():
        _finish(world, actor, repo, pull, intent)
    delete_merged_branch(world, actor, repo, pull)
    return new


@dataclass(frozen=True, slots=True)
class _Work:
    """One merge in progress."""

    world: World
    actor: Actor
    repo: Repository
    pull: PullRequest
    request: MergeRequest


def _check(
    world: World, actor: Actor, repo: Repository, pull: PullRequest, request: MergeRequest
) -> PullRequest:
    """Refuse what GitHub refuses; answers the pull request with its mergeability known."""
    issue = world.issue(repo, pull.number)
    if issue.state != "open":
        raise Refused(405, NOT_MERGEABLE)
    if request.sha is not None and request.sha != pull.head_sha:
        raise Refused(409, "Head branch was modified. Review and try the merge again.")
    if pull.draft:
        raise Refused(405, "Pull Request is still a draft")
    allowed = {
        "merge": repo.allow_merge_commit,
        "squash": repo.allow_squash_merge,
        "rebase": repo.allow_rebase_merge,
    }
    if not allowed[request.method]:
        raise Refused(405, _OFF[request.method])
    check_rules(world, actor, repo, pull, request)
    if pull.mergeable is None:
        pull = compute_mergeable(world, repo, pull)
    if not pull.mergeable:
        raise Refused(405, NOT_MERGEABLE)
    return pull


def check_rules(
    world: World, actor: Actor, repo: Repository, pull: PullRequest, request: MergeRequest
) -> None:
    """405 with every unmet rule, unless the caller may pass the rule sets by and asks to."""
    if request.use_bypass:
        found = rules.binding_rulesets(world, repo, pull.base_ref, actor, merging=True)
    else:
        found = rules.rulesets_for(world, repo, pull.base_ref)
    problems = rules.merge_problems(world, repo, found, pull)
    if rules.rules_of(found, "merge_queue"):
        problems.append("Changes must be made through the merge queue")
    for parameters in rules.rules_of(found, "pull_request"):
        if request.method not in parameters.get("allowed_merge_methods", METHODS):
            problems.append(f"Merge method {request.method} is not allowed on this branch.")
    problems += _unsigned(world, actor, repo, pull, request, found)
    linear = any(rule["type"] == "required_linear_history" for item in found for rule in item.rules)
    if linear and request.method == "merge":
        problems.append("This branch must not contain merge commits.")
    if problems:
        listed = "\n".join(problems)
        raise Refused(405, f"Repository rule violations found\n\n{listed}\n\n")


def _unsigned(
    world: World,
    actor: Actor,
    repo: Repository,
    pull: PullRequest,
    request: MergeRequest,
    found: list[Ruleset],
) -> list[str]:
    """What a rule that asks for signed commits says: the server signs what it squashes, for the author alone."""
    if not any(rule["type"] == "required_signatures" for item in found for rule in item.rules):
        return []
    if request.method == "rebase":
        return ["Commits must have verified signatures, and the server cannot sign those that it rebases."]
    if request.method == "squash" and world.issue(repo, pull.number).author_id == actor.account.id:
        return []
    return rules.signature_problems(world, repo, world.git(repo), f"{pull.base_sha}..{pull.head_sha}")


# ---- the three methods


def _merge_commit(work: _Work, git: Git, base: str) -> str:
    issue = work.world.issue(work.repo, work.pull.number)
    owner = work.world.owner(head_repository(work.world, work.pull)).login
    title = work.request.title or f"Merge pull request #{work.pull.number} from {owner}/{work.pull.head_ref}"
    message = work.request.message if work.request.message is not None else issue.title
    tree = git.merge_tree(base, work.pull.head_sha)
    if tree is None:
        raise Refused(405, NOT_MERGEABLE)
    return _commit(work, tree, [base, work.pull.head_sha], title, message)


def _squash_commit(work: _Work, git: Git, base: str) -> str:
    issue = work.world.issue(work.repo, work.pull.number)
    commits = git.commits("--reverse", f"{base}..{work.pull.head_sha}")
    title = work.request.title or f"{issue.title} (#{work.pull.number})"
    message = work.request.message
    if message is None:
        message = (
            "\n\n".join(f"* {item.message}" for item in commits) if len(commits) > 1 else _rest(commits[0])
        )
    tree = git.merge_tree(base, work.pull.head_sha)
    if tree is None:
        raise Refused(405, NOT_MERGEABLE)
    author = work.world.store.need(User, issue.author_id)
    text = f"{title}\n\n{message}".strip()
    return server_commit(work.world, work.repo, Draft(tree, [base], text, person_of(work.world, author)))


def _rest(commit: Commit) -> str:
    """A commit message without its first line."""
    return commit.message.partition("\n")[2].strip()


def _commit(work: _Work, tree: str, parents: list[str], title: str, message: str) -> str:
    text = f"{title}\n\n{message}".strip()
    author = person_of(work.world, work.actor.account)
    return server_commit(work.world, work.repo, Draft(tree, parents, text, author))


def _rebase(work: _Work, git: Git, base: str) -> str:
    """Replay each commit that is not a merge; commits that change nothing are left out, as GitHub does."""
    tip, tree = base, git.commit(base).tree
    who = person_of(work.world, work.actor.account)
    for item in git.commits("--reverse", "--topo-order", "--no-merges", f"{base}..{work.pull.head_sha}"):
        # A stand-in for the tip whose parent is the commit's own parent makes the three-way merge a replay.
        stand_in = git.commit_tree(tree, item.parents, "replay\n", author=who, committer=who)
        replayed = git.merge_tree(stand_in, item.sha)
        if replayed is None:
            raise Refused(405, "This branch can't be rebased")
        if replayed == tree:
            continue
        tree = replayed
        tip = git.commit_tree(tree, [tip], item.message + "\n", author=item.author, committer=who)
    if tip == base:
        raise Refused(405, "This branch can't be rebased")
    return tip


_BUILD: dict[str, Callable[[_Work, Git, str], str]] = {
    "merge": _merge_commit,
    "squash": _squash_commit,
    "rebase": _rebase,
}


# ---- afterwards


def _finish(world: World, actor: Actor, repo: Repository, pull: PullRequest, intent: Intent) -> None:
    close_pull(
        world,
        actor,
        repo,
        pull,
        # What the base was just before the merge is what the Revert button later goes back to.
        {"merge_commit_sha": intent.new_sha, "merge_method": intent.method, "base_sha": intent.old_sha},
    )
    world.store.remove(intent)
    ref_changed(world, actor, repo, RefChange(f"refs/heads/{pull.base_ref}", intent.old_sha, intent.new_sha))


def delete_merged_branch(world: World, actor: Actor, repo: Repository, pull: PullRequest) -> None:
    """Delete the head branch of a merged pull request where the repository is set to do so."""
    if pull.head_repo_id:
        return
    ref = f"refs/heads/{pull.head_ref}"
    head = world.git(repo).ref(ref)
    used = world.open_pulls(repo, head_ref=pull.head_ref) or world.open_pulls(repo, base_ref=pull.head_ref)
    if repo.delete_branch_on_merge and head == pull.head_sha and not used:
        apply_ref(world, actor, repo, RefChange(ref, head, ZERO))


def finish_intents(world: World) -> None:
    """After a crash: finish merges whose commit is on the base branch, forget those that never got there."""
    for intent in world.store.find(Intent):
        repo = world.store.need(Repository, intent.repo_id)
        pull = world.pull(repo, intent.number)
        base = world.git(repo).ref(f"refs/heads/{pull.base_ref}")
        user = world.store.need(User, intent.user_id)
        app = world.store.get(App, intent.app_id) if intent.app_id else None
        actor = Actor("installation" if app else "user", user=user, app=app)
        with world.store.transaction():
            if base == intent.new_sha and not pull.merged:
                _finish(world, actor, repo, pull, intent)
            else:
                world.store.remove(intent)


# ---- update branch, revert


def update_branch(
    world: World, actor: Actor, repo: Repository, pull: PullRequest, expected: str | None
) -> str:
    """Merge the base into the head branch; 422 if the head moved or there is nothing to merge or a conflict."""
    git = world.git(repo)
    if pull.head_repo_id and actor.app_id is not None:
        raise forbidden()
    if expected is not None and expected != pull.head_sha:
        raise Refused(422, "expected head sha didn’t match current head ref.")
    base = git.ref(f"refs/heads/{pull.base_ref}")
    if base is None or git.is_ancestor(base, pull.head_sha):
        raise Refused(422, "There are no new commits on the base branch.")
    tree = git.merge_tree(pull.head_sha, base)
    if tree is None:
        raise Refused(422, "merge conflict between base and head")
    message = f"Merge branch '{pull.base_ref}' into {pull.head_ref}"
    who = person_of(world, actor.account)
    new = server_commit(world, repo, Draft(tree, [pull.head_sha, base], message, who))
    source = head_repository(world, pull)
    bring(world, source, repo, new)
    move_ref(world, actor, source, RefChange(f"refs/heads/{pull.head_ref}", pull.head_sha, new))
    return new


def revert_commit(world: World, actor: Actor, repo: Repository, pull: PullRequest) -> str:
    """The commit that undoes a merged pull request on top of its base branch; 422 if it cannot be undone."""
    git = world.git(repo)
    base = git.ref(f"refs/heads/{pull.base_ref}")
    if not pull.merged or pull.merge_commit_sha is None or base is None:
        raise Refused(422, "Only a merged pull request can be reverted.")
    if actor.kind == "user" and not world.has_role(actor.account, repo, "write"):
        raise forbidden("Must have push access to repository")
    merged = git.commit(pull.merge_commit_sha)
    before = merged.parents[0] if pull.merge_method != "rebase" else pull.base_sha
    who = person_of(world, actor.account)
    # Seen from the merge, the undo is the tree before it: merge that into the tip of today.
    undo = git.commit_tree(git.commit(before).tree, [merged.sha], "undo\n", author=who, committer=who)
    tree = git.merge_tree(base, undo)
    if tree is None:
        raise Refused(422, "This pull request cannot be reverted automatically, there are conflicts.")
    issue = world.issue(repo, pull.number)
    text = f'Revert "{issue.title}"\n\nThis reverts pull request #{pull.number}.'
    return server_commit(world, repo, Draft(tree, [base], text, who))
