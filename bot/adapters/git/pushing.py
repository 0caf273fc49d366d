"""What the server said about a push: the machine-readable report and the lines it sent to the user."""

from __future__ import annotations

import re

from bot.adapters.git.command import Completed

_NOT_RULES = re.compile(
    r"failed to (update ref|lock)|cannot lock ref|reference already exists|unpacker error"
)
"""Refusals of the remote end that come of a race or a fault there, not of a rule."""


def read_report(done: Completed) -> str | None:
    """Why the server's hook or rule refuses the push, in its own words; None if it was not refused by one."""
    reason = ""
    for line in done.output.decode("utf-8", "replace").splitlines():
        found = re.match(r"!\t.*\t\[remote rejected\] \((?P<reason>.*)\)$", line)
        if found is not None and not _NOT_RULES.search(found["reason"]):
            reason = found["reason"]
    if not reason:
        return None
    said = [
        found["text"].strip()
        for line in done.error.splitlines()
        if (found := re.match(r"remote: ?(?P<text>.*)$", line)) is not None and found["text"].strip()
    ]
    return "\n".join([*said[:40], reason]) if said else reason
