"""expr-lang's builtins on lists and maps. Maps give their keys in sorted order, where Go's order is random."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key

from bot.domain.values import Sensitive, Text, Unknown
from bot.expressions.equality import compare, is_equal
from bot.expressions.errors import ExpressionError
from bot.expressions.marks import lift, sensitive
from bot.expressions.members import fetch, get, to_index
from bot.expressions.meter import Meter
from bot.expressions.operands import AnyMap, Operand, any_key, name_type, plain_key

SORT_COST = 20
"""Work per element of a sorted list."""


def _list(value: Operand, name: str) -> list[Operand]:
    if isinstance(value, list):
        return value
    raise ExpressionError(f"{name} takes a list, not {name_type(value)}")


def _map(value: Operand, name: str) -> dict[Operand, Operand]:
    if isinstance(value, dict):
        return value
    raise ExpressionError(f"{name} takes a map, not {name_type(value)}")


def _sorted_keys(value: dict[Operand, Operand]) -> list[Operand]:
    return sorted(value, key=lambda key: (name_type(key), key if isinstance(key, str) else "", repr(key)))


def _is_marked(value: Operand) -> bool:
    return isinstance(value, (Unknown, Sensitive, Text))


def count(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`len(x)`: characters of a text, elements of a list, keys of a map."""
    value = arguments[0]
    if isinstance(value, (str, list, dict)):
        return len(value)
    if _is_marked(value):
        return lift((value,), meter, lambda plain: count(plain, meter))
    raise ExpressionError(f"len takes a text, a list or a map, not {name_type(value)}")


def keys(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`keys(map)`."""
    if _is_marked(arguments[0]):
        return lift(arguments, meter, lambda plain: keys(plain, meter))
    found = _map(arguments[0], "keys")
    meter.elements(len(found))
    return [plain_key(key) for key in _sorted_keys(found)]


def values(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`values(map)`, in the order of `keys`."""
    if _is_marked(arguments[0]):
        return lift(arguments, meter, lambda plain: values(plain, meter))
    found = _map(arguments[0], "values")
    meter.elements(len(found))
    return [found[key] for key in _sorted_keys(found)]


def _end(arguments: Sequence[Operand], meter: Meter, index: int) -> Operand:
    value = arguments[0]
    if isinstance(value, Sensitive):
        inner: Operand = value.value
        return sensitive((value.name,), _end((inner,), meter, index))
    if _is_marked(value):
        return lift(arguments, meter, lambda plain: _end(plain, meter, index))
    # expr-lang answers nil for whatever has no element there, numbers and maps included.
    return fetch(value, index, meter) if isinstance(value, (list, str)) and value else None


def first(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`first(list)`; nil of an empty one."""
    return _end(arguments, meter, 0)


def last(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`last(list)`; nil of an empty one."""
    return _end(arguments, meter, -1)


def take(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`take(list, n)`: the first n elements, or all if there are fewer."""
    if _is_marked(arguments[0]) or _is_marked(arguments[1]):
        return lift(arguments, meter, lambda plain: take(plain, meter))
    found, wanted = _list(arguments[0], "take"), to_index(arguments[1])
    if wanted < 0:
        raise ExpressionError("take cannot take a negative number of elements")
    meter.elements(min(wanted, len(found)))
    return found[:wanted]


def get_element(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`get(container, key)`; nil for everything that is missing."""
    return get(arguments[0], arguments[1], meter)


def to_pairs(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`toPairs(map)`: a list of `[key, value]`."""
    found = _map(arguments[0], "toPairs")
    meter.elements(2 * len(found))
    return [[plain_key(key), found[key]] for key in _sorted_keys(found)]


def from_pairs(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`fromPairs(list)`: a map with keys of any type."""
    pairs = _list(arguments[0], "fromPairs")
    meter.elements(len(pairs))
    made = AnyMap()
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ExpressionError("fromPairs takes a list of lists of two elements each")
        if isinstance(pair[0], (list, dict)):
            raise ExpressionError(f"a map has no key of type {name_type(pair[0])}")
        made[any_key(pair[0])] = pair[1]
    return made


def reverse(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`reverse(list)`."""
    found = _list(arguments[0], "reverse")
    meter.elements(len(found))
    return found[::-1]


def unique(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`uniq(list)`: each value once, where it first stood."""
    made: list[Operand] = []
    seen: set[str] = set()
    for item in _list(arguments[0], "uniq"):
        if isinstance(item, str):
            meter.spend(1)
            if item in seen:
                continue
            seen.add(item)
        else:
            meter.spend(1 + len(made))
            if any(is_equal(item, other, meter) for other in made):
                continue
        made.append(item)
    return made


def concat(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`concat(list, ...)`."""
    lists = [_list(argument, "concat") for argument in arguments]
    meter.elements(sum(len(item) for item in lists))
    return [item for found in lists for item in found]


def flatten(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`flatten(list)`: lists inside lists opened at any depth."""
    made: list[Operand] = []
    _flatten_into(made, _list(arguments[0], "flatten"), meter, 0)
    return made


def _flatten_into(made: list[Operand], found: list[Operand], meter: Meter, depth: int) -> None:
    meter.elements(len(found))
    meter.depth(depth)
    for item in found:
        if isinstance(item, list):
            _flatten_into(made, item, meter, depth + 1)
        else:
            made.append(item)


def sort(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`sort(list[, "asc"|"desc"])` of numbers, texts or times."""
    found = _list(arguments[0], "sort")
    order = arguments[1] if len(arguments) == 2 else "asc"
    if order not in ("asc", "desc"):
        raise ExpressionError(f"sort takes the order asc or desc, not {order!r}")
    meter.elements(SORT_COST * len(found))
    return sorted(found, key=cmp_to_key(compare), reverse=order == "desc")
