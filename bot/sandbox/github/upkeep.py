"""What GitHub does in its own time: late mergeability, the merge queue, and mending after a crash."""

import asyncio

from bot.sandbox.github import merging, pulls, queue
from bot.sandbox.github.auth import person
from bot.sandbox.github.forks import head_of, head_repository
from bot.sandbox.github.records import Issue, PullRequest, Repository
from bot.sandbox.github.threads import in_thread
from bot.sandbox.github.world import World

# Long enough that a caller that asks at once sees null, as on GitHub.
DELAY = 0.05


def mend(world: World) -> None:
    """Take up what a crash left: begun merges, and branches that moved without anybody being told."""
    merging.finish_intents(world)
    for repo in world.store.find(Repository):
        git, owner = world.git(repo), person(world.owner(repo))
        for pull in world.open_pulls(repo):
            head, base = head_of(world, pull), git.ref(f"refs/heads/{pull.base_ref}")
            if head is None or base is None:
                pulls.close_pull(world, owner, repo, pull)
                continue
            with world.store.transaction():
                pulls.head_moved(world, owner, head_repository(world, pull), pull.head_ref, head)
                pulls.base_moved(world, owner, repo, pull.base_ref, base)


class Upkeep:
    """The background task that computes mergeability and moves merge queues on."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._awake = asyncio.Event()

    def wake(self) -> None:
        """Look again; to be called in the task's own event loop."""
        self._awake.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await in_thread(self._pass)
            await self._awake.wait()
            self._awake.clear()
            await asyncio.sleep(DELAY)

    def _pass(self) -> None:
        for pull in self._world.store.find(PullRequest, mergeable=None, merged=False):
            with self._world.store.transaction():
                repo = self._world.store.need(Repository, pull.repo_id)
                now = self._world.pull(repo, pull.number)
                issue = self._world.store.first(Issue, repo_id=repo.id, number=pull.number)
                if issue and issue.state == "open" and now.mergeable is None:
                    pulls.compute_mergeable(self._world, repo, now)
        with self._world.store.lock:
            queue.advance(self._world)
