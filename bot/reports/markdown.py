"""Text from anywhere made safe for GitHub Flavored Markdown.

Whatever a plan, a commit or a person wrote is shown, and does nothing: it closes no fence, mentions nobody, refers to
nothing, links nowhere, is no HTML, and hides no characters. Escaped is only what Markdown or GitHub would act on.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from bot.reports.masking import hide_secrets

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# Controls, formats that show nothing or reorder, line separators, surrogates, private use, fillers and tags. A joiner
# between two emoji and the selector that makes an emoji colourful are what people type, so they stay.
_EMOJI = "\U0001f000-\U0001faff\u2600-\u27bf"
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\ue000-\uf8ff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
    f"|\u200d(?:(?<![{_EMOJI}\ufe0f]\u200d)|(?![{_EMOJI}]))"
)
# A copy of our signed block inside a text that we show must not be taken for ours.
_MIMIC = re.compile(r"<!(?=--\s*lockstep)", re.IGNORECASE)
_FENCE = re.compile(r"`{3,}")
_TICKS = re.compile(r"`+")

_SPAN = re.compile(r"`([^`]+)`")
# A word in which GitHub would find a mention, an issue, an address, an emoji or a formula.
_LIVE = re.compile(
    r"@[\w-]|\w@|#\d|\bGH-\d|://|\bwww\.|\b(?:mailto|xmpp):|(?<![0-9a-z]):[a-z0-9_+-]+:|\$",
    re.IGNORECASE | re.ASCII,
)
_CORE = re.compile(r"([(\[{\"'<]*)(.*?)([)\]}\"'>.,;:!?]*)", re.DOTALL)
_ENTITY = re.compile(r"&(?=#?\w+;)")
_ESCAPED = re.compile(r"[\\*\[~]|(?<![^\W_])_|_(?![^\W_])")
_LINE_START = re.compile(r"(\d{1,9})(?=[.)])|(?=[#>+=-])")

_CODE_LIMIT = 300
_PLAIN_LIMIT = 2_000


def clean(text: str) -> str:
    """The text without escape sequences and credentials, characters that hide or reorder others shown as their code."""
    shown = hide_secrets(_ANSI.sub("", text)).replace("\r\n", "\n").replace("\r", "\n")
    shown = _HIDDEN.sub(lambda match: f"\\u{{{ord(match[0]):x}}}", shown)
    return _MIMIC.sub(r"<\\u{21}", shown)


def cut(text: str, limit: int) -> str:
    """The text if it has at most so many characters, else its beginning and an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def plain(text: str, limit: int = _PLAIN_LIMIT) -> str:
    """One line of prose. Parts in backticks stay code, and words that GitHub would act on become code."""
    line = " ".join(clean(cut(text, limit)).split())
    parts: list[str] = []
    end = 0
    for match in _SPAN.finditer(line):
        parts += [_prose(line[end : match.start()]), code(match[1])]
        end = match.end()
    parts.append(_prose(line[end:]))
    joined = ""
    for part in parts:
        # Two spans side by side would be read as one.
        joined += f" {part}" if joined.endswith("`") and part.startswith("`") else part
    first = _LINE_START.match(joined)
    return joined if first is None else f"{first[0]}\\{joined[first.end() :]}"


def _prose(text: str) -> str:
    return "".join(_word(word) if not word.isspace() else word for word in re.split(r"(\s+)", text) if word)


def _word(word: str) -> str:
    if not _LIVE.search(word):
        return _escape(word)
    match = _CORE.fullmatch(word)
    before, core, after = (match[1], match[2], match[3]) if match is not None else ("", word, "")
    return _escape(before) + code(core) + _escape(after) if core else _escape(word)


def _escape(text: str) -> str:
    text = _ENTITY.sub("&amp;", text)
    text = _ESCAPED.sub(lambda match: f"\\{match[0]}", text)
    return text.replace("`", "&#96;").replace("<", "&lt;")


def code(text: str, limit: int = _CODE_LIMIT) -> str:
    """One line as inline code; backticks inside make the delimiter longer. In a table `table` sees to pipes."""
    line = cut(clean(cut(text, limit * 2)), limit).replace("\n", "\\n").replace("\t", " ")
    if not line.strip():
        line = "(empty)" if not line else "(blank)"
    longest = max((len(run) for run in _TICKS.findall(line)), default=0)
    ticks = "`" * (longest + 1)
    # Markdown takes one blank off each side of a span that has both.
    padded = line[0] in "` " or line[-1] in "` "
    return f"{ticks} {line} {ticks}" if padded else f"{ticks}{line}{ticks}"


def fence(text: str, language: str = "") -> str:
    """A block of code that nothing inside can close."""
    body = clean(text).rstrip("\n")
    longest = max((len(run) for run in _FENCE.findall(body)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{body}\n{ticks}"


def html_code(text: str, limit: int = _CODE_LIMIT) -> str:
    """One line as code inside our own HTML, where Markdown's escapes mean nothing and GitHub mentions nobody."""
    line = " ".join(cut(clean(cut(text, limit * 2)), limit).split())
    return f"<code>{html.escape(line)}</code>"


def details(summary: str, body: str, *, opened: bool = False) -> str:
    """A part that can be folded; `summary` is HTML of ours."""
    return f"<details{' open' if opened else ''}><summary>{summary}</summary>\n\n{body}\n\n</details>"


def caution(lines: Sequence[str]) -> str:
    """A red block; the lines are Markdown already."""
    return _alert("CAUTION", lines)


def warning(lines: Sequence[str]) -> str:
    """A yellow block; the lines are Markdown already."""
    return _alert("WARNING", lines)


def _alert(kind: str, lines: Sequence[str]) -> str:
    # A line of a block that ends in two blanks is a line of its own.
    return "\n".join([f"> [!{kind}]", *(f"> {line}  " for line in lines)]).rstrip() if lines else ""


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are Markdown already; empty without rows."""
    if not rows:
        return ""
    lines = [_row(header), "|" + " --- |" * len(header), *(_row(row) for row in rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    # GitHub splits a row at pipes before it looks for code, and takes the backslash off again.
    return "| " + " | ".join(cell.replace("\n", " ").replace("|", "\\|") for cell in cells) + " |"


def bullets(items: Sequence[str], most: int) -> str:
    """A list of items that are Markdown already, with a line for those beyond the limit."""
    lines = [f"- {item}" for item in items[:most]]
    if len(items) > most:
        lines.append(f"- and {len(items) - most:,} more")
    return "\n".join(lines)


def names(items: Sequence[str], most: int) -> str:
    """Texts as code, separated by commas, with the number of those beyond the limit."""
    shown = ", ".join(code(item) for item in items[:most])
    return f"{shown} and {len(items) - most:,} more" if len(items) > most else shown


def size(text: str) -> int:
    """Bytes in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


def title(text: str, limit: int = 250, *, inert: bool = False) -> str:
    """One line without Markdown for a title, within so many bytes.

    `inert` is for a pull request's title, which becomes the subject of a squashed commit: there mentions and
    references would act. Titles of checks are shown as they are.
    """
    line = " ".join(clean(cut(text, 4 * limit)).replace("`", "").split())
    if inert:
        line = _TITLE_LIVE.sub(lambda match: match[0][:-1] + _INERT[match[0][-1]], line)
    if size(line) <= limit:
        return line
    return line.encode()[: limit - 3].decode("utf-8", "ignore").rstrip() + "…"


def authored(text: str) -> str:
    """Markdown of a pipeline's author, which stays Markdown: what it may hold of others mentions and closes nothing."""
    return _TITLE_LIVE.sub(lambda match: match[0][:-1] + _INERT[match[0][-1]], clean(text))


_TITLE_LIVE = re.compile(r"@(?=\w)|#(?=\d)|\bGH-(?=\d)", re.IGNORECASE)
_INERT = {"@": "＠", "#": "＃", "-": "‑"}
"""Characters that look alike and mean nothing to GitHub."""
