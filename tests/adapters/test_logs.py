"""The log's two forms."""

from __future__ import annotations

import json
import logging
import sys

from bot.adapters.logs import JsonLines, TextLines


def record(message: str, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("bot.workflow", logging.WARNING, "x.py", 1, message, (), None)
    vars(made).update(fields)
    return made


def test_json_entries_are_one_line_with_their_own_fields() -> None:
    line = JsonLines().format(record("a look\nfailed", kind="stage", key="acme/dev"))
    assert "\n" not in line
    entry = json.loads(line)
    assert entry["message"] == "a look\nfailed"
    assert (entry["level"], entry["kind"], entry["key"]) == ("warning", "stage", "acme/dev")
    assert set(entry) == {"at", "level", "logger", "message", "kind", "key"}


def test_text_entries_cannot_be_forged_by_a_line_break() -> None:
    line = TextLines().format(record("pushed\n2026-01-01 error forged", key="a\nb"))
    assert "\n" not in line
    assert line.endswith("key='a\\nb'")


def test_errors_carry_their_trace() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        made = record("work failed")
        made.exc_info = sys.exc_info()
    assert "ValueError: broken" in json.loads(JsonLines().format(made))["error"]
    assert TextLines().format(made).count("\n") > 1
