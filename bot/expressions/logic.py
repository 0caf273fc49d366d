"""How operators and calls run on operands that may carry marks."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.values import Sensitive
from bot.expressions.equality import float_or_int
from bot.expressions.errors import BudgetExceededError, ExpressionError
from bot.expressions.frame import Frame, Run
from bot.expressions.marks import is_unknown, lift, scan, sensitive
from bot.expressions.nodes import Literal, Member, Name, Node
from bot.expressions.operands import NUMBERS, Method, Operand, Span, name_type, wrap_int
from bot.expressions.operators import BINARY

SIMPLE: frozenset[type] = frozenset({type(None), bool, int, float, str, Span})
"""Types that hold no marks, so that the slow road is not taken for them."""


class ChainEnd:
    """What a `?.` chain gives from nil on; `names` are those of the secrets that were nil."""

    __slots__ = ("names",)

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        self.names = names


CHAIN_END = ChainEnd()
"""The end of a chain at nil that is no secret."""


def describe(node: Node) -> str:
    """The path that a node spells, such as `outputs.apply`, or an empty text."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Member) and isinstance(node.key, Literal) and (front := describe(node.container)):
        return (
            f"{front}.{node.key.value}" if isinstance(node.key.value, str) else f"{front}[{node.key.value}]"
        )
    return ""


def placed(run: Run, at: int) -> Run:
    """The same, with errors that know no place yet placed at `at`."""

    def run_placed(frame: Frame) -> Operand:
        try:
            return run(frame)
        except ExpressionError as error:
            if error.position < 0:
                error.position = at
            raise

    return run_placed


def operate(operator: str, left: Run, right: Run) -> Run:
    """A binary operator that evaluates both sides."""
    compute = BINARY[operator]

    def run(frame: Frame) -> Operand:
        one, other = left(frame), right(frame)
        if type(one) in SIMPLE and type(other) in SIMPLE:
            return compute(one, other, frame.meter)
        return lift((one, other), frame.meter, lambda plain: compute(plain[0], plain[1], frame.meter))

    return run


def logical(left: Run, right: Run, *, deciding: bool) -> Run:
    """Three-valued `&&` (False decides) and `||` (True decides).

    With an unknown left side the right one may still decide; if it fails, nothing is known, since the left side
    may keep it from being evaluated.
    """

    def run(frame: Frame) -> Operand:
        one = left(frame)
        if isinstance(one, bool):
            return one if one is deciding else right(frame)
        if isinstance(one, Sensitive) and isinstance(one.value, bool):
            return one if one.value is deciding else sensitive((one.name,), right(frame))
        if not is_unknown(one):
            raise ExpressionError(f"&& and || stand between true and false, not {name_type(one)}")
        try:
            other = right(frame)
        except BudgetExceededError:
            raise
        except ExpressionError:
            return scan((one,), frame.meter).unknown()
        inner = other.value if isinstance(other, Sensitive) else other
        if inner is deciding:
            return other
        return scan((one, other), frame.meter).unknown()

    return run


def coalesce(left: Run, right: Run) -> Run:
    """`??`: the right side counts only if the left one is nil; an unknown left side stays unknown."""

    def run(frame: Frame) -> Operand:
        one = left(frame)
        if one is None:
            return right(frame)
        if isinstance(one, Sensitive) and one.value is None:
            return sensitive((one.name,), right(frame))
        return one

    return run


def invert(value: Operand) -> Operand:
    """`!` and `not`."""
    if isinstance(value, bool):
        return not value
    raise ExpressionError(f"not stands before true or false, not {name_type(value)}")


def negate(value: Operand) -> Operand:
    """Minus before a number or a duration."""
    if isinstance(value, Span):
        return Span(wrap_int(-value.nanoseconds))
    if type(value) not in NUMBERS:
        raise ExpressionError(f"- stands before a number, not {name_type(value)}")
    number = -float_or_int(value)
    return wrap_int(number) if isinstance(number, int) else number


def plus(value: Operand) -> Operand:
    """Plus before a number."""
    if type(value) not in NUMBERS:
        raise ExpressionError(f"+ stands before a number, not {name_type(value)}")
    return value


def call_function(name: str, arguments: list[Run]) -> Run:
    """The call of a registered function, with its arguments free of marks."""

    def run(frame: Frame) -> Operand:
        function = frame.functions.get(name)
        if function is None:
            raise ExpressionError(f"there is no function {name} here")
        return lift([argument(frame) for argument in arguments], frame.meter, function)

    return run


def call_method(method: Operand, arguments: Sequence[Operand]) -> Operand:
    """The call of a method with arguments free of marks."""
    if not isinstance(method, Method):
        raise ExpressionError(f"{name_type(method)} cannot be called")
    return method.call(arguments)
