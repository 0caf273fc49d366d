"""Commits that the server makes itself, and which it therefore signs."""

from collections.abc import Sequence
from dataclasses import dataclass

from bot.sandbox.github.accounts import User
from bot.sandbox.github.git import Person
from bot.sandbox.github.records import Repository, VerifiedCommit
from bot.sandbox.github.world import World

WEB_FLOW = ("GitHub", "noreply@github.com")


def person_of(world: World, account: User) -> Person:
    """The account as an author of a commit made now."""
    return Person(account.name or account.login, account.email, world.now())


@dataclass(frozen=True, slots=True)
class Draft:
    """A commit to be made; without an author the server is its author."""

    tree: str
    parents: Sequence[str]
    message: str
    author: Person | None = None


def server_commit(world: World, repo: Repository, draft: Draft) -> str:
    """Write a commit as GitHub does on the web: committed and signed by the server."""
    committer = Person(*WEB_FLOW, world.now())
    text = draft.message if draft.message.endswith("\n") else draft.message + "\n"
    author = draft.author or committer
    sha = world.git(repo).commit_tree(draft.tree, draft.parents, text, author=author, committer=committer)
    mark_verified(world, repo, sha)
    return sha


def mark_verified(world: World, repo: Repository, sha: str) -> None:
    """Remember that the server signed the commit."""
    with world.store.transaction():
        if world.store.first(VerifiedCommit, repo_id=repo.id, sha=sha) is None:
            world.store.add(VerifiedCommit(repo.id, sha))
