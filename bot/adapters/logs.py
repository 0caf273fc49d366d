"""The log: one line an entry on standard error, as JSON for collectors or as text for people."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
_DBOS = frozenset({"applicationID", "applicationVersion", "executorID", "operationUUID"})
_CHATTY = ("httpx", "httpcore", "githubkit", "hishel", "asyncio", "sqlalchemy", "apscheduler")
"""Libraries that tell of every request; only their warnings are of interest."""


def start_logging(style: str) -> None:
    """Send the log of the whole process to standard error; `style` is `json` or `text`."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if style == "json" else TextLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    # With a handler of its own in place it adds none that writes in another form.
    engine = logging.getLogger("dbos")
    engine.handlers, engine.propagate = [handler], False


class JsonLines(logging.Formatter):
    """An entry as one JSON object: `at` (UTC), `level`, `logger`, `message`, its own fields, `error` with a trace."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        entry: dict[str, object] = {
            "at": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=False)


class TextLines(logging.Formatter):
    """An entry for people: time, level, message, and its fields as `name=value`; a trace on the lines after it."""

    def format(self, record: logging.LogRecord) -> str:
        """One entry."""
        fields = "".join(f" {name}={value!r}" for name, value in _fields(record).items())
        # A line break inside an entry could pass for an entry of its own.
        message = record.getMessage().replace("\n", "\\n")
        line = f"{_time(record)} {record.levelname.lower():<7} {record.name}: {message}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _PLAIN | _DBOS}
