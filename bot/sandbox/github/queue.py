"""The merge queue: a group commit per pull request, `merge_group` events, and the merge once its checks pass."""

from bot.sandbox.github import merging, rules
from bot.sandbox.github.accounts import User
from bot.sandbox.github.auth import Actor, person
from bot.sandbox.github.errors import Refused
from bot.sandbox.github.events import Notice, emit
from bot.sandbox.github.git import ZERO, RefChange, RefMoved
from bot.sandbox.github.pulls import close_pull
from bot.sandbox.github.pushes import ref_changed
from bot.sandbox.github.records import Json, PullRequest, QueueEntry, Repository
from bot.sandbox.github.signing import Draft, person_of, server_commit
from bot.sandbox.github.views.checks import simple_commit
from bot.sandbox.github.views.lens import Lens
from bot.sandbox.github.world import World


def enqueue(
    world: World, actor: Actor, repo: Repository, pull: PullRequest, expected: str | None
) -> QueueEntry:
    """Put the pull request into its base branch's queue; `Refused` with 422 and GitHub's reason otherwise."""
    if expected is not None and expected != pull.head_sha:
        raise Refused(422, "Head branch was modified. Review and try the merge again.")
    if world.issue(repo, pull.number).state != "open" or pull.draft:
        raise Refused(422, "Pull request is not open")
    found = rules.rulesets_for(world, repo, pull.base_ref)
    if not rules.rules_of(found, "merge_queue"):
        raise Refused(422, "Merge queue is not enabled for this branch")
    problems = rules.review_problems(world, repo, found, pull)
    problems += rules.check_problems(world, repo, found, pull.head_sha)
    if problems:
        raise Refused(422, "Repository rule violations found\n\n" + "\n".join(problems))
    if world.store.first(QueueEntry, repo_id=repo.id, number=pull.number):
        raise Refused(422, "Pull request is already in the queue")
    waiting = world.store.last(QueueEntry, repo_id=repo.id, base_ref=pull.base_ref)
    git = world.git(repo)
    # Each group stands on the one before it, so that what is tested is what the branch will be.
    onto = waiting.group_sha if waiting else git.ref(f"refs/heads/{pull.base_ref}")
    tree = git.merge_tree(onto, pull.head_sha) if onto else None
    if onto is None or tree is None:
        raise Refused(422, "Pull request has conflicts with the queue")
    issue = world.issue(repo, pull.number)
    message = f"Merge pull request #{pull.number} from {pull.head_ref}\n\n{issue.title}"
    sha = server_commit(
        world, repo, Draft(tree, [onto, pull.head_sha], message, person_of(world, actor.account))
    )
    ref = f"refs/heads/gh-readonly-queue/{pull.base_ref}/pr-{pull.number}-{onto}"
    with world.store.transaction():
        entry = world.store.add(
            QueueEntry(repo.id, pull.number, pull.base_ref, pull.head_sha, sha, ref, actor.account.id)
        )
        git.set_ref(ref, sha)
        _tell(world, actor, entry, "checks_requested")
        world.wake()
        return entry


def _tell(world: World, actor: Actor, entry: QueueEntry, action: str, more: Json | None = None) -> None:
    repo = world.store.need(Repository, entry.repo_id)

    def build(lens: Lens) -> Json:
        commit = lens.world.git(repo).commit(entry.group_sha)
        group = {
            "head_sha": entry.group_sha,
            "head_ref": entry.group_ref,
            "base_sha": commit.parents[0],
            "base_ref": f"refs/heads/{entry.base_ref}",
            "head_commit": simple_commit(commit),
        }
        return {"merge_group": group, **(more or {})}

    emit(world, repo, Notice("merge_group", action, actor), build)


def advance(world: World) -> None:
    """Merge the groups whose checks have passed, throw out those that failed or whose head moved."""
    for entry in world.store.find(QueueEntry):
        repo = world.store.need(Repository, entry.repo_id)
        pull = world.pull(repo, entry.number)
        first = world.store.first(QueueEntry, repo_id=repo.id, base_ref=entry.base_ref)
        if pull.head_sha != entry.head_sha or world.issue(repo, entry.number).state != "open":
            _leave(world, repo, entry, "dequeued")
            continue
        states = _states(world, repo, entry)
        if "failure" in states:
            _leave(world, repo, entry, "invalidated")
        elif states <= {"success"} and first is not None and first.id == entry.id:
            _merge(world, repo, pull, entry)


def _states(world: World, repo: Repository, entry: QueueEntry) -> set[str]:
    found = rules.rulesets_for(world, repo, entry.base_ref)
    return {
        rules.check_state(world, repo, entry.group_sha, wanted["context"], wanted.get("integration_id"))
        for part in rules.rules_of(found, "required_status_checks")
        for wanted in part["required_status_checks"]
    }


def _leave(world: World, repo: Repository, entry: QueueEntry, reason: str) -> None:
    actor = person(world.store.need(User, entry.user_id))
    git = world.git(repo)
    with world.store.transaction():
        _tell(world, actor, entry, "destroyed", {"reason": reason})
        world.store.remove(entry)
        here = git.ref(entry.group_ref)
        if here:
            git.delete_ref(entry.group_ref, here)


def _merge(world: World, repo: Repository, pull: PullRequest, entry: QueueEntry) -> None:
    actor = person(world.store.need(User, entry.user_id))
    git = world.git(repo)
    ref = f"refs/heads/{entry.base_ref}"
    old = git.ref(ref) or ZERO
    if git.commit(entry.group_sha).parents[0] != old:
        _leave(world, repo, entry, "invalidated")
        return
    try:
        git.update_ref(ref, entry.group_sha, old)
    except RefMoved:
        _leave(world, repo, entry, "invalidated")
        return
    with world.store.transaction():
        changes = {"merge_commit_sha": entry.group_sha, "merge_method": "merge", "base_sha": old}
        close_pull(world, actor, repo, pull, changes)
        _leave(world, repo, entry, "merged")
        ref_changed(world, actor, repo, RefChange(ref, old, entry.group_sha))
    merging.delete_merged_branch(world, actor, repo, pull)
