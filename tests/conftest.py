"""What holds for all tests: properties are judged by their answers, never by how fast a machine finds them."""

from __future__ import annotations

from hypothesis import settings

from tests.postgres import postgres as postgres
from tests.postgres import postgres_url as postgres_url

settings.register_profile("lockstep", deadline=None)
settings.load_profile("lockstep")
