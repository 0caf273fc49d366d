"""Where a chart's dependencies come from, and the files by which helm signs in there."""

from __future__ import annotations

import base64
import hashlib
import json
import posixpath
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from bot.domain.files import File
from bot.editors.errors import EditError
from bot.editors.yaml.stream import build, parse_stream
from bot.ports import TerminalError

_DECLARING = ("Chart.yaml", "requirements.yaml", "Chart.lock", "requirements.lock")


def find_repositories(files: Mapping[str, File], chart: str) -> tuple[str, ...]:
    """The addresses from which the dependencies of a chart come: `https://`, `http://` and `oci://`, sorted."""
    found: set[str] = set()
    for name in _DECLARING:
        path = posixpath.normpath(posixpath.join(chart, name))
        if path in files:
            found.update(_declared(files[path], path))
    return tuple(sorted(found))


def _declared(file: File, path: str) -> Iterable[str]:
    try:
        stream = parse_stream(file.data.decode("utf-8"))
        document = build(stream, stream.roots[0]) if stream.roots else None
    except (EditError, UnicodeDecodeError) as error:
        raise TerminalError(f"{path} cannot be read: {error}") from error
    entries = document.get("dependencies") if isinstance(document, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        url = entry.get("repository") if isinstance(entry, dict) else None
        if isinstance(url, str) and url.startswith(("https://", "http://", "oci://")):
            yield url


def write_logins(
    home: Path, repositories: Iterable[str], logins: Mapping[str, tuple[str, str]]
) -> dict[str, str]:
    """Helm's two configuration files with every repository and what signs in there; gives the variables for them."""
    chart_file, registry_file = home / "repositories.yaml", home / "registries.json"
    entries: list[dict[str, object]] = []
    auths: dict[str, object] = {}
    for url in repositories:
        user, password = logins.get(url, ("", ""))
        if url.startswith("oci://"):
            if user or password:
                token = base64.b64encode(f"{user}:{password}".encode()).decode()
                auths[urlsplit(url).netloc] = {"auth": token}
            continue
        name = f"r{hashlib.sha256(url.encode()).hexdigest()[:16]}"
        entry: dict[str, object] = {"name": name, "url": url}
        entries.append(entry | ({"username": user, "password": password} if user or password else {}))
    # JSON is YAML, and quotes what a password may hold.
    chart_file.write_text(json.dumps({"apiVersion": "v1", "repositories": entries}))
    registry_file.write_text(json.dumps({"auths": auths}))
    for path in (chart_file, registry_file):
        path.chmod(0o600)
    return {"HELM_REPOSITORY_CONFIG": str(chart_file), "HELM_REGISTRY_CONFIG": str(registry_file)}
