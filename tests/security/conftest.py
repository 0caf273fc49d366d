"""The roads of the end-to-end tests, for attacks on them."""

from __future__ import annotations

from tests.e2e.conftest import StartRoad, released, released_road, start_road

__all__ = ["StartRoad", "released", "released_road", "start_road"]
