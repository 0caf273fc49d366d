"""Text from anywhere made safe for GitHub Flavored Markdown, and documents that fit a byte budget.

Whatever a plan, a commit or a person wrote is shown, and does nothing: it closes no fence, mentions nobody, links
nowhere, and hides no characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

COMMENT_LIMIT = 65_000
"""Bytes of a comment or a body; GitHub takes 65,536 characters."""
CHECK_LIMIT = 65_000
"""Bytes of a check's summary or text; GitHub takes 65,535."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_HIDDEN = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&@:])")
_FENCE = re.compile(r"`{3,}|~{3,}")


def clean(text: str) -> str:
    """The text without escape sequences, with characters that hide or reorder others shown as their code."""
    shown = []
    for char in _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n"):
        if char in "\n\t" or unicodedata.category(char) not in _HIDDEN:
            shown.append(char)
        else:
            shown.append(f"\\u{{{ord(char):x}}}")
    return "".join(shown)


def plain(text: str) -> str:
    """One line of text in which no character means anything to Markdown, and nobody is mentioned."""
    line = " ".join(clean(text).split())
    return _SPECIAL.sub(lambda match: _entity(match[1]), line)


def _entity(char: str) -> str:
    return f"&#{ord(char)};" if char in "<>&@:#[]|`" else f"\\{char}"


def code(text: str) -> str:
    """One line as inline code, safe in a table cell; backticks inside make the delimiter longer."""
    line = " ".join(clean(text).split()).replace("|", "\u2502") or " "
    runs = [len(run) for run in re.findall(r"`+", line)]
    ticks = "`" * (max(runs, default=0) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def fence(text: str, language: str = "") -> str:
    """A block of code that nothing inside can close."""
    body = clean(text).rstrip("\n")
    longest = max((len(run) for run in _FENCE.findall(body)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{body}\n{ticks}"


def details(summary: str, body: str, *, open_: bool = False) -> str:
    """A part that can be folded; `summary` is Markdown without links."""
    return f"<details{' open' if open_ else ''}><summary>{summary}</summary>\n\n{body}\n\n</details>"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(cell.replace("\n", " ") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def size(text: str) -> int:
    """Bytes in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document in several lengths, the longest first; an empty last one may be left out."""

    versions: tuple[str, ...]


def fit(sections: Sequence[Section], limit: int) -> str:
    """The longest document within the limit: the last sections are shortened first, step by step.

    The first version that fits of every section is taken; if even the shortest do not fit, the document ends early
    with a sentence that says so.
    """
    chosen = [0] * len(sections)
    while size(_join(sections, chosen)) > limit:
        index = next(
            (i for i in reversed(range(len(sections))) if chosen[i] + 1 < len(sections[i].versions)), None
        )
        if index is None:
            return _cut(_join(sections, chosen), limit)
        chosen[index] += 1
    return _join(sections, chosen)


def shorten(text: str, limit: int) -> str:
    """The text if it fits, else its beginning and a sentence with what was left out."""
    if size(text) <= limit:
        return text
    note = "\n… {} bytes more are on the promotion's page."
    kept = text.encode("utf-8", "surrogatepass")[: limit - len(note) - 20].decode("utf-8", "ignore")
    kept = kept[: kept.rfind("\n")] if "\n" in kept else kept
    return kept + note.format(size(text) - size(kept))


def _join(sections: Sequence[Section], chosen: Sequence[int]) -> str:
    parts = (section.versions[index] for section, index in zip(sections, chosen, strict=True))
    return "\n\n".join(part for part in parts if part)


def _cut(text: str, limit: int) -> str:
    note = "\n\nThis is too long for GitHub; the rest is on the promotion's page."
    room = limit - size(note)
    kept = text.encode("utf-8", "surrogatepass")[:room].decode("utf-8", "ignore")
    blocks = kept.split("\n\n")
    # A cut inside a fence or a fold would swallow what follows, so only whole, balanced blocks stay.
    while blocks and not _balanced("\n\n".join(blocks)):
        blocks.pop()
    return "\n\n".join(blocks) + note


def _balanced(text: str) -> bool:
    opened = ""
    for line in text.split("\n"):
        match = re.match(r"(`{3,}|~{3,})", line)
        if match is None:
            continue
        if not opened:
            opened = match[1]
        elif line.strip() == opened:
            opened = ""
    return not opened and text.count("<details") == text.count("</details>")
