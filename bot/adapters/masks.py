"""Secrets taken out of texts before anything is shown or stored.

A secret is found as it is, base64-encoded (at each of the three offsets it can have inside a longer value, both
alphabets), hex-, URL-, JSON- and HTML-escaped. A text that cannot be masked must not be shown: `MaskError`.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import quote, quote_plus

_SHORTEST = 4
"""Shorter secrets are not masked: they would black out every text, and are no secret anyway."""

_SHORTEST_LINE = 8
_SHORTEST_BASE64 = 6


class MaskError(Exception):
    """A mask pattern is not valid, so nothing may be shown."""


class Masks:
    """What to hide: `secrets` by name, and `patterns` (regular expressions).

    Raises MaskError if a pattern is not valid. `unmasked` names the secrets that are too short.
    """

    def __init__(self, secrets: Mapping[str, str], patterns: Sequence[str] = ()) -> None:
        self.unmasked = tuple(sorted(name for name, value in secrets.items() if 0 < len(value) < _SHORTEST))
        self._names: dict[str, str] = {}
        for name, value in sorted(secrets.items()):
            for form in _forms(value) if len(value) >= _SHORTEST else ():
                self._names.setdefault(form, name)
        # Longest first, or a secret that begins like another would leave its rest standing.
        self._forms = sorted(self._names, key=lambda form: (-len(form), form))
        self._patterns = tuple(_compile(pattern) for pattern in patterns)

    def __call__(self, text: str) -> str:
        """The text with each secret replaced by `<sensitive: NAME>`, and what a pattern finds by `<masked>`."""
        # One search per form is far faster on long texts than one expression of all of them.
        for form in self._forms:
            if form in text:
                text = text.replace(form, f"<sensitive: {self._names[form]}>")
        for pattern in self._patterns:
            text = pattern.sub(_hide_match, text)
        return text

    def find(self, text: str) -> str:
        """The name of a secret that is in a text (`masked` for a pattern), empty if there is none."""
        found = next((form for form in self._forms if form in text), None)
        if found is not None:
            return self._names[found]
        return "masked" if any(pattern.search(text) for pattern in self._patterns) else ""


def _hide_match(found: re.Match[str]) -> str:
    return "<masked>" if found[0] else ""


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise MaskError(f"the mask {pattern!r} is not a valid regular expression: {error}") from error


def _forms(secret: str) -> Iterator[str]:
    yield from _encoded(secret)
    lines = [line.strip() for line in secret.splitlines()]
    if len(lines) > 1:
        # Logs show the lines of a private key one by one.
        for line in lines:
            if len(line) >= _SHORTEST_LINE:
                yield from _encoded(line)


def _encoded(secret: str) -> Iterator[str]:
    yield secret
    for escape in _ESCAPES:
        yield escape(secret)
        yield escape(escape(secret))
    raw = secret.encode("utf-8", "surrogatepass")
    if len(raw) >= _SHORTEST_BASE64:
        yield raw.hex()
        yield raw.hex().upper()
        for offset in range(3):
            yield from _base64(raw, offset)


def _base64(raw: bytes, offset: int) -> Iterator[str]:
    # The first and last characters also hold bits of what stands beside the secret, so they are left out.
    before = (0, 2, 3)[offset]
    whole = (offset + len(raw)) * 8 // 6
    padded = bytes(offset) + raw
    yield base64.b64encode(padded).decode()[before:whole]
    yield base64.urlsafe_b64encode(padded).decode()[before:whole]


def _json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _json_unicode(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _json_go(text: str) -> str:
    # Go's encoder escapes these three as well, and Terraform is written in Go.
    escaped = json.dumps(text, ensure_ascii=False)[1:-1]
    return escaped.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _quoting(safe: str, *, lower: bool = False) -> Callable[[str], str]:
    """URL escaping as one of its many authors does it: they differ in what they leave as it is."""

    def escape(text: str) -> str:
        quoted = quote(text, safe=safe, errors="replace")
        return re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), quoted) if lower else quoted

    return escape


def _quote_plus(text: str) -> str:
    return quote_plus(text, errors="replace")


_ESCAPES: tuple[Callable[[str], str], ...] = (
    _json,
    _json_unicode,
    _json_go,
    _quoting(""),
    _quoting("", lower=True),
    _quoting("/"),
    _quoting("!'()*"),
    _quoting("$&+,/:;=@"),
    _quote_plus,
    html.escape,
)
