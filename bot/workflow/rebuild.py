"""`lockstep rebuild`: what GitHub and Git still say of Promotions, read and verified, goes into an empty database.

Only markers that we signed for the very place where they stand are believed. Which Promotion a pull request was of is
what its commits say, since nobody can change those; how far it came is what its body says, or the deployment.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field

from bot.domain.audit import BEGINNING, AuditEntry
from bot.domain.files import CommitId
from bot.domain.follow_up import promotion_of_branch
from bot.domain.github import PullRequest, Repository
from bot.domain.marker import (
    Marker,
    NotBelieved,
    Place,
    PlaceKind,
    is_signed_message,
    read_body,
    read_payload,
    read_trailers,
)
from bot.domain.promotion import State
from bot.ports import Clock, Commit, Git, GitHub, TerminalError, Vault
from bot.ports.restoring import DeploymentResult, History, Rebuilt, Restoring, ShownDeployment
from bot.workflow.configuration import Configuration
from bot.workflow.own_commits import adds_nothing
from bot.workflow.rebuilding import Branch, Evidence, Unrestored, rebuild_rows

_MOST_COMMITS = 250
"""Commits of one open branch that are read; GitHub shows no more of a pull request."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How far back is read in each repository."""

    pulls: int = 1000
    commits: int = 2000


@dataclass(frozen=True, slots=True)
class Found:
    """What was restored, what was known already, and what could not be restored and why."""

    added: Rebuilt
    known: int
    unrestored: tuple[Unrestored, ...]

    @property
    def counts(self) -> Sequence[tuple[str, int]]:
        """How many rows of each kind were added, in words."""
        added = self.added
        named = ("promotions", added.promotions), ("Freight", added.freight), ("Stages", added.stages)
        return tuple((name, len(rows)) for name, rows in (*named, ("Terraform states", added.applied)))

    @property
    def missing(self) -> Sequence[tuple[str, str]]:
        """What could not be restored: where it stands, and why."""
        return tuple((item.where, item.why) for item in self.unrestored)


@dataclass(slots=True)
class _Reading:
    """What was read of one repository."""

    repository: Repository
    url: str
    pulls: Sequence[PullRequest]
    deployments: dict[str, tuple[ShownDeployment, Marker]] = field(default_factory=dict)
    """The newest deployment of each Promotion."""


@dataclass(slots=True)
class Rebuilder:
    """Reads the past and restores it. `email` is the address that the bot commits with."""

    store: Restoring
    github: GitHub
    history: History
    git: Git
    vault: Vault
    clock: Clock
    configuration: Configuration
    email: str
    limits: Limits = Limits()
    unrestored: list[Unrestored] = field(default_factory=list)

    async def rebuild(self, *, into_existing: bool) -> Found:
        """Fill the database. Nothing is written before everything is read.

        Raises TerminalError for a database that knows something already, unless that is allowed; and what the world
        raises.
        """
        if not into_existing and not await self.store.is_fresh():
            raise TerminalError(
                "the database is not empty; with --into-existing what is missing is added and nothing is changed"
            )
        if not self.configuration.pipeline.revision:
            raise TerminalError("no configuration can be read, so nobody knows which Stages there are")
        evidence = [item async for item in self._read_all()]
        rebuilt, doubts = rebuild_rows(evidence, self.configuration, self.clock.now())
        told = (
            f"{len(rebuilt.promotions)} promotions and {len(rebuilt.freight)} Freight were read from GitHub"
        )
        if rebuilt.audit != BEGINNING:
            told += (
                f"; the log before it ended with entry {rebuilt.audit.number}, {rebuilt.audit.hash}, or later"
            )
        added = await self.store.restore(rebuilt, AuditEntry(self.clock.now(), "rebuild", told))
        known = len(rebuilt.promotions) - len(added.promotions)
        return Found(added, known, (*self.unrestored, *doubts))

    async def list_markers(self) -> Sequence[tuple[str, Marker]]:
        """Every believed marker of a body, with where it stands."""
        found = []
        for repository in await self.github.list_repositories():
            for pull in await self.history.list_recent_pull_requests(repository, self.limits.pulls):
                marker = self._read_body(pull)
                if isinstance(marker, Marker):
                    found.append((f"{repository}#{pull.number}", marker))
        return found

    # -- reading -------------------------------------------------------------------------------------------------

    async def _read_all(self) -> AsyncIterator[Evidence]:
        for repository in await self.github.list_repositories():
            pulls = await self.history.list_recent_pull_requests(repository, self.limits.pulls)
            ours = [pull for pull in pulls if _is_of_interest(pull)]
            for pull in pulls:
                if pull.open and promotion_of_branch(pull.head_branch) is not None:
                    why = "a release commit still waits there: look at it, then close it"
                    self._miss(f"{repository}#{pull.number}", why)
            if len(pulls) >= self.limits.pulls:
                where = f"{repository}, before #{min(pull.number for pull in pulls)}"
                self._miss(
                    where, f"older pull requests are not read; --pulls {self.limits.pulls} is the limit"
                )
            if not ours:
                continue
            reading = _Reading(repository, self.github.clone_url(repository), ours)
            await self._read_deployments(reading)
            await self.git.fetch(reading.url)
            told: set[str] = set()
            for pull in reading.pulls:
                found = await self._read_pull(reading, pull)
                if found is not None:
                    told.add(found.marker.promotion)
                    yield found
            async for item in self._read_branches(reading):
                told.add(item.marker.promotion)
                yield item
            for shown, marker in reading.deployments.values():
                if marker.promotion not in told:
                    where = f"{repository}, environment {shown.environment}"
                    yield Evidence(where, marker, None, reading.url)

    async def _read_deployments(self, reading: _Reading) -> None:
        for item in await self.history.list_deployments(reading.repository, self.limits.pulls):
            place = Place(PlaceKind.ENVIRONMENT, str(reading.repository), item.environment)
            marker = read_payload(item.payload, place, self.vault.digest)
            if isinstance(marker, Marker):
                reading.deployments.setdefault(marker.promotion, (item, marker))
            elif isinstance(marker, NotBelieved):
                self._miss(str(place), marker.reason)

    async def _read_pull(self, reading: _Reading, pull: PullRequest) -> Evidence | None:
        """What is known of the Promotion of a pull request, None if it is none of ours."""
        where = f"{reading.repository}#{pull.number}"
        body = self._read_body(pull)
        commits = await self._read_commits(reading, pull)
        written = _newest(commits, pull, reading.repository, self.vault)
        if isinstance(body, NotBelieved):
            self._miss(where, body.reason)
        if isinstance(body, Marker) and written is not None and body.promotion != written.promotion:
            self._miss(where, f"its body speaks of {body.promotion}, its commits of {written.promotion}")
            body = None
        marker = body if isinstance(body, Marker) else written
        if marker is None:
            if body is None and pull.head_branch.startswith("lockstep/"):
                self._miss(where, "neither its body nor its commits hold a marker of ours")
            return None
        result = await self._find_result(reading, marker, pull)
        branch = await self._read_branch(reading, pull) if pull.open else None
        known_body = isinstance(body, Marker)
        return Evidence(where, marker, pull, reading.url, result, branch, by_body=known_body)

    def _read_body(self, pull: PullRequest) -> Marker | NotBelieved | None:
        place = Place(PlaceKind.PULL, str(pull.repository), str(pull.number))
        return read_body(pull.body, place, self.vault.digest)

    async def _read_commits(self, reading: _Reading, pull: PullRequest) -> Sequence[Commit]:
        """The commits that say what a pull request was of: what its merge brought, or those of its branch."""
        url, found, base = reading.url, list[Commit](), None
        if pull.merge_commit is not None and await self.git.resolve(url, pull.merge_commit):
            base = (await self.git.read_commit(url, pull.merge_commit)).parents[0]
            found += await self.git.log(url, base, pull.merge_commit, limit=_MOST_COMMITS)
        if not any(is_signed_message(commit.message, self.vault.digest) for commit in found):
            # A squash may have left the messages out, and the branch of a closed one may be gone.
            await self.git.fetch(url, f"refs/pull/{pull.number}/head")
            base = base or await self.git.resolve(url, f"refs/heads/{pull.base_branch}")
            if await self.git.resolve(url, pull.head):
                found += await self.git.log(url, base, pull.head, limit=_MOST_COMMITS)
        return found

    async def _find_result(
        self, reading: _Reading, marker: Marker, pull: PullRequest
    ) -> DeploymentResult | None:
        """What the deployment says, asked only where the body does not tell of success."""
        known = reading.deployments.get(marker.promotion)
        if known is None or not pull.merged or marker.state == State.SUCCEEDED:
            return None
        return await self.history.find_deployment_result(reading.repository, known[0].id)

    async def _read_branch(self, reading: _Reading, pull: PullRequest) -> Branch | None:
        """Which commits of an open branch are ours: signed, or by our address right before a signed one."""
        tip = await self.git.resolve(reading.url, f"refs/heads/{pull.base_branch}")
        if tip is None or await self.git.resolve(reading.url, pull.head) is None:
            return None
        commits = await self.git.log(reading.url, tip, pull.head, limit=_MOST_COMMITS)
        own: list[CommitId] = []
        vouched = False
        for commit in commits:
            signed = is_signed_message(commit.message, self.vault.digest)
            unsigned = not signed and vouched and commit.author.email == self.email
            vouched = signed or (unsigned and await adds_nothing(self.git, reading.url, commit, tip))
            if vouched:
                own.append(commit.id)
        base = commits[-1].parents[0] if commits and commits[-1].parents else tip
        return Branch(base, tuple(own))

    async def _read_branches(self, reading: _Reading) -> AsyncIterator[Evidence]:
        """What release commits say, which no pull request need speak of."""
        for branch in sorted({pull.base_branch for pull in reading.pulls}):
            tip = await self.git.resolve(reading.url, f"refs/heads/{branch}")
            if tip is None:
                continue
            place = Place(PlaceKind.BRANCH, str(reading.repository), branch)
            for commit in await self.git.log(reading.url, None, tip, limit=self.limits.commits):
                for marker in read_trailers(commit.message, place, self.vault.digest):
                    where = f"{place}, commit {commit.id[:12]}"
                    if isinstance(marker, NotBelieved):
                        self._miss(where, marker.reason)
                    else:
                        yield Evidence(where, marker, None, reading.url, commit=commit.id)

    def _miss(self, where: str, why: str) -> None:
        self.unrestored.append(Unrestored(where, why))


def _is_of_interest(pull: PullRequest) -> bool:
    """Whether it may be a promotion's own; what carries a release commit behind it is no promotion."""
    if promotion_of_branch(pull.head_branch) is not None:
        return False
    return pull.head_branch.startswith("lockstep/") or "lockstep-marker" in pull.body


def _newest(
    commits: Sequence[Commit], pull: PullRequest, repository: Repository, vault: Vault
) -> Marker | None:
    """The marker of the newest Promotion that the commits name for the branch that they are meant for."""
    place = Place(PlaceKind.BRANCH, str(repository), pull.base_branch)
    found: Iterator[Marker] = (
        marker
        for commit in commits
        for marker in read_trailers(commit.message, place, vault.digest)
        if isinstance(marker, Marker)
    )
    return max(found, key=lambda marker: marker.created_at, default=None)
