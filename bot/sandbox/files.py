"""Files that a crash leaves either as they were or as they should be."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_whole(file: Path, body: bytes, *, private: bool = False) -> None:
    """Replace a file in one step, with the folders above it; `private` makes it readable by its owner alone."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{uuid.uuid4().hex}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o644)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(body)
    os.replace(temporary, file)
