"""A git server for the tests: `git http-backend` as a CGI program behind a raw ASGI app, with faults on demand."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import ssl
import subprocess
from collections.abc import AsyncIterator, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.sandbox.serving import Listener

_BACKEND = Path(
    subprocess.run(["git", "--exec-path"], capture_output=True, check=True, text=True).stdout.strip()
)

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_AUTHOR_DATE": "@1700000000 +0100",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
    "GIT_COMMITTER_DATE": "@1700000000 +0100",
    "HOME": os.devnull,
}


def git(directory: Path, *arguments: str, stdin: str = "") -> str:
    """What a git command in a directory prints; raises if it fails."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=directory,
        env=ENVIRONMENT,
        input=stdin.encode("utf-8", "surrogateescape"),
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape").strip()


@dataclass
class GitServer:
    """Repositories below `root`, served at `url`; the fields say how the next requests are answered."""

    root: Path
    url: str = ""
    token: str = ""
    user: str = "x-access-token"
    status: int = 0
    """Answered to everything instead of the truth, if not 0."""
    drop_push_answer: bool = False
    """Pushes are carried out, then the connection is answered with a 502."""
    hang: bool = False
    requests: list[str] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)

    def repository(self, name: str = "acme/app") -> Path:
        """A new empty bare repository; its address is `address(name)`."""
        path = self.root / f"{name}.git"
        path.mkdir(parents=True)
        git(path, "init", "--bare", "--quiet", "--initial-branch=main", ".")
        git(path, "config", "http.receivepack", "true")
        git(path, "config", "uploadpack.allowAnySHA1InWant", "true")
        return path

    def address(self, name: str = "acme/app") -> str:
        """The address of a repository."""
        return f"{self.url}/{name}.git"

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        self.requests.append(f"{scope['method']} {scope['path']}?{scope['query_string'].decode()}")
        self.authorizations.append(headers.get("authorization", ""))
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        if self.hang:
            await asyncio.Event().wait()
        if self.status:
            await _answer(send, self.status, [], b"")
            return
        if self.token:
            expected = base64.b64encode(f"{self.user}:{self.token}".encode()).decode()
            if headers.get("authorization") != f"Basic {expected}":
                await _answer(send, 401, [(b"www-authenticate", b'Basic realm="git"')], b"")
                return
        status, fields, content = await self._backend(scope, headers, body)
        if self.drop_push_answer and scope["path"].endswith("/git-receive-pack"):
            await _answer(send, 502, [], b"")
            return
        await _answer(send, status, fields, content)

    async def _backend(
        self, scope: MutableMapping[str, Any], headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        environment = {
            **ENVIRONMENT,
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": scope["path"],
            "QUERY_STRING": scope["query_string"].decode(),
            "REQUEST_METHOD": scope["method"],
            "CONTENT_TYPE": headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": headers.get("content-encoding", ""),
            "GIT_PROTOCOL": headers.get("git-protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
            "REMOTE_USER": "bot",
        }
        process = await asyncio.create_subprocess_exec(
            str(_BACKEND / "git-http-backend"),
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        output, _ = await process.communicate(body)
        head, _, content = output.partition(b"\r\n\r\n")
        fields = [tuple(line.split(b": ", 1)) for line in head.split(b"\r\n") if b": " in line]
        status = next((int(value.split()[0]) for name, value in fields if name.lower() == b"status"), 200)
        return status, [(n.lower(), v) for n, v in fields if n.lower() != b"status"], content


async def _answer(send: Any, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextlib.asynccontextmanager
async def serve_git(root: Path) -> AsyncIterator[GitServer]:
    """A running server on a free loopback port."""
    server = GitServer(root)
    listener = Listener()
    server.url = listener.url
    await listener.start(server)
    try:
        yield server
    finally:
        await listener.stop()


@contextlib.asynccontextmanager
async def behind_tls(server: GitServer, certificate: tuple[Path, Path]) -> AsyncIterator[str]:
    """The server's repository by https, through a proxy that passes every byte on."""

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that refuses the certificate goes away in the middle, on either side.
        with contextlib.suppress(OSError):
            while chunk := await reader.read(65536):
                writer.write(chunk)
                await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = server.url.removeprefix("http://").split(":")
        inner_reader, inner_writer = await asyncio.open_connection(host, int(port))
        await asyncio.gather(pass_on(reader, inner_writer), pass_on(inner_reader, writer))

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    proxy = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with proxy:
        yield f"https://127.0.0.1:{proxy.sockets[0].getsockname()[1]}/acme/app.git"


def commit_files(repository: Path, branch: str, files: dict[str, str], message: str = "change") -> str:
    """Put a commit with these further files onto a branch of a bare repository; gives its id."""
    tip = git(repository, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")
    lines = []
    for path, text in files.items():
        blob = git(repository, "hash-object", "-w", "--stdin", stdin=text)
        lines.append(f"100644 {blob}\t{path}")
    index = repository / "test-index"
    index.unlink(missing_ok=True)
    environment = {**ENVIRONMENT, "GIT_INDEX_FILE": str(index)}
    if tip:
        subprocess.run(["git", "read-tree", tip], cwd=repository, env=environment, check=True)
    subprocess.run(
        ["git", "update-index", "--add", "--index-info"],
        cwd=repository,
        env=environment,
        input="\n".join(lines).encode(),
        check=True,
    )
    written = subprocess.run(
        ["git", "write-tree"], cwd=repository, env=environment, check=True, capture_output=True
    )
    parents = ["-p", tip] if tip else []
    commit = git(repository, "commit-tree", written.stdout.decode().strip(), *parents, stdin=message)
    git(repository, "update-ref", f"refs/heads/{branch}", commit)
    return commit
