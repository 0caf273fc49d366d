"""The JSONPath that Kubernetes reads (`{$.data.ok}`), as far as it names values; the first one found counts.

Written between braces: `$` and `@`, `.name` (dots of a name as `\\.`), `['name']`, `[0]`, `[-1]`, `[1:3]`, `*`, `..`,
lists of names or places, and filters that compare with a constant. `range`, and text around the braces, are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from bot.domain.values import Json

_LONGEST = 1000
_MOST_FOUND = 100_000
_MOST_DEEP = 2
_NAME = re.compile(r"(?:[\w$-]|\\.)+")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_PLACE = re.compile(r"-?\d{1,9}")
_SLICE = re.compile(r"(-?\d{1,9})?:(-?\d{1,9})?(?::(\d{1,9}))?")
_FILTER = re.compile(r"\?\(\s*@(?P<path>[^=!<>\s)]*)\s*(?:(?P<sign>==|!=|<=|>=|<|>)\s*(?P<value>.*?))?\s*\)")


class JsonPathError(ValueError):
    """A path that cannot be read, or that leads nowhere; the text is for a person."""


@dataclass(frozen=True, slots=True)
class _Names:
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Places:
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Range:
    start: int | None
    stop: int | None
    step: int | None


@dataclass(frozen=True, slots=True)
class _Every:
    """All members of an object or list."""


@dataclass(frozen=True, slots=True)
class _Deep:
    """The value and everything below it."""


@dataclass(frozen=True, slots=True)
class _Where:
    path: tuple[_Part, ...]
    sign: str
    value: Json


_Part = _Names | _Places | _Range | _Every | _Deep | _Where


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path that was read; make one with `parse_json_path`."""

    parts: tuple[_Part, ...]

    def find(self, value: Json) -> Json:
        """The first value that the path leads to; raises JsonPathError if there is none."""
        for found in _follow(value, self.parts, count(1)):
            return found
        raise JsonPathError("nothing is found there")


def parse_json_path(text: str) -> JsonPath:
    """The path of a text; an empty one is the whole value. Raises JsonPathError."""
    body = text.strip()
    if not body:
        return JsonPath(())
    if len(body) > _LONGEST:
        raise JsonPathError(f"the path has more than {_LONGEST} characters")
    if not (body.startswith("{") and body.endswith("}")):
        raise JsonPathError("write the path in braces, such as {$.data.ok}")
    return JsonPath(_parse(body[1:-1].strip()))


def _parse(text: str) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    at = 1 if text[:1] in ("$", "@") else 0
    # Kubernetes takes `{data.ok}` for `{.data.ok}`.
    bare = at == 0 and bool(_NAME.match(text))
    while at < len(text):
        if text.startswith("..", at):
            parts.append(_Deep())
            at += 1 if text[at + 2 : at + 3] != "[" else 2
        elif text[at] == "." or bare:
            part, at = _read_member(text, at + (not bare))
            parts += part
        elif text[at] == "[":
            end = _closing(text, at)
            parts.append(_bracket(text[at + 1 : end].strip()))
            at = end + 1
        else:
            raise JsonPathError(f"the path cannot be read at {text[at : at + 20]!r}")
        bare = False
    if sum(isinstance(part, _Deep) for part in parts) > _MOST_DEEP:
        raise JsonPathError(f"`..` may stand at most {_MOST_DEEP} times in a path")
    return tuple(parts)


def _read_member(text: str, at: int) -> tuple[list[_Part], int]:
    if text.startswith("*", at):
        return [_Every()], at + 1
    name = _NAME.match(text, at)
    if name is None:
        if at >= len(text):
            return [], at
        raise JsonPathError(f"a name is expected at {text[at : at + 20]!r}")
    return [_Names((_plain(name[0]),))], name.end()


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _closing(text: str, at: int) -> int:
    quote = ""
    for place in range(at, len(text)):
        char = text[place]
        if quote:
            quote = "" if char == quote and text[place - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        elif char == "]":
            return place
    raise JsonPathError("a bracket is not closed")


def _bracket(inner: str) -> _Part:
    if inner == "*":
        return _Every()
    if inner.startswith("?"):
        return _filter(inner)
    span = _SLICE.fullmatch(inner)
    if span is not None:
        start, stop, step = (int(part) if part else None for part in span.groups())
        if step == 0:
            raise JsonPathError("a range cannot go on by 0")
        return _Range(start, stop, step)
    items = [item.strip() for item in re.findall(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^,]+", inner)]
    if items and all(_PLACE.fullmatch(item) for item in items):
        return _Places(tuple(int(item) for item in items))
    quoted = [_QUOTED.fullmatch(item) for item in items]
    if quoted and all(quoted):
        return _Names(tuple(_plain(found[1] or found[2] or "") for found in quoted if found is not None))
    raise JsonPathError(f"[{inner[:40]}] is neither a place, a range, names in quotes nor a filter")


def _filter(inner: str) -> _Where:
    found = _FILTER.fullmatch(inner)
    if found is None:
        raise JsonPathError(f"the filter [{inner[:60]}] cannot be read; write [?(@.name == 'x')]")
    sign = found["sign"] or ""
    return _Where(_parse(found["path"]), sign, _constant(found["value"] or "") if sign else None)


def _constant(text: str) -> Json:
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None:
        return _plain(quoted[1] or quoted[2] or "")
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text) if not _PLACE.fullmatch(text) else int(text)
    except ValueError:
        raise JsonPathError(f"{text[:40]!r} is no constant that a filter can compare with") from None


# -- following -------------------------------------------------------------------------------------------------


def _follow(value: Json, parts: tuple[_Part, ...], visits: Iterator[int]) -> Iterator[Json]:
    """What the parts lead to; `visits` counts over the whole search, since branches multiply with every part."""
    if next(visits) > _MOST_FOUND:
        raise JsonPathError("the answer is too large to be searched")
    if not parts:
        yield value
        return
    for item in _step(value, parts[0], visits):
        yield from _follow(item, parts[1:], visits)


def _step(value: Json, part: _Part, visits: Iterator[int]) -> Iterator[Json]:
    match part:
        case _Names(names=names):
            yield from (value[name] for name in names if isinstance(value, dict) and name in value)
        case _Places(places=places):
            size = len(value) if isinstance(value, list) else 0
            yield from (value[p] for p in places if isinstance(value, list) and -size <= p < size)
        case _Range(start=start, stop=stop, step=step):
            yield from value[start:stop:step] if isinstance(value, list) else ()
        case _Every():
            yield from _members(value)
        case _Deep():
            yield from _below(value)
        case _Where():
            yield from (item for item in _members(value) if _is_meant(item, part, visits))


def _members(value: Json) -> Iterator[Json]:
    match value:
        case dict():
            yield from value.values()
        case list():
            yield from value
        case _:
            return


def _below(value: Json) -> Iterator[Json]:
    # Each of them is a visit of who follows on.
    waiting = [value]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(list(_members(current))))


def _is_meant(item: Json, where: _Where, visits: Iterator[int]) -> bool:
    found = next(_follow(item, where.path, visits), None)
    if not where.sign:
        return found is not None
    wanted = where.value
    if where.sign in ("==", "!="):
        same = found == wanted and isinstance(found, bool) == isinstance(wanted, bool)
        return same if where.sign == "==" else not same
    if isinstance(found, str) and isinstance(wanted, str):
        return _compare(found < wanted, found == wanted, where.sign)
    numbers = [v for v in (found, wanted) if isinstance(v, int | float) and not isinstance(v, bool)]
    return len(numbers) == 2 and _compare(numbers[0] < numbers[1], numbers[0] == numbers[1], where.sign)


def _compare(less: bool, same: bool, sign: str) -> bool:
    match sign:
        case "<":
            return less
        case "<=":
            return less or same
        case ">":
            return not less and not same
        case _:
            return not less
