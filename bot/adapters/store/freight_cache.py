"""A project's Freight as it was last read, valid for as long as the database says that nothing of it has changed.

Every look at a Stage needs all of its project's Freight, which seldom changes. Each change puts a new random stamp into
`lockstep_meta`, in its own transaction; whoever reads the stamp before the rows has rows at least as new as the stamp,
so that what is kept is never older than it says, whichever replica made the change.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.dialects import postgresql, sqlite

from bot.adapters.store.tables import freight, meta
from bot.domain.codec import decode
from bot.domain.freight import Freight, FreightStatus

Known = tuple[Freight, FreightStatus]

_MOST_PROJECTS = 64
_STAMP = select(meta.c.value).where(meta.c.name == bindparam("name"))


def stamp_freight(connection: Connection, project: str) -> None:
    """Say that some Freight of the project changed; part of the transaction that changes it, and last in it."""
    new = {"name": _name(project), "value": secrets.token_hex(8)}
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(meta).values(new)
    connection.execute(
        statement.on_conflict_do_update(index_elements=[meta.c.name], set_={"value": new["value"]})
    )


@dataclass(frozen=True, slots=True)
class _Kept:
    stamp: str | None
    known: Sequence[Known]
    texts: dict[tuple[str, str], Known] = field(repr=False)


class FreightCache:
    """The Freight of the projects that were asked for last."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._lock = threading.Lock()

    def read(self, connection: Connection, project: str) -> Sequence[Known]:
        """All Freight of a project, oldest first: the same object as before if nothing has changed."""
        stamp = connection.scalar(_STAMP, {"name": _name(project)})
        with self._lock:
            old = self._kept.pop(project, None)
            if old is not None:
                self._kept[project] = old
        if old is not None and old.stamp == stamp:
            return old.known
        query = select(freight.c.document, freight.c.status).where(freight.c.project == project)
        rows = connection.execute(query.order_by(freight.c.discovered_at)).all()
        before = old.texts if old is not None else {}
        texts = {
            (row.document, row.status): before.get((row.document, row.status)) or _read(*row) for row in rows
        }
        new = _Kept(stamp, [texts[row.document, row.status] for row in rows], texts)
        with self._lock:
            self._kept[project] = new
            while len(self._kept) > _MOST_PROJECTS:
                del self._kept[next(iter(self._kept))]
        return new.known


def _name(project: str) -> str:
    return f"freight/{project}"


def _read(document: str, status: str) -> Known:
    return decode(Freight, json.loads(document)), decode(FreightStatus, json.loads(status))
