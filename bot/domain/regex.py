"""Regular expressions with Go's syntax and linear running time.

Patterns come from a configuration and texts from registries and repositories, so neither a backtracking engine's
surprises nor its running time are wanted. `compile_regex` reads RE2 syntax as Go does (no look-around, no
back-references, ASCII `\\w`, `$` only at the end) and answers one question: does the pattern match somewhere?
Unicode script classes such as `\\p{Greek}` are refused; general categories such as `\\p{L}` are known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from bot.domain.regex_syntax import (
    Alternatives,
    Assertion,
    Characters,
    Node,
    Repeat,
    Sequence,
    parse_regex,
)

_MAX_INSTRUCTIONS = 5_000
_MAX_STATES = 2_000
_ACCEPT = 0


@dataclass(slots=True)
class _Instruction:
    """One NFA state: a character test, an assertion or a fork; `targets` are where it goes on."""

    characters: Characters | None = None
    assertion: str = ""
    targets: tuple[int, ...] = ()


@dataclass(slots=True)
class _State:
    """A set of NFA states before a character, with what stood before it; `following` fills while searching."""

    kernel: frozenset[int]
    before: str
    following: dict[str, _State] = field(default_factory=dict)


_MATCHED = _State(frozenset(), "")


class Regex:
    """A compiled pattern; only `search` and `pattern` are of interest to a caller."""

    __slots__ = ("_program", "_start", "_states", "pattern")

    def __init__(self, pattern: str, tree: Node) -> None:
        self.pattern = pattern
        self._program = [_Instruction()]
        self._start = self._compile(tree, _ACCEPT)
        self._states: dict[tuple[frozenset[int], str], _State] = {}

    def __repr__(self) -> str:
        return f"Regex({self.pattern!r})"

    @property
    def size(self) -> int:
        """The number of states; one character of a text costs at most work in proportion to it."""
        return len(self._program)

    def search(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        state = self._state(frozenset({self._start}), "begin")
        for char in text:
            after = state.following.get(char)
            if after is None:
                after = state.following[char] = self._advance(state, char)
            if after is _MATCHED:
                return True
            state = after
        return _ACCEPT in self._closure(state, "end")

    # -- compiling ------------------------------------------------------------------------------------------

    def _compile(self, node: Node, target: int) -> int:
        match node:
            case Characters():
                return self._emit(_Instruction(characters=node, targets=(target,)))
            case Assertion(kind=kind):
                return self._emit(_Instruction(assertion=kind, targets=(target,)))
            case Sequence(parts=parts):
                for part in reversed(parts):
                    target = self._compile(part, target)
                return target
            case Alternatives(choices=choices):
                return self._emit(
                    _Instruction(targets=tuple(self._compile(item, target) for item in choices))
                )
            case Repeat():
                return self._compile_repeat(node, target)

    def _compile_repeat(self, node: Repeat, target: int) -> int:
        if node.most is None:
            loop = self._emit(_Instruction())
            body = self._compile(node.body, loop)
            self._program[loop].targets = (body, target)
            target = loop
        else:
            end = target
            for _ in range(node.most - node.least):
                target = self._emit(_Instruction(targets=(self._compile(node.body, target), end)))
        for _ in range(node.least):
            target = self._compile(node.body, target)
        return target

    def _emit(self, instruction: _Instruction) -> int:
        if len(self._program) >= _MAX_INSTRUCTIONS:
            raise ValueError("the regular expression is too large")
        self._program.append(instruction)
        return len(self._program) - 1

    # -- searching ------------------------------------------------------------------------------------------

    def _state(self, kernel: frozenset[int], before: str) -> _State:
        key = (kernel, before)
        state = self._states.get(key)
        if state is None:
            if len(self._states) >= _MAX_STATES:
                # A pattern with very many states is searched slower, but never with unbounded memory.
                self._forget()
            state = self._states[key] = _State(kernel, before)
        return state

    def _forget(self) -> None:
        for state in self._states.values():
            state.following.clear()
        self._states.clear()

    def _advance(self, state: _State, char: str) -> _State:
        reached = self._closure(state, _kind(char))
        if _ACCEPT in reached:
            return _MATCHED
        kernel = {self._start}
        for index in reached:
            instruction = self._program[index]
            if instruction.characters is not None and instruction.characters.contains(char):
                kernel.add(instruction.targets[0])
        return self._state(frozenset(kernel), _kind(char))

    def _closure(self, state: _State, after: str) -> set[int]:
        reached: set[int] = set()
        waiting = list(state.kernel)
        while waiting:
            index = waiting.pop()
            if index in reached:
                continue
            reached.add(index)
            instruction = self._program[index]
            if instruction.characters is None and (
                not instruction.assertion or _holds(instruction.assertion, state.before, after)
            ):
                waiting.extend(instruction.targets)
        return reached


def _kind(char: str) -> str:
    if char == "\n":
        return "newline"
    return "word" if char.isascii() and (char.isalnum() or char == "_") else "other"


def _holds(assertion: str, before: str, after: str) -> bool:
    match assertion:
        case "begin-text":
            return before == "begin"
        case "end-text":
            return after == "end"
        case "begin-line":
            return before in {"begin", "newline"}
        case "end-line":
            return after in {"end", "newline"}
        case "boundary":
            return (before == "word") != (after == "word")
        case _:
            return (before == "word") == (after == "word")


@lru_cache(maxsize=512)
def compile_regex(pattern: str) -> Regex:
    """The pattern, ready to search with; raises ValueError with the reason if Go would refuse it."""
    return Regex(pattern, parse_regex(pattern))
