"""Desired state: the files of an Application's sources at given commits, rendered, or the reason why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from bot.sandbox.argocd.rendering import Rendered, RenderError, merge, render
from bot.sandbox.argocd.sources import GitSources, SourceError
from bot.sandbox.argocd.store import Tracked

_FAILED: Final = (
    "Failed to load target state: failed to generate manifest for source {number} of {count}:"
    " rpc error: code = Unknown desc = {reason}"
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The desired state at `revisions`, or the text of a ComparisonError in `problem`."""

    revisions: list[str]
    desired: Rendered | None = None
    problem: str = ""


class Loader:
    """Loads desired states; one that was rendered before is not rendered again."""

    def __init__(self, sources: GitSources) -> None:
        self._sources = sources
        self._rendered: dict[tuple[str, str, str], Rendered] = {}

    async def resolve(self, tracked: Tracked, wanted: Sequence[str] = ()) -> list[str]:
        """The commits to use: per source the wanted revision, or the one that the Application follows.

        Raises SourceError when a repository or revision cannot be read.
        """
        sources = tracked.sources()
        given = list(wanted) + [""] * (len(sources) - len(wanted))
        return [
            await self._sources.resolve(source["repoURL"], revision or source.get("targetRevision") or "HEAD")
            for source, revision in zip(sources, given, strict=True)
        ]

    async def load_latest(self, tracked: Tracked) -> Loaded:
        """The desired state at the tips that the Application follows."""
        try:
            revisions = await self.resolve(tracked)
        except SourceError as error:
            return Loaded([], problem=_describe(1, tracked, error))
        return await self.load(tracked, revisions)

    async def load(
        self, tracked: Tracked, revisions: list[str], sources: Sequence[dict[str, Any]] = ()
    ) -> Loaded:
        """The desired state at given commits, of other sources than the Application's if some are given."""
        used = list(sources) or tracked.sources()
        if len(used) != len(revisions):
            return Loaded(revisions, problem=f"there are {len(revisions)} revisions for {len(used)} sources")
        parts = []
        for index, (source, revision) in enumerate(zip(used, revisions, strict=True)):
            try:
                parts.append(await self._render(source, revision))
            except (SourceError, RenderError) as error:
                return Loaded(revisions, problem=_describe(index + 1, tracked, error))
        return Loaded(revisions, merge(parts))

    async def _render(self, source: dict[str, Any], revision: str) -> Rendered:
        if source.get("ref") and not source.get("path"):
            return Rendered("ref")
        key = (source["repoURL"], revision, repr(source))
        if key not in self._rendered:
            files = await self._sources.read(source["repoURL"], revision, source.get("path") or ".")
            if len(self._rendered) > 1000:
                self._rendered.clear()
            self._rendered[key] = render(files, source)
        return self._rendered[key]


def _describe(number: int, tracked: Tracked, error: Exception) -> str:
    return _FAILED.format(number=number, count=len(tracked.sources()), reason=error)
