"""The database: our own tables on SQLite or PostgreSQL."""
