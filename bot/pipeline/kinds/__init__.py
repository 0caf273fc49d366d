"""The kinds of resource that a configuration may hold, and what becomes of each."""
