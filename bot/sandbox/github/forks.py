"""Forks: repositories that began as a copy of another, and pull requests that come from there."""

from bot.sandbox.github.errors import invalid
from bot.sandbox.github.provisioning import init_bare
from bot.sandbox.github.records import PullRequest, Repository
from bot.sandbox.github.world import World


def create_fork(world: World, owner: str, source: Repository) -> Repository:
    """The owner's fork of the repository, made with the source's branches if it is not there."""
    account = world.need_user(owner)
    with world.store.transaction():
        found = world.store.first(Repository, owner_id=account.id, name=source.name)
        if found is not None:
            return found
        now = world.now()
        fork = world.store.add(
            Repository(
                account.id,
                source.name,
                source.private,
                source.description,
                source.default_branch,
                fork_of=source.id,
                created_at=now,
                updated_at=now,
                pushed_at=now,
            )
        )
        init_bare(world, fork, {})
        git = world.git(fork)
        git.run(
            "fetch", "-q", "--no-tags", str(world.git(source).path.resolve()), "+refs/heads/*:refs/heads/*"
        )
        return fork


def find_head(world: World, repo: Repository, name: str) -> tuple[Repository, str]:
    """The repository and branch that `branch` or `owner:branch` names; 422 if the owner has no fork."""
    owner, colon, branch = name.partition(":")
    if not colon:
        return repo, name
    account = world.user(owner)
    if account and account.id == repo.owner_id:
        return repo, branch
    fork = world.store.first(Repository, owner_id=account.id, fork_of=repo.id) if account else None
    if fork is None:
        raise invalid("PullRequest", "head")
    return fork, branch


def head_repository(world: World, pull: PullRequest) -> Repository:
    """The repository that the head branch of a pull request is in."""
    return world.store.need(Repository, pull.head_repo_id or pull.repo_id)


def head_of(world: World, pull: PullRequest) -> str | None:
    """The present tip of the head branch, or None if the branch is gone."""
    return world.git(head_repository(world, pull)).ref(f"refs/heads/{pull.head_ref}")


def bring(world: World, repo: Repository, source: Repository, sha: str) -> None:
    """Have the objects of a fork's commit in the repository itself."""
    if source.id != repo.id:
        world.git(repo).run("fetch", "-q", "--no-tags", str(world.git(source).path.resolve()), sha)


def pulls_from(world: World, repo: Repository, branch: str) -> list[tuple[Repository, PullRequest]]:
    """The open pull requests whose head is this branch of this repository, with the repository they are in."""
    found = []
    for pull in world.store.find(PullRequest, head_ref=branch, merged=False):
        if (pull.head_repo_id or pull.repo_id) == repo.id:
            home = world.store.need(Repository, pull.repo_id)
            if world.issue(home, pull.number).state == "open":
                found.append((home, pull))
    return found
