"""The whole road for a test: sandbox and bot, and what people do and see there."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import re
import secrets
import shutil
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import httpx
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.sandbox.argocd import QUICK
from bot.sandbox.bot_process import BotProcess
from bot.sandbox.github.git import Commit, Git
from bot.sandbox.github.records import (
    CheckRun,
    Comment,
    Issue,
    LoggedRequest,
    PullRequest,
    Repository,
)
from bot.sandbox.github.rules import BranchRules, Bypass
from bot.sandbox.seed import Addresses, address
from bot.sandbox.seed.demo import BotEndpoints, Demo
from bot.sandbox.server import Sandbox, SandboxOptions
from tests.e2e.pipelines import Seed

T = TypeVar("T")

OPERATIONS = "acme/operations"
API_TOKEN = "token-of-the-tests"
PATIENCE = 40.0
"""Seconds that a wait may take before the test fails; on a quiet machine everything is there within a few."""
_LOOK_AGAIN = 0.15
"""Seconds between two looks of a test that waits; more often, the looking costs more than what it looks at."""
SENTINEL = "lockstep-unknown-"
_GIVEN: set[int] = set()
"""Ports that roads of this process have, running or not."""
_MAINTAIN = 2
"""GitHub's id of the role that may push past the rules in these tests, as an operator who repairs things."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the bot's timeline."""

    number: int
    stage: str
    promotion: str
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Body:
    """A request that GitHub got with a body."""

    method: str
    path: str
    text: str


class Recorder:
    """ASGI middleware that keeps the body of every request, as far as it is text."""

    def __init__(self, app: ASGIApp, bodies: list[Body]) -> None:
        self._app = app
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        chunks: list[bytes] = []

        async def listen() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                chunks.append(message.get("body", b""))
            return message

        await self._app(scope, listen, send)
        if scope["type"] == "http" and any(chunks):
            text = b"".join(chunks).decode("utf-8", "replace")
            self._bodies.append(Body(scope["method"], scope["path"], text))


@dataclass(slots=True)
class Road:
    """Sandbox and bot of one test. Times are seconds."""

    sandbox: Sandbox
    bot: BotProcess
    demo: Demo
    client: httpx.AsyncClient
    bodies: list[Body] = field(default_factory=list)

    # -- waiting ---------------------------------------------------------------------------------------------------

    async def until(
        self, what: str, probe: Callable[[], Awaitable[T | None]], *, patience: float = PATIENCE
    ) -> T:
        """What `probe` answers once it is neither None nor False; fails with the timeline and the bot's log."""
        end = asyncio.get_running_loop().time() + patience
        while True:
            found = await probe()
            if found is not None and found is not False:
                return found
            if self.bot.process is not None and self.bot.process.returncode is not None:
                raise AssertionError(f"the bot ended while waiting for {what}\n{await self.tell()}")
            if asyncio.get_running_loop().time() > end:
                raise AssertionError(f"waited {patience:.0f} s for {what}\n{await self.tell()}")
            await asyncio.sleep(_LOOK_AGAIN)

    async def tell(self) -> str:
        """Timeline and end of the log, for a failure."""
        alive = self.bot.process is not None and self.bot.process.returncode is None
        timeline = (
            [f"  {e.number} {e.stage} {e.kind}: {e.message}" for e in await self.events()] if alive else []
        )
        said = [f"  #{c.number} {c.body}" for c in await self.replies()]
        return "\n".join(["timeline:", *timeline, "replies:", *said, "log:", self.bot.tail(60)])

    async def events(self, *, after: int = 0) -> list[Event]:
        """The bot's timeline, oldest first."""
        answer = await self.client.get(
            f"{self.bot.url}/api/events",
            params={"after": after},
            headers={"Authorization": f"Bearer {API_TOKEN}"},
        )
        answer.raise_for_status()
        names = ("number", "stage", "promotion", "kind", "message")
        return [Event(**{name: event[name] for name in names}) for event in answer.json()["events"]]

    async def wait_for_event(
        self,
        kind: str,
        containing: str = "",
        *,
        stage: str = "dev",
        after: int = 0,
        patience: float = PATIENCE,
    ) -> Event:
        """The first event of a kind whose message holds a text."""

        async def probe() -> Event | None:
            for event in await self.events(after=after):
                if (event.kind, event.stage) == (kind, stage) and containing in event.message:
                    return event
            return None

        return await self.until(
            f"an event {kind!r} with {containing!r} of {stage!r}", probe, patience=patience
        )

    async def last_event(self) -> int:
        """The number of the newest event, to wait only for later ones."""
        events = await self.events()
        return events[-1].number if events else 0

    async def wait_for_success(self, stage: str = "dev", *, after: int = 0) -> Event:
        """The end of a promotion that succeeded, once GitHub shows everything that is to be shown."""
        event = await self.wait_for_event("succeeded", stage=stage, after=after)
        await self.wait_until_quiet()
        return event

    async def wait_until_quiet(self, pause: float = 1.0) -> None:
        """Wait until GitHub got no changing request, and the timeline no event, for a while."""
        seen: tuple[int, int] = (-1, -1)
        since = asyncio.get_running_loop().time()

        async def probe() -> bool:
            nonlocal seen, since
            now = asyncio.get_running_loop().time()
            found = (len(await self.requests()), await self.last_event())
            if found != seen:
                seen, since = found, now
            return now - since >= pause

        await self.until("quiet", probe)

    # -- what people do --------------------------------------------------------------------------------------------

    async def publish(self, *, otel: str = "", lambda_: str = "") -> None:
        """Push new images to the registry, which tells the bot once they are all there.

        Told of the first alone, a quick bot would make Freight of it and of what the other image was before.
        """
        both = ("linux/amd64", "linux/arm64")
        wanted = [(image, tag) for image, tag in (("otel-app", otel), ("lambda-app", lambda_)) if tag]
        endpoints = self.sandbox.registry.endpoints
        for number, (image, tag) in enumerate(wanted, start=1):
            await self.sandbox.registry.notify(*(endpoints if number == len(wanted) else ()))
            await asyncio.to_thread(self.sandbox.registry.publish, image, tag, platforms=both)

    async def push(self, files: Mapping[str, str | None], message: str, *, branch: str = "main") -> str:
        """Commit files as olivia, who may push past the rules of main; None removes one."""
        data = {path: None if text is None else self.address(text).encode() for path, text in files.items()}
        return await asyncio.to_thread(
            self.sandbox.github.actions.push, "olivia", OPERATIONS, branch, data, message
        )

    async def edit(self, path: str, old: str, new: str, *, branch: str = "main", user: str = "olivia") -> str:
        """Replace a text in a file of a branch, which must hold it, by a commit."""
        text = await self.read(path, branch)
        assert old in text, f"{path} does not hold {old!r}:\n{text}"
        data = {path: text.replace(old, new).encode()}
        return await asyncio.to_thread(
            self.sandbox.github.actions.push, user, OPERATIONS, branch, data, f"Edit {path}"
        )

    async def approve(self, number: int, user: str = "rafael") -> None:
        """Approve the present head."""
        await asyncio.to_thread(self.sandbox.github.actions.approve, user, OPERATIONS, number, "Looks right.")

    async def comment(self, number: int, text: str, user: str = "rafael") -> int:
        """Comment on a pull request; the answer is the comment's id."""
        done = await asyncio.to_thread(self.sandbox.github.actions.comment, user, OPERATIONS, number, text)
        return done.id

    async def merge(
        self, number: int, user: str = "rafael", *, method: str = "merge", bypass: bool = False
    ) -> str:
        """Press merge, which GitHub refuses while the check is not green unless rules are passed by."""
        return await asyncio.to_thread(
            lambda: self.sandbox.github.actions.merge(user, OPERATIONS, number, method, bypass=bypass)
        )

    async def release(self, stage: str = "dev", *, reviewer: str = "rafael") -> int:
        """Review, approve and merge the Stage's open pull request, and wait for its success; returns its number."""
        after = await self.last_event()
        pull = await self.wait_for_pull(stage)
        await self.approve(pull.number, reviewer)
        await self.wait_until_mergeable(pull.number)
        await self.merge(pull.number, reviewer)
        await self.wait_for_success(stage, after=after)
        return pull.number

    # -- what GitHub shows -----------------------------------------------------------------------------------------

    @property
    def repository(self) -> Repository:
        return self.sandbox.github.repository(OPERATIONS)

    @property
    def git(self) -> Git:
        """The operations repository on GitHub's disk."""
        return self.sandbox.github.world.git(self.repository)

    async def pulls(self, stage: str = "dev") -> list[PullRequest]:
        """All pull requests of a Stage, oldest first."""
        found = self.sandbox.github.world.store.find(PullRequest, repo_id=self.repository.id)
        return sorted((p for p in found if p.head_ref == f"lockstep/acme/{stage}"), key=lambda p: p.number)

    def issue(self, number: int) -> Issue:
        """Title, body and state of a pull request."""
        return self.sandbox.github.world.issue(self.repository, number)

    def pull(self, number: int) -> PullRequest:
        """Head, base and merge of a pull request."""
        return self.sandbox.github.world.pull(self.repository, number)

    async def wait_for_pull(self, stage: str = "dev", *, after: int = 0) -> PullRequest:
        """The Stage's open pull request, once its plan comment and its check are posted."""

        async def probe() -> PullRequest | None:
            for pull in await self.pulls(stage):
                if pull.number > after and self.issue(pull.number).state == "open":
                    ready = self.comments(pull.number, "plan") and self.check(pull.head_sha)
                    return pull if ready else None
            return None

        return await self.until(f"a pull request of {stage}", probe)

    async def wait_until_mergeable(self, number: int) -> None:
        """Until the required check is green on the head."""
        await self.wait_for_check(number, "lockstep", "success")

    async def wait_for_check(self, number: int, name: str, conclusion: str | None) -> CheckRun:
        """The check of the pull request's head, once it has this conclusion (None: in progress)."""

        async def probe() -> CheckRun | None:
            run = self.check(self.pull(number).head_sha, name)
            return run if run is not None and run.conclusion == conclusion else None

        return await self.until(f"check {name} of #{number} to be {conclusion}", probe)

    def checks(self, sha: str) -> dict[str, CheckRun]:
        """The newest check run of each name on a commit."""
        found = self.sandbox.github.world.store.find(CheckRun, repo_id=self.repository.id, head_sha=sha)
        return {run.name: run for run in sorted(found, key=lambda run: run.id)}

    def check(self, sha: str, name: str = "lockstep") -> CheckRun | None:
        """One check run of a commit."""
        return self.checks(sha).get(name)

    def comments(self, number: int, kind: str = "") -> list[Comment]:
        """The comments on a pull request; `kind` is `plan` or `outcome` for the App's sticky ones."""
        store = self.sandbox.github.world.store
        found = store.find(Comment, repo_id=self.repository.id, number=number)
        return [comment for comment in found if not kind or f"lockstep:{kind}:" in comment.body]

    async def replies(self) -> list[Comment]:
        """What the App answered to commands, on all pull requests."""
        found = self.sandbox.github.world.store.find(Comment, repo_id=self.repository.id)
        return [comment for comment in found if "lockstep:reply:" in comment.body]

    async def files(self, number: int) -> dict[str, str]:
        """The diff of a pull request as the files API shows it: patch by path."""
        answer = await self.client.get(
            f"{self.demo.github_api_url}/repos/{OPERATIONS}/pulls/{number}/files",
            params={"per_page": 100},
            headers={"Authorization": f"token {self.demo.people['rafael']}"},
        )
        answer.raise_for_status()
        return {file["filename"]: file.get("patch", "") for file in answer.json()}

    # -- what Git holds --------------------------------------------------------------------------------------------

    async def read(self, path: str, revision: str = "main") -> str:
        """A file of a branch or commit."""
        return (await asyncio.to_thread(self.git.run, "show", f"{revision}:{path}")).decode()

    async def tip(self, branch: str = "main") -> str:
        """The commit that a branch is at."""
        return await asyncio.to_thread(self.git.text, "rev-parse", f"refs/heads/{branch}")

    async def branches(self) -> list[str]:
        """The branches that exist, sorted."""
        refs = await asyncio.to_thread(self.git.refs, "refs/heads/")
        return [name.removeprefix("refs/heads/") for name, _, _ in refs]

    async def commits_since(
        self, old: str, branch: str = "main", *, first_parent: bool = True
    ) -> list[Commit]:
        """The commits of a branch that are not in `old`, newest first; by default along the first parents only."""
        options = ("--first-parent",) if first_parent else ()
        return await asyncio.to_thread(self.git.commits, *options, f"{old}..refs/heads/{branch}")

    async def changed(self, old: str, new: str = "main") -> list[str]:
        """The lines that differ between two trees, as `path:-old` and `path:+new`, without context."""
        text = await asyncio.to_thread(self.git.text, "diff", "-U0", "--no-color", "--no-ext-diff", old, new)
        found, path = [], ""
        for line in text.splitlines():
            if line.startswith("+++ "):
                path = line.removeprefix("+++ b/")
            elif line[:1] in "+-" and not line.startswith("--- "):
                found.append(f"{path}:{line}")
        return found

    # -- what was done ---------------------------------------------------------------------------------------------

    async def requests(self) -> list[LoggedRequest]:
        """Every request that changed something at GitHub, or tried to, oldest first."""
        return await asyncio.to_thread(self.sandbox.github.requests)

    async def requests_of_bot(self, since: int = 0) -> list[str]:
        """`METHOD path` of the App's changing requests after the first `since` ones of all, tokens left out."""
        mine = [
            r
            for r in (await self.requests())[since:]
            if r.actor.startswith(("app:", f"{self.demo.app_slug}"))
        ]
        shown = [f"{request.method} {request.path}" for request in mine]
        return [text for text in shown if not text.endswith("/access_tokens")]

    def terraform(self, stage: str = "dev") -> dict[str, int]:
        """Requests to a Stage's Terraform state by method; empty if no Terraform ran since `forget_terraform`."""
        return self.sandbox.cloud.counts(f"acme/{stage}")

    def applies(self, stage: str = "dev") -> int:
        """How many runs of Terraform wrote a Stage's state since `forget_terraform`.

        One run may write it more than once: Terraform saves what it has every 20 s, when it is interrupted, and at
        its end.
        """
        runs, wrote = 0, False
        for request in self.sandbox.cloud.requests(f"acme/{stage}"):
            if request.method in ("LOCK", "UNLOCK") and request.status == 200:
                runs, wrote = runs + wrote, False
            wrote = wrote or (request.method == "POST" and request.status == 200)
        return runs + wrote

    def versions(self, stage: str = "dev") -> int:
        """How often a Stage's Terraform state was written."""
        return len(self.sandbox.cloud.versions(f"acme/{stage}"))

    def most_changes(self, stage: str = "dev", *, since: int = 0) -> int:
        """How often one resource changed at most in a Stage's state, after its first `since` versions."""
        versions = [_instances(version) for version in self.sandbox.cloud.versions(f"acme/{stage}")]
        changes: Counter[str] = Counter()
        for before, after in pairwise([versions[since - 1] if since else {}, *versions[since:]]):
            changes.update(name for name in before | after if before.get(name) != after.get(name))
        return max(changes.values(), default=0)

    def forget_terraform(self) -> None:
        """Count Terraform's requests anew."""
        self.sandbox.cloud.clear_log()

    def outputs(self, stage: str = "dev") -> dict[str, Any]:
        """The outputs in a Stage's Terraform state."""
        return self.sandbox.cloud.outputs(f"acme/{stage}")

    def live(self, stage: str = "dev") -> tuple[list[str], dict[str, str]]:
        """Tags of the images that run, and the environment they run with."""
        images, environment = self.sandbox.argocd.live(f"otel-app-{stage}")
        return [image.rpartition(":")[2] for image in images], environment

    def operation(self, stage: str = "dev") -> Mapping[str, Any]:
        """The last sync operation of a Stage's Application, empty if there was none."""
        state: Mapping[str, Any] = self.sandbox.argocd.application(f"otel-app-{stage}")["status"].get(
            "operationState", {}
        )
        return state

    async def leaks(self) -> list[str]:
        """Where a sentinel or a secret reached GitHub: request bodies, and every object of every ref that is there."""
        wanted = [SENTINEL, *(value for group in self.demo.secrets.values() for value in group.values())]
        found = [f"{b.method} {b.path}" for b in self.bodies if any(text in b.text for text in wanted)]
        objects = await asyncio.to_thread(
            self.git.run, "cat-file", "--batch", "--batch-all-objects", "--unordered"
        )
        stream = io.BytesIO(objects)
        while header := stream.readline().decode().split():
            name, kind, size = header
            content = stream.read(int(size) + 1)
            if kind in ("blob", "commit") and any(text.encode() in content for text in wanted):
                found.append(f"{kind} {name}")
        return found

    # -- the rest --------------------------------------------------------------------------------------------------

    def address(self, text: str) -> str:
        """A text with the sandbox's addresses in place of the shipped placeholders."""
        known = Addresses(self.sandbox.github_url, self.sandbox.registry_host, self.sandbox.cloud_url)
        return address(text, known)

    async def sow(self, seed: Seed) -> str:
        """Push what a seed says to main; the commit, or main's tip if all is there already."""
        return await self.push(seed.texts(), "Set the pipeline up")

    async def start_bot(self, **extra: str) -> None:
        """Start the bot, with further variables of its environment."""
        self.bot.extra = {**self.bot.extra, **extra}
        await self.bot.start(self.demo)

    async def restart_bot(self, **extra: str) -> None:
        """Stop the bot in good order and start it again."""
        await self.bot.stop()
        await self.start_bot(**extra)


def quoted_patch(body: str) -> str:
    """The deferred patch in a pull request's body: the fenced diff, or nothing."""
    found = re.search(r"\n(`{3,})diff\n(.*?)\n\1", body, re.DOTALL)
    return found[2] if found else ""


@asynccontextmanager
async def open_road(
    directory: Path, seed: Seed | None, started_as: type[BotProcess] = BotProcess, /, **extra: str
) -> AsyncIterator[Road]:
    """Sandbox and bot on a directory, new or left by an earlier road there; the bot is not started yet.

    `seed` is pushed before anybody listens; None leaves the repository as it is. `started_as` is how the bot becomes
    a process, `extra` are further variables of its environment.
    """
    known = _remember(directory)
    environment = {"LOCKSTEP_API_TOKEN": API_TOKEN, "LOCKSTEP_ARGOCD_DEFAULT_PROJECT": "acme", **extra}
    bot = started_as(directory / "bot", known["bot"], known["receiver_secret"], extra=environment)
    async with Sandbox(directory / "sandbox", SandboxOptions(QUICK)) as sandbox:
        bodies: list[Body] = []
        sandbox.github.asgi.add_middleware(Recorder, bodies=bodies)
        demo = await sandbox.seed_demo(BotEndpoints())
        demo = replace(demo, private_key_path=str(directory / "sandbox" / Path(demo.private_key_path).name))
        _let_maintainers_push(sandbox, demo)
        async with httpx.AsyncClient(timeout=30.0) as client:
            road = Road(sandbox, bot, demo, client, bodies)
            if seed is not None:
                await road.sow(seed)
                await sandbox.github.settled()
            await sandbox.seed_demo(bot.endpoints)
            try:
                yield road
            finally:
                await bot.stop()


def _let_maintainers_push(sandbox: Sandbox, demo: Demo) -> None:
    bypass = (Bypass("Integration", demo.app_id), Bypass("RepositoryRole", _MAINTAIN))
    rules = BranchRules(required_checks=(("lockstep", demo.app_id),), required_reviews=0, bypass=bypass)
    sandbox.github.set_rules(OPERATIONS, "main", rules)


def _remember(directory: Path) -> dict[str, Any]:
    """Ports and secret of the road, chosen at its first start, since addresses are in the repository's files."""
    file = directory / "road.json"
    if not file.exists():
        ports = free_ports(5)
        (directory / "sandbox").mkdir(parents=True)
        names = ("github", "registry", "argocd", "cloud")
        (directory / "sandbox" / "ports.json").write_text(
            json.dumps(dict(zip(names, ports[1:], strict=True)))
        )
        file.write_text(json.dumps({"bot": ports[0], "receiver_secret": secrets.token_hex(16)}))
    known: dict[str, Any] = json.loads(file.read_text())
    return known


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses, below those that the system gives to clients, so that they are free again later.

    A road that is stopped keeps its ports for its copies, so none is given twice, and each worker has its own range.
    """
    first = 20_000 + 1_500 * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8)
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(first, first + 1_500)
        with socket.socket() as probe:
            if port not in _GIVEN and probe.connect_ex(("127.0.0.1", port)) != 0:
                _GIVEN.add(port)
                found.append(port)
    return found


def _instances(state: Mapping[str, Any]) -> dict[str, Any]:
    """The managed resources of a Terraform state with all that is known of them, by address."""
    return {
        f"{resource['type']}.{resource['name']}": resource["instances"]
        for resource in state.get("resources", [])
        if resource["mode"] == "managed"
    }


def copy_road(source: Path, target: Path) -> None:
    """A copy of a road that was stopped; the two cannot run at the same time, their ports are the same."""
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
