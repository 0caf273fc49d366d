"""What expressions refer to, read without evaluating them: for validation, and for "which step does this wait for"."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.values import Json
from bot.expressions.evaluator import Expression
from bot.expressions.nodes import Call, Literal, Member, Name, Node, walk
from bot.expressions.templates import parse_template


@dataclass(frozen=True, slots=True)
class References:
    """Names that expressions use.

    `outputs`, `task_outputs` and `variables` hold constant keys; a name in `computed` (`outputs`, `task.outputs`,
    `vars`) is used whole or with a computed key, so any of its entries may be meant. `calls` pairs a function with
    its first argument where that is a constant text, else with None: `("secret", "db")`.
    """

    outputs: frozenset[str] = frozenset()
    task_outputs: frozenset[str] = frozenset()
    variables: frozenset[str] = frozenset()
    computed: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    calls: frozenset[tuple[str, str | None]] = frozenset()

    def joined(self, other: References) -> References:
        """Both together."""
        return References(
            self.outputs | other.outputs,
            self.task_outputs | other.task_outputs,
            self.variables | other.variables,
            self.computed | other.computed,
            self.functions | other.functions,
            self.calls | other.calls,
        )


def list_references(value: Json) -> References:
    """What all expressions inside a text or a whole configuration refer to.

    Raises ExpressionError for the first one that cannot be compiled.
    """
    found = References()
    waiting: list[Json] = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                for expression in parse_template(text):
                    found = found.joined(list_expression_references(expression))
            case list() as items:
                waiting.extend(items)
            case dict() as items:
                waiting.extend(items.values())
            case _:
                continue
    return found


def list_expression_references(expression: Expression) -> References:
    """What one expression refers to. A name that a `let` hides is listed all the same."""
    nodes = walk(expression.node)
    used: dict[str, set[str]] = {"outputs": set(), "task.outputs": set(), "vars": set()}
    inside: set[int] = set()
    for node in nodes:
        if not isinstance(node, Member) or (root := _root(node.container)) not in used:
            continue
        if isinstance(node.key, Literal) and isinstance(node.key.value, str):
            used[root].add(node.key.value)
            inside.add(id(node.container))
    calls = [node for node in nodes if isinstance(node, Call) and isinstance(node.callee, Name)]
    return References(
        frozenset(used["outputs"]),
        frozenset(used["task.outputs"]),
        frozenset(used["vars"]),
        frozenset(root for node in nodes if (root := _root(node)) in used and id(node) not in inside),
        frozenset(node.callee.name for node in calls if isinstance(node.callee, Name)),
        frozenset((node.callee.name, _constant(node)) for node in calls if isinstance(node.callee, Name)),
    )


def _root(node: Node) -> str:
    """`outputs`, `vars` or `task.outputs`, if the node is one of them."""
    if isinstance(node, Name):
        return "any" if node.name == "$env" else node.name
    if isinstance(node, Member) and isinstance(node.container, Name) and isinstance(node.key, Literal):
        return f"{node.container.name}.{node.key.value}"
    return ""


def _constant(call: Call) -> str | None:
    first = call.arguments[0] if call.arguments else None
    return first.value if isinstance(first, Literal) and isinstance(first.value, str) else None
