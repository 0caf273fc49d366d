"""An expression compiled to nested closures, and evaluated with marks.

`compile_expression` is cached by source. Evaluating costs a few microseconds per operator; loops, texts and lists
are paid for from the budget of `meter`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

from bot.domain.values import Sensitive, Unknown, Value
from bot.expressions.builtins import TABLE, call_builtin
from bot.expressions.convert import to_value
from bot.expressions.errors import BudgetExceededError, ExpressionError
from bot.expressions.frame import Code, Frame, Run
from bot.expressions.kinds import check_binary, check_bool, check_member, check_unary, result_kind
from bot.expressions.logic import (
    CHAIN_END,
    SIMPLE,
    ChainEnd,
    call_function,
    call_method,
    coalesce,
    describe,
    invert,
    logical,
    negate,
    operate,
    placed,
    plus,
)
from bot.expressions.marks import is_unknown, lift, scan, sensitive, uncover
from bot.expressions.members import cut, fetch
from bot.expressions.nodes import (
    ArrayNode,
    Binary,
    Block,
    BuiltinCall,
    Call,
    Chain,
    Conditional,
    Let,
    Literal,
    MapNode,
    Member,
    Name,
    Node,
    Pointer,
    PredicateCall,
    Slice,
    Unary,
    walk,
)
from bot.expressions.operands import Function, Operand, name_type
from bot.expressions.operators import read_pattern
from bot.expressions.parser import parse
from bot.expressions.predicates import PredicateRun

_POINTERS = {"map": ("", "index"), "reduce": ("", "index", "acc")}
"""What stands for the element, its place and the sum so far; elsewhere there is only the element, as in expr-lang."""
_FREE_BODIES = frozenset({"map", "sum", "groupBy", "sortBy", "reduce"})


class Expression:
    """A compiled expression."""

    __slots__ = ("node", "run", "slots", "source")

    def __init__(self, source: str, node: Node, run: Run, slots: int) -> None:
        self.source = source
        self.node = node
        self.run = run
        self.slots = slots

    def evaluate(
        self,
        names: Mapping[str, Operand],
        functions: Mapping[str, Function],
        now: datetime | Unknown | None = None,
    ) -> Value:
        """The value: JSON with marks; Go structs by their JSON keys, times as RFC 3339 text.

        Raises ExpressionError.
        """
        operand = self.evaluate_operand(names, functions, now)
        return to_value(operand)

    def evaluate_operand(
        self,
        names: Mapping[str, Operand],
        functions: Mapping[str, Function],
        now: datetime | Unknown | None = None,
    ) -> Operand:
        """The value as the evaluator has it, before structs and times are written as JSON."""
        try:
            return self.run(Frame(names, functions, now, self.slots))
        except RecursionError:
            raise BudgetExceededError("the expression nests too deep to be evaluated here") from None


@lru_cache(maxsize=2048)
def compile_expression(source: str) -> Expression:
    """The compiled expression; raises ExpressionError for a source that expr-lang would not compile."""
    compiler = _Compiler()
    try:
        node = parse(source)
        code = compiler.compile(node)
    except RecursionError:
        raise BudgetExceededError("the expression nests too deep to be compiled here") from None
    return Expression(source, node, code.run, compiler.slots)


class _Compiler:
    def __init__(self) -> None:
        self.slots = 0
        self.scopes: list[tuple[str, int, str]] = []
        self.pointers: list[tuple[int, str]] = []
        self.chains = 0

    def compile(self, node: Node) -> Code:
        match node:
            case Literal(value=value):
                return Code(lambda _: value, result_kind(value))
            case Name():
                return self.name(node)
            case Pointer():
                return self.pointer(node)
            case Unary():
                return self.unary(node)
            case Binary():
                return self.binary(node)
            case Chain():
                return self.chain(node)
            case Member():
                return self.member(node)
            case Slice():
                return self.slice(node)
            case Call():
                return self.call(node)
            case BuiltinCall():
                return self.builtin(node)
            case PredicateCall():
                return self.predicate(node)
            case Conditional():
                return self.conditional(node)
            case Let():
                return self.let(node)
            case Block(items=items):
                return self.block(items)
            case ArrayNode(items=items):
                runs = [self.compile(item).run for item in items]
                return Code(lambda frame: [run(frame) for run in runs], "array")
            case MapNode():
                return self.map(node)

    # -- names ---------------------------------------------------------------------------------------------

    def new_slot(self, count: int = 1) -> int:
        self.slots += count
        return self.slots - count

    def name(self, node: Name) -> Code:
        name = node.name
        found = next((scope for scope in reversed(self.scopes) if scope[0] == name), None)
        if found is not None:
            slot = found[1]
            return Code(lambda frame: frame.slots[slot], found[2])
        if name == "$env":
            return Code(lambda frame: dict(frame.names))
        return Code(lambda frame: frame.names.get(name))

    def pointer(self, node: Pointer) -> Code:
        base, loop = self.pointers[-1]
        if node.name not in _POINTERS.get(loop, ("",)):
            raise ExpressionError(f"there is no #{node.name} in {loop}", node.at)
        slot = base + ("", "index", "acc").index(node.name)
        return Code(lambda frame: frame.slots[slot], "int" if node.name == "index" else "")

    def let(self, node: Let) -> Code:
        if any(name == node.name for name, _, _ in self.scopes):
            raise ExpressionError(f"let cannot redeclare the variable {node.name}", node.at)
        value = self.compile(node.value)
        slot = self.new_slot()
        self.scopes.append((node.name, slot, value.kind))
        body = self.compile(node.body)
        self.scopes.pop()

        def run(frame: Frame) -> Operand:
            frame.slots[slot] = value.run(frame)
            return body.run(frame)

        return Code(run, body.kind)

    def block(self, items: tuple[Node, ...]) -> Code:
        codes = [self.compile(item) for item in items]

        def run(frame: Frame) -> Operand:
            result: Operand = None
            for code in codes:
                result = code.run(frame)
            return result

        return Code(run, codes[-1].kind)

    # -- operators -----------------------------------------------------------------------------------------

    def unary(self, node: Unary) -> Code:
        inner = self.compile(node.operand)
        kind = check_unary(node.operator, inner.kind, node.at)
        compute = {"-": negate, "+": plus}.get(node.operator, invert)

        def run(frame: Frame) -> Operand:
            value = inner.run(frame)
            if type(value) in SIMPLE:
                return compute(value)
            return lift((value,), frame.meter, lambda plain: compute(plain[0]))

        return Code(placed(run, node.at), kind)

    def binary(self, node: Binary) -> Code:
        left, right = self.compile(node.left), self.compile(node.right)
        if node.operator in ("&&", "and"):
            check_bool(left.kind, right.kind, node.at)
            return Code(placed(logical(left.run, right.run, deciding=False), node.at), "bool")
        if node.operator in ("||", "or"):
            check_bool(left.kind, right.kind, node.at)
            return Code(placed(logical(left.run, right.run, deciding=True), node.at), "bool")
        if node.operator == "??":
            return Code(coalesce(left.run, right.run))
        kind = check_binary(node.operator, left.kind, right.kind, node.at)
        if (
            node.operator == "matches"
            and isinstance(node.right, Literal)
            and isinstance(node.right.value, str)
        ):
            try:
                read_pattern(node.right.value)
            except ExpressionError as error:
                raise error.moved(node.right.at) from None
        return Code(placed(operate(node.operator, left.run, right.run), node.at), kind)

    def conditional(self, node: Conditional) -> Code:
        condition, then, otherwise = (
            self.compile(item) for item in (node.condition, node.then, node.otherwise)
        )
        check_bool(condition.kind, "bool", node.at)

        def run(frame: Frame) -> Operand:
            value = condition.run(frame)
            if value is True:
                return then.run(frame)
            if value is False:
                return otherwise.run(frame)
            if is_unknown(value):
                return scan((value,), frame.meter).unknown()
            if isinstance(value, Sensitive) and isinstance(value.value, bool):
                return sensitive((value.name,), (then if value.value else otherwise).run(frame))
            raise ExpressionError(f"a condition must be true or false, not {name_type(value)}")

        return Code(placed(run, node.at), then.kind if then.kind == otherwise.kind else "")

    # -- containers ----------------------------------------------------------------------------------------

    def map(self, node: MapNode) -> Code:
        pairs = [(self.compile(key).run, self.compile(value).run) for key, value in node.pairs]

        def run(frame: Frame) -> Operand:
            made: dict[str, Operand] = {}
            names: tuple[str, ...] = ()
            for key_run, value_run in pairs:
                key = key_run(frame)
                if not isinstance(key, str):
                    marks = scan((key,), frame.meter)
                    if marks.origins:
                        return marks.unknown()
                    names, key = names + marks.names, uncover(key)
                if not isinstance(key, str):
                    raise ExpressionError(f"a map's key must be a text, not {name_type(key)}")
                made[key] = value_run(frame)
            return sensitive(names, made) if names else made

        return Code(placed(run, node.at), "map")

    def chain(self, node: Chain) -> Code:
        self.chains += 1
        inner = self.compile(node.inner).run
        self.chains -= 1

        def run(frame: Frame) -> Operand:
            value = inner(frame)
            return sensitive(value.names, None) if isinstance(value, ChainEnd) else value

        return Code(run)

    def member(self, node: Member) -> Code:
        key = self.compile(node.key).run
        inside = self.compile(node.container)
        check_member(inside.kind, node.at)
        container = inside.run
        where, optional = describe(node.container), node.optional

        def run(frame: Frame) -> Operand:
            base = container(frame)
            if isinstance(base, ChainEnd):
                return base
            if optional and base is None:
                return CHAIN_END
            if optional and isinstance(base, Sensitive) and base.value is None:
                return ChainEnd((base.name,))
            if base is None and where:
                raise ExpressionError(f"{where} is nil here; use ?. where it may be missing")
            return fetch(base, key(frame), frame.meter)

        return Code(placed(run, node.at))

    def slice(self, node: Slice) -> Code:
        inside = self.compile(node.container)
        container = inside.run
        start = self.compile(node.start).run if node.start else (lambda _: 0)
        end = self.compile(node.end).run if node.end else (lambda _: None)

        def run(frame: Frame) -> Operand:
            base = container(frame)
            return base if isinstance(base, ChainEnd) else cut(base, start(frame), end(frame), frame.meter)

        return Code(placed(run, node.at), inside.kind if inside.kind in ("array", "string") else "")

    # -- calls ---------------------------------------------------------------------------------------------

    def call(self, node: Call) -> Code:
        arguments = [self.compile(item).run for item in node.arguments]
        if isinstance(node.callee, Name):
            return Code(placed(call_function(node.callee.name, arguments), node.at))
        callee = self.compile(node.callee).run

        def run(frame: Frame) -> Operand:
            method = callee(frame)
            if isinstance(method, ChainEnd):
                return method
            values = [argument(frame) for argument in arguments]
            if isinstance(method, Sensitive):
                # The method of a sensitive value: the mark holds it, and its result is sensitive.
                return lift((method, *values), frame.meter, lambda plain: call_method(plain[0], plain[1:]))
            if is_unknown(method):
                return scan((method, *values), frame.meter).unknown()
            return lift(values, frame.meter, lambda plain: call_method(method, plain))

        return Code(placed(run, node.at))

    def builtin(self, node: BuiltinCall) -> Code:
        codes = [self.compile(item) for item in node.arguments]
        entry = TABLE[node.name]
        entry.check([code.kind for code in codes], node.at)
        runs = [code.run for code in codes]

        def run(frame: Frame) -> Operand:
            return call_builtin(entry, [argument(frame) for argument in runs], frame)

        return Code(placed(run, node.at), entry.kind)

    def predicate(self, node: PredicateCall) -> Code:
        collection = self.compile(node.collection)
        if collection.kind not in ("", "array"):
            raise ExpressionError(f"{node.name} needs a list, not {collection.kind}", node.at)
        extra = self.compile(node.extra).run if node.extra else None
        base = self.new_slot(3)
        self.pointers.append((base, node.name))
        body = self.compile(node.body) if node.body else None
        self.pointers.pop()
        if body is not None and body.kind == "nil":
            raise ExpressionError(f"the predicate of {node.name} is always nil", node.at)
        if body is not None and body.kind not in ("", "bool") and node.name not in _FREE_BODIES:
            raise ExpressionError(
                f"the predicate of {node.name} must be true or false, not {body.kind}", node.at
            )
        cost = 1 + (len(walk(node.body)) if node.body else 0)
        run = PredicateRun(node.name, collection.run, body.run if body else None, extra, (base, cost))
        kinds = {"filter": "array", "map": "array", "count": "int"}
        kind = "bool" if node.name in ("all", "any", "none", "one") else kinds.get(node.name, "")
        return Code(placed(run, node.at), kind)
