"""What the steps for GitHub issues have in common: reading numbers that may not be known yet, and an issue's shape."""

from __future__ import annotations

from collections.abc import Iterable

from bot.domain.github import Issue
from bot.domain.values import Value
from bot.ports import TerminalError
from bot.steps.marks import message_text
from bot.steps.options import Options, known_text


def read_id(value: Value, where: str) -> int:
    """A number of GitHub's, once it is known; raises TerminalError for what is none."""
    text = known_text(value, where)
    if not (text.isascii() and text.isdigit()):
        raise TerminalError(f"{where} is {text!r}, which is no number")
    return int(text)


def texts(options: Options, name: str) -> tuple[Value, ...]:
    """A list of texts that may hold marks, empty if absent."""
    value = options.value(name)
    return tuple(value) if isinstance(value, list) else ()


def say_all(values: Iterable[Value], where: str) -> tuple[str, ...]:
    """The texts as they are sent: secrets are masked, an unknown one raises TerminalError."""
    return tuple(message_text(value, where) for value in values)


def describe_issue(issue: Issue) -> dict[str, Value]:
    """An issue as Kargo's steps put it out and as their expressions see it."""
    return {
        "number": issue.number,
        "title": issue.title,
        "body": issue.body,
        "state": issue.state,
        "labels": list(issue.labels),
        "assignees": list(issue.assignees),
        "url": issue.url,
    }
