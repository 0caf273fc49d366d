"""Bodies that a sender would not send: a realistic one with a value replaced somewhere."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def replace_one(document: Any, seed: int, value: object) -> bool:
    """Put the value at a place that the seed chooses; False if it has led to an empty list or object."""
    chooser, place = random.Random(seed), document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return False
        key = chooser.choice(keys)
        if isinstance(place[key], (dict, list)) and chooser.random() < 0.7:
            place = place[key]
            continue
        place[key] = value
        return True
