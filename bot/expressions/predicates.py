"""Builtins that run an expression for each element of a list: `map`, `filter`, `any`, `reduce` and the rest.

Of a list that holds unknown values only `map` says something: it looks at the shape and its elements may stay
unknown. All others give an unknown value then, as the review gate's table has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cmp_to_key
from typing import TypeAlias

from bot.domain.values import Sensitive, Text, Unknown
from bot.expressions.builtins_lists import SORT_COST
from bot.expressions.equality import compare
from bot.expressions.errors import ExpressionError
from bot.expressions.frame import Frame, Run
from bot.expressions.marks import Marks, join_names, lift, scan, sensitive, uncover
from bot.expressions.operands import AnyMap, Operand, any_key, name_type
from bot.expressions.operators import add


class _Unknowable(Exception):
    """An unknown value decided over an element; the whole result is unknown."""

    def __init__(self, marks: Marks) -> None:
        super().__init__()
        self.marks = marks


class Loop:
    """One run over a list: sets `#`, `#index` and `#acc`, pays for the work, collects sensitive names."""

    __slots__ = ("base", "body", "cost", "frame", "items", "names")

    def __init__(self, frame: Frame, items: list[Operand], body: Run | None, base: int, cost: int) -> None:
        self.frame = frame
        self.items = items
        self.body = body
        self.base = base
        self.cost = cost
        self.names: list[str] = []

    def results(self, *, backwards: bool = False) -> Iterator[tuple[int, Operand, Operand]]:
        """Index, element and the expression's value for it; without an expression that is the element."""
        slots, base, spend = self.frame.slots, self.base, self.frame.meter.spend
        indices = range(len(self.items) - 1, -1, -1) if backwards else range(len(self.items))
        for index in indices:
            spend(self.cost)
            item = self.items[index]
            slots[base] = item
            slots[base + 1] = index
            yield index, item, item if self.body is None else self.body(self.frame)

    def hits(self, *, backwards: bool = False) -> Iterator[tuple[int, Operand]]:
        """Index and element wherever the expression is true."""
        for index, item, value in self.results(backwards=backwards):
            if self.plain(value) is True:
                yield index, item

    def plain(self, value: Operand) -> bool:
        """The truth of one element; a sensitive one marks the whole result, an unknown one ends the run."""
        if value is True or value is False:
            return value
        value = self.known(value)
        if isinstance(value, bool):
            return value
        raise ExpressionError(f"a predicate must be true or false, not {name_type(value)}")

    def known(self, value: Operand) -> Operand:
        """The value without sensitive marks; raises if it is unknown."""
        marks = scan((value,), self.frame.meter)
        if marks.origins:
            raise _Unknowable(marks)
        if marks.names:
            self.names.extend(marks.names)
            return uncover(value)
        return value


Predicate: TypeAlias = Callable[[Loop, Operand], Operand]
"""Takes the loop and the value of the extra argument (None if there is none)."""


def _all(loop: Loop, _extra: Operand) -> Operand:
    return all(loop.plain(value) for _, _, value in loop.results())


def _any(loop: Loop, _extra: Operand) -> Operand:
    return any(True for _ in loop.hits())


def _none(loop: Loop, _extra: Operand) -> Operand:
    return not any(True for _ in loop.hits())


def _one(loop: Loop, _extra: Operand) -> Operand:
    return sum(1 for _ in loop.hits()) == 1


def _count(loop: Loop, _extra: Operand) -> Operand:
    return sum(1 for _ in loop.hits())


def _filter(loop: Loop, _extra: Operand) -> Operand:
    return [item for _, item in loop.hits()]


def _map(loop: Loop, _extra: Operand) -> Operand:
    return [value for _, _, value in loop.results()]


def _find(loop: Loop, _extra: Operand) -> Operand:
    return next((item for _, item in loop.hits()), None)


def _find_last(loop: Loop, _extra: Operand) -> Operand:
    return next((item for _, item in loop.hits(backwards=True)), None)


def _find_index(loop: Loop, _extra: Operand) -> Operand:
    return next((index for index, _ in loop.hits()), None)


def _find_last_index(loop: Loop, _extra: Operand) -> Operand:
    return next((index for index, _ in loop.hits(backwards=True)), None)


def _sum(loop: Loop, _extra: Operand) -> Operand:
    total: Operand = 0
    for _, _, value in loop.results():
        total = add(total, loop.known(value), loop.frame.meter)
    return total


def _group_by(loop: Loop, _extra: Operand) -> Operand:
    groups: dict[Operand, list[Operand]] = {}
    for _, item, value in loop.results():
        key = loop.known(value)
        if isinstance(key, (list, dict)):
            raise ExpressionError(f"groupBy cannot group by {name_type(key)}")
        groups.setdefault(any_key(key), []).append(item)
    return AnyMap(groups)


def _sort_by(loop: Loop, extra: Operand) -> Operand:
    order = "asc" if extra is None else loop.known(extra)
    if order not in ("asc", "desc"):
        raise ExpressionError(f"sortBy takes the order asc or desc, not {order!r}")
    loop.frame.meter.elements(SORT_COST * len(loop.items))
    pairs = [(loop.known(value), item) for _, item, value in loop.results()]
    by_key = cmp_to_key(compare)
    return [item for _, item in sorted(pairs, key=lambda pair: by_key(pair[0]), reverse=order == "desc")]


def _reduce(loop: Loop, extra: Operand) -> Operand:
    """Runs with `#acc`; without a first value the first element is it."""
    slot = loop.base + 2
    loop.frame.slots[slot] = extra
    for _, _, value in loop.results():
        loop.frame.slots[slot] = value
    return loop.frame.slots[slot]


PREDICATE_CALLS: dict[str, Predicate] = {
    "all": _all,
    "any": _any,
    "none": _none,
    "one": _one,
    "count": _count,
    "filter": _filter,
    "map": _map,
    "find": _find,
    "findLast": _find_last,
    "findIndex": _find_index,
    "findLastIndex": _find_last_index,
    "sum": _sum,
    "groupBy": _group_by,
    "sortBy": _sort_by,
    "reduce": _reduce,
}
"""Every builtin that takes a predicate."""


class PredicateRun:
    """A compiled call; `base` is the first of the three slots it may use, `cost` its work per element."""

    __slots__ = ("base", "body", "collection", "cost", "extra", "name")

    def __init__(
        self, name: str, collection: Run, body: Run | None, extra: Run | None, place: tuple[int, int]
    ) -> None:
        self.name = name
        self.collection = collection
        self.body = body
        self.extra = extra
        self.base, self.cost = place

    def __call__(self, frame: Frame) -> Operand:
        """The value of the call."""
        collection = self.collection(frame)
        extra = self.extra(frame) if self.extra is not None else None
        if isinstance(collection, (Unknown, Text)):
            return lift((collection,), frame.meter, lambda plain: self._loop(frame, plain[0], extra))
        if isinstance(collection, Sensitive):
            inner: Operand = collection.value
            return sensitive((collection.name,), self._loop(frame, inner, extra, (collection.name,)))
        if self.name != "map" and isinstance(collection, list):
            marks = scan((collection,), frame.meter)
            if marks.origins:
                return marks.unknown()
        return self._loop(frame, collection, extra)

    def _loop(
        self, frame: Frame, collection: Operand, extra: Operand, names: tuple[str, ...] = ()
    ) -> Operand:
        if not isinstance(collection, list):
            raise ExpressionError(f"{self.name} needs a list, not {name_type(collection)}")
        items = [sensitive(names, item) for item in collection] if names else collection
        loop = Loop(frame, items, self.body, self.base, self.cost)
        compute = PREDICATE_CALLS[self.name]
        if self.name == "reduce" and self.extra is None:
            if not items:
                raise ExpressionError("reduce of an empty list needs a first value")
            extra, loop = items[0], _Rest(frame, items, self.body, self.base, self.cost)
        try:
            result = compute(loop, extra)
        except _Unknowable as unknowable:
            marks = Marks(unknowable.marks.origins, (*unknowable.marks.names, *loop.names))
            return marks.unknown()
        return sensitive(loop.names, result) if join_names(loop.names) else result


class _Rest(Loop):
    """A loop that leaves the first element out but counts on from it."""

    __slots__ = ()

    def results(self, *, backwards: bool = False) -> Iterator[tuple[int, Operand, Operand]]:
        for index in range(1, len(self.items)) if not backwards else ():
            self.frame.meter.spend(self.cost)
            self.frame.slots[self.base] = self.items[index]
            self.frame.slots[self.base + 1] = index
            yield index, self.items[index], None if self.body is None else self.body(self.frame)
