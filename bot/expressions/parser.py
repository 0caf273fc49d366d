"""Tokens to a tree: the grammar of expr-lang 1.17 as a Pratt parser."""

from __future__ import annotations

from collections.abc import Callable

from bot.expressions.errors import ExpressionError
from bot.expressions.grammar import (
    BINARY,
    BUILTINS,
    COMPARISONS,
    IDENTIFIER,
    MAX_HEIGHT,
    MAX_NESTING,
    NEGATABLE,
    PREDICATES,
    RIGHT_BOUND,
    UNARY,
    read_number,
)
from bot.expressions.lexer import Kind, Token, read_tokens
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
    list_children,
)


def parse(source: str) -> Node:
    """The tree of an expression; raises ExpressionError."""
    return _Parser(read_tokens(source)).parse()


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.index = 0
        self.current = tokens[0]
        self.nesting = 0
        self.predicates = 0
        self.heights: dict[int, int] = {}

    def parse(self) -> Node:
        node = self.sequence(closing=None)
        if self.current.kind is not Kind.END:
            raise self.unexpected()
        return node

    # -- tokens --------------------------------------------------------------------------------------------

    def unexpected(self) -> ExpressionError:
        return ExpressionError(f"unexpected {self.current}", self.current.at)

    def advance(self) -> Token:
        token = self.current
        if token.kind is not Kind.END:
            self.index += 1
            self.current = self.tokens[self.index]
        return token

    def expect_operator(self, value: str) -> Token:
        if not self.current.is_operator(value):
            raise ExpressionError(f"expected {value!r}, found {self.current}", self.current.at)
        return self.advance()

    def expect_bracket(self, value: str) -> Token:
        if not self.current.is_bracket(value):
            raise ExpressionError(f"expected {value!r}, found {self.current}", self.current.at)
        return self.advance()

    def expect_name(self) -> Token:
        if self.current.kind is not Kind.NAME:
            raise ExpressionError(f"expected a name, found {self.current}", self.current.at)
        return self.advance()

    def made(self, node: Node) -> Node:
        """The node, after its height was checked: evaluation recurses as deep as the tree is high."""
        height = 1 + max((self.heights.get(id(child), 1) for child in list_children(node)), default=0)
        if height > MAX_HEIGHT:
            raise ExpressionError(
                f"the expression is too complex: more than {MAX_HEIGHT} parts in one chain", node.at
            )
        self.heights[id(node)] = height
        return node

    # -- expressions ---------------------------------------------------------------------------------------

    def sequence(self, closing: str | None) -> Node:
        first = self.expression()
        items = [first]
        while self.current.is_operator(";"):
            self.advance()
            if self.current.kind is Kind.END or (closing is not None and self.current.is_bracket(closing)):
                break
            items.append(self.expression())
        return first if len(items) == 1 else self.made(Block(first.at, tuple(items)))

    def expression(self, level: int = 0) -> Node:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise ExpressionError(f"the expression nests deeper than {MAX_NESTING} levels", self.current.at)
        node = self._expression(level)
        self.nesting -= 1
        return node

    def _expression(self, level: int) -> Node:
        if level == 0 and self.current.is_operator("let"):
            return self.let()
        if level == 0 and self.current.is_operator("if"):
            return self.branch()
        left = self.primary()
        before = ""
        while self.current.kind is Kind.OPERATOR:
            token = self.current
            negated = token.value == "not"
            if negated:
                token = self.tokens[self.index + 1]
                if token.kind is not Kind.OPERATOR or token.value not in NEGATABLE:
                    raise self.unexpected()
            binding = BINARY.get(token.value)
            if binding is None or binding < level:
                break
            if negated:
                self.advance()
            self.advance()
            left = self.binary(left, token, binding, before)
            if negated:
                left = self.made(Unary(token.at, "not", left))
            before = token.value
        return self.ternary(left) if level == 0 else left

    def binary(self, left: Node, token: Token, binding: int, before: str) -> Node:
        if token.value == "|":
            name = self.expect_name()
            return self.postfix(self.call(name, (left,)))
        if before == "??" and token.value != "??":
            raise ExpressionError(
                f"?? and {token.value} cannot be mixed; put one of them in parentheses", token.at
            )
        if token.value in COMPARISONS:
            return self.comparison(left, token, binding)
        right = self.expression(binding if token.value in RIGHT_BOUND else binding + 1)
        return self.made(Binary(token.at, token.value, left, right))

    def comparison(self, left: Node, token: Token, binding: int) -> Node:
        """`a < b < c` means `a < b && b < c`."""
        root: Node | None = None
        while True:
            right = self.expression(binding + 1)
            step = self.made(Binary(token.at, token.value, left, right))
            root = step if root is None else self.made(Binary(token.at, "&&", root, step))
            left = right
            if not self.current.is_operator(*COMPARISONS):
                return root
            token = self.advance()

    def ternary(self, node: Node) -> Node:
        while self.current.is_operator("?"):
            token = self.advance()
            if self.current.is_operator(":"):
                self.advance()
                then = node
            else:
                then = self.expression()
                self.expect_operator(":")
            node = self.made(Conditional(token.at, node, then, self.expression()))
        return node

    def let(self) -> Node:
        self.advance()
        name = self.expect_name()
        if name.value in BUILTINS or name.value in PREDICATES:
            raise ExpressionError(f"let cannot redeclare the builtin {name.value}", name.at)
        self.expect_operator("=")
        value = self.expression()
        self.expect_operator(";")
        body = self.sequence(closing=None)
        return self.made(Let(name.at, name.value, value, body))

    def branch(self) -> Node:
        token = self.advance()
        condition = self.expression()
        self.expect_bracket("{")
        then = self.sequence(closing="}")
        self.expect_bracket("}")
        self.expect_operator("else")
        if self.current.is_operator("if"):
            otherwise = self.expression()
        else:
            self.expect_bracket("{")
            otherwise = self.sequence(closing="}")
            self.expect_bracket("}")
        return self.made(Conditional(token.at, condition, then, otherwise))

    # -- operands ------------------------------------------------------------------------------------------

    def primary(self) -> Node:
        token = self.current
        if token.kind is Kind.OPERATOR:
            return self.prefixed(token)
        if token.is_bracket("("):
            self.advance()
            node = self.sequence(closing=")")
            self.expect_bracket(")")
            return self.postfix(node)
        if token.is_bracket("[") or token.is_bracket("{"):
            return self.postfix(self.array() if token.value == "[" else self.map())
        if token.kind is Kind.NUMBER:
            self.advance()
            return Literal(token.at, read_number(token))
        if token.kind is Kind.TEXT:
            self.advance()
            return self.postfix(Literal(token.at, token.value))
        if token.kind is Kind.NAME:
            return self.named()
        raise self.unexpected()

    def prefixed(self, token: Token) -> Node:
        if (binding := UNARY.get(token.value)) is not None:
            self.advance()
            return self.postfix(self.made(Unary(token.at, token.value, self.expression(binding))))
        if token.value in ("#", "."):
            if not self.predicates:
                raise ExpressionError(
                    f"{token.value} stands for an element and needs a predicate around it", token.at
                )
            return self.postfix(self.pointer(token))
        if token.value == "::":
            self.advance()
            return self.postfix(self.call(self.expect_name(), ()))
        raise self.unexpected()

    def pointer(self, token: Token) -> Node:
        if token.value == ".":
            return Pointer(token.at, "")
        self.advance()
        if self.current.kind is Kind.NAME and self.current.at == token.at + 1:
            name = self.advance().value
            if name not in ("acc", "index"):
                raise ExpressionError(f"#{name} does not exist; there are #, #acc and #index", token.at)
            return Pointer(token.at, name)
        return Pointer(token.at, "")

    def named(self) -> Node:
        token = self.advance()
        match token.value:
            case "true" | "false":
                return Literal(token.at, token.value == "true")
            case "nil":
                return Literal(token.at, None)
        if self.current.is_bracket("("):
            return self.postfix(self.call(token, ()))
        return self.postfix(Name(token.at, token.value))

    def array(self) -> Node:
        token = self.advance()
        items = self.separated("]", self.expression)
        return self.made(ArrayNode(token.at, items))

    def map(self) -> Node:
        token = self.advance()
        pairs: list[tuple[Node, Node]] = []
        while not self.current.is_bracket("}"):
            if pairs:
                self.expect_operator(",")
                if self.current.is_bracket("}"):
                    break
            key = self.key()
            self.expect_operator(":")
            pairs.append((key, self.expression()))
        self.advance()
        return self.made(MapNode(token.at, tuple(pairs)))

    def key(self) -> Node:
        token = self.current
        if token.kind in (Kind.NUMBER, Kind.TEXT, Kind.NAME):
            self.advance()
            return Literal(token.at, token.value)
        if token.is_bracket("("):
            return self.expression()
        raise ExpressionError(
            f"a map's key is a name, a text, a number or stands in ( ), not {token}", token.at
        )

    def separated(self, closing: str, item: Callable[[], Node]) -> tuple[Node, ...]:
        """Items with commas between, one comma allowed at the end, and the closing bracket."""
        items: list[Node] = []
        while not self.current.is_bracket(closing):
            if items:
                self.expect_operator(",")
                if self.current.is_bracket(closing):
                    break
            items.append(item())
        self.advance()
        return tuple(items)

    # -- calls and members ---------------------------------------------------------------------------------

    def call(self, token: Token, first: tuple[Node, ...]) -> Node:
        """A call whose first arguments came through a pipe."""
        if token.value in PREDICATES:
            return self.made(self.predicate_call(token, first))
        self.expect_bracket("(")
        arguments = (*first, *self.separated(")", self.expression))
        if token.value in BUILTINS:
            return self.made(BuiltinCall(token.at, token.value, arguments))
        return self.made(Call(token.at, Name(token.at, token.value), arguments))

    def predicate_call(self, token: Token, first: tuple[Node, ...]) -> PredicateCall:
        form = PREDICATES[token.value]
        self.expect_bracket("(")
        collection = first[0] if first else self.expression()
        body: Node | None = None
        extra: Node | None = None
        if not first and not self.current.is_bracket(")"):
            self.expect_operator(",")
        if not self.current.is_bracket(")"):
            body = self.predicate()
        if body is None and form != "optional":
            raise ExpressionError(f"{token.value} needs a predicate", self.current.at)
        if form == "extra" and self.current.is_operator(","):
            self.advance()
            if not self.current.is_bracket(")"):
                extra = self.expression()
        if self.current.is_operator(","):
            self.advance()
        self.expect_bracket(")")
        return PredicateCall(token.at, token.value, collection, body, extra)

    def predicate(self) -> Node:
        braced = self.current.is_bracket("{")
        if braced:
            self.advance()
        self.predicates += 1
        node = self.sequence(closing="}") if braced else self.expression()
        self.predicates -= 1
        if braced:
            self.expect_bracket("}")
        return node

    def postfix(self, node: Node) -> Node:
        """What follows a value; `.name` goes on with the `?.` chain before it, `[key]` ends it, as in expr-lang."""
        while True:
            if self.current.is_operator(".", "?."):
                optional = self.advance().value == "?."
                inner = node.inner if isinstance(node, Chain) else node
                bracket = optional and self.current.is_bracket("[")
                then = (
                    self.index_or_slice(inner, optional=True)
                    if bracket
                    else self.member(inner, optional=optional)
                )
                node = self.made(Chain(then.at, then)) if optional or inner is not node else then
            elif self.current.is_bracket("["):
                node = self.index_or_slice(node, optional=False)
            else:
                return node

    def member(self, node: Node, *, optional: bool) -> Node:
        token = self.current
        if token.kind is not Kind.NAME and not (
            token.kind is Kind.OPERATOR and IDENTIFIER.fullmatch(token.value)
        ):
            raise ExpressionError(f"expected a name, found {token}", token.at)
        self.advance()
        member = Member(token.at, node, Literal(token.at, token.value), optional)
        self.made(member)
        if not self.current.is_bracket("("):
            return member
        self.advance()
        return self.made(Call(token.at, member, self.separated(")", self.expression)))

    def index_or_slice(self, node: Node, *, optional: bool) -> Node:
        token = self.advance()
        start: Node | None = None
        if not self.current.is_operator(":"):
            start = self.expression()
            if self.current.is_bracket("]"):
                self.advance()
                return self.made(Member(token.at, node, start, optional))
        self.expect_operator(":")
        end = None if self.current.is_bracket("]") else self.expression()
        self.expect_bracket("]")
        return self.made(Slice(token.at, node, start, end))
