"""The database of the simulated GitHub: records in, records out, over one SQLite file in WAL mode.

Columns follow from the fields of the dataclasses in `records`; tuples and dicts are stored as JSON text.
All access goes through one connection under one re-entrant lock, so a caller that holds `transaction()` sees and
changes a consistent world, and a second thread waits.
"""

import json
import sqlite3
import threading
import types
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from bot.sandbox.github.tables import INDEXED, TABLES, UNIQUE

R = TypeVar("R")

SCHEMA_VERSION = 1
# Ids of the first row of every table start here, so that an id is never mistaken for an issue number.
FIRST_ID = 1000


def _plain_type(annotation: Any) -> Any:
    """The annotation without its `| None`, and without type parameters."""
    if isinstance(annotation, types.UnionType):
        annotation = next(part for part in typing.get_args(annotation) if part is not type(None))
    return typing.get_origin(annotation) or annotation


class _Table:
    """How one record class is written to and read from its table."""

    def __init__(self, kind: type) -> None:
        hints = typing.get_type_hints(kind)
        self.kind = kind
        self.name = kind.__name__
        self.types = {item.name: _plain_type(hints[item.name]) for item in fields(kind)}
        self.defaults = {item.name: item.default for item in fields(kind) if item.default is not MISSING}
        self.columns = [name for name in self.types if name != "id"]

    def create(self, number: int) -> list[str]:
        sql = {int: "INTEGER", bool: "INTEGER", float: "REAL"}
        columns = ", ".join(f'"{name}" {sql.get(self.types[name], "TEXT")}' for name in self.columns)
        return [
            f'CREATE TABLE IF NOT EXISTS "{self.name}" (id INTEGER PRIMARY KEY AUTOINCREMENT, {columns})',
            f"INSERT INTO sqlite_sequence(name, seq) SELECT '{self.name}', {FIRST_ID * (number + 1)}"
            f" WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = '{self.name}')",
        ]

    def missing(self, present: set[str]) -> list[str]:
        """What adds the columns that an older program did not have."""
        sql = {int: "INTEGER", bool: "INTEGER", float: "REAL"}
        return [
            f'ALTER TABLE "{self.name}" ADD COLUMN "{name}" {sql.get(self.types[name], "TEXT")}'
            for name in self.columns
            if name not in present
        ]

    def encode(self, name: str, value: Any) -> Any:
        return json.dumps(value) if value is not None and self.types[name] in (dict, tuple) else value

    def decode(self, row: sqlite3.Row) -> Any:
        values: dict[str, Any] = {}
        for name, kind in self.types.items():
            value = row[name]
            if value is not None:
                if kind is tuple:
                    value = tuple(json.loads(value))
                elif kind is dict:
                    value = json.loads(value)
                elif kind is bool:
                    value = bool(value)
            # A column that a later program added is empty in old rows, where the field's own default holds.
            if value is not None or self.defaults.get(name) is None:
                values[name] = value
        return self.kind(**values)


class Store:
    """Typed access to the rows. Every method is safe to call from any thread."""

    def __init__(self, path: Path) -> None:
        self.lock = threading.RLock()
        self._depth = 0
        self._tables = {kind: _Table(kind) for kind in TABLES}
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._migrate(path)

    def _migrate(self, path: Path) -> None:
        version = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
        if version > SCHEMA_VERSION:
            raise ValueError(
                f"The sandbox database {path} has schema {version}, this program knows {SCHEMA_VERSION};"
                " use a newer program or another directory."
            )
        with self.transaction():
            for number, table in enumerate(self._tables.values()):
                for statement in table.create(number):
                    self._connection.execute(statement)
                rows = self._connection.execute(f'PRAGMA table_info("{table.name}")').fetchall()
                for statement in table.missing({row["name"] for row in rows}):
                    self._connection.execute(statement)
            for unique, pairs in (("UNIQUE", UNIQUE), ("", INDEXED)):
                for kind, columns in pairs:
                    name = "_".join(("by", kind.__name__, *columns))
                    listed = ", ".join(f'"{column}"' for column in columns)
                    self._connection.execute(
                        f'CREATE {unique} INDEX IF NOT EXISTS "{name}" ON "{kind.__name__}" ({listed})'
                    )
            self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def close(self) -> None:
        """Close the database; the store cannot be used afterwards."""
        with self.lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the lock and one transaction; nested uses join the outer one, an exception undoes all of it."""
        with self.lock:
            if self._depth:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            self._depth = 1
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            else:
                self._connection.execute("COMMIT")
            finally:
                self._depth = 0

    def add(self, record: R) -> R:
        """Store a new record and return it with its id."""
        table = self._tables[type(record)]
        values = [table.encode(name, getattr(record, name)) for name in table.columns]
        listed = ", ".join(f'"{name}"' for name in table.columns)
        marks = ", ".join("?" for _ in values)
        with self.lock:
            done = self._connection.execute(f'INSERT INTO "{table.name}" ({listed}) VALUES ({marks})', values)
        return replace(record, id=done.lastrowid)  # type: ignore[type-var]

    def change(self, record: R, **changes: Any) -> R:
        """Write the changed fields of a stored record and return the changed record."""
        if not changes:
            return record
        table = self._tables[type(record)]
        listed = ", ".join(f'"{name}" = ?' for name in changes)
        values = [table.encode(name, value) for name, value in changes.items()]
        with self.lock:
            self._connection.execute(
                f'UPDATE "{table.name}" SET {listed} WHERE id = ?',
                [*values, record.id],  # type: ignore[attr-defined]
            )
        return replace(record, **changes)  # type: ignore[type-var]

    def remove(self, record: Any) -> None:
        """Delete a stored record."""
        table = self._tables[type(record)]
        with self.lock:
            self._connection.execute(f'DELETE FROM "{table.name}" WHERE id = ?', [record.id])

    def get(self, kind: type[R], id: int) -> R | None:
        """The record of this kind and id, or None."""
        return self.first(kind, id=id)

    def need(self, kind: type[R], id: int) -> R:
        """The record of this kind and id; a KeyError if there is none, which is a bug of the caller."""
        found = self.get(kind, id)
        if found is None:
            raise KeyError(f"There is no {kind.__name__} with id {id} in the sandbox database.")
        return found

    def first(self, kind: type[R], **where: Any) -> R | None:
        """The oldest record whose columns equal `where`, or None."""
        return next(iter(self._select(kind, where, "ORDER BY id LIMIT 1")), None)

    def last(self, kind: type[R], **where: Any) -> R | None:
        """The newest record whose columns equal `where`, or None."""
        return next(iter(self._select(kind, where, "ORDER BY id DESC LIMIT 1")), None)

    def find(self, kind: type[R], **where: Any) -> list[R]:
        """All records whose columns equal `where`, oldest first."""
        return self._select(kind, where, "ORDER BY id")

    def newest(self, kind: type[R], limit: int, *, before: int = 2**62, **where: Any) -> list[R]:
        """At most `limit` records with an id below `before`, newest first."""
        return self._select(kind, where, f"AND id < {int(before)} ORDER BY id DESC LIMIT {int(limit)}")

    def count(self, kind: type[R], **where: Any) -> int:
        """How many records have columns that equal `where`."""
        sql, values = self._where(self._tables[kind], where)
        with self.lock:
            row = self._connection.execute(f'SELECT count(*) FROM "{kind.__name__}" {sql}', values).fetchone()
        return int(row[0])

    def _where(self, table: _Table, where: dict[str, Any]) -> tuple[str, list[Any]]:
        parts = ["1 = 1"]
        values: list[Any] = []
        for name, value in where.items():
            if name not in table.types:
                raise KeyError(f"{table.name} has no column {name}.")
            fold = (
                " COLLATE NOCASE"
                if name in ("login", "slug") or (name, table.name) == ("name", "Repository")
                else ""
            )
            parts.append(f'"{name}" IS ?{fold}')
            values.append(table.encode(name, value))
        return "WHERE " + " AND ".join(parts), values

    def _select(self, kind: type[R], where: dict[str, Any], tail: str) -> list[R]:
        table = self._tables[kind]
        sql, values = self._where(table, where)
        with self.lock:
            rows = self._connection.execute(f'SELECT * FROM "{table.name}" {sql} {tail}', values).fetchall()
        return [table.decode(row) for row in rows]
