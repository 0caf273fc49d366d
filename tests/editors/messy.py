"""Strategies for texts as people leave them: odd spacing, comments, mixed quotes, line ends, byte order marks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypeAlias

from hypothesis import strategies as st

from bot.domain.values import Json

Path: TypeAlias = tuple[str | int, ...]
Draw: TypeAlias = st.DrawFn

NAMES = st.sampled_from(
    ["image", "tag", "replicas", "a.b", "x", "env", "on", "0", "12", "key with space", "é", "a:b", "UPPER", "list"]
)  # fmt: skip
HCL_NAMES = st.sampled_from(["image_uri", "tags", "a", "b-c", "count", "x1", "é", "version", "null_x"])
ODD_STRINGS = st.sampled_from(
    ["", "yes", "1.10", "007", "0x1F", "1e3", "null", "~", "a: b", "x #y", "# x", "- x", "[a", "{", "*a", "&a", "!t",
     "'q", '"d', "12:30:45", "2024-01-01", "tab\there", "two\nlines", "end\n", " lead", "trail ", "${v}", "%{ if x }",
     "$${v}", "\\n", "é", "😀", "{{ .Values.x }}", "@x", "%y", "`z", "=", "<<", "...", "---", "?", ":", "a:", ",",
     "true", "20240101", "0.0.0.0", "lk-5f2a.hole", "\u2028", "\x7f", "\u00a0", "$", "a$", "%", '"', "\\"]
)  # fmt: skip
STRINGS = ODD_STRINGS | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False, width=32)
SCALARS: st.SearchStrategy[Json] = STRINGS | NUMBERS | st.booleans() | st.none()
COMMENTS = st.sampled_from(["", "", " # note", "  # tag: 1.0", "\t# 'quoted", ' # "{[', " #"])


@dataclass(frozen=True, slots=True)
class Messy:
    """A text, the scalars in it by path, and which of them can be named and replaced."""

    text: str
    leaves: dict[Path, Json]


def key_of(path: Path) -> str:
    """A path as a dotted key."""
    return ".".join(str(part).replace(".", "\\.").replace(":", "\\:") for part in path)


def _quoted(draw: Draw, value: str) -> str:
    if draw(st.booleans()) and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return _ascii(value)


def _ascii(value: str) -> str:
    """A string between double quotes that YAML and TOML read too: neither knows JSON's pairs of surrogates."""
    return '"' + "".join(each if ord(each) > 0xFFFF else json.dumps(each)[1:-1] for each in value) + '"'


PLAIN: list[tuple[str, Json]] = [
    ("v1.2", "v1.2"),
    ("1.5", 1.5),
    ("7", 7),
    ("true", True),
    ("~", None),
    ("a b", "a b"),
]


def _yaml_scalar(draw: Draw) -> tuple[str, Json]:
    text, value = draw(st.sampled_from(PLAIN))
    if draw(st.booleans()):
        value = draw(STRINGS)
        text = _quoted(draw, str(value))
    return text, value


def _yaml_flow(draw: Draw, path: Path, leaves: dict[Path, Json]) -> str:
    pieces = []
    is_list = draw(st.booleans())
    gap = draw(st.sampled_from(["", " ", "  "]))
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    for position, name in enumerate(names):
        text, value = _yaml_scalar(draw)
        leaves[(*path, position if is_list else name)] = value
        pieces.append(text if is_list else f"{json.dumps(name)}:{' ' + gap}{text}")
    inner = f",{gap}".join(pieces)
    return f"[{gap}{inner}{gap}]" if is_list else f"{{{gap}{inner}{gap}}}"


def _yaml_block(draw: Draw, path: Path, leaves: dict[Path, Json], indent: int) -> list[str]:
    lines: list[str] = []
    pad = " " * indent
    is_list = draw(st.booleans()) and bool(path)
    step = draw(st.sampled_from([2, 4]))
    for position, name in enumerate(draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))):
        if draw(st.integers(0, 5)) == 0:
            lines.append(draw(st.sampled_from(["", f"{pad}# comment: here", "   ", "# - far left"])))
        head = f"{pad}-" if is_list else f"{pad}{json.dumps(name, ensure_ascii=False)}:"
        at: Path = (*path, position if is_list else name)
        kind = draw(st.integers(0, 7)) if len(path) < 3 else draw(st.integers(3, 7))
        if kind <= 2:
            lines += [head + draw(COMMENTS).replace("\t", " "), *_yaml_block(draw, at, leaves, indent + step)]
        elif kind == 3:
            lines.append(head + " " + _yaml_flow(draw, at, leaves) + draw(COMMENTS))
        elif kind == 4:
            lines += [f"{head} |{draw(COMMENTS)}", f"{pad}    first", "", f"{pad}      second"]
            leaves[at] = "first\n\n  second\n"
        else:
            text, value = _yaml_scalar(draw)
            anchor = draw(st.sampled_from(["", "", f"&a{len(leaves)} "]))
            lines.append(head + draw(st.sampled_from([" ", "   "])) + anchor + text + draw(COMMENTS))
            leaves[at] = value
    return lines


@st.composite
def yaml_texts(draw: Draw) -> Messy:
    """A YAML text of one or two documents with its leaves in the first."""
    leaves: dict[Path, Json] = {}
    lines = _yaml_block(draw, (), leaves, draw(st.sampled_from([0, 0, 2])))
    before = draw(st.sampled_from(["", "---\n", "# top\n\n", "%YAML 1.1\n---\n", "--- # doc\n"]))
    after = draw(st.sampled_from(["", "", "\n\n", "# end\n", "...\n", "---\nimage: other\n"]))
    text = before + "\n".join(lines) + "\n" + after
    return Messy(_endings(draw, text), leaves)


def _endings(draw: Draw, text: str) -> str:
    if draw(st.integers(0, 3)) == 0:
        text = text.replace("\n", "\r\n")
    if draw(st.integers(0, 5)) == 0:
        text = "\ufeff" + text
    return text


def _hcl_string(value: str) -> str:
    text = json.dumps(value, ensure_ascii=False).replace("\\b", "\\u0008").replace("\\f", "\\u000c")
    text = "".join(f"\\u{ord(each):04x}" if each in "\u2028\u2029\x7f\x85" else each for each in text)
    return text.replace("${", "$\\u007b").replace("%{", "%\\u007b")


def _hcl_value(draw: Draw, path: Path, leaves: dict[Path, Json], depth: int) -> str:
    kind = draw(st.integers(0, 6)) if depth < 3 else draw(st.integers(2, 6))
    if kind == 0:
        gap = draw(st.sampled_from([" ", "\n    ", "\n\t# c: 1\n  "]))
        names = draw(st.lists(HCL_NAMES, min_size=1, max_size=3, unique=True))
        sign = draw(st.sampled_from([" = ", "=", " : ", "   =  "]))
        items = [
            f"{json.dumps(name) if draw(st.booleans()) else name}{sign}"
            + _hcl_value(draw, (*path, name), leaves, depth + 1)
            for name in names
        ]  # fmt: skip
        return "{" + gap + ("," + gap).join(items) + gap + "}"
    if kind == 1:
        count = draw(st.integers(1, 3))
        return "[" + ", ".join(_hcl_value(draw, (*path, at), leaves, depth + 1) for at in range(count)) + "]"
    if kind == 2:
        return draw(
            st.sampled_from(['"${var.x}-y"', "var.y", 'join(",", [1, 2])', "(1)", "[for k in x : k]"])
        )
    value = draw(SCALARS)
    leaves[path] = value
    match value:
        case str():
            return _hcl_string(value)
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return _number(value)
        case _:
            raise AssertionError(value)


def _number(value: float) -> str:
    text = repr(value)
    return text if "." in text or "e" not in text else text.replace("e", ".0e")


@st.composite
def hcl_texts(draw: Draw) -> Messy:
    """An HCL text of attributes and blocks with its literals by path."""
    leaves: dict[Path, Json] = {}
    lines = [draw(st.sampled_from(["", "# top", "/* a = 1\n */", "// x {"]))]
    names = draw(st.lists(HCL_NAMES, min_size=1, max_size=4, unique=True))
    for name in names:
        indent = draw(st.sampled_from(["", "", "  ", "\t"]))
        sign = draw(st.sampled_from([" = ", "=", "   =  "]))
        if draw(st.integers(0, 2)) == 0:
            label = draw(st.sampled_from(['"main"', "main", '"a.b"']))
            inner = _hcl_value(draw, (name, label.strip('"'), "v"), leaves, 1)
            lines += [f"{indent}{name} {label} {{", f"    v{sign}{inner} # c", "}", ""]
        else:
            lines.append(f"{indent}{name}{sign}{_hcl_value(draw, (name,), leaves, 0)}{draw(COMMENTS)}")
    text = "\n".join(lines) + draw(st.sampled_from(["\n", "", "\n\n# end\n"]))
    return Messy(_endings(draw, text), leaves)


@st.composite
def json_texts(draw: Draw) -> Messy:
    """A JSON text in one of several layouts."""
    tree = st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
        max_leaves=8,
    )
    value = draw(st.dictionaries(NAMES, tree, min_size=1, max_size=4))
    separators = draw(st.sampled_from([(", ", ": "), (",", ":"), (" , ", " : ")]))
    indent = draw(st.sampled_from([None, 2, "\t"]))
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    return Messy(_endings(draw, text + draw(st.sampled_from(["", "\n"]))), dict(_walk(value, ())))


def _walk(value: Json, path: Path) -> list[tuple[Path, Json]]:
    if isinstance(value, dict) and value:
        return [leaf for key, item in value.items() for leaf in _walk(item, (*path, key))]
    if isinstance(value, list) and value:
        return [leaf for at, item in enumerate(value) for leaf in _walk(item, (*path, at))]
    return [(path, value)]


def _toml_value(draw: Draw, path: Path, leaves: dict[Path, Json], depth: int) -> str:
    kind = draw(st.integers(0, 6)) if depth < 2 else draw(st.integers(2, 6))
    if kind == 0:
        gap = draw(st.sampled_from([" ", "\n  ", " # [\n  "]))
        count = draw(st.integers(1, 3))
        inner = [_toml_value(draw, (*path, at), leaves, depth + 1) for at in range(count)]
        return "[" + gap + ("," + gap).join(inner) + gap + "]"
    if kind == 1:
        names = draw(st.lists(NAMES, min_size=1, max_size=2, unique=True))
        inner = [f"{_toml_key(n)} = {_toml_value(draw, (*path, n), leaves, 2)}" for n in names]
        return "{ " + ", ".join(inner) + " }"
    if kind == 2:
        return draw(
            st.sampled_from(
                ["1979-05-27 07:32:00Z", "07:32:00", "nan", "0xFF", '"""a\n"b" # c"""', "'''x'''"]
            )
        )
    value = draw(STRINGS | NUMBERS | st.booleans())
    leaves[path] = value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        literal = draw(st.booleans()) and "'" not in value and value.isprintable()
        return f"'{value}'" if literal else _ascii(value).replace("\x7f", "\\u007f")
    return repr(value)


def _toml_key(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


@st.composite
def toml_texts(draw: Draw) -> Messy:
    """A TOML text with tables, arrays of tables and inline containers."""
    leaves: dict[Path, Json] = {}
    lines = [draw(st.sampled_from(["", "# top = 1"]))]
    for name in draw(st.lists(NAMES, max_size=2, unique=True)):
        lines.append(f"{_toml_key(name)}={_toml_value(draw, (name,), leaves, 0)}{draw(COMMENTS)}")
    for table in draw(st.lists(st.sampled_from(["t1", "t2"]), max_size=2, unique=True)):
        count = draw(st.integers(0, 2))
        for at in range(max(count, 1)):
            path: Path = (table, at) if count else (table,)
            lines.append(f"[[{table}]] # x" if count else f"[ {table} ]")
            for name in draw(st.lists(NAMES, min_size=1, max_size=2, unique=True)):
                lines.append(
                    f"  {_toml_key(name)} = {_toml_value(draw, (*path, name), leaves, 0)}{draw(COMMENTS)}"
                )
    return Messy(_endings(draw, "\n".join(lines) + draw(st.sampled_from(["\n", ""]))), leaves)
