"""What a source's files make of an Application: its image, its environment, and whether two results differ.

Nothing is templated. A chart is its values, a kustomization its images; every other file counts by its content, so that
a comment in the values changes nothing while any change of a template does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")


class RenderError(Exception):
    """Files that no manifests can be made of, in Argo CD's words."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A desired or live state. `digest` is equal when nothing would change in the cluster."""

    digest: str
    images: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    kind: str = "Directory"


def render(files: Mapping[str, bytes], source: Mapping[str, Any]) -> Rendered:
    """Render the files below a source's path, with the overrides that the source itself carries."""
    kustomization = next((name for name in _KUSTOMIZATIONS if name in files), None)
    if "Chart.yaml" in files or "values.yaml" in files:
        return _render_chart(files, source.get("helm") or {})
    if kustomization is not None:
        return _render_kustomization(files, kustomization, source.get("kustomize") or {})
    return Rendered(_digest({"files": _hashes(files)}))


def merge(parts: Sequence[Rendered]) -> Rendered:
    """What several sources give together."""
    if len(parts) == 1:
        return parts[0]
    env = {name: value for part in parts for name, value in part.env.items()}
    images = [image for part in parts for image in part.images]
    kind = parts[0].kind if parts else "Directory"
    return Rendered(_digest({"parts": [part.digest for part in parts]}), images, env, kind)


def _render_chart(files: Mapping[str, bytes], options: Mapping[str, Any]) -> Rendered:
    values: dict[str, Any] = {}
    names = ["values.yaml", *(options.get("valueFiles") or [])]
    for name in names:
        if name in files:
            values = _overlay(values, _parse(name, files[name]))
        elif name != "values.yaml" and not options.get("ignoreMissingValueFiles"):
            raise RenderError(f"open {name}: no such file or directory")
    for parameter in options.get("parameters") or []:
        _set(values, str(parameter["name"]).split("."), parameter.get("value", ""))
    rest = {name: body for name, body in files.items() if name not in names}
    image = values.get("image")
    images = []
    if isinstance(image, dict) and image.get("repository"):
        images = [f"{image['repository']}:{image.get('tag') or 'latest'}"]
    env = values.get("env")
    shown = {str(name): _text(value) for name, value in env.items()} if isinstance(env, dict) else {}
    return Rendered(_digest({"values": values, "files": _hashes(rest)}), images, shown, "Helm")


def _render_kustomization(files: Mapping[str, bytes], name: str, options: Mapping[str, Any]) -> Rendered:
    content = _parse(name, files[name])
    images: dict[str, str] = {}
    for entry in content.get("images") or []:
        if not isinstance(entry, dict) or not entry.get("name"):
            raise RenderError(
                f"invalid Kustomization: images must be a list of mappings with a name in {name}"
            )
        tag = f"@{entry['digest']}" if entry.get("digest") else f":{_text(entry.get('newTag') or 'latest')}"
        images[str(entry["name"])] = f"{entry.get('newName') or entry['name']}{tag}"
    for override in options.get("images") or []:
        old, _, new = str(override).rpartition("=")
        images[old or new.rpartition(":")[0]] = new
    rest = {path: body for path, body in files.items() if path != name}
    digest = _digest({"kustomization": content, "images": images, "files": _hashes(rest)})
    return Rendered(digest, sorted(images.values()), {}, "Kustomize")


def _parse(name: str, body: bytes) -> dict[str, Any]:
    try:
        content = yaml.load(body, Loader=yaml.CSafeLoader) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RenderError(f"cannot load {name}: error converting YAML to JSON: {error}") from error
    if not isinstance(content, dict):
        raise RenderError(f"cannot load {name}: it holds no mapping")
    return content


def _overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _overlay(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _set(values: dict[str, Any], keys: list[str], value: object) -> None:
    *parents, last = keys
    for key in parents:
        inner = values.get(key)
        if not isinstance(inner, dict):
            inner = values[key] = {}
        values = inner
    values[last] = value


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _hashes(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(body).hexdigest() for name, body in files.items()}


def _digest(content: object) -> str:
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
