"""What git's own texts mean: one table, read in order, since git tells most failures apart by text alone.

The texts are those of git 2.38 and newer with `LC_ALL=C`, and of curl's and GitHub's answers that git passes on.
"""

from __future__ import annotations

import re
from enum import StrEnum

from bot.adapters.git.command import Completed
from bot.ports import TerminalError, TransientError


class Trouble(StrEnum):
    """What went wrong, by what can be done about it."""

    ACCESS = "access"
    NOT_FOUND = "not found"
    FORBIDDEN_ADDRESS = "forbidden address"
    CERTIFICATE = "certificate"
    RATE_LIMIT = "rate limit"
    NETWORK = "network"
    DISK = "disk"
    MISSING_REF = "missing ref"
    UNRELATED = "unrelated"
    BUSY = "busy"
    CORRUPT = "corrupt"
    MISSING_OBJECT = "missing object"
    OTHER = "other"


TEXTS: tuple[tuple[str, Trouble], ...] = (
    (r"could not read (Username|Password) for", Trouble.ACCESS),
    (r"Authentication failed for", Trouble.ACCESS),
    (r"The requested URL returned error: 40[13]", Trouble.ACCESS),
    (r"Write access to repository not granted", Trouble.ACCESS),
    (r"The requested URL returned error: 429", Trouble.RATE_LIMIT),
    (r"The requested URL returned error: 404", Trouble.NOT_FOUND),
    (r"[Rr]epository '?.*'? ?not found", Trouble.NOT_FOUND),
    (r"The requested URL returned error: 5\d\d", Trouble.NETWORK),
    (r"transport '.*' not allowed", Trouble.FORBIDDEN_ADDRESS),
    (r"SSL certificate problem", Trouble.CERTIFICATE),
    (r"server certificate verification failed", Trouble.CERTIFICATE),
    (r"No space left on device", Trouble.DISK),
    (r"Disk quota exceeded", Trouble.DISK),
    (r"couldn't find remote ref", Trouble.MISSING_REF),
    (r"not our ref", Trouble.MISSING_REF),
    (r"Server does not allow request for unadvertised object", Trouble.MISSING_REF),
    (r"Could not resolve host", Trouble.NETWORK),
    (r"Failed to connect to", Trouble.NETWORK),
    (r"Couldn't connect to server", Trouble.NETWORK),
    (r"Connection (refused|reset|timed out)", Trouble.NETWORK),
    (r"Operation too slow", Trouble.NETWORK),
    (r"Operation timed out", Trouble.NETWORK),
    (r"Empty reply from server", Trouble.NETWORK),
    (r"transfer closed with", Trouble.NETWORK),
    (r"early EOF", Trouble.NETWORK),
    (r"RPC failed", Trouble.NETWORK),
    (r"unexpected disconnect", Trouble.NETWORK),
    (r"the remote end hung up", Trouble.NETWORK),
    (r"gnutls_handshake", Trouble.NETWORK),
    (r"(SSL_ERROR|SSL_connect|OpenSSL)", Trouble.NETWORK),
    (r"refusing to merge unrelated histories", Trouble.UNRELATED),
    (r"Unable to create '.*\.lock': File exists", Trouble.BUSY),
    (r"not a git repository", Trouble.CORRUPT),
    (r"object file .* is empty", Trouble.CORRUPT),
    (r"loose object .* is corrupt", Trouble.CORRUPT),
    (r"packfile .* (is|cannot)", Trouble.CORRUPT),
    (r"inflate: data stream error", Trouble.CORRUPT),
    (r"unable to unpack .* header", Trouble.CORRUPT),
    (r"index file .* is too small", Trouble.CORRUPT),
    (r"does not point to a valid object", Trouble.CORRUPT),
    (r"bad config (line|file)", Trouble.CORRUPT),
    (r"did not send all necessary objects", Trouble.CORRUPT),
    (r"unable to read (tree|sha1 file)", Trouble.MISSING_OBJECT),
    (r"[Cc]ould not read [0-9a-f]{40}", Trouble.MISSING_OBJECT),
    (r"missing (blob|tree|commit) object", Trouble.MISSING_OBJECT),
    (r"[Nn]ot a valid (object|commit) name", Trouble.MISSING_OBJECT),
    (r"bad object", Trouble.MISSING_OBJECT),
    (r"not a tree object", Trouble.MISSING_OBJECT),
    (r"not something we can merge", Trouble.MISSING_OBJECT),
    (r"[0-9a-f]{40} is missing", Trouble.MISSING_OBJECT),
    (r"failed to unpack tree object", Trouble.MISSING_OBJECT),
    (r"src refspec .* does not match any", Trouble.MISSING_OBJECT),
)


class GitFailure(Exception):
    """A command failed; `trouble` says in what way, `what` was tried, `text` is what git wrote."""

    def __init__(self, trouble: Trouble, what: str, text: str) -> None:
        super().__init__(f"{what}: {trouble}: {text}")
        self.trouble = trouble
        self.what = what
        self.text = text


def failure_of(what: str, completed: Completed) -> GitFailure:
    """The failure that a command's exit code and standard error amount to; `what` was tried, in words."""
    text = completed.error.strip()
    for pattern, trouble in TEXTS:
        if re.search(pattern, text):
            return GitFailure(trouble, what, text)
    return GitFailure(Trouble.OTHER, what, text or f"exit code {completed.code}")


_ADVICE = {
    Trouble.ACCESS: "give the App (or the configured token) access to it",
    Trouble.NOT_FOUND: "check the address, and that the App is installed on it",
    Trouble.FORBIDDEN_ADDRESS: "use an https address",
    Trouble.CERTIFICATE: "install the server's certificate authority on this machine",
    Trouble.MISSING_REF: "check the name of the ref",
    Trouble.UNRELATED: "the two branches share no commit, so there is nothing to merge them by",
    Trouble.MISSING_OBJECT: "it is not in the repository, or was made here and lost before it was pushed",
    Trouble.CORRUPT: "the local mirror is damaged and making it anew did not help",
    Trouble.OTHER: "these are git's own words",
}

_RETRY = {Trouble.RATE_LIMIT: 60.0, Trouble.NETWORK: 5.0, Trouble.DISK: 60.0, Trouble.BUSY: 1.0}
"""Seconds after which it is worth trying again."""


def raise_for(failure: GitFailure, access: str = "") -> TransientError | TerminalError:
    """The port's error for a failure, to be raised by the caller.

    `access` is what to do where access is refused; servers that hide private repositories say "not found" then.
    """
    said = " / ".join(line.strip() for line in failure.text.splitlines()[-4:] if line.strip())[:600]
    if failure.trouble in _RETRY:
        return TransientError(
            f"{failure.what} failed ({failure.trouble}): {said}", retry_after=_RETRY[failure.trouble]
        )
    advice = _ADVICE[failure.trouble]
    if access and failure.trouble in (Trouble.ACCESS, Trouble.NOT_FOUND):
        advice = access
    return TerminalError(f"{failure.what} failed ({failure.trouble}): {said}; {advice}.")
