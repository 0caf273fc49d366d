"""Git over smart HTTP: `git http-backend` behind token checks, with hooks that ask this process."""

import asyncio
import json
import re
import secrets
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from bot.sandbox.github import pushes
from bot.sandbox.github.auth import ANONYMOUS, Actor, authenticate, level, may_see
from bot.sandbox.github.errors import Refused
from bot.sandbox.github.git import Git, RefChange, git_environment
from bot.sandbox.github.records import LoggedRequest, Repository
from bot.sandbox.github.world import World

_PATH = re.compile(
    r"/([^/]+)/([^/]+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack|HEAD|objects/.+)"
)
_CHUNK = 64 * 1024
# The variables by which a hook sees objects that a push has sent but not yet brought in.
_QUARANTINE = ("GIT_QUARANTINE_PATH", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
# Runs with `-I -S`, so it starts in some ten milliseconds; it sends what Git tells it and prints the verdict.
_HOOK = """#!{python} -IS
import json, os, socket, sys
names = {names!r}
question = {{
    "hook": os.path.basename(sys.argv[0]),
    "session": os.environ["SANDBOX_SESSION"],
    "lines": sys.stdin.read().splitlines(),
    "quarantine": {{name: os.environ[name] for name in names if name in os.environ}},
}}
with socket.create_connection(("127.0.0.1", int(os.environ["SANDBOX_HOOK_PORT"]))) as link:
    link.sendall(json.dumps(question).encode() + b"\\n")
    verdict = json.loads(link.makefile("rb").readline())
sys.stderr.write(verdict["message"])
sys.exit(verdict["status"])
"""


@dataclass(frozen=True, slots=True)
class _Push:
    """A push in progress: who pushes where."""

    actor: Actor
    repo: Repository


class GitHttp:
    """The smart HTTP server. `start` opens the port on which hooks ask, `stop` closes it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._sessions: dict[str, _Push] = {}
        self._server: asyncio.Server | None = None
        self._hooks = world.directory / "hooks"

    async def start(self) -> None:
        """Write the hooks and listen for them on a loopback port."""
        self._hooks.mkdir(exist_ok=True)
        text = _HOOK.format(python=sys.executable, names=_QUARANTINE)
        for name in ("pre-receive", "post-receive"):
            path = self._hooks / name
            path.write_text(text)
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        self._server = await asyncio.start_server(self._hook, "127.0.0.1", 0, limit=16 * 1024 * 1024)

    async def stop(self) -> None:
        """Stop listening for hooks."""
        if self._server:
            self._server.close()
            await self._server.wait_closed()

    @property
    def _port(self) -> int:
        if self._server is None:
            raise RuntimeError("The simulated GitHub was not started, so it cannot take pushes.")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    # ---- hooks

    async def _hook(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        question = json.loads(await reader.readline())
        push = self._sessions.get(question["session"])
        if push is None:
            message, status = "no such push\n", 1
        else:
            message, status = await asyncio.to_thread(self._decide, push, question)
        writer.write(json.dumps({"message": message, "status": status}).encode() + b"\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    def _decide(self, push: _Push, question: Mapping[str, Any]) -> tuple[str, int]:
        """What a hook prints and its exit status."""
        changes = []
        for line in question["lines"]:
            old, new, ref = line.split(" ", 2)
            changes.append(RefChange(ref, old, new))
        with self._world.store.lock:
            repo = self._world.store.need(Repository, push.repo.id)
            if question["hook"] == "post-receive":
                for change in changes:
                    pushes.ref_changed(self._world, push.actor, repo, change)
                self._log(push, repo, 200)
                return "", 0
            git = Git(self._world.git(repo).path, quarantine=question["quarantine"])
            said = []
            for change in changes:
                found = pushes.problems(self._world, push.actor, repo, change, git)
                said += [f"error: GH013: Repository rule violations found for {change.ref}."] if found else []
                said += [f"- {text}" for text in found]
            if said:
                self._log(push, repo, 422)
            return "".join(line + "\n" for line in said), 1 if said else 0

    def _log(self, push: _Push, repo: Repository, status: int) -> None:
        """Log a push before the client hears of its end; 422 stands for a refusal by the rules."""
        path = f"/{self._world.full_name(repo)}.git/git-receive-pack"
        self._world.store.add(LoggedRequest(self._world.now(), push.actor.name, "POST", path, status))

    # ---- HTTP

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application for paths of the form `/<owner>/<repo>.git/...`, with or without `.git`."""
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        match = _PATH.fullmatch(scope["path"])
        query = scope["query_string"].decode()
        if match is None:
            await _refuse(send, Refused(404, "Not Found"))
            return
        writes = match.group(3) == "git-receive-pack" or "service=git-receive-pack" in query
        try:
            push = await asyncio.to_thread(self._admit, match.group(1), match.group(2), headers, writes)
        except Refused as refused:
            await _refuse(send, refused)
            return
        session = secrets.token_hex(16)
        self._sessions[session] = push
        try:
            environment = self._environment(scope, headers, push, match.group(3), session)
            await _run_backend(environment, receive, send)
        finally:
            del self._sessions[session]

    def _admit(self, owner: str, name: str, headers: Mapping[str, str], writes: bool) -> _Push:
        """Who asks for which repository; 401 without a valid token, 404 or 403 without the permission."""
        with self._world.store.lock:
            actor = authenticate(self._world, headers.get("authorization"))
            try:
                repo = self._world.repository(owner, name)
            except Refused:
                raise _hidden(actor) from None
            if actor.kind == "app" or not may_see(self._world, actor, repo):
                raise _hidden(actor)
            if actor is ANONYMOUS and writes:
                raise _hidden(actor)
            if not self._may(actor, repo, writes):
                raise Refused(403, "Write access to repository not granted.")
            return _Push(actor, repo)

    def _may(self, actor: Actor, repo: Repository, writes: bool) -> bool:
        if actor.kind == "installation":
            granted = level(actor, "contents")
            return granted == "write" or (granted == "read" and not writes)
        if not writes:
            return True
        return not actor.read_only and self._world.has_role(actor.account, repo, "write")

    def _environment(
        self, scope: Scope, headers: Mapping[str, str], push: _Push, rest: str, session: str
    ) -> dict[str, str]:
        path = self._world.git(push.repo).path
        values = {
            **git_environment(),
            "GIT_PROJECT_ROOT": str(path.parent.resolve()),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": f"/{path.name}/{rest}",
            "REQUEST_METHOD": scope["method"],
            "QUERY_STRING": scope["query_string"].decode(),
            "REMOTE_USER": push.actor.name,
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_TYPE": headers.get("content-type", ""),
            "SANDBOX_SESSION": session,
            "SANDBOX_HOOK_PORT": str(self._port),
            "GIT_CONFIG_COUNT": "4",
            "GIT_CONFIG_KEY_2": "core.hooksPath",
            "GIT_CONFIG_VALUE_2": str(self._hooks.resolve()),
            "GIT_CONFIG_KEY_3": "receive.autogc",
            "GIT_CONFIG_VALUE_3": "false",
        }
        for header, name in (
            ("content-length", "CONTENT_LENGTH"),
            ("content-encoding", "HTTP_CONTENT_ENCODING"),
            ("git-protocol", "GIT_PROTOCOL"),
        ):
            if header in headers:
                values[name] = headers[header]
        return values


def _hidden(actor: Actor) -> Refused:
    """What is said of a repository that the caller may not see: first who are you, then it is not there."""
    if actor is ANONYMOUS:
        return Refused(401, "Authentication required")
    return Refused(404, "Repository not found.")


async def _refuse(send: Send, refused: Refused) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    if refused.status == 401:
        headers.append((b"www-authenticate", b'Basic realm="GitHub"'))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": refused.message.encode() + b"\n"})


async def _run_backend(environment: Mapping[str, str], receive: Receive, send: Send) -> None:
    """Run `git http-backend` as CGI, streaming both ways."""
    child = await asyncio.create_subprocess_exec(
        "git",
        "http-backend",
        env=dict(environment),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    feeding = asyncio.create_task(_feed(child, receive))
    try:
        await _relay(child, send)
        # To signal a child that has just ended would take its exit status away from the event loop.
        await child.wait()
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        if child.returncode is None:
            # The client went away; a push that got so far is either whole or refused by Git itself.
            child.terminate()
            await child.wait()


async def _feed(child: asyncio.subprocess.Process, receive: Receive) -> None:
    """Copy the request body to the child until it ends or the child wants no more."""
    if child.stdin is None:
        return
    more = True
    try:
        while more:
            message: Message = await receive()
            if message["type"] == "http.disconnect":
                break
            child.stdin.write(message.get("body", b""))
            await child.stdin.drain()
            more = message.get("more_body", False)
    except (BrokenPipeError, ConnectionResetError):
        # The child has ended; its answer says why.
        return
    finally:
        child.stdin.close()


async def _relay(child: asyncio.subprocess.Process, send: Send) -> None:
    """Copy the child's CGI answer to the client."""
    if child.stdout is None:
        return
    status = 200
    headers: list[tuple[bytes, bytes]] = []
    while line := (await child.stdout.readline()).strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"status":
            status = int(value.split()[0])
        else:
            headers.append((name.lower(), value.strip()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    while chunk := await child.stdout.read(_CHUNK):
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
