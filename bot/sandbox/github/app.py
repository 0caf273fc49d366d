"""The simulated GitHub as one object: set it up with plain calls, serve `asgi`, start and stop its tasks."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from bot.sandbox.github import provisioning, rules
from bot.sandbox.github.accounts import Team, User
from bot.sandbox.github.provisioning import AppCredentials, NewApp
from bot.sandbox.github.records import Repository
from bot.sandbox.github.rules import BranchRules
from bot.sandbox.github.world import Clock, World, utc_now


class GitHub:
    """A GitHub on `directory`, reached at `base_url`; what it holds outlives the process.

    `world` gives pages and tests the store and the repositories. All methods that create something return
    what is already there when they are called again.
    """

    def __init__(self, directory: Path, *, base_url: str, clock: Clock = utc_now) -> None:
        self.world = World(directory, clock)
        self.base_url = base_url.rstrip("/")

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

    def set_role(self, repository: str, login: str, role: str) -> None:
        """Give the user a role (`read`, `triage`, `write`, `maintain`, `admin`, `none`) on `owner/name`."""
        provisioning.set_role(self.world, self.repository(repository), login, role)

    def set_rules(self, repository: str, branch: str, branch_rules: BranchRules) -> None:
        """Replace the rules of the branch of `owner/name`."""
        rules.set_rules(self.world, self.repository(repository), branch, branch_rules)

    def register_app(self, new: NewApp) -> AppCredentials:
        """The App of this name; an existing one takes over the new settings and keeps its keys."""
        return provisioning.register_app(self.world, new)

    # ---- looking

    def repository(self, full_name: str) -> Repository:
        """The repository `owner/name`; `Refused` with 404 if there is none."""
        owner, _, name = full_name.partition("/")
        return self.world.repository(owner, name)
