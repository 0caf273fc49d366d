"""expr-lang's grammar, operators and builtins: what each gives, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.domain.values import Value
from bot.expressions.builtins import TABLE
from bot.expressions.errors import ExpressionError
from bot.expressions.evaluator import compile_expression
from bot.expressions.grammar import BUILTINS, PREDICATES
from bot.expressions.predicates import PREDICATE_CALLS

NAMES: dict[str, Value] = {
    "word": "hello",
    "n": 3,
    "f": 2.5,
    "yes": True,
    "no": False,
    "list": ["one", "two", "three"],
    "nums": [1, 2, 3],
    "obj": {"a": {"b": [1, {"c": "deep"}]}, "in": 1},
    "people": [{"name": "ann", "age": 41}, {"name": "bob", "age": 25}],
}
NOW = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


def evaluate(source: str) -> Value:
    return compile_expression(source).evaluate(NAMES, {}, NOW)


def check(source: str, expected: Value) -> None:
    result = evaluate(source)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("42", 42),
        ("0x2A + 0o52 + 0b101010 + 1_000", 1126),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("nil", None),
        (r"'a\'b'", "a'b"),
        (r'"tab\t\x41\u00e9\U0001F600\101"', "tab\tA\u00e9\U0001f600A"),
        (r"'\ud83d\ude00'", "\U0001f600"),
        ("`raw\\n\nline ``tick```", "raw\\n\nline `tick`"),
        ("/* a */ 1 // b\n + 2", 3),
        ("[1, 2,]", [1, 2]),
        ("{a: 1, 'b c': 2, 3: 4, (word): 5,}", {"a": 1, "b c": 2, "3": 4, "hello": 5}),
        ("1 + 2 * 3 - 4", 3),
        ("7 / 2", 3.5),
        ("6 / 2", 3.0),
        ("7 % 3", 1),
        ("-7 % 3", -1),
        ("2 ** 3 ** 2", 512.0),
        ("-2 ** 2", -4.0),
        ("2 ^ 3", 8.0),
        ("--n", 3),
        ("+f", 2.5),
        ("9223372036854775807 + 1", -(2**63)),
        ("1 + 0.5", 1.5),
        ("1 == 1.0", True),
        ("[1, {'a': 2.0}] == [1.0, {'a': 2}]", True),
        ("yes == 1", False),
        ("nil == nil", True),
        ("n == 'x'", False),
        ("1 < 2 and 'a' < 'b'", True),
        ("1 <= 0.0 / 0 or 1 >= 0.0 / 0", False),
        (
            "take(nums, 1) == 1 or sortBy(nums, #) == 'x' or mean(nums) == 'x' or 1 in fromPairs([['a', 1]])",
            False,
        ),
        ("1 < 2 < 3", True),
        ("1 < 3 < 2", False),
        ("1 < 2 == true", True),
        ("not yes or yes", True),
        ("!no && true", True),
        ("'two' in list", True),
        ("'four' not in list", True),
        ("'a' in obj", True),
        ("5 in 1..10", True),
        ("1 in nil", False),
        ("word contains 'ell' and word not contains 'x'", True),
        ("word startsWith 'he' && word endsWith 'lo'", True),
        ("word matches '^h.*o$'", True),
        ("word not matches '(?i)^H'", False),
        ("missing matches 'x'", False),
        ("missing contains 'x' or 'x' startsWith missing or missing endsWith missing", False),
        ("1..3", [1, 2, 3]),
        ("3..1", []),
        ("no ? 'a' : no ? 'b' : 'c'", "c"),
        ("yes ?: 'x'", True),
        ("if n > 3 {'big'} else if n == 3 {'three'} else {'small'}", "three"),
        ("nil ?? nil ?? 'd'", "d"),
        ("1 + (nil ?? 2)", 3),
        ("obj?.zz?.x ?? 'none'", "none"),
        ("missing?.a.b.c", None),
        ("(missing?.a).b", None),
        ("missing?.a?.['b'].c", None),
        ("obj.a.b[1].c", "deep"),
        ("obj['a'].b[-1]['c']", "deep"),
        ("obj.in", 1),
        ("obj?.['a'].b[0]", 1),
        ("list[1:]", ["two", "three"]),
        ("list[:-1]", ["one", "two"]),
        ("list[-2:]", ["two", "three"]),
        ("list[2:1]", []),
        ("list[:99]", ["one", "two", "three"]),
        ("word[1:3]", "el"),
        ("word[0]", 104),
        ("let x = 2; let y = x * 2; [x, y]", [2, 4]),
        ("map(nums, let x = # * 2; x + 1)", [3, 5, 7]),
        ("1; 2", 2),
        ("(1; 2) + 1", 3),
        ("$env['n'] + $env.n", 6),
        ("nums | map(# * 2) | sum()", 12),
        ("word | upper() | len()", 5),
        ("::len(list)", 3),
        ("filter(people, .age > 30)[0].name", "ann"),
        ("map(people, {.name})", ["ann", "bob"]),
        ("map(nums, #index)", [0, 1, 2]),
        ("map(nums, map(nums, #))[1]", [1, 2, 3]),
        ("yes || missing.x", True),
        ("no && missing.x", False),
        ("unknown", None),
        ("{'a': 1}.zz", None),
    ],
)
def test_the_language(source: str, expected: Value) -> None:
    check(source, expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("all([], false)", True),
        ("any(nums, # == 2)", True),
        ("none(nums, # > 3)", True),
        ("one(nums, # > 2)", True),
        ("count(nums, # > 1)", 2),
        ("count([true, false, true])", 2),
        ("find(nums, # > 1)", 2),
        ("find(nums, # > 9)", None),
        ("findLast(nums, # < 3)", 2),
        ("findIndex(nums, # == 3)", 2),
        ("findLastIndex(nums, # < 3)", 1),
        ("sum([1, 2, 3.0])", 6.0),
        ("sum(people, .age)", 66),
        ("sum([])", 0),
        ("groupBy(people, .age > 30)[true][0].name", "ann"),
        ("groupBy([1, true, 1], #)[1]", [1, 1]),
        ("sortBy(people, .age)[0].name", "bob"),
        ("sortBy(people, .name, 'desc')[0].name", "bob"),
        ("reduce(nums, #acc + #)", 6),
        ("reduce(nums, #acc + # * #index, 10)", 18),
        ("reduce([], #acc, 7)", 7),
        ("len('h\u00e9')", 2),
        ("len({a: 1})", 1),
        ("type(nil)", "nil"),
        ("type(1.0)", "float"),
        ("type(now())", "time.Time"),
        ("type(duration('1s'))", "time.Duration"),
        ("abs(-5)", 5),
        ("abs(-.5)", 0.5),
        ("ceil(1.2)", 2.0),
        ("floor(5)", 5.0),
        ("round(2.5)", 3.0),
        ("round(-2.5)", -3.0),
        ("int('42') + int(1.9)", 43),
        ("float('1e3')", 1000.0),
        ("string([1, 'a', nil, {b: 2.0, a: true}])", "[1 a <nil> map[a:true b:2]]"),
        ("string(20240101.0)", "2.0240101e+07"),
        ("trim('  x\\t')", "x"),
        ("trim('__x_', '_')", "x"),
        ("trimPrefix('v1', 'v') + trimSuffix('1-rc', '-rc')", "11"),
        ("upper('stra\u00dfe')", "STRA\u00dfE"),
        ("lower('ABC')", "abc"),
        ("split('a,b,c', ',', 2)", ["a", "b,c"]),
        ("split('ab', '')", ["a", "b"]),
        ("split('a,b', ',', 0)", None),
        ("splitAfter('a,b', ',')", ["a,", "b"]),
        ("replace('a.b.c', '.', '-', 1)", "a-b.c"),
        ("repeat('ab', 2)", "abab"),
        ("join(list, '+')", "one+two+three"),
        ("join(['a', 'b'])", "ab"),
        ("indexOf('h\u00e9llo', 'l') + lastIndexOf(word, 'l')", 5),
        ("hasPrefix(word, 'he') && hasSuffix(word, 'lo')", True),
        ("max([1, [5, 3]], 4)", 5),
        ("type(max(1.5, 2))", "int"),
        ("min(1.5, 2)", 1.5),
        ("mean([1, 2, 3, 4])", 2.5),
        ("median(1..9)", 5.0),
        ("mean([])", 0.0),
        ("toJSON({b: [1], a: '<'})", '{\n  "a": "\\u003c",\n  "b": [\n    1\n  ]\n}'),
        ("fromJSON('[1, {\"a\": null}]')", [1.0, {"a": None}]),
        ("toBase64('h\u00e9') + fromBase64('aGk=')", "aMOphi"),
        ("first(list) + last(list)", "onethree"),
        ("first([])", None),
        ("get(list, -1)", "three"),
        ("get(list, 99)", None),
        ("get(obj, 'zz')", None),
        ("take(list, 9)", ["one", "two", "three"]),
        ("keys({b: 1, a: 2})", ["a", "b"]),
        ("values({b: 1, a: 2})", [2, 1]),
        ("toPairs({b: 1, a: 2})", [["a", 2], ["b", 1]]),
        ("fromPairs([['a', 1], [true, 2], [1, 3]])[true]", 2),
        ("reverse(nums)", [3, 2, 1]),
        ("uniq([1, 2, 1, [1], [1], 'a', 'a'])", [1, 2, [1], "a"]),
        ("concat([1], [2], list)", [1, 2, "one", "two", "three"]),
        ("flatten([1, [2, [3]]])", [1, 2, 3]),
        ("sort(['b', 'a'], 'desc')", ["b", "a"]),
        ("[bitand(6, 3), bitor(6, 3), bitxor(6, 3), bitnand(35, 9), bitnot(156)]", [2, 7, 5, 34, -157]),
        ("[bitshl(39, 3), bitshr(-5, 1), bitushr(-5, 2)]", [312, -3, 4611686018427387902]),
    ],
)
def test_the_builtins(source: str, expected: Value) -> None:
    check(source, expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("now()", "2024-05-06T07:08:09Z"),
        ("now(timezone('Europe/Berlin')).Hour()", 9),
        ("date('2024-05-06')", "2024-05-06T00:00:00Z"),
        ("date('2024-05-06T07:08:09.120+02:00')", "2024-05-06T07:08:09.12+02:00"),
        ("date('2024-05-06 10:00', '2006-01-02 15:04', 'Europe/Berlin')", "2024-05-06T10:00:00+02:00"),
        ("date('6 May 24 3:04PM', '2 Jan 06 3:04PM').Hour()", 15),
        ("date(timezone('Asia/Tokyo'), '2024-05-06').UTC()", "2024-05-05T15:00:00Z"),
        ("date('2024-05-06').Format('Mon, 02 Jan 2006 15:04:05 MST')", "Mon, 06 May 2024 00:00:00 UTC"),
        ("date('2024-02-29').AddDate(1, 0, 0)", "2025-03-01T00:00:00Z"),
        ("date('2024-05-06').Weekday()", 1),
        ("string(date('2024-05-06').Month())", "May"),
        ("date('2024-05-06').Month() == 5", True),
        ("date('2024-05-06').YearDay()", 127),
        ("date('2024-05-06T07:08:09Z').Unix()", 1714979289),
        ("date('2024-05-07') - date('2024-05-06') == duration('24h')", True),
        ("date('2024-05-06') + duration('90m')", "2024-05-06T01:30:00Z"),
        ("date('2024-05-06T07:08:09Z').Truncate(duration('1h'))", "2024-05-06T07:00:00Z"),
        ("date('2024-05-06') < now() && now().After(date('2024-01-01'))", True),
        ("duration('1h30m').Hours()", 1.5),
        ("string(duration('90m') + duration('250ms'))", "1h30m0.25s"),
        ("duration('1.5s')", 1500000000),
        ("duration('90s').String()", "1m30s"),
        ("duration('1h') * 2 > duration('90m')", True),
        ("timezone('Europe/Moscow').String()", "Europe/Moscow"),
        ("string(date('2024-05-06T07:08:09Z'))", "2024-05-06 07:08:09 +0000 UTC"),
    ],
)
def test_times(source: str, expected: Value) -> None:
    check(source, expected)


@pytest.mark.parametrize(
    "source",
    [
        "", "1 +", "word(", "(1", "[1, 2", "{1}", "{a:}", "1 2",
        "'open", "'a\nb'", r"'\q'", r"'\x4'", "`open", "/* open",
        "1__x", "0xg", "99999999999999999999", "a ?? b + c", "#", ".x", "map(nums, #other)", "@", "a.1", "1..", "let x",
        "let x = 1",
        "let len = 1; len", "let x = 1; let x = 2; x", "if yes {1}", "yes ? 1", "map(nums)", "filter()",
        "1 + 'a'", "1 == '1'", "1 < 'a'", "nil + 1", "'a' - 'b'", "[1] + [2]", "1.5 % 2",
        "nil matches 'x'", "1.0..2", "[1][0:] == 1", "'abc'[0]", "(nil)?.x", "string(n).x", "map(nums, nil)",
        "get('abc', 0)",
        "filter(nums, #index > 0)", "sum(nums, #index)", "map(nums, any(list, #index == 1))", "map(nums, #acc)",
        "not 1", "-'a'", "true && 'x'",
        "1 ? 2 : 3", "true ? 1 : 1 + 'a'", "1 in 'abc'", "1 matches 'a'", "word matches '['", "word matches '(?=a)'",
        "len(42)", "len()", "len('a', 'b')", "trim(42)", "upper(nil)", "max()", "max(1, '2')", "abs('x')", "int(true)",
        "any(nums, 'x')", "get(1, 2)", "bitand('1', 1)", "split('a')", "flatten([1], [2])", "take([1], 'a')",
    ],
)  # fmt: skip
def test_what_expr_does_not_compile_is_refused_at_once(source: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(source)


@pytest.mark.parametrize(
    "source",
    [
        "n + word", "n > word", "list.foo", "list[5]", "list['a']", "word.x", "n.x", "missing.x", "obj.zz.x", "n()",
        "get(list, 'x')", "get(word, nil)", "get(obj, 1)", "missing?.a['b']", "(missing ?? nil).x", "missing?.a[1:]",
        "word()",
        "nope(1)", "1 % 0", "yes && n && yes", "n && yes", "n ? 1 : 2", "not n", "-word", "word in word", "n in obj",
        "map(word, #)", "filter(nums, n)", "reduce([], #acc)", "sum(list)", "sort([1, 'a'])", "sort(nums, 'up')",
        "int('x')", "int('1_0')", "float('x')", "fromJSON('{')", "fromJSON('5e2482')", "fromBase64('!')", "join(nums)",
        "repeat(word, -1)", "bitshl(1, -1)", "duration('x')", "date('x')", "timezone('Mars/Base')", "take(list, -1)",
        "date('2024-05-06').Nope()", "date('2024-05-06').Year(1)", "now(word)", "groupBy(nums, # > 1)", "fromPairs([])",
        "fromPairs([[1]])", "{(n): 1}", "date('2024-05-06').Year", "toJSON(1 / 0)", "now().Add(1)", "obj[list]",
        "date('2024-05-06').AddDate(99999, 0, 0)",
    ],
)  # fmt: skip
def test_what_cannot_be_computed_is_an_error(source: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(source)


def test_an_error_names_its_place() -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate("1 + n.deep")
    assert caught.value.position == 6
    assert "cannot take 'deep' of int" in str(caught.value)
    assert "character 7" in str(caught.value)


def test_every_builtin_of_the_grammar_exists() -> None:
    assert set(TABLE) == BUILTINS
    assert set(PREDICATE_CALLS) == set(PREDICATES)


def test_a_compiled_expression_is_compiled_once() -> None:
    assert compile_expression("1 + 1 + n") is compile_expression("1 + 1 + n")
