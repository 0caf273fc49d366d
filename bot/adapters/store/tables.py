"""The tables. A row's value lies in a JSON document of the domain; columns beside it are what is searched by."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

SCHEMA = 1
"""Raised when the shape of a table or document changes; a reader for the old one comes with it."""

metadata = MetaData()

meta = Table("lockstep_meta", metadata, Column("name", String, primary_key=True), Column("value", String))

deliveries = Table(
    "lockstep_deliveries",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("id", String, nullable=False, unique=True),
    Column("source", String, nullable=False),
    Column("event", String, nullable=False),
    Column("receiver", String, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("received_at", Float, nullable=False),
    Column("done", Boolean, nullable=False, default=False),
    Column("note", String, nullable=False, default=""),
)
Index("lockstep_deliveries_pending", deliveries.c.done, deliveries.c.seq)

looks = Table(
    "lockstep_looks",
    metadata,
    Column("kind", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("number", Integer, nullable=False),
    Column("done", Integer, nullable=False),
    Column("due_at", Float, nullable=False),
    Column("later_at", Float),
    Column("reason", String, nullable=False),
)
Index("lockstep_looks_due", looks.c.due_at)

freight = Table(
    "lockstep_freight",
    metadata,
    Column("project", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("alias", String, nullable=False),
    Column("discovered_at", Float, nullable=False),
    Column("document", Text, nullable=False),
    Column("status", Text, nullable=False),
    UniqueConstraint("project", "alias"),
)

stages = Table(
    "lockstep_stages",
    metadata,
    Column("project", String, primary_key=True),
    Column("stage", String, primary_key=True),
    Column("document", Text, nullable=False),
)

promotions = Table(
    "lockstep_promotions",
    metadata,
    Column("id", String, primary_key=True),
    Column("project", String, nullable=False),
    Column("stage", String, nullable=False),
    Column("ended", Boolean, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("url", String, nullable=False, default=""),
    Column("pull", Integer),
    Column("document", Text, nullable=False),
)
Index(
    "lockstep_promotions_one_unfinished",
    promotions.c.project,
    promotions.c.stage,
    unique=True,
    sqlite_where=text("ended = 0"),
    postgresql_where=text("NOT ended"),
)
Index("lockstep_promotions_by_pull", promotions.c.url, promotions.c.pull)

merges = Table(
    "lockstep_merges",
    metadata,
    Column("url", String, primary_key=True),
    Column("pull", Integer, primary_key=True),
    Column("commit", String, nullable=False),
)
"""Pull requests of ours and the commit that each became: of forgotten Promotions, and those that follow one up."""

peoples_pulls = Table(
    "lockstep_peoples_pulls",
    metadata,
    Column("url", String, primary_key=True),
    Column("pull", Integer, primary_key=True),
    Column("merged", Boolean, nullable=False),
    Column("over", Boolean, nullable=False),
    Column("document", Text, nullable=False),
)

analysis_runs = Table(
    "lockstep_analysis_runs",
    metadata,
    Column("id", String, primary_key=True),
    Column("project", String, nullable=False),
    Column("stage", String, nullable=False),
    Column("settled", Boolean, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("document", Text, nullable=False),
)
Index(
    "lockstep_analysis_runs_of_stage",
    analysis_runs.c.project,
    analysis_runs.c.stage,
    analysis_runs.c.created_at,
)

previews = Table(
    "lockstep_previews",
    metadata,
    Column("promotion", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
)

steps = Table(
    "lockstep_steps",
    metadata,
    Column("promotion", String, primary_key=True),
    Column("alias", String, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("document", Text, nullable=False),
)

bundles = Table(
    "lockstep_bundles",
    metadata,
    Column("promotion", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
)

applied = Table(
    "lockstep_applied",
    metadata,
    Column("state", String, primary_key=True),
    Column("document", Text, nullable=False),
)

pipelines = Table(
    "lockstep_pipelines",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("revision", String, nullable=False),
    Column("files", Text, nullable=False),
)

outbox = Table(
    "lockstep_outbox",
    metadata,
    Column("key", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("lane", String, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("payload", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("done", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at", Float, nullable=False),
    Column("error", String, nullable=False, default=""),
)

drifts = Table(
    "lockstep_drifts",
    metadata,
    Column("project", String, primary_key=True),
    Column("stage", String, primary_key=True),
    Column("looked_at", Float),
    Column("finding", String, nullable=False),
    Column("resources", Integer, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)
"""What was seen of drift; sealed, since it holds attributes of resources."""

answers = Table(
    "lockstep_answers",
    metadata,
    Column("promotion", String, primary_key=True),
    Column("alias", String, primary_key=True),
    Column("person", String, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
)
"""What people said to steps that ask, each person (or the first of all) once; sealed, since it may be delicate."""

commands = Table(
    "lockstep_commands",
    metadata,
    Column("repository", String, primary_key=True),
    Column("comment", String, primary_key=True),
)

discoveries = Table(
    "lockstep_discoveries",
    metadata,
    Column("project", String, primary_key=True),
    Column("warehouse", String, primary_key=True),
    Column("found", Text, nullable=False),
    Column("at", Float, nullable=False),
)

events = Table(
    "lockstep_events",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("project", String, nullable=False),
    Column("stage", String, nullable=False),
    Column("promotion", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("message", Text, nullable=False),
)
Index("lockstep_events_by_promotion", events.c.promotion)

audit = Table(
    "lockstep_audit",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("kind", String, nullable=False),
    Column("actor", String, nullable=False),
    Column("project", String, nullable=False),
    Column("stage", String, nullable=False),
    Column("promotion", String, nullable=False),
    Column("message", Text, nullable=False),
    Column("previous", String, nullable=False),
    Column("hash", String, nullable=False),
)
Index("lockstep_audit_by_promotion", audit.c.promotion, audit.c.number)
