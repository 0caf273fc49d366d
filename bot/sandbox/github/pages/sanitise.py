"""HTML cut down to what GitHub lets through in comments, so that no text can run a script or break a page."""

from __future__ import annotations

import re
from html import escape, unescape
from typing import Final

_VOID: Final = frozenset({"br", "hr", "img", "input", "wbr"})
_ALLOWED: Final = _VOID | frozenset(
    re.findall(
        r"\w+",
        "a abbr b bdo blockquote caption cite code dd del details dfn div dl dt em figcaption figure h1 h2 h3 h4 h5"
        " h6 i ins kbd li mark ol p pre q rp rt ruby s samp small span strike strong sub summary sup table tbody td"
        " tfoot th thead time tr tt ul var",
    )
)
_SWALLOWED: Final = frozenset({"script", "style"})
_ATTRIBUTES: Final = {
    "a": ("href", "title", "name"),
    "bdo": ("dir",),
    "del": ("datetime", "cite"),
    "details": ("open",),
    "ins": ("datetime", "cite"),
    "li": ("value",),
    "ol": ("start", "reversed", "type"),
    "td": ("colspan", "rowspan", "align", "valign"),
    "th": ("colspan", "rowspan", "align", "valign", "scope"),
    "time": ("datetime",),
}
_EVERYWHERE: Final = ("align", "dir", "lang", "title")
_ALERTS: Final = {
    "note": "Note",
    "tip": "Tip",
    "important": "Important",
    "warning": "Warning",
    "caution": "Caution",
}
_ALIGN: Final = re.compile(r"text-align:(left|center|right)")
_URL: Final = re.compile(r"(?:https?://|mailto:|/(?!/)|#|\?|\.{0,2}/|[\w.-]+(?:[/?#]|\Z))", re.IGNORECASE)
_COMMENT: Final = re.compile(r"<!--(?:-?>|.*?(?:-->|\Z))", re.DOTALL)
_VALUE: Final = r"""\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s"'=<>`]+))"""
_ATTRIBUTE: Final = re.compile(rf"(?P<name>[A-Za-z_:][\w:.-]*)(?:{_VALUE})?")
# None of its parts runs past the next `<`, but for quoted values, so that the time it takes is linear.
_TAG: Final = re.compile(
    r"<(?P<closing>/?)(?P<name>[A-Za-z][A-Za-z0-9-]*)"
    r"""(?P<attributes>(?:\s+[A-Za-z_:][\w:.-]*+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))?)*+)\s*/?>"""
    r"|<[!?][^<>]*>"
)
_DIFF_TONES: Final = {"+": "add", "-": "del", "!": "mod", "@": "hunk"}
_DEEPEST: Final = 120
"""Elements within elements; browsers slow down far beyond it, and no honest text gets there."""


def sanitise(html: str) -> str:
    """The HTML with unknown elements and attributes left out, comments dropped and every element closed.

    What is no whole tag is text. Everything that comes out was written here, so it is safe however it was meant.
    """
    cleaner = _Cleaner()
    # Comments go first, because what looks like a tag in them is none.
    html = _COMMENT.sub("", html)
    done = 0
    for match in _TAG.finditer(html):
        cleaner.text(html[done : match.start()])
        done = match.end()
        if match["name"] is None:
            continue
        if match["closing"]:
            cleaner.end(match["name"].lower())
        else:
            cleaner.start(match["name"].lower(), _read_attributes(match["attributes"]))
    cleaner.text(html[done:])
    return cleaner.finish()


def _read_attributes(text: str) -> dict[str, str]:
    """Values by name; of two with one name browsers take the first."""
    found: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(text):
        value = match["double"] or match["single"] or match["bare"] or ""
        found.setdefault(match["name"].lower(), unescape(value))
    return found


def colour_diff(text: str) -> str:
    """A diff as HTML: one block per line, coloured by its first character."""
    lines = text.removesuffix("\n").split("\n")
    return "".join(
        f'<span class="line {_DIFF_TONES.get(line[:1], "")}">{escape(line) or " "}</span>' for line in lines
    )


class _Cleaner:
    """Writes again what it may of the tags and texts that it is given."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._open: list[str] = []
        self._swallowing = ""
        self._diff: list[str] | None = None

    def finish(self) -> str:
        """What was written, with everything closed that is still open."""
        self._close_to(0)
        return "".join(self._out)

    def start(self, tag: str, given: dict[str, str]) -> None:
        """An element begins. Outside of SVG a slash at the end of its tag means nothing."""
        if self._swallowing or self._diff is not None or tag not in _ALLOWED:
            if tag in _SWALLOWED:
                self._swallowing = tag
            return
        if tag in _VOID:
            self._out.append(_void(tag, given))
            return
        if len(self._open) >= _DEEPEST:
            return
        self._open.append(tag)
        if tag == "pre" and given.get("lang") == "diff":
            self._diff = []
        self._out.append(f"<{tag}{_attributes(tag, given)}>")
        if tag == "div" and given.get("data-alert") in _ALERTS:
            self._out.append(f'<p class="alert-title">{_ALERTS[given["data-alert"]]}</p>')

    def end(self, tag: str) -> None:
        """An element ends, and with it all that is open in it."""
        if tag == self._swallowing:
            self._swallowing = ""
        if tag not in self._open or (self._diff is not None and tag != "pre"):
            return
        if self._diff is not None:
            self._out.append(f"<code>{colour_diff(''.join(self._diff))}</code>")
            self._diff = None
        self._close_to(len(self._open) - 1 - self._open[::-1].index(tag))

    def text(self, source: str) -> None:
        """Text, with character references in it."""
        if self._swallowing or not source:
            return
        data = unescape(source)
        if self._diff is not None:
            self._diff.append(data)
        else:
            self._out.append(escape(data, quote=False))

    def _close_to(self, depth: int) -> None:
        if self._diff is not None:
            self._out.append(f"<code>{colour_diff(''.join(self._diff))}</code>")
            self._diff = None
        while len(self._open) > depth:
            self._out.append(f"</{self._open.pop()}>")


def _void(tag: str, given: dict[str, str]) -> str:
    if tag == "input":
        # Task lists are made of these; nothing else may look like a control.
        checked = " checked" if "checked" in given else ""
        return f'<input type="checkbox" disabled{checked}>' if given.get("type") == "checkbox" else ""
    if tag == "img":
        # Pages load nothing from elsewhere, so an image is a link to where it is.
        source, text = given.get("src", ""), escape(given.get("alt", "")) or "image"
        return (
            f'<a href="{escape(source)}" rel="nofollow noopener">{text}</a>' if _URL.match(source) else text
        )
    return f"<{tag}>"


def _attributes(tag: str, given: dict[str, str]) -> str:
    kept = {name: given[name] for name in (*_ATTRIBUTES.get(tag, ()), *_EVERYWHERE) if name in given}
    if "href" in kept and not _URL.match(kept["href"].strip()):
        del kept["href"]
    if tag == "a" and "href" in kept:
        kept["rel"] = "nofollow noopener"
    if tag == "div" and given.get("data-alert") in _ALERTS:
        kept["class"] = f"alert alert-{given['data-alert']}"
    if tag == "pre":
        kept["tabindex"] = "0"
        kept["class"] = "diff" if given.get("lang") == "diff" else "code"
    # Markdown tables say the alignment of a column in a style, which is not let through as such.
    align = _ALIGN.fullmatch(given.get("style", "").strip())
    if tag in ("td", "th") and align:
        kept["align"] = align.group(1)
    if "id" in given or "name" in kept:
        kept["id"] = "user-content-" + (given.get("id") or kept["name"])
    return "".join(f' {name}="{escape(value)}"' for name, value in kept.items())
