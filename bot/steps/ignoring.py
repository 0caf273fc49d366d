"""The rules of `.gitignore`, for the steps that leave files out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.domain.glob import compile_glob
from bot.ports import TerminalError


@dataclass(frozen=True, slots=True)
class _Rule:
    matches: Callable[[str], object]
    keeps: bool
    directories_only: bool


@dataclass(frozen=True, slots=True)
class Ignore:
    """Rules in order; the last one that matches decides, but nothing below an ignored directory comes back."""

    rules: tuple[_Rule, ...]

    def ignores(self, path: str) -> bool:
        """Whether a file (its path relative to where the rules stand) is left out."""
        parts = path.split("/")
        for length in range(1, len(parts) + 1):
            above = "/".join(parts[:length])
            if self._decides(above, is_directory=length < len(parts)):
                return True
        return False

    def _decides(self, path: str, *, is_directory: bool) -> bool:
        ignored = False
        for rule in self.rules:
            if rule.directories_only and not is_directory:
                continue
            if rule.matches(path):
                ignored = not rule.keeps
        return ignored


def parse_ignore(text: str, where: str) -> Ignore:
    """The rules of a text in the syntax of `.gitignore`; raises TerminalError for a malformed pattern."""
    rules = []
    for line in text.splitlines():
        pattern = line.rstrip() if not line.rstrip().endswith("\\") else line
        if not pattern or pattern.startswith("#"):
            continue
        keeps = pattern.startswith("!")
        pattern = pattern[1:] if keeps else pattern.removeprefix("\\")
        directories_only = pattern.endswith("/")
        pattern = pattern.rstrip("/")
        anchored = "/" in pattern
        pattern = pattern.lstrip("/")
        try:
            compiled = compile_glob(pattern if anchored else f"**/{pattern}")
        except ValueError as error:
            raise TerminalError(f"{where}: the pattern {line!r} is not valid: {error}") from error
        rules.append(_Rule(compiled.search, keeps, directories_only))
    return Ignore(tuple(rules))
