"""The parsed expression; `at` is the character where a node's own sign stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Literal:
    """nil, a bool, a number or a text."""

    at: int
    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Name:
    """A variable of a `let` or a name of the environment."""

    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Pointer:
    """`#` (an empty name), `#acc` or `#index` inside a predicate."""

    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Unary:
    """`!`, `not`, `-` or `+`."""

    at: int
    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    """An operator between two operands."""

    at: int
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Chain:
    """The reach of `?.`: nil on its left ends the whole chain with nil."""

    at: int
    inner: Node


@dataclass(frozen=True, slots=True)
class Member:
    """`container.name` or `container[key]`; `optional` tells `?.`."""

    at: int
    container: Node
    key: Node
    optional: bool


@dataclass(frozen=True, slots=True)
class Slice:
    """`container[start:end]`."""

    at: int
    container: Node
    start: Node | None
    end: Node | None


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a registered function (by name) or of a method (a Member)."""

    at: int
    callee: Name | Member
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class BuiltinCall:
    """A call of an expr-lang builtin that takes plain arguments."""

    at: int
    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class PredicateCall:
    """A call of an expr-lang builtin that runs an expression per element.

    `extra` is the order of `sortBy` or the first value of `reduce`.
    """

    at: int
    name: str
    collection: Node
    body: Node | None
    extra: Node | None


@dataclass(frozen=True, slots=True)
class Conditional:
    """`c ? a : b` and `if c { a } else { b }`."""

    at: int
    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Let:
    """`let name = value; body`."""

    at: int
    name: str
    value: Node
    body: Node


@dataclass(frozen=True, slots=True)
class Block:
    """`a; b`: all are evaluated, the last one counts."""

    at: int
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ArrayNode:
    """`[a, b]`."""

    at: int
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class MapNode:
    """`{a: 1, (b): 2}` as pairs of key and value."""

    at: int
    pairs: tuple[tuple[Node, Node], ...]


Node: TypeAlias = (
    "Literal | Name | Pointer | Unary | Binary | Chain | Member | Slice | Call | BuiltinCall | PredicateCall "
    "| Conditional | Let | Block | ArrayNode | MapNode"
)


def list_children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below."""
    match node:
        case Literal() | Name() | Pointer():
            return ()
        case Unary(operand=inner) | Chain(inner=inner):
            return (inner,)
        case Binary(left=left, right=right):
            return (left, right)
        case Member(container=container, key=key):
            return (container, key)
        case Slice(container=container, start=start, end=end):
            return (container, *(item for item in (start, end) if item is not None))
        case Call(callee=callee, arguments=arguments):
            return (callee, *arguments)
        case BuiltinCall(arguments=arguments):
            return arguments
        case PredicateCall(collection=collection, body=body, extra=extra):
            return (collection, *(item for item in (body, extra) if item is not None))
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case Let(value=value, body=body):
            return (value, body)
        case Block(items=items) | ArrayNode(items=items):
            return items
        case MapNode(pairs=pairs):
            return tuple(item for pair in pairs for item in pair)


def walk(node: Node) -> list[Node]:
    """The node and everything below it, without recursion."""
    found: list[Node] = []
    waiting: list[Node] = [node]
    while waiting:
        current = waiting.pop()
        found.append(current)
        waiting.extend(list_children(current))
    return found
