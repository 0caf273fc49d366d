"""What every part of the simulated GitHub works on: the store, the bare repositories, the clock and the wake-ups."""

import hashlib
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from bot.sandbox.github.accounts import (
    App,
    Installation,
    InstallationRepository,
    OrganisationMember,
    Team,
    TeamMember,
    User,
)
from bot.sandbox.github.errors import not_found
from bot.sandbox.github.git import Git, stamp
from bot.sandbox.github.records import Collaborator, Issue, PullRequest, Repository
from bot.sandbox.github.store import Store

Clock = Callable[[], datetime]
ROLES = ("none", "read", "triage", "write", "maintain", "admin")
# Stands in stored payloads for the server's own URL, which is only known when a payload is sent.
BASE_MARK = "http://sandbox-base.invalid"


def utc_now() -> datetime:
    """The present moment in UTC."""
    return datetime.now(UTC)


def digest(token: str) -> str:
    """The form in which tokens are stored."""
    return hashlib.sha256(token.encode()).hexdigest()


class World:
    """One simulated GitHub on one directory."""

    def __init__(self, directory: Path, clock: Clock = utc_now) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.clock = clock
        self.store = Store(directory / "github.sqlite")
        # Called, from any thread, when a background task has something to do.
        self.wake: Callable[[], None] = lambda: None

    def now(self) -> str:
        """The present moment as GitHub writes it."""
        return stamp(self.clock())

    def git(self, repo: Repository) -> Git:
        """The bare repository of `repo`."""
        return Git(self.directory / "repositories" / f"{repo.id}.git")

    def secret(self, prefix: str) -> str:
        """A new random token with the prefix."""
        return prefix + secrets.token_hex(20)

    # ---- lookups that many parts share

    def user(self, login: str) -> User | None:
        """The account of this login, whatever its case."""
        return self.store.first(User, login=login)

    def need_user(self, login: str) -> User:
        """The account of this login; GitHub's 404 if there is none."""
        found = self.user(login)
        if found is None:
            raise not_found()
        return found

    def owner(self, repo: Repository) -> User:
        """The account that owns the repository."""
        return self.store.need(User, repo.owner_id)

    def full_name(self, repo: Repository) -> str:
        """`owner/name`."""
        return f"{self.owner(repo).login}/{repo.name}"

    def repository(self, owner: str, name: str) -> Repository:
        """The repository; GitHub's 404 if there is none."""
        account = self.user(owner)
        found = self.store.first(Repository, owner_id=account.id, name=name) if account else None
        if found is None:
            raise not_found()
        return found

    def issue(self, repo: Repository, number: int) -> Issue:
        """The issue or the issue half of a pull request; GitHub's 404 if there is none."""
        found = self.store.first(Issue, repo_id=repo.id, number=number)
        if found is None:
            raise not_found()
        return found

    def pull(self, repo: Repository, number: int) -> PullRequest:
        """The pull request; GitHub's 404 if there is none."""
        found = self.store.first(PullRequest, repo_id=repo.id, number=number)
        if found is None:
            raise not_found()
        return found

    def open_pulls(self, repo: Repository, **where: str) -> list[PullRequest]:
        """The open pull requests whose columns equal `where`, oldest first."""
        found = self.store.find(PullRequest, repo_id=repo.id, **where)
        return [pull for pull in found if self.issue(repo, pull.number).state == "open"]

    def role(self, user: User, repo: Repository) -> str:
        """The user's role on the repository, `none` if it is private and the user has no part in it."""
        store = self.store
        if user.id == repo.owner_id:
            return "admin"
        if user.app_id is not None:
            return self._bot_role(user.app_id, repo)
        member = store.first(OrganisationMember, org_id=repo.owner_id, user_id=user.id)
        if member and member.role == "admin":
            return "admin"
        given = store.first(Collaborator, repo_id=repo.id, user_id=user.id)
        if given:
            return given.role
        return "none" if repo.private else "read"

    def _bot_role(self, app_id: int, repo: Repository) -> str:
        found = self.installation_for(app_id, repo)
        contents = found.permissions.get("contents") if found else None
        return "none" if found is None else "write" if contents == "write" else "read"

    def has_role(self, user: User, repo: Repository, role: str) -> bool:
        """Whether the user's role is at least `role`."""
        return ROLES.index(self.role(user, repo)) >= ROLES.index(role)

    def in_team(self, team_id: int, user: User) -> bool:
        """Whether the user is a member of the team."""
        return self.store.first(TeamMember, team_id=team_id, user_id=user.id) is not None

    def team(self, organisation: str, slug: str) -> Team:
        """The team; GitHub's 404 if there is none."""
        account = self.user(organisation)
        found = self.store.first(Team, org_id=account.id, slug=slug) if account else None
        if found is None:
            raise not_found()
        return found

    # ---- Apps

    def covers(self, installation: Installation, repo: Repository) -> bool:
        """Whether the installation reaches the repository."""
        if installation.account_id != repo.owner_id:
            return False
        if installation.repository_selection == "all":
            return True
        found = self.store.first(InstallationRepository, installation_id=installation.id, repo_id=repo.id)
        return found is not None

    def installation_for(self, app_id: int, repo: Repository) -> Installation | None:
        """The App's installation that reaches the repository, if there is one."""
        found = self.store.first(Installation, app_id=app_id, account_id=repo.owner_id)
        return found if found and self.covers(found, repo) else None

    def installations_on(self, repo: Repository) -> list[tuple[App, Installation]]:
        """Every App with its installation that reaches the repository and is not suspended."""
        found = self.store.find(Installation, account_id=repo.owner_id)
        return [
            (self.store.need(App, item.app_id), item)
            for item in found
            if item.suspended_at is None and self.covers(item, repo)
        ]

    def repositories_of(self, installation: Installation) -> list[Repository]:
        """The repositories that the installation reaches."""
        owned = self.store.find(Repository, owner_id=installation.account_id)
        return [repo for repo in owned if self.covers(installation, repo)]
