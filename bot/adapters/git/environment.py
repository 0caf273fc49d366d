"""What a git child may see and do: a hardened environment, and the token of one network operation.

Nothing of the machine's or the user's git configuration counts. A token travels as an `http.<host>.extraHeader`
by `GIT_CONFIG_*` variables, so that it is in no argument list, address or file.
"""

from __future__ import annotations

import base64
import ipaddress
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from bot.ports import TerminalError

Login = str | tuple[str, str]
"""What a server wants to see: a token of GitHub's, or a user and password."""

Credentials = Callable[[str], Awaitable[Login | None]]
"""Gives the login for a repository's address, None to ask without."""


class ProjectLogin(Protocol):
    """Gives the login that a project has for a repository's address, None for none; `write` to push there."""

    def __call__(self, project: str, url: str, *, write: bool) -> Awaitable[Login | None]: ...


Advice = Callable[[str], str]
"""Says what to do where a server refuses access to a repository's address; empty for nothing special."""

_INHERITED = frozenset(
    {
        "PATH",
        "LD_LIBRARY_PATH",
        "TMPDIR",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "CURL_CA_BUNDLE",
        "GIT_SSL_CAINFO",
        "GIT_SSL_CAPATH",
        "http_proxy",
        "https_proxy",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
        "no_proxy",
        "NO_PROXY",
    }
)
"""Names that a git child may take over from the bot's own environment."""

_LOOSE_CHECKS = (
    "badTimezone",
    "missingEmail",
    "missingNameBeforeEmail",
    "missingSpaceBeforeDate",
    "missingSpaceBeforeEmail",
    "badDate",
    "badDateOverflow",
    "zeroPaddedDate",
    "zeroPaddedFilemode",
    "badFilemode",
    "gitmodulesParse",
    "gitmodulesLarge",
)
"""Faults of old tools that real repositories contain for ever, and that do no harm without a work tree."""


def check_url(url: str) -> str:
    """The address itself if it is https, or http on a loopback host, without a user or password in it.

    Raises TerminalError for anything else.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.username is not None or parts.password is not None:
        raise TerminalError(
            f"The git address of host {host!r} has credentials in it; remove them and configure them apart from it."
        )
    if not host or any(c.isspace() or ord(c) < 32 for c in url):
        raise TerminalError(f"{url!r} is not a git address that can be used; write https://HOST/PATH.")
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)):
        return url
    raise TerminalError(
        f"{url!r} cannot be used as a git address: only https is allowed (http on a loopback host); "
        "write https://HOST/PATH."
    )


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine itself."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def foreign_names() -> Sequence[str]:
    """Names in the bot's own environment that a git child must not get."""
    # GitPython starts its children with a copy of os.environ, and has no way to take a name out of it.
    return sorted(name for name in os.environ if name not in _INHERITED)


def local_environment(mirror: Path) -> dict[str, str]:
    """The variables for a command that works on a mirror without the network."""
    environment = {
        "GIT_DIR": str(mirror),
        "GIT_INDEX_FILE": str(mirror / "no-index"),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "LC_ALL": "C",
        "LANGUAGE": "C",
        "TZ": "UTC",
        "HOME": os.devnull,
    }
    return environment | _config(_settings(mirror))


def network_environment(
    mirror: Path, url: str, login: Login | None, *, insecure: bool = False
) -> dict[str, str]:
    """The variables for a command that talks to `url`, with what it may sign in with there.

    `insecure` leaves the server's certificate unverified.
    """
    parts = urlsplit(url)
    settings = _settings(mirror)
    settings.append((f"protocol.{parts.scheme}.allow", "always"))
    if insecure:
        settings.append((f"http.{parts.scheme}://{parts.netloc}/.sslVerify", "false"))
    if login:
        user, password = ("x-access-token", login) if isinstance(login, str) else login
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()
        settings.append(
            (f"http.{parts.scheme}://{parts.netloc}/.extraHeader", f"Authorization: Basic {basic}")
        )
    limits = {"GIT_HTTP_LOW_SPEED_LIMIT": "1000", "GIT_HTTP_LOW_SPEED_TIME": "30"}
    return local_environment(mirror) | limits | _config(settings)


def _settings(mirror: Path) -> list[tuple[str, str]]:
    fixed = [
        ("protocol.allow", "never"),
        ("core.hooksPath", os.devnull),
        ("core.attributesFile", os.devnull),
        ("core.excludesFile", os.devnull),
        ("core.fsmonitor", "false"),
        ("core.quotePath", "false"),
        # Milliseconds; our own commands hold these locks for a moment only, so what is locked longer is left over.
        ("core.filesRefLockTimeout", "2000"),
        ("core.packedRefsTimeout", "5000"),
        ("credential.helper", ""),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("fetch.fsckObjects", "true"),
        ("fetch.unpackLimit", "100"),
        ("transfer.credentialsInUrl", "die"),
        ("safe.directory", str(mirror)),
        ("advice.pushUpdateRejected", "false"),
    ]
    return fixed + [(f"fetch.fsck.{check}", "ignore") for check in _LOOSE_CHECKS]


def _config(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        variables[f"GIT_CONFIG_KEY_{number}"] = key
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return variables
