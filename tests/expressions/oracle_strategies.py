"""Random expressions that both our evaluator and expr-lang's own can be asked, for the test against the latter.

Most fit together by type, so that they can be evaluated; some do not, since refusing the same is part of being equal.
Left out is what the oracle cannot be asked: `/` between whole numbers (it has an integer division of its own), the
order of a map's keys (Go's is random), and characters beyond ASCII (we count characters, Go counts bytes).

A grammar is a list of forms per type; `<type>` in a form is filled with a form of that type, up to a fixed depth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from hypothesis import strategies as st

from bot.domain.values import Json

_DEPTH = 3

_LEAVES: Mapping[str, tuple[str, ...]] = {
    "bool": ("b", "true", "false"),
    "int": ("n", "0", "1", "2", "-1", "3", "0x10", "1_000"),
    "number": ("n", "f", "2.5", "0.1", "-1.5", "1e3", ".5", "2.0"),
    "text": ("s", "'x'", "''", "'k'", "'a,b,c'", "' ab '", '"q\\"q"', "`r\\aw`", "'1'", "'aXbX'", "'a<b>&c'"),
    "list": ("l", "l", "[]", "1..3", "[n, s]", "[nil, b]", "[[1], [2, [3]]]"),
    "numbers": ("i", "[1, 2, 3]", "1..3", "[n, f]", "[]", "[2.5, 1]", "3..1", "0..n"),
    "texts": ("t", "['b', 'a']", "['a', s]", "[]"),
    "map": ("m", "m", "{}", "{'k': n}", "{k: 1}", "{'k': nil}", "{'k': {'k': 1}}", "fromJSON('{\"k\": 1}')"),
    "element": (
        *(
            "nil",
            "m.k",
            "m?.j",
            "l[0]",
            "l[-1]",
            "first(l)",
            "last(l)",
            "l[n]",
            "m[s]",
            "m?.k?.k",
            "x",
            "x?.y",
        ),
        *(
            "get(m, 'k')",
            "get(l, n)",
            "get(m, s)",
            "m?.['j']",
            "l?.[0]",
            "x?.y.z",
            "m.j?.k",
            "(m?.j).k",
            "(x?.y).z",
        ),
        *("x?.y[0]", "m?.k['k']", "x contains s", "s endsWith x", "map(l, any(i, # > #index))"),
        *("$env.s", "$env['n']", "x.y"),
    ),
    "body": (
        *("# == 1", "# != s", "#index > 0", "b", "# in l", "true", "# == n", "type(#) == 'int'", "# == nil"),
        *(
            "#?.k == 1",
            "type(#?.k) == 'nil'",
            "not (# in ['x', 1])",
            "string(#) contains '1'",
            "# > 0",
            "nil",
        ),
        *("any(l, # == s)", "count(l, # != nil) == n", "let v = #; v == s", "(# ?? 1) == 1", "#"),
    ),
    "value": (
        *("#", "#index", "[#, #index]", "{'k': #}", "string(#)", "type(#)", "# ?? s", "#?.k", "#index + n"),
        *("b ? # : s", ".k", "{.k}"),
    ),
    "test": ("# > 1", "# == n", "# <= 2.5", "# + n > 2", "# in 1..3", "# ** 2 < 5", "abs(#) >= 1", "-# < n"),
    "pattern": ("'^a'", "'k+'", "'[a-c]|x'", "'(?i)K$'", "''", "'a.*b'", "s", "'('"),
}
_FORMS: Mapping[str, tuple[str, ...]] = {
    "any": ("<bool>", "<int>", "<number>", "<text>", "<list>", "<numbers>", "<texts>", "<map>", "<element>"),
    "bool": (
        *("(<bool> && <bool>)", "(<bool> or <bool>)", "(<bool> == <bool>)", "not <bool>", "!<bool>"),
        *("(<number> < <number>)", "(<int> >= <number>)", "(<number> == <int>)", "(<number> != <number>)"),
        *(
            "(<text> < <text>)",
            "(<text> >= <text>)",
            "(<text> == <text>)",
            "(<any> == <any>)",
            "(<any> != <any>)",
        ),
        *("(<any> in <list>)", "(<number> in <numbers>)", "(<text> not in <texts>)", "(<text> in <map>)"),
        *("(<text> contains <text>)", "(<text> not startsWith <text>)", "(<text> endsWith <text>)"),
        *("(<text> matches <pattern>)", "(nil matches <pattern>)", "hasPrefix(<text>, <text>)"),
        *("hasSuffix(<text>, <text>)", "any(<list>, <body>)", "all(<list>, <body>)", "none(<list>, <body>)"),
        *(
            "one(<list>, <body>)",
            "any(<numbers>, <test>)",
            "all(<numbers>, <test>)",
            "none(<numbers>, <test>)",
        ),
        *("one(<numbers>, <test>)", "(<any> < <any>)", "(<any> && <any>)", "(<any> contains <any>)"),
    ),
    "int": (
        *("(<int> + <int>)", "(<int> - <int>)", "(<int> * <int>)", "(<int> % <int>)", "-<int>", "+<int>"),
        *("len(<text>)", "len(<list>)", "len(<map>)", "len(<numbers>)", "count(<list>, <body>)"),
        *(
            "count(<numbers>, <test>)",
            "indexOf(<text>, <text>)",
            "lastIndexOf(<text>, <text>)",
            "int(<number>)",
        ),
        *("int('3')", "int('-2')", "int('1.5')", "int(s)", "bitand(<int>, <int>)", "bitor(<int>, <int>)"),
        *("bitxor(<int>, <int>)", "bitnand(<int>, <int>)", "bitshl(<int>, 2)", "bitshr(<int>, 1)"),
        *("bitushr(<int>, 1)", "bitshl(1, <int>)", "bitnot(<int>)"),
    ),
    "number": (
        *(
            "<int>",
            "(<number> + <number>)",
            "(<number> - <int>)",
            "(<number> * <number>)",
            "(<number> ** <int>)",
        ),
        # A fraction on one side keeps the oracle's own integer division away.
        *(
            "(<int> ^ 2)",
            "(<number> / 2.5)",
            "(<int> / f)",
            "(2.5 / <int>)",
            "(<int> / 0.0)",
            "-<number>",
        ),
        *("abs(<number>)", "ceil(<number>)", "floor(<number>)", "round(<number>)", "float(<number>)"),
        *("float('1.5')", "float('1e3')", "float(s)", "float(' 1')", "float('0x1p4')", "float('1_0')"),
        *(
            "max(<number>, <number>)",
            "min(<number>, <int>)",
            "mean(<number>, <int>)",
            "median(<int>, <number>)",
        ),
        *("max(<numbers>)", "min(<numbers>)", "mean(<numbers>)", "median(<numbers>)", "sum(<numbers>)"),
        *(
            "sum(<numbers>, # * 2)",
            "sum(map(<numbers>, #index))",
            "sum(reverse(<list>))",
            "reduce(<numbers>, #acc + #)",
        ),
        *(
            "reduce(<numbers>, #acc * #)",
            "reduce(<numbers>, #acc - #, <number>)",
            "(<bool> ? <number> : <int>)",
        ),
        *("reduce(<numbers>, #acc + #index)", "(<number> % <int>)", "max(<list>)", "first(<numbers>)"),
    ),
    "text": (
        *(
            "(<text> + <text>)",
            "type(<any>)",
            "string(<any>)",
            "toJSON(<any>)",
            "upper(<text>)",
            "lower(<text>)",
        ),
        *("trim(<text>)", "toBase64(<text>)", "fromBase64(toBase64(<text>))", "fromBase64(<text>)"),
        *(
            "trim(<text>, <text>)",
            "trimPrefix(<text>, <text>)",
            "trimSuffix(<text>)",
            "trimSuffix(<text>, <text>)",
        ),
        *("replace(<text>, <text>, <text>)", "replace(<text>, 'X', <text>, <int>)", "repeat(<text>, 3)"),
        *("repeat(<text>, n)", "join(<texts>)", "join(<texts>, <text>)", "join(<list>, ',')"),
        *("(<bool> ? <text> : <text>)", "(<text>)[<int>:<int>]", "(<text>)[<int>:]", "(<text>)[:<int>]"),
        *("string(<number>)", "(<text> | upper())", "(<text> + <any>)"),
    ),
    "numbers": (
        *("[<number>, <number>]", "filter(<numbers>, <test>)", "map(<numbers>, # * 2)", "map(<numbers>, -#)"),
        *(
            "map(<numbers>, # + #index)",
            "map(<numbers>, # ** 2)",
            "sort(<numbers>)",
            "sort(<numbers>, 'desc')",
        ),
        *(
            "sortBy(<numbers>, -#)",
            "sortBy(<numbers>, # % 2)",
            "sortBy(<numbers>, #, 'desc')",
            "sort(<numbers>, s)",
        ),
        *(
            "reverse(<numbers>)",
            "uniq(<numbers>)",
            "(<numbers>)[<int>:<int>]",
            "filter(<numbers>, # == <number>)",
        ),
        *("map(<numbers>, string(#))", "(<numbers>)[<int>:]", "map(<texts>, len(#))"),
    ),
    "texts": (
        *(
            "split(<text>, <text>)",
            "split(<text>, <text>, 2)",
            "split(<text>, ',', -1)",
            "splitAfter(<text>, <text>)",
        ),
        *("splitAfter(<text>, ',', 2)", "sort(keys(<map>))", "map(<texts>, # + s)", "map(<texts>, upper(#))"),
        *(
            "map(<texts>, #[0:1])",
            "filter(<texts>, # > s)",
            "filter(<texts>, # startsWith 'a')",
            "sort(<texts>)",
        ),
        *("filter(<texts>, len(#) > 1)", "map(<list>, string(#))", "uniq(<texts>)", "reverse(<texts>)"),
    ),
    "list": (
        *("[<any>, <any>]", "map(<list>, <value>)", "map(<numbers>, <value>)", "filter(<list>, <body>)"),
        *("(<list>)[<int>:]", "(<list>)[<int>:<int>]", "reverse(<list>)", "flatten(<list>)", "uniq(<list>)"),
        *("take(<list>, <int>)", "concat([n], <list>, <list>)", "map([1, 2], <any>)", "sort(<list>)"),
        *(
            "map(sort(keys(<map>)), [#, (<map>)[#]])",
            "filter(<list>, # == <any>)",
            "(<list> | map(#) | reverse())",
        ),
    ),
    "map": (
        *(
            "{'k': <any>, 'j': <any>}",
            "{(<text>): <any>}",
            "fromJSON(toJSON(<map>))",
            "(<bool> ? <map> : <map>)",
        ),
        *("{'k': <map>}", "{(<any>): 1}"),
    ),
    "element": (
        *("(<list>)[<int>]", "(<map>)?.k", "(<map>).j", "(<element>)?.k", "(<element>).k", "(<map>)[<text>]"),
        *("find(<list>, <body>)", "findLast(<list>, <body>)", "findIndex(<list>, <body>)"),
        *(
            "findLastIndex(<list>, <body>)",
            "(<any> ?? <any>)",
            "(<element> ?? <any>)",
            "(<element>?.k ?? <any>)",
        ),
        *("(<bool> ? <any> : <any>)", "(if <bool> { <any> } else { <any> })", "(<any> ? 1 : 2)"),
        *("reduce(<list>, #acc)", "reduce(<list>, [#acc, #], <any>)", "reduce(<list>, #acc ?? #)"),
        *(
            "(<any> + <any>)",
            "(<any> - <any>)",
            "(<any> * <any>)",
            "(<any> in <any>)",
            "(<element> == <any>)",
        ),
        *(
            "(let v = <any>; [v, v])",
            "(let v = <element>; v?.k)",
            "(let v = <any>; v ?? s)",
            "(let v = <any>; type(v))",
        ),
        *("fromJSON(<text>)", "fromJSON(toJSON(<any>))", "get(<any>, <any>)", "first(<list>)", "last(<any>)"),
        *(
            "-<element>",
            "not <element>",
            "len(<element>)",
            "(<element>)[1:]",
            "(<element>)[0]",
            "(<any>; <any>)",
        ),
    ),
}
_HOLE = re.compile(r"<([a-z]+)>")


@cache
def _forms(kind: str, depth: int) -> st.SearchStrategy[str]:
    """Sources of a type whose holes nest no deeper than this."""
    leaves = st.sampled_from(_LEAVES.get(kind, ("s",)))
    forms = _FORMS.get(kind, ())
    if kind == "any":
        return st.sampled_from(forms).flatmap(lambda form: _forms(form[1:-1], depth))
    if depth == 0 or not forms:
        return leaves
    return st.one_of(leaves, st.sampled_from(forms).flatmap(lambda form: _filled(form, depth - 1)))


@cache
def _filled(form: str, depth: int) -> st.SearchStrategy[str]:
    pieces = _HOLE.split(form)
    holes = [_forms(kind, depth) for kind in pieces[1::2]]
    texts = pieces[::2]
    return st.tuples(*holes).map(
        lambda found: texts[0] + "".join(part + text for part, text in zip(found, texts[1:], strict=True))
    )


sources: st.SearchStrategy[str] = st.sampled_from(_FORMS["any"]).flatmap(
    lambda kind: st.sampled_from(_FORMS[kind[1:-1]]).flatmap(lambda form: _filled(form, _DEPTH - 1))
)
"""Sources of expressions, every form of the grammar about as often as any other."""

_leaves: st.SearchStrategy[Json] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 2.5]),
    st.sampled_from(["", "x", "k", "1"]),
)
_values: st.SearchStrategy[Json] = st.one_of(
    _leaves,
    st.lists(_leaves, max_size=3),
    st.dictionaries(st.sampled_from(["k", "j"]), _leaves, max_size=2),
)
environments: st.SearchStrategy[dict[str, Json]] = st.fixed_dictionaries(
    {
        "b": st.booleans(),
        "n": st.integers(-3, 3),
        "f": st.sampled_from([0.5, -2.5, 1.25]),
        "s": st.sampled_from(["", "x", "k", "abc"]),
        "i": st.lists(st.integers(-2, 4), max_size=4),
        "t": st.lists(st.sampled_from(["a", "b", "k", ""]), max_size=3),
        "l": st.lists(_values, max_size=3),
        "m": st.dictionaries(st.sampled_from(["k", "j"]), _values, max_size=2),
    }
)
"""Values for all names but `x`, which nobody knows."""
