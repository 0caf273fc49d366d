"""Pages from templates: every text is made harmless, every answer has the strictest headers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import jinja2
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from bot.reports.markdown import clean
from bot.reports.wording import moment

_FOLDER = Path(__file__).parent
_STATIC = {"dashboard.css": "text/css", "dashboard.js": "text/javascript"}
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:;"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_SIGNS = {"+": "add", "-": "del", "~": "mod", "@": "at"}
_SPAN = re.compile(r"`([^`]+)`")


class Renderer:
    """Renders the templates beside this module; `base` is the path under which the pages are reached."""

    def __init__(self, base: str) -> None:
        self._files = {name: (_FOLDER / "static" / name).read_bytes() for name in _STATIC}
        versions = {name: hashlib.sha256(body).hexdigest()[:12] for name, body in self._files.items()}
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_FOLDER / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            finalize=show,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters |= {
            "prose": prose,
            "moment": when,
            "instant": instant,
            "diff": diff,
            "plan": plan,
        }
        self._environment.globals |= {"base": base, "files": versions}

    def page(self, template: str, *, status: int = 200, forms_to: str = "", **values: object) -> Response:
        """A page that no cache keeps, no frame shows, and in which no foreign script runs.

        `forms_to` is another site (scheme and host) that its forms may post to, which then is told ours.
        """
        html = self._environment.get_template(template).render(**values)
        if not forms_to:
            return HTMLResponse(html, status, headers=_HEADERS)
        allowed = _HEADERS["Content-Security-Policy"].replace(
            "form-action 'self'", f"form-action 'self' {forms_to}"
        )
        opened = {"Content-Security-Policy": allowed, "Referrer-Policy": "strict-origin"}
        return HTMLResponse(html, status, headers=_HEADERS | opened)

    def message(self, status: int, title: str, text: str, *, link: str = "/", label: str = "") -> Response:
        """A page with one message and, if `label` is given, one link."""
        return self.page("message.html", status=status, title=title, text=text, link=link, label=label)

    async def static(self, request: Request) -> Response:
        """Style and script; their address names their content, so a browser may keep them."""
        name = request.path_params["name"]
        if name not in self._files:
            return Response(status_code=404, headers=_HEADERS)
        kept = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(self._files[name], headers=_HEADERS | kept, media_type=_STATIC[name])


def show(value: object) -> object:
    """What a template prints: control sequences are gone, characters that hide or reorder are shown as their code."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def prose(text: str) -> Markup:
    """A sentence of ours or of a step; what stands in backticks is code."""
    parts: list[Markup] = []
    for number, part in enumerate(_SPAN.split(clean(text))):
        parts.append(Markup("<code>{}</code>").format(part) if number % 2 else escape(part))
    return Markup("").join(parts)


def when(at: datetime) -> Markup:
    """A moment, exact for machines and readable for people."""
    return Markup('<time datetime="{}">{}</time>').format(at.isoformat(), moment(at))


def instant(at: datetime) -> Markup:
    """A moment to the second, for what happens in quick succession."""
    return Markup('<time datetime="{}">{}</time>').format(at.isoformat(), f"{at:%Y-%m-%d %H:%M:%S} UTC")


def diff(text: str) -> Markup:
    """A patch, line by line, what comes and what goes marked."""
    return _marked(text, lambda line: _SIGNS.get(line[:1], ""))


def plan(text: str) -> Markup:
    """Terraform's plan, line by line; its signs stand behind the indentation."""
    return _marked(text, lambda line: _SIGNS.get(line.lstrip(" ")[:1], ""))


def _marked(text: str, kind_of: Callable[[str], str]) -> Markup:
    lines: list[Markup] = []
    for line in clean(text).splitlines():
        kind = kind_of(line)
        lines.append(Markup('<span class="{}">{}</span>').format(kind, line) if kind else escape(line))
    return Markup("\n").join(lines)
