"""What is read of the configuration's own text: where its resources stand, and which variables are ephemeral.

Terraform's JSON tells neither. Only the beginnings of blocks are looked at, so a text that Terraform would refuse does
no harm here.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from bot.domain.files import File

_BLOCK = re.compile(
    r'^[ \t]*(?P<kind>resource|data|module|variable)[ \t]+"(?P<first>[^"\n]+)"(?:[ \t]+"(?P<second>[^"\n]+)")?[ \t]*\{',
    re.MULTILINE,
)
_ELSEWHERE = re.compile(r'^[ \t]*(backend[ \t]+"remote"|cloud)[ \t]*\{', re.MULTILINE)
_EPHEMERAL = re.compile(r"^[ \t]*ephemeral[ \t]*=[ \t]*true\b", re.MULTILINE)


def find_resource_lines(files: Mapping[str, File], directory: str) -> dict[str, tuple[str, int]]:
    """Address without indexes to file (relative to the directory) and line; a module's address is its call's place."""
    lines: dict[str, tuple[str, int]] = {}
    for name, text in _sources(files, directory):
        for found in _BLOCK.finditer(text):
            kind, first, second = found["kind"], found["first"], found["second"]
            address = {
                "resource": f"{first}.{second}",
                "data": f"data.{first}.{second}",
                "module": f"module.{first}",
            }.get(kind)
            if address is not None:
                lines.setdefault(address, (name, text.count("\n", 0, found.start("kind")) + 1))
    return lines


def line_of(address: str, lines: Mapping[str, tuple[str, int]]) -> tuple[str, int] | None:
    """The place of a resource's address, that of the module call in the root for one inside a module."""
    plain = re.sub(r"\[[^\]]*\]", "", address)
    if plain.startswith("module."):
        plain = ".".join(plain.split(".")[:2])
    return lines.get(plain)


def find_ephemeral_variables(files: Mapping[str, File], directory: str) -> frozenset[str]:
    """Names of the root's variables that are declared `ephemeral = true`."""
    names: set[str] = set()
    for _, text in _sources(files, directory):
        blocks = list(_BLOCK.finditer(text))
        for number, found in enumerate(blocks):
            end = blocks[number + 1].start() if number + 1 < len(blocks) else len(text)
            if found["kind"] == "variable" and _EPHEMERAL.search(text, found.end(), end):
                names.add(found["first"])
    return frozenset(names)


def runs_elsewhere(files: Mapping[str, File], directory: str) -> bool:
    """Whether the configuration has Terraform run on somebody else's machine, outside of every rule here."""
    return any(_ELSEWHERE.search(text) for _, text in _sources(files, directory))


def _sources(files: Mapping[str, File], directory: str) -> Iterator[tuple[str, str]]:
    wanted = posixpath.normpath(directory.strip("/") or ".")
    for path in sorted(files):
        folder, name = posixpath.split(path)
        if (folder or ".") == wanted and name.endswith((".tf", ".tofu")):
            yield name, files[path].data.decode("utf-8", "replace")
