"""Templates, static files and the headers of the pages."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Final

import jinja2
from starlette.requests import Request
from starlette.responses import Response

_HERE: Final = Path(__file__).parent
_SHARED: Final = _HERE.parents[1]
_STATIC: Final = {
    "style.css": ("text/css", (_SHARED / "style.css", _HERE / "static" / "pages.css")),
    "live.js": ("text/javascript", (_HERE / "static" / "live.js",)),
}
_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:;"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    # Forms are known to be ours by their Origin, which a stricter policy would blank out.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Vary": "Cookie",
}


def moment(stamp: str) -> str:
    """A time for people, `30 Nov 2026, 19:42:03`; UTC, like everything here."""
    if not stamp:
        return ""
    when = datetime.fromisoformat(stamp)
    return f"{when.day} {when:%b %Y, %H:%M:%S}"


def size(count: int | None) -> str:
    """A file's size for people."""
    if count is None:
        return ""
    return f"{count} B" if count < 1024 else f"{count / 1024:.1f} kB"


_ENVIRONMENT: Final = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters |= {"moment": moment, "size": size, "first_line": lambda text: text.partition("\n")[0]}


def render(template: str, **values: object) -> str:
    """The HTML of a template."""
    return _ENVIRONMENT.get_template(template).render(**values)


def respond(request: Request, html: str, status: int = 200) -> Response:
    """The page, or 304 if the browser has just that one; pages that wait for news ask every second."""
    body = html.encode()
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {**_HEADERS, "ETag": tag}
    if status == 200 and request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(body, status, headers, "text/html")


@cache
def static_file(name: str) -> tuple[str, bytes]:
    """The media type and the bytes of a static file; KeyError for an unknown name."""
    media_type, parts = _STATIC[name]
    return media_type, b"\n".join(part.read_bytes() for part in parts)


@cache
def static_version() -> str:
    """Changes when a static file does, so that browsers need not ask for them again."""
    return hashlib.sha256(b"".join(static_file(name)[1] for name in _STATIC)).hexdigest()[:12]


def static_response(name: str) -> Response | None:
    """A static file, which may be kept for good because its address has its version; None for an unknown name."""
    if name not in _STATIC:
        return None
    media_type, body = static_file(name)
    headers: Mapping[str, str] = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(body, headers=headers, media_type=media_type)
