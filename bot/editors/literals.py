"""The scalars that YAML and HCL write alike: null, booleans and numbers."""

from __future__ import annotations

import math

from bot.domain.values import Json


def render_number(value: Json) -> str:
    """A null, boolean or number as text that HCL and every YAML version read as the same value.

    Raises ValueError for infinity and NaN, and for strings and containers.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return format(value, "d")
        case float() if math.isfinite(value):
            if value.is_integer() and abs(value) < 1e21:
                return format(int(value), "d")
            text = repr(value)
            # YAML 1.1 takes an exponent for a float only behind a decimal point.
            return text if "." in text else text.replace("e", ".0e")
        case _:
            raise ValueError("not a finite number, boolean or null")
