"""Names of image repositories: which registry to ask, and for which path."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from bot.ports import TerminalError

_DOCKER_HUB = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:\d{1,5})?|\[[0-9A-Fa-f:]+\](:\d{1,5})?")
_PATH = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_PORT = re.compile(r"(?<=[\w\].]):\d{1,5}$")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reference:
    """A repository: the registry's host (with port) and the path on it."""

    host: str
    path: str

    def __str__(self) -> str:
        return f"{self.host}/{self.path}"


def parse_reference(repository: str) -> Reference:
    """Host and path of `host/path`; a name without a host lies on Docker Hub, a single word there in `library`.

    Raises TerminalError for a text that names no repository (a scheme or a tag in it, for example).
    """
    text = repository.strip().removeprefix("oci://")
    head, slash, rest = text.partition("/")
    has_host = bool(slash) and ("." in head or ":" in head or head == "localhost")
    host, path = (head, rest) if has_host else ("docker.io", text)
    if host.lower() in _DOCKER_HUB:
        host = "registry-1.docker.io"
        path = path if "/" in path else f"library/{path}"
    path = path.lower() if host == "ghcr.io" else path
    if _HOST.fullmatch(host) is None or _PATH.fullmatch(path) is None:
        raise TerminalError(
            f"{repository!r} names no image repository; it is written HOST/PATH, without scheme and tag"
        )
    return Reference(host.lower(), path)


def is_tag(text: str) -> bool:
    """Whether a text can be a tag at all."""
    return _TAG.fullmatch(text) is not None


def is_digest(text: str) -> bool:
    """Whether a text is a digest of a kind that we can verify; only such a text becomes part of an address."""
    return _DIGEST.fullmatch(text) is not None


def is_loopback(host: str) -> bool:
    """Whether a host (with or without port) is this machine, to which plain http is safe."""
    name = _PORT.sub("", host).strip("[]")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
