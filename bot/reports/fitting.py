"""Documents that keep a byte budget: detail is given up in a fixed order, and blocks are never cut inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.reports.markdown import size

COMMENT_LIMIT = 65_000
"""Bytes of a comment or a body; GitHub takes 65,536 characters, and our marker stands before it."""
CHECK_LIMIT = 65_000
"""Bytes of a check's summary, and of its text; GitHub takes 65,535."""

_LEVELS = 4
_NOTE = "The rest is too long for GitHub."
_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document at up to four levels of detail: full, per resource, names, counts.

    Missing levels are like the last one given; an empty text leaves the section out.
    """

    versions: tuple[str, ...]

    def at(self, level: int) -> str:
        """The text at a level."""
        return self.versions[min(level, len(self.versions) - 1)]


def fit(sections: Sequence[Section], limit: int) -> str:
    """The most detailed document within the limit.

    While it is too long, sections go down one level of detail, the last first; all are at a level before any goes to
    the next. What does not fit at the lowest level is left out whole, and a sentence says so.
    """
    texts = [section.at(0) for section in sections]
    sizes = [size(text) for text in texts]
    total = sum(sizes) + len(_BETWEEN) * len(texts)
    for level in range(1, _LEVELS):
        for index in reversed(range(len(sections))):
            if total <= limit:
                return _join(texts)
            texts[index] = sections[index].at(level)
            total -= sizes[index]
            sizes[index] = size(texts[index])
            total += sizes[index]
    return _join(texts) if total <= limit else _leave_out(texts, sizes, limit)


def _leave_out(texts: Sequence[str], sizes: Sequence[int], limit: int) -> str:
    left = limit - size(_NOTE) - len(_BETWEEN)
    kept = []
    for text, bytes_ in zip(texts, sizes, strict=True):
        if bytes_ + len(_BETWEEN) <= left:
            kept.append(text)
            left -= bytes_ + len(_BETWEEN)
    return _join([*kept, _NOTE])


def _join(texts: Sequence[str]) -> str:
    return _BETWEEN.join(text for text in texts if text)


def head_of(text: str, limit: int) -> str:
    """The beginning of a text within so many bytes, whole lines where it has any, and what was left out."""
    total = size(text)
    if total <= limit:
        return text
    kept = _bytes_of(text, limit - 60)
    kept = kept[: kept.rfind("\n")] if "\n" in kept else kept
    return f"{kept}\n… {total - size(kept):,} bytes more"


def tail_of(text: str, limit: int) -> str:
    """The end of a text within so many bytes: of a log that is where the error stands."""
    total = size(text)
    if total <= limit:
        return text
    data = text.encode("utf-8", "surrogatepass")[-(limit - 60) :]
    kept = data.decode("utf-8", "ignore")
    kept = kept[kept.find("\n") + 1 :] if "\n" in kept else kept
    return f"… {total - size(kept):,} bytes before\n{kept}"


def _bytes_of(text: str, limit: int) -> str:
    return text.encode("utf-8", "surrogatepass")[:limit].decode("utf-8", "ignore")
