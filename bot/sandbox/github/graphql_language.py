"""A reader for the part of the GraphQL language that bots write: one operation, no fragments, no directives."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(
    r'\s*(?:#[^\n]*\n\s*)*(?:,\s*)*("(?:[^"\\]|\\.)*"|\.\.\.|[A-Za-z_]\w*|-?\d+(?:\.\d+)?|[!$&()=:@\[\]{}|])'
)


class GraphQLError(Exception):
    """One entry of `errors`, with the `type` that GitHub gives it."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Field:
    """One selected field with its arguments and what is selected below it."""

    name: str
    alias: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    selected: tuple["Field", ...] = ()


class _Reader:
    """Reads one operation of the GraphQL language, without fragments and directives."""

    def __init__(self, text: str, variables: Mapping[str, Any]) -> None:
        self._tokens = _tokens(text)
        self._variables = variables
        self._declared: set[str] = set()

    def operation(self) -> tuple[str, tuple[Field, ...]]:
        kind = "query"
        if self._tokens and self._tokens[0] in ("query", "mutation", "subscription"):
            kind = self._next()
            if self._tokens and self._tokens[0] not in ("{", "("):
                self._next()
            if self._tokens and self._tokens[0] == "(":
                self._declarations()
        return kind, self._selection()

    def _next(self, wanted: str | None = None) -> str:
        if not self._tokens:
            raise GraphQLError("Unexpected end of document")
        token = self._tokens.pop(0)
        if wanted is not None and token != wanted:
            raise GraphQLError(f'Expected "{wanted}", actual: "{token}"')
        return token

    def _declarations(self) -> None:
        self._next("(")
        while self._tokens and self._tokens[0] != ")":
            self._next("$")
            name = self._next()
            self._declared.add(name)
            self._next(":")
            required = False
            while self._tokens and self._tokens[0] not in ("$", ")", "="):
                required = self._next() == "!"
            if self._tokens and self._tokens[0] == "=":
                self._next()
                self._variables = {name: self._value(), **self._variables}
            if required and self._variables.get(name) is None:
                raise GraphQLError(f"Variable ${name} of required type was not provided a value")
        self._next(")")

    def _selection(self) -> tuple[Field, ...]:
        self._next("{")
        fields = []
        while self._tokens and self._tokens[0] != "}":
            alias = name = self._next()
            if self._tokens and self._tokens[0] == ":":
                self._next()
                name = self._next()
            arguments = self._arguments() if self._tokens and self._tokens[0] == "(" else {}
            selected = self._selection() if self._tokens and self._tokens[0] == "{" else ()
            fields.append(Field(name, alias, arguments, selected))
        self._next("}")
        return tuple(fields)

    def _arguments(self) -> dict[str, Any]:
        self._next("(")
        found = {}
        while self._tokens and self._tokens[0] != ")":
            name = self._next()
            self._next(":")
            found[name] = self._value()
        self._next(")")
        return found

    def _value(self) -> Any:
        token = self._next()
        if token == "$":
            name = self._next()
            if name not in self._declared:
                raise GraphQLError(f"Variable ${name} is used by anonymous query but not declared")
            return self._variables.get(name)
        if token == "{":
            found = {}
            while self._tokens and self._tokens[0] != "}":
                name = self._next()
                self._next(":")
                found[name] = self._value()
            self._next("}")
            return found
        if token == "[":
            items = []
            while self._tokens and self._tokens[0] != "]":
                items.append(self._value())
            self._next("]")
            return items
        return _literal(token)


def _literal(token: str) -> Any:
    if token.startswith('"'):
        return json.loads(token)
    named: dict[str, Any] = {"true": True, "false": False, "null": None}
    if token in named:
        return named[token]
    return int(token) if token.lstrip("-").isdigit() else token


def _tokens(text: str) -> list[str]:
    tokens, at, end = [], 0, len(text.rstrip().rstrip(","))
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise GraphQLError(f"Parse error on {text[at : at + 20].strip()!r}")
        tokens.append(match.group(1))
        at = match.end()
    return tokens


def read(text: str, variables: Mapping[str, Any]) -> tuple[str, tuple[Field, ...]]:
    """The kind (`query` or `mutation`) and the top fields of a document; GraphQLError if it cannot be read."""
    return _Reader(text, variables).operation()
