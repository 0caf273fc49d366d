"""What people type who know other bots."""

from __future__ import annotations

from collections.abc import Mapping

SYNONYMS: Mapping[str, list[str]] = {
    "deploy": ["promote"],
    "release": ["promote"],
    "ship": ["promote"],
    "unhold": ["resume"],
    "continue": ["resume"],
    "revert": ["rollback"],
    "undo": ["rollback"],
    "reverify": ["verify"],
    "rerun": ["retry"],
    "stop": ["cancel"],
    "abort": ["cancel"],
    "thaw": ["unfreeze"],
    "why": ["explain"],
    "diff": ["plan"],
    "preview": ["plan"],
}
"""Words that people know from other bots, and our command for the same."""
