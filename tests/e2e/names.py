"""The bot on a machine whose resolver a file stands in for; run as a program by the tests.

The file that `NAMES_FILE` names holds a JSON object: name -> canonical name and addresses. It is read anew at every
question about a name below `.example`, which no real resolver knows (RFC 2606); other names are the machine's business.
"""

from __future__ import annotations

import json
import os
import runpy
import socket
import sys
from pathlib import Path
from typing import Any

_resolve = socket.getaddrinfo
# The bot forgets what it is not to hand on to its children.
_FILE = Path(os.environ["NAMES_FILE"])


def answer(host: Any, port: Any, *options: Any, **named: Any) -> Any:
    """What getaddrinfo gives: one entry for each address, the canonical name in the first."""
    if not isinstance(host, str) or not host.endswith(".example"):
        return _resolve(host, port, *options, **named)
    known = json.loads(_FILE.read_text())
    if host not in known:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    canonical, *addresses = known[host]
    return [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "" if number else canonical, (address, port or 0))
        for number, address in enumerate(addresses)
    ]


if __name__ == "__main__":
    socket.getaddrinfo = answer
    sys.argv = ["lockstep", *sys.argv[1:]]
    runpy.run_module("bot", run_name="__main__")
