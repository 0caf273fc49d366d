"""What is wrong with Secrets that stand in the configuration: secrets in clear, and labels that say nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.domain.model import Document
from bot.domain.problems import Severity
from bot.pipeline.access import mapping_at
from bot.pipeline.reader import Path
from bot.pipeline.schema import Finding, listed, nearest, shown

CREDENTIAL_LABEL = "kargo.akuity.io/cred-type"
CREDENTIAL_KINDS = ("git", "helm", "image", "generic")
_SECRET_KEY = re.compile(r"password|passwd|secret|token|private.?key|api.?key|auth", re.IGNORECASE)


def check_secret(secret: Document) -> Iterator[Finding]:
    """Warnings about one Secret; the value itself is part of no message."""
    kind = secret.metadata.labels.get(CREDENTIAL_LABEL)
    if kind is not None and kind not in CREDENTIAL_KINDS:
        path: Path = ("metadata", "labels", CREDENTIAL_LABEL)
        message = f"{shown(kind)} is none of {listed(CREDENTIAL_KINDS)}{nearest(kind, CREDENTIAL_KINDS)}"
        yield Finding(path, message, Severity.WARNING)
    for part in ("data", "stringData"):
        for key, value in mapping_at(dict(secret.body), part).items():
            if value and _SECRET_KEY.search(key):
                message = (
                    f"a secret stands in the configuration in clear: leave {shown(key)} out "
                    "and give it by a file or an environment variable"
                )
                yield Finding((part, key), message, Severity.WARNING)
