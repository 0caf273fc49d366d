"""Surgical edits and reads of YAML text: `update_yaml`, `get_yaml`, `find_leaves`, `line_of`, `merge_yaml`."""

from bot.editors.keys import split_key
from bot.editors.yaml.merge import merge_yaml
from bot.editors.yaml.read import KeyPath, find_leaves, get_yaml, line_of
from bot.editors.yaml.scalars import quote_scalar
from bot.editors.yaml.update import YamlUpdate, update_yaml

__all__ = [
    "KeyPath",
    "YamlUpdate",
    "find_leaves",
    "get_yaml",
    "line_of",
    "merge_yaml",
    "quote_scalar",
    "split_key",
    "update_yaml",
]
