"""What is collected here."""

from __future__ import annotations

import platform
import sys

# The oracle is compiled Go, published for CPython 3.11 to 3.13 on Linux x86_64 alone, as pyproject.toml's marker says.
_HAS_ORACLE = sys.platform == "linux" and platform.machine() == "x86_64" and sys.version_info < (3, 14)
collect_ignore = [] if _HAS_ORACLE else ["test_against_expr.py"]
