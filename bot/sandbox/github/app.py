"""The simulated GitHub as one object: set it up with plain calls, serve `asgi`, start and stop its tasks."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Mount, Route

from bot.sandbox.github import forks, installing, provisioning, rules
from bot.sandbox.github.accounts import App, Team, User
from bot.sandbox.github.actions import Actions
from bot.sandbox.github.control import Control
from bot.sandbox.github.faults import Faults
from bot.sandbox.github.githttp import GitHttp
from bot.sandbox.github.graphql import GraphQL
from bot.sandbox.github.manifest import ManifestPages
from bot.sandbox.github.oauth import OAuthPages
from bot.sandbox.github.pages import Pages
from bot.sandbox.github.provisioning import AppCredentials, NewApp
from bot.sandbox.github.records import Delivery, LoggedRequest, PullRequest, Repository
from bot.sandbox.github.rest.server import RestServer
from bot.sandbox.github.rules import BranchRules
from bot.sandbox.github.upkeep import Upkeep, mend
from bot.sandbox.github.webhooks import Deliverer
from bot.sandbox.github.world import Clock, World, utc_now

_REST_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


class GitHub:
    """A GitHub on `directory`, reached at `base_url`; what it holds outlives the process.

    `world` gives pages and tests the store and the repositories, `actions` lets them act as people. All methods
    that create something return what is already there when they are called again. Between `start` and `stop`
    webhooks are sent, pushes are taken and mergeability is computed.
    """

    def __init__(self, directory: Path, *, base_url: str, clock: Clock = utc_now) -> None:
        self.world = World(directory, clock)
        self.base_url = base_url.rstrip("/")
        self.faults = Faults()
        self.actions = Actions(self.world)
        # Other servers' pages by name, for the header of ours; to be filled by whoever starts them.
        self.links: dict[str, str] = {}
        self._git = GitHttp(self.world)
        self._deliverer = Deliverer(self.world, self.base_url, self.faults)
        self._upkeep = Upkeep(self.world)
        self._tasks: list[asyncio.Task[None]] = []
        self.asgi = self._application()

    def _application(self) -> Starlette:
        rest = RestServer(self.world, self.base_url, self.faults).handle
        graphql = GraphQL(self.world).handle
        return Starlette(
            routes=[
                Route("/api/graphql", graphql, methods=["POST"]),
                Route("/api/v3/{path:path}", rest, methods=_REST_METHODS),
                Route("/api/{path:path}", rest, methods=_REST_METHODS),
                *Control(self.world, self.base_url, self.faults, self.actions).routes(),
                *ManifestPages(self.world).routes(),
                *OAuthPages(self.world).routes(),
                *Pages(self.world, self.actions, self.links).routes(),
                # Everything else is a repository for git; paths that are none get its plain 404.
                Mount("/", app=self._git),
            ]
        )

    # ---- running

    async def start(self) -> None:
        """Mend what a crash left and start the background tasks."""
        loop = asyncio.get_running_loop()

        def wake() -> None:
            for task in (self._deliverer, self._upkeep):
                loop.call_soon_threadsafe(task.wake)

        await asyncio.to_thread(mend, self.world)
        await self._git.start()
        self.world.wake = wake
        self._tasks = [asyncio.create_task(self._deliverer.run()), asyncio.create_task(self._upkeep.run())]

    async def stop(self) -> None:
        """Stop the background tasks and close the database; deliveries that wait are sent by the next start."""
        self.world.wake = lambda: None
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self._git.stop()
        self.world.store.close()

    async def settled(self, timeout: float = 10.0) -> None:
        """Wait until no webhook and no mergeability is outstanding; TimeoutError after `timeout` seconds."""
        async with asyncio.timeout(timeout):
            while not await asyncio.to_thread(self._is_settled):
                await asyncio.sleep(0.01)

    def _is_settled(self) -> bool:
        waiting = self.world.store.find(PullRequest, mergeable=None, merged=False)
        open_ones = [
            pull
            for pull in waiting
            if self.world.issue(self.world.store.need(Repository, pull.repo_id), pull.number).state == "open"
        ]
        return self._deliverer.idle and not open_ones

    # ---- setting the stage

    def create_user(self, login: str, name: str = "") -> User:
        """The person of this login."""
        return provisioning.create_user(self.world, login, name)

    def create_organisation(self, login: str, name: str = "") -> User:
        """The organisation of this login."""
        return provisioning.create_user(self.world, login, name, "Organization")

    def create_token(self, login: str, *, read_only: bool = False) -> str:
        """A new personal access token of the user."""
        return provisioning.create_token(self.world, login, read_only=read_only)

    def add_member(self, organisation: str, login: str, role: str = "member") -> None:
        """Make the user a member (or `admin`) of the organisation."""
        provisioning.add_member(self.world, organisation, login, role)

    def create_team(self, organisation: str, slug: str, members: Sequence[str] = ()) -> Team:
        """The team with (at least) these members."""
        return provisioning.create_team(self.world, organisation, slug, members)

    def create_repository(
        self, owner: str, name: str, files: Mapping[str, bytes] | None = None, *, private: bool = True
    ) -> Repository:
        """The repository, made with one commit of the files on `main`."""
        return provisioning.create_repository(self.world, owner, name, files or {}, private=private)

    def create_fork(self, owner: str, source: str) -> Repository:
        """The owner's fork of the repository `source` (`owner/name`), under the same name."""
        return forks.create_fork(self.world, owner, self.repository(source))

    def set_role(self, repository: str, login: str, role: str) -> None:
        """Give the user a role (`read`, `triage`, `write`, `maintain`, `admin`, `none`) on `owner/name`."""
        provisioning.set_role(self.world, self.repository(repository), login, role)

    def set_rules(self, repository: str, branch: str, branch_rules: BranchRules) -> None:
        """Replace the rules of the branch of `owner/name`."""
        rules.set_rules(self.world, self.repository(repository), branch, branch_rules)

    def demo_cast(self, organisation: str, repositories: Sequence[str]) -> None:
        """The demo's people: olivia (maintain), rafael (write), dana (admin), uma (read); team `platform`."""
        provisioning.demo_cast(self.world, organisation, repositories)

    def register_app(self, new: NewApp) -> AppCredentials:
        """The App of this name; an existing one takes over the new settings and keeps its keys."""
        return provisioning.register_app(self.world, new)

    def install_app(self, app_id: int, owner: str, repositories: Sequence[str] | None = None) -> int:
        """Install the App on an account (`repositories` None: on all of it) and return the installation's id."""
        return installing.install(self.world, app_id, owner, repositories)

    # ---- looking

    def repository(self, full_name: str) -> Repository:
        """The repository `owner/name`; `Refused` with 404 if there is none."""
        owner, _, name = full_name.partition("/")
        return self.world.repository(owner, name)

    def app(self, slug: str) -> App | None:
        """The App of this slug, or None."""
        return self.world.store.first(App, slug=slug)

    def deliveries(self, **where: str | int) -> list[Delivery]:
        """The webhook deliveries whose columns equal `where`, oldest first."""
        return self.world.store.find(Delivery, **where)

    def requests(self) -> list[LoggedRequest]:
        """Every call that changed something or tried to, oldest first."""
        return self.world.store.find(LoggedRequest)
