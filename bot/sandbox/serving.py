"""HTTP servers of the sandbox: a loopback port bound before anything else needs its address, then uvicorn on it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from starlette.requests import Request
from starlette.types import ASGIApp

_STOP_SECONDS = 1
"""How long open streams get to end before they are cancelled."""


class PortTaken(OSError):
    """A port that the sandbox must have again is in use by another process."""


class _Server(uvicorn.Server):
    """Uvicorn without its own signal handlers: the process that runs the sandbox decides when it stops."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Listener:
    """A port on 127.0.0.1, bound and listening at once, and served from `start(app)` to `stop()`.

    Port 0 takes a free one. Connections made before `start` wait in the backlog instead of being refused.
    """

    def __init__(self, port: int = 0) -> None:
        # With the protocol named, asyncio sends answers at once (TCP_NODELAY); without it a body waits 40 ms for the
        # acknowledgement of its head.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
        except OSError as error:
            self._socket.close()
            raise PortTaken(
                error.errno,
                f"cannot listen on 127.0.0.1:{port}: {error.strerror}; stop the other process that uses this port,"
                " or start the sandbox on a new directory",
            ) from error
        self._socket.listen(128)
        self.port: int = self._socket.getsockname()[1]
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def host(self) -> str:
        """Host and port, as image references and URLs contain them."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The base URL, without a slash at the end."""
        return f"http://{self.host}"

    async def start(self, app: ASGIApp) -> None:
        """Serve `app` from now on."""
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            access_log=False,
            http="h11",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        self._server = _Server(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))

    async def stop(self) -> None:
        """Stop serving and free the port; a second call does nothing."""
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task
        self._server = self._task = None
        self._socket.close()


def is_same_origin(request: Request) -> bool:
    """Whether a browser sent this from one of the sandbox's own pages; other clients send no Origin and pass.

    Without this any web page open on the same machine could publish images or switch faults on.
    """
    origin = request.headers.get("origin")
    return origin is None or origin == f"{request.url.scheme}://{request.headers.get('host', '')}"
