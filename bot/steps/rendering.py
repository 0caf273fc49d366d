"""What the renderers (`helm-template`, `kustomize-build`) have in common: what they read, and how results are written.

In a preview everything is rendered twice and must agree. With unknown values in the input the second run gets other
stand-ins than the first: the words of the output that differ are unknown too, and whatever else differs says that the
template is not reproducible. A file whose very number of lines depends on an unknown value is unknown as a whole.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from bot.domain.files import File, Mode
from bot.domain.values import Unknown
from bot.ports.rendering import Rendered, RenderFailed
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.manifests import Manifest, name_files, split_manifests
from bot.steps.worktree import Sentinels, inside_path, join

_WORD = re.compile(r"[^\s\"']+|\s+|[\"']")
_MOST_LINKS = 64


@dataclass(frozen=True, slots=True)
class Source:
    """What a renderer is given: files by path, and texts of the config, both with the stand-ins of unknown values."""

    files: Mapping[str, File]
    texts: tuple[str, ...] = ()


Run = Callable[[Source], Awaitable["Mapping[str, bytes] | RenderFailed"]]
"""One run of a renderer: the files that it makes, by path relative to `outPath` (empty for `outPath` itself)."""


async def collect(context: StepContext, *paths: str) -> dict[str, File]:
    """The files at or below these paths, and those that links among them lead to, inside their checkouts."""
    found: dict[str, File] = {}
    for path in paths:
        found |= await context.tree.files(path)
    for _ in range(_MOST_LINKS):
        missing = {
            target for path, file in found.items() if (target := _target(path, file)) not in ("", *found)
        }
        fetched: dict[str, File] = {}
        for target in missing:
            fetched |= await context.tree.files(target)
        if not set(fetched) - set(found):
            break
        found |= fetched
    return found


def _target(path: str, file: File) -> str:
    if file.mode is not Mode.SYMLINK:
        return ""
    target = posixpath.normpath(
        posixpath.join(posixpath.dirname(path), file.data.decode("utf-8", "surrogateescape"))
    )
    return "" if target.startswith(("..", "/")) or target == "." else target


async def preview_run(run: Run, source: Source, context: StepContext, out_path: str) -> StepResult:
    """Render twice, compare, and write."""
    sentinels = context.tree.sentinels
    other = _Other(sentinels, source)
    first, second = await asyncio.gather(run(source), run(other.source))
    if isinstance(first, RenderFailed):
        return _refuse(first, context)
    if isinstance(second, RenderFailed):
        return _refuse(second, context)
    again = {other.back(path): other.back_bytes(data) for path, data in second.items()}
    differing = sorted(path for path in set(first) | set(again) if first.get(path) != again.get(path))
    if differing and not other.texts:
        names = ", ".join(join(out_path, path or ".") for path in differing[:3])
        return failed(
            context.alias,
            f"{context.alias}: not reproducible: {names}; rendering twice gives different files, so that what is "
            "reviewed could not be what is committed. Give the random or time-dependent value as a setting",
        )
    written = {**first}
    for path in differing:
        mark = Unknown(f"known after step: {context.alias}")
        if path in first:
            written[path] = _with_holes(first[path], again.get(path), sentinels.write(mark))
    return await _write(written, context, out_path)


async def fulfil_run(run: Run, source: Source, context: StepContext, out_path: str) -> StepResult:
    """Render and write."""
    outcome = await run(source)
    if isinstance(outcome, RenderFailed):
        return _refuse(outcome, context)
    return await _write(outcome, context, out_path)


class _Other:
    """The same source with other stand-ins."""

    def __init__(self, sentinels: Sentinels, source: Source) -> None:
        used = [
            text
            for text in sentinels.origins
            if any(text.encode() in file.data for file in source.files.values())
            or any(text in given for given in source.texts)
        ]
        # Longest first, since one stand-in may begin like another. All are of the same length as what they replace.
        self.texts = {text: f"other-{text[6:]}" for text in sorted(used, key=len, reverse=True)}
        files = {path: File(self._there(file.data), file.mode) for path, file in source.files.items()}
        self.source = Source(files, tuple(self._there(text.encode()).decode() for text in source.texts))

    def _there(self, data: bytes) -> bytes:
        for mine, other in self.texts.items():
            data = data.replace(mine.encode(), other.encode())
        return data

    def back_bytes(self, data: bytes) -> bytes:
        for mine, other in self.texts.items():
            data = data.replace(other.encode(), mine.encode())
        return data

    def back(self, path: str) -> str:
        return self.back_bytes(path.encode()).decode()


def _with_holes(mine: bytes, other: bytes | None, sentinel: str) -> bytes:
    """The first file with a stand-in for every word that is another one in the second."""
    one, two = (
        mine.decode("utf-8", "replace").split("\n"),
        (other or b"").decode("utf-8", "replace").split("\n"),
    )
    if other is None or len(one) != len(two):
        return sentinel.encode()
    lines = [a if a == b else _hole(a, b, sentinel) for a, b in zip(one, two, strict=True)]
    return "\n".join(lines).encode()


def _hole(one: str, two: str, sentinel: str) -> str:
    mine, other = _WORD.findall(one), _WORD.findall(two)
    if len(mine) != len(other):
        indent = one[: len(one) - len(one.lstrip())]
        return indent + sentinel
    return "".join(a if a == b else sentinel for a, b in zip(mine, other, strict=True))


def _refuse(outcome: RenderFailed, context: StepContext) -> StepResult:
    return failed(context.alias, f"{context.alias}: {outcome.message}", log=outcome.log)


async def _write(files: Mapping[str, bytes], context: StepContext, out_path: str) -> StepResult:
    context.tree.touch(out_path)
    await context.tree.put({join(out_path, path or "."): File(data) for path, data in files.items()})
    return StepResult()


def is_file(out_path: str) -> bool:
    """Whether an `outPath` names a file: it ends in `.yaml` or `.yml` (Kargo)."""
    return out_path.endswith((".yaml", ".yml"))


def lies_above(path: str, other: str) -> bool:
    """Whether a path is another one, or a directory that holds it."""
    return inside_path(path, other) is not None


def lay_out(
    outcome: Rendered | RenderFailed, step: str, out_path: str, naming: Callable[[Manifest], str] | None
) -> Mapping[str, bytes] | RenderFailed:
    """The files of an outcome: those that the program made (`naming` None), one at `outPath`, or one a manifest."""
    if isinstance(outcome, RenderFailed):
        return outcome
    if naming is None:
        return outcome.files
    if is_file(out_path):
        return {"": f"{outcome.text.strip()}\n".encode()}
    return name_files(split_manifests(outcome.text, step), naming, step)
