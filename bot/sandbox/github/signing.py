"""Commits that the server makes itself, and which it therefore signs."""

from collections.abc import Sequence

from bot.sandbox.github.accounts import User
from bot.sandbox.github.git import Person
from bot.sandbox.github.records import Repository, VerifiedCommit
from bot.sandbox.github.world import World

WEB_FLOW = ("GitHub", "noreply@github.com")


def person_of(world: World, account: User) -> Person:
    """The account as an author of a commit made now."""
    return Person(account.name or account.login, account.email, world.now())


def server_commit(
    world: World, repo: Repository, tree: str, parents: Sequence[str], message: str, author: Person | None
) -> str:
    """Write a commit as GitHub does on the web: committed and signed by the server."""
    committer = Person(*WEB_FLOW, world.now())
    text = message if message.endswith("\n") else message + "\n"
    sha = world.git(repo).commit_tree(tree, parents, text, author=author or committer, committer=committer)
    mark_verified(world, repo, sha)
    return sha


def mark_verified(world: World, repo: Repository, sha: str) -> None:
    """Remember that the server signed the commit."""
    with world.store.transaction():
        if world.store.first(VerifiedCommit, repo_id=repo.id, sha=sha) is None:
            world.store.add(VerifiedCommit(repo.id, sha))
