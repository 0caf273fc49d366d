"""Kargo's deep links: `freightLinks` and `stageLinks`, worked out for one piece of Freight or one Stage.

As in Kargo `if` is a bare expression and `url` a Go template, both over the resource as JSON, under the name `freight`
or `stage`. A link whose condition or address fails is left out, with the reason. Differs from Kargo: `${{ }}` may stand
in both, only `https` addresses are shown, and a template may do less (see `gotemplates`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from bot.domain.model import DeepLink
from bot.domain.values import Json
from bot.domain.view import Link
from bot.expressions.errors import ExpressionError
from bot.expressions.evaluator import compile_expression
from bot.expressions.functions import TEMPLATE_FUNCTIONS, UTILITY_FUNCTIONS
from bot.expressions.gotemplates import check_go_template, render_go_template
from bot.expressions.templates import Scope, evaluate_criteria, has_expression, parse_template, render_text

_LONGEST_URL = 2000
_UNSAFE = re.compile(r"[\s<>\"`\\^{|}\x00-\x1f\x7f]")


def resolve_links(
    links: Sequence[DeepLink], names: Mapping[str, Json]
) -> tuple[tuple[Link, ...], tuple[str, ...]]:
    """The links that hold, in order, and what is wrong with those that cannot be worked out."""
    found: list[Link] = []
    problems: list[str] = []
    for link in links:
        try:
            if _holds(link, names):
                found.append(Link(link.title, _address(link, names), link.description))
        except ExpressionError as error:
            problems.append(f"the link {link.title!r} is left out: {error}")
    return tuple(found), tuple(problems)


def check_link(link: DeepLink) -> Iterator[tuple[str, str]]:
    """What can be known to be wrong with a link before there is anything to work it out for: its key, and why."""
    try:
        if link.condition.strip():
            compile_expression(_bare(link.condition))
    except ExpressionError as error:
        yield "if", f"the expression cannot be read, so the link is never shown: {error}"
    try:
        if has_expression(link.url):
            parse_template(link.url)
        else:
            check_go_template(link.url)
    except ExpressionError as error:
        yield "url", f"the address cannot be worked out, so the link is never shown: {error}"
    if re.match(r"\s*(?!https://)[A-Za-z][A-Za-z0-9+.-]*:", link.url):
        yield "url", "only https addresses are shown"


def _holds(link: DeepLink, names: Mapping[str, Json]) -> bool:
    if not link.condition.strip():
        return True
    return evaluate_criteria(_bare(link.condition), _scope(names)) is True


def _scope(names: Mapping[str, Json]) -> Scope:
    return Scope(dict(names), {**TEMPLATE_FUNCTIONS, **UTILITY_FUNCTIONS})


def _bare(condition: str) -> str:
    """The expression without delimiters around it."""
    text = condition.strip()
    return text[3:-2] if text.startswith("${{") and text.endswith("}}") else text


def _address(link: DeepLink, names: Mapping[str, Json]) -> str:
    if has_expression(link.url):
        rendered = render_text(link.url, _scope(names))
        if not isinstance(rendered, str):
            raise ExpressionError("its address is not known")
    else:
        rendered = render_go_template(link.url, names)
    url = rendered.strip()
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ExpressionError("its address is none") from error
    if parts.scheme != "https" or not parts.hostname or parts.username is not None:
        raise ExpressionError("its address does not begin with https:// and a host")
    if len(url) > _LONGEST_URL or _UNSAFE.search(url):
        raise ExpressionError(
            "its address is too long or holds characters that must be escaped; use urlquery"
        )
    return url
