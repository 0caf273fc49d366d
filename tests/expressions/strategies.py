"""Random expressions over a few names, for properties that must hold of all of them.

Most of what is made fits together by type, so that it can be evaluated; some does not, which is part of the test.
"""

from __future__ import annotations

from hypothesis import strategies as st

from bot.domain.values import Json

NAMES = ("b", "n", "s", "l", "m")

Source = st.SearchStrategy[str]

_MIXED_OPERATORS = (
    "+",
    "-",
    "*",
    "/",
    "%",
    "**",
    "==",
    "<",
    "in",
    "&&",
    "||",
    "contains",
    "matches",
    "..",
    "??",
)
_ONE_ARGUMENT = (
    *(
        "len",
        "type",
        "string",
        "abs",
        "int",
        "float",
        "first",
        "last",
        "keys",
        "values",
        "reverse",
        "upper",
        "trim",
    ),
    *("toJSON", "uniq", "flatten", "sum", "count", "toPairs", "max", "min", "sort", "quote", "unsafeQuote"),
    *("asJSON", "asYAML", "toBase64"),
)
_LOOPS = ("map", "filter", "sortBy")
_TESTS = ("any", "all", "none", "one")
_BODIES = ("# == 1", "# != s", "#index > 0", "b", "# in l", "true", "#index == n", "type(#) == 'int'")


def _fill(form: str, *parts: Source) -> Source:
    return st.tuples(*parts).map(lambda found: form.format(*found))


def _choose(*choices: str) -> Source:
    return st.sampled_from(choices)


_bools = st.deferred(lambda: _bool_forms)
_numbers = st.deferred(lambda: _number_forms)
_texts = st.deferred(lambda: _text_forms)
_lists = st.deferred(lambda: _list_forms)
_maps = st.deferred(lambda: _map_forms)
_any = st.deferred(lambda: st.one_of(_bools, _numbers, _texts, _lists, _maps, _elements, _choose("nil")))

_elements: Source = st.one_of(
    _choose("m.k", "m?.j", "l[0]", "first(l)", "l[n]", "m[s]", "get(m, 'k')", "get(l, n)", "m?.k?.k"),
    _fill("({})[0]", _lists),
    _fill("({}).k", _maps),
    _fill("find({}, {})", _lists, _choose(*_BODIES)),
    _fill("({} ?? {})", _any, _any),
    _fill("({} ? {} : {})", _bools, _any, _any),
    _fill("(if {} {{ {} }} else {{ {} }})", _bools, _any, _any),
    _fill("reduce({}, {}, {})", _lists, _choose("#acc", "#", "[#acc, #]", "n"), _any),
    _fill("({} {} {})", _any, _choose(*_MIXED_OPERATORS), _any),
    _fill("{}({})", _choose(*_ONE_ARGUMENT), _any),
)
_bool_forms: Source = st.one_of(
    _choose("b", "b", "true", "false"),
    _fill("({} {} {})", _bools, _choose("&&", "||", "and", "or", "=="), _bools),
    _fill("not {}", _bools),
    _fill("({} {} {})", _numbers, _choose("<", ">=", "=="), _numbers),
    _fill("({} {} {})", _any, _choose("==", "!="), _any),
    _fill("({} in {})", _any, _lists),
    _fill("({} {} {})", _texts, _choose("contains", "startsWith", "matches", "in"), _texts),
    _fill("({} in {})", _texts, _maps),
    _fill("{}({}, {})", _choose(*_TESTS), _lists, _choose(*_BODIES)),
)
_number_forms: Source = st.one_of(
    _choose("n", "n", "0", "1", "-2", "2.5"),
    _fill("({} {} {})", _numbers, _choose("+", "-", "*", "/", "**"), _numbers),
    _fill("len({})", st.one_of(_texts, _lists, _maps)),
    _fill("count({}, {})", _lists, _choose(*_BODIES)),
    _fill("({} ? {} : {})", _bools, _numbers, _numbers),
)
_text_forms: Source = st.one_of(
    _choose("s", "s", "'x'", "''", "'k'"),
    _fill("({} + {})", _texts, _texts),
    _fill("{}({})", _choose("upper", "type", "string", "toJSON", "quote", "asJSON"), _any),
    _fill("({} ? {} : {})", _bools, _texts, _texts),
    _fill("({})[{}:{}]", _texts, _numbers, _numbers),
)
_list_forms: Source = st.one_of(
    _choose("l", "l", "[]", "1..3", "[n, s]"),
    _fill("[{}, {}]", _any, _any),
    _fill("{}({}, {})", _choose(*_LOOPS), _lists, _choose("#", *_BODIES)),
    _fill("({})[{}:]", _lists, _numbers),
    _fill("{}({})", _choose("reverse", "flatten", "uniq"), _lists),
    _fill("{}({})", _choose("keys", "values", "toPairs"), _maps),
    _fill("take({}, {})", _lists, _numbers),
    _fill("concat({}, {})", _lists, _lists),
    _fill("split({}, {})", _texts, _texts),
    _fill("(let v = {}; [v, {}])", _any, _any),
)
_map_forms: Source = st.one_of(
    _choose("m", "m", "{}", "{'k': n}"),
    _fill("{{'k': {}, 'j': {}}}", _any, _any),
    _fill("{{({}): {}}}", _texts, _any),
)

expressions: Source = _any.filter(lambda source: len(source) < 300)
"""Sources of expressions."""

_leaves: st.SearchStrategy[Json] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 2.0]),
    st.sampled_from(["", "x", "k", "1"]),
)
values: st.SearchStrategy[Json] = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["k", "j"]), inner, max_size=2)
    ),
    max_leaves=4,
)
"""JSON values that the names may stand for."""

environments: st.SearchStrategy[dict[str, Json]] = st.fixed_dictionaries(
    {
        "b": st.booleans(),
        "n": st.integers(-3, 3),
        "s": st.sampled_from(["", "x", "k"]),
        "l": st.lists(values, max_size=3),
        "m": st.dictionaries(st.sampled_from(["k", "j"]), values, max_size=2),
    }
)
"""Values for all names."""
