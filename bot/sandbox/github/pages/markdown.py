"""GitHub Flavored Markdown as GitHub shows it in comments: alerts, task lists, references; safe to put on a page."""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape

from bot.sandbox.github.pages.sanitise import sanitise

NOTHING: Final = Markup("")
"""A text that is not there."""
_ALERT: Final = re.compile(r"\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\][ \t]*(?:\n|\Z)", re.IGNORECASE)
_REFERENCE: Final = re.compile(
    r"(?<![\w/#&@.-])(?:(?P<repo>[\w.-]+/[\w.-]+))?#(?P<number>[1-9]\d{0,8})\b"
    r"|(?<![\w/@.-])(?P<sha>[0-9a-f]{40})\b"
)


def render_comment(text: str | None, repository: str) -> Markup:
    """A comment, a description or the text of a check; `repository` is `owner/name`, where `#12` leads.

    A line break is a line break, as in GitHub's comments. Mentions stay text: nobody is told of them.
    """
    return _render(text or "", repository, breaks=True)


def render_document(text: str, repository: str) -> Markup:
    """A Markdown file of the repository, where a single line break is a space."""
    return _render(text, repository, breaks=False)


@lru_cache(maxsize=512)
def _render(text: str, repository: str, *, breaks: bool) -> Markup:
    # Pages ask for the same texts every second; the cache is what keeps that cheap.
    html = _PARSERS[breaks].render(text, {"repository": repository})
    # It lets only listed elements and attributes through, so the page need not escape it.
    return Markup(sanitise(html))


def _parser(*, breaks: bool) -> MarkdownIt:
    parser = MarkdownIt("gfm-like", {"breaks": breaks, "html": True, "linkify": True})
    if parser.linkify is not None:
        # GitHub makes links of URLs alone, not of everything with a dot in it.
        parser.linkify.set({"fuzzy_link": False, "fuzzy_email": False})
    parser.core.ruler.after("block", "alerts", _make_alerts)
    parser.core.ruler.push("references", _link_references)
    parser.core.ruler.push("tasks", _make_tasks)
    parser.add_render_rule("fence", _render_fence)
    return parser


def _render_fence(
    renderer: RendererProtocol,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: MutableMapping[str, Any],
) -> str:
    """A fenced block in the form that GitHub gives it: `<pre lang="diff"><code>`."""
    del renderer, options, env
    token = tokens[index]
    words = token.info.split()
    language = escape(words[0].lower()) if words else ""
    return f'<pre lang="{language}"><code>{escape(token.content)}</code></pre>\n'


def _make_alerts(state: StateCore) -> None:
    """Turn quotes that begin with `[!WARNING]` and the like into alerts."""
    tokens = state.tokens
    for at, token in enumerate(tokens[:-2]):
        if token.type != "blockquote_open" or token.level or tokens[at + 2].type != "inline":
            continue
        inline = tokens[at + 2]
        match = _ALERT.match(inline.content)
        if match is None:
            continue
        token.tag = "div"
        token.attrSet("data-alert", match.group(1).lower())
        inline.content = inline.content[match.end() :]
        closing = next(each for each in tokens[at:] if each.type == "blockquote_close" and not each.level)
        closing.tag = "div"


def _link_references(state: StateCore) -> None:
    """Make links of `#12`, `owner/name#12` and whole commit ids in text that is not in a link."""
    home = str(state.env["repository"])
    for block in state.tokens:
        if block.type != "inline" or not block.children:
            continue
        children: list[Token] = []
        depth = 0
        for child in block.children:
            depth += child.nesting if child.type in ("link_open", "link_close") else 0
            if child.type == "text" and not depth and _REFERENCE.search(child.content):
                children += _split(child, home)
            else:
                children.append(child)
        block.children = children


def _split(token: Token, home: str) -> list[Token]:
    parts: list[Token] = []
    done = 0
    for match in _REFERENCE.finditer(token.content):
        repository, sha = match["repo"] or home, match["sha"]
        target = f"/{home}/commit/{sha}" if sha else f"/{repository}/pull/{match['number']}"
        opening = Token("link_open", "a", 1, attrs={"href": target})
        parts += [_text(token.content[done : match.start()]), opening]
        parts += [_text(sha[:7] if sha else match[0]), Token("link_close", "a", -1)]
        done = match.end()
    return [*parts, _text(token.content[done:])]


def _make_tasks(state: StateCore) -> None:
    """Turn list items that begin with `[ ]` or `[x]` into tasks with a box."""
    tokens = state.tokens
    for at in range(2, len(tokens)):
        token = tokens[at]
        if token.type != "inline" or tokens[at - 2].type != "list_item_open" or not token.children:
            continue
        first = token.children[0]
        if first.type == "text" and first.content[:4].lower() in ("[ ] ", "[x] "):
            checked = "" if first.content[1] == " " else " checked"
            first.content = first.content[4:]
            box = Token("html_inline", "", 0, content=f'<input type="checkbox" disabled{checked}> ')
            token.children.insert(0, box)


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


_PARSERS = {breaks: _parser(breaks=breaks) for breaks in (True, False)}
