"""Kubernetes manifests in texts: where one ends, what it is of, and what its file is called."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.ports import TerminalError
from bot.steps.parsing import parse_yaml

_SEPARATOR = re.compile(r"^---.*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document; group, kind, namespace and name are empty where it does not say."""

    text: str
    group: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""


def split_manifests(text: str, where: str) -> tuple[Manifest, ...]:
    """The documents of a text that hold anything, without their separators; raises TerminalError for bad YAML."""
    return tuple(_read(body, where) for body in _documents(text))


def _documents(text: str) -> Iterator[str]:
    for part in _SEPARATOR.split(text):
        body = part.strip()
        if any(line.strip() and not line.lstrip().startswith("#") for line in body.splitlines()):
            yield body


def _read(body: str, where: str) -> Manifest:
    try:
        document = parse_yaml(body)
    except EditError as error:
        start = " ".join(body.split())[:120]
        raise TerminalError(f"{where}: a manifest is no valid YAML ({error}): {start}") from error
    held = document if isinstance(document, dict) else {}
    found = held.get("metadata")
    metadata = found if isinstance(found, dict) else {}
    group = _text(held.get("apiVersion")).rpartition("/")[0]
    return Manifest(
        body, group, _text(held.get("kind")), _text(metadata.get("namespace")), _text(metadata.get("name"))
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def flat_name(manifest: Manifest) -> str:
    """The file of a manifest in `helm-template`'s flat layout: `[group-]kind[-namespace]-name.yaml`, in small letters.

    Empty if it has no kind or name.
    """
    if not manifest.kind or not manifest.name:
        return ""
    parts = [manifest.group.replace(".", "_"), manifest.kind, manifest.namespace, manifest.name]
    return f"{'-'.join(part for part in parts if part)}.yaml".lower()


def resource_name(manifest: Manifest) -> str:
    """The file of a resource in `kustomize-build`'s format `kargo`: `[namespace-]kind-name.yaml`, in small letters."""
    parts = [manifest.namespace, manifest.kind, manifest.name]
    return f"{'-'.join(part for part in parts if part)}.yaml".lower()


def name_files(
    manifests: tuple[Manifest, ...], naming: Callable[[Manifest], str], where: str
) -> dict[str, bytes]:
    """The manifests by file name; one without a name is called `resource-N.yaml`, counted from 0.

    Kargo writes every nameless one to `resource-0.yaml`, so that one of them is left, and of two manifests with one
    name the second. Here the latter raises TerminalError: a manifest must not be lost without a word.
    """
    files: dict[str, bytes] = {}
    nameless = 0
    for manifest in manifests:
        name = naming(manifest)
        if not name:
            name, nameless = f"resource-{nameless}.yaml", nameless + 1
        if "/" in name or name in files:
            raise TerminalError(
                f"{where}: two manifests would be written to {name!r}, or its name is no file name; write to one file "
                "(an outPath that ends in .yaml), or use another layout"
            )
        files[name] = f"{manifest.text}\n".encode()
    return files
