"""The part of Go's `text/template` that deep links are written in: values, pipes and a few functions of sprig.

`{{ .freight.origin.name }}`, `{{ get .freight "alias" | upper }}`, `{{ index .freight.images 0 "tag" }}`. Actions that
control what follows (`if`, `range`, `with`, `define`, `template`) and variables are refused, and so is every other
function. Where Go writes `<no value>`, an error is raised here.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote_plus

from bot.domain.values import Json
from bot.expressions.errors import ExpressionError

_LONGEST = 8192
"""Characters of a template, and of what it becomes."""

_ACTION = re.compile(
    r"\{\{(?P<left>-\s)?(?P<body>(?:\"(?:\\.|[^\"\\])*\"|`[^`]*`|[^\"`])*?)(?P<right>\s-)?\}\}"
)
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>"(?:\\.|[^"\\])*") | (?P<raw>`[^`]*`) | (?P<number>-?\d+)
        | (?P<fields>(?:\.[A-Za-z_]\w*)+|\.(?![\w.])) | (?P<name>[A-Za-z_]\w*) | (?P<mark>[|()])
    )""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_CONTROL = frozenset(
    {"if", "else", "end", "range", "with", "define", "template", "block", "break", "continue"}
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def check_go_template(text: str) -> None:
    """Raises ExpressionError for a template that cannot be read or does what is not supported."""
    for body in _bodies(text):
        if isinstance(body, tuple):
            _Pipeline(body, {}).check()


def render_go_template(text: str, names: Mapping[str, Json]) -> str:
    """The text with its actions replaced; `.` is `names`. Raises ExpressionError."""
    found = "".join(
        body if isinstance(body, str) else _shown(_Pipeline(body, names).run()) for body in _bodies(text)
    )
    if len(found) > _LONGEST:
        raise ExpressionError(f"it becomes longer than {_LONGEST} characters")
    return found


def _bodies(text: str) -> list[str | tuple[_Token, ...]]:
    """Texts as they are and the tokens of actions, in order."""
    if len(text) > _LONGEST:
        raise ExpressionError(f"it is longer than {_LONGEST} characters")
    found: list[str | tuple[_Token, ...]] = []
    place, trim = 0, False
    while (begin := text.find("{{", place)) >= 0:
        action = _ACTION.match(text, begin)
        if action is None:
            # Looking for the next one would try each of many in vain, and what Go refuses would be taken as text.
            raise ExpressionError("an action that begins with {{ is not closed")
        before = text[place:begin]
        before = before.lstrip() if trim else before
        found.append(before.rstrip() if action["left"] else before)
        body = action["body"].strip()
        if not (body.startswith("/*") and body.endswith("*/")):
            found.append(_tokens(body))
        place, trim = action.end(), bool(action["right"])
    rest = text[place:]
    return [*found, rest.lstrip() if trim else rest]


def _tokens(body: str) -> tuple[_Token, ...]:
    found: list[_Token] = []
    place = 0
    while place < len(body):
        token = _TOKEN.match(body, place)
        if token is None or token.lastgroup is None:
            if not body[place:].strip():
                break
            raise ExpressionError(f"{body[place:].strip()[:40]!r} cannot be read in an action")
        found.append(_Token(token.lastgroup, token[token.lastgroup]))
        place = token.end()
    if found and found[0].text in _CONTROL:
        raise ExpressionError(f"the action {found[0].text!r} is not supported; use the link's own `if`")
    if not found:
        raise ExpressionError("an action is empty")
    return tuple(found)


class _Pipeline:
    """Reads and runs the tokens of one action."""

    def __init__(self, tokens: Sequence[_Token], names: Mapping[str, Json]) -> None:
        self._tokens = tokens
        self._names = names
        self._place = 0
        self._run = True

    def run(self) -> Json:
        """What the action gives."""
        value = self._pipeline()
        if self._place < len(self._tokens):
            raise ExpressionError(f"{self._tokens[self._place].text!r} stands where nothing is expected")
        return value

    def check(self) -> None:
        """Read it without looking anything up."""
        self._run = False
        self.run()

    def _pipeline(self) -> Json:
        value = self._command(None, piped=False)
        while self._next("|"):
            value = self._command(value, piped=True)
        return value

    def _next(self, mark: str) -> bool:
        found = self._place < len(self._tokens) and self._tokens[self._place] == _Token("mark", mark)
        self._place += found
        return found

    def _command(self, last: Json, *, piped: bool) -> Json:
        token = self._peek()
        if token.kind == "name" and token.text not in ("true", "false", "nil"):
            self._place += 1
            function = _FUNCTIONS.get(token.text)
            if function is None:
                known = ", ".join(sorted(_FUNCTIONS))
                raise ExpressionError(f"the function {token.text} is not supported; these are: {known}")
            arguments = self._arguments()
            arguments += [last] if piped else []
            return _call(token.text, function, arguments) if self._run else None
        value = self._operand()
        if piped or self._arguments():
            raise ExpressionError("a value takes no arguments")
        return value

    def _peek(self) -> _Token:
        if self._place >= len(self._tokens):
            raise ExpressionError("an action ends where a value is expected")
        return self._tokens[self._place]

    def _arguments(self) -> list[Json]:
        found: list[Json] = []
        while self._place < len(self._tokens) and self._tokens[self._place].text not in ("|", ")"):
            found.append(self._operand())
        return found

    def _operand(self) -> Json:
        token = self._peek()
        self._place += 1
        match token.kind:
            case "text":
                return re.sub(
                    r"\\(.)",
                    lambda found: _ESCAPES.get(found[1], found[0]),
                    token.text[1:-1],
                    flags=re.DOTALL,
                )
            case "raw":
                return token.text[1:-1]
            case "number":
                return int(token.text[:18])
            case "fields":
                return self._fields(dict(self._names), token.text)
            case "name" if token.text in ("true", "false", "nil"):
                return {"true": True, "false": False}.get(token.text)
            case "mark" if token.text == "(":
                value = self._pipeline()
                if not self._next(")"):
                    raise ExpressionError("a parenthesis is not closed")
                following = self._tokens[self._place] if self._place < len(self._tokens) else None
                if following is not None and following.kind == "fields" and following.text != ".":
                    self._place += 1
                    return self._fields(value, following.text)
                return value
        raise ExpressionError(f"{token.text!r} is no value")

    def _fields(self, value: Json, path: str) -> Json:
        if not self._run:
            return None
        for name in path.split(".")[1:]:
            if name and not isinstance(value, dict):
                raise ExpressionError(f"{path} has no field {name!r}")
            value = value.get(name) if name and isinstance(value, dict) else value
        return value


def _call(name: str, function: Callable[..., Json], arguments: Sequence[Json]) -> Json:
    try:
        return function(*arguments)
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        raise ExpressionError(f"{name} cannot be called with these arguments") from error


def _shown(value: Json) -> str:
    match value:
        case None:
            raise ExpressionError("it has no value for this one")
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return str(value)
    raise ExpressionError("a map or list has no place in an address; name one of its values")


def _get(where: Json, key: Json) -> Json:
    """Sprig's `get`: empty for a key that is missing."""
    if where is None:
        return ""
    if not isinstance(where, dict):
        raise TypeError("get needs a map")
    return where.get(str(key), "")


def _index(where: Json, *keys: Json) -> Json:
    for key in keys:
        if isinstance(where, dict):
            where = where.get(str(key))
        elif isinstance(where, list) and isinstance(key, int) and key >= 0:
            where = where[key]
        else:
            raise TypeError("index needs a map or a list")
    return where


def _text(value: Json) -> str:
    if not isinstance(value, str | int | float):
        raise TypeError("it must be a text")
    return _shown(value)


_FUNCTIONS: Mapping[str, Callable[..., Json]] = {
    "get": _get,
    "index": _index,
    "default": lambda default, value=None: value if value not in (None, "", 0, False, [], {}) else default,
    "lower": lambda text: _text(text).lower(),
    "upper": lambda text: _text(text).upper(),
    "trim": lambda text: _text(text).strip(),
    "trimPrefix": lambda prefix, text: _text(text).removeprefix(_text(prefix)),
    "trimSuffix": lambda suffix, text: _text(text).removesuffix(_text(suffix)),
    "replace": lambda old, new, text: _text(text).replace(_text(old), _text(new))[: 2 * _LONGEST],
    "trunc": lambda count, text: _text(text)[:count] if count >= 0 else _text(text)[count:],
    "first": lambda items: items[0],
    "last": lambda items: items[-1],
    "join": lambda mark, items: _text(mark).join(map(_text, items)),
    "urlquery": lambda text: quote_plus(_text(text)),
    "b64enc": lambda text: base64.b64encode(_text(text).encode()).decode(),
    "toString": _text,
}
