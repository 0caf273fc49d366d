"""The small pages of the registry and of Argo CD: one frame, rendered on the server, fresh by polling."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
}


def render_page(request: Request, template: str, links: Mapping[str, str], **values: object) -> Response:
    """A page from a template beside this module, which extends `page.html`; `links` leads to the other servers."""
    html = _ENVIRONMENT.get_template(template).render(path=request.url.path, links=links, **values)
    return HTMLResponse(html, headers=_HEADERS)
