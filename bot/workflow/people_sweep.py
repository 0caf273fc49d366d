"""What a sweep asks for on people's account, so that a lost event is harmless."""

from __future__ import annotations

from bot.ports import Look
from bot.workflow.differing import Differences
from bot.workflow.peoples_pulls import PeoplesPulls


async def find_people_looks(people: PeoplesPulls, differences: Differences) -> list[Look]:
    """Looks at people's pull requests of which something may be due, and at branches where they may have pushed.

    Of other open pull requests those whose present head this process has never seen: one request a repository.
    """
    gatherer, branches = people.gatherer, await differences.branches()
    looks = [Look("branch", f"{repository}@{branch}", "a sweep") for repository, branch in branches]
    for row in await gatherer.store.list_peoples_pulls():
        repository = gatherer.github.repository_of(row.url)
        if repository is not None:
            looks.append(Look("pull", f"{repository}#{row.pull}", "a sweep"))
    for repository in dict.fromkeys(repository for repository, _ in branches):
        for pull in await gatherer.github.list_pull_requests(repository):
            if not people.has_seen(pull) and not pull.head_branch.startswith("lockstep/"):
                looks.append(Look("pull", f"{repository}#{pull.number}", "a sweep"))
    return looks
