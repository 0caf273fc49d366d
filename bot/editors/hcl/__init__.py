"""Surgical edits and reads of HCL text: `update_hcl`, `read_hcl_value`, `find_hcl_leaves` and what Terraform reads."""

from bot.editors.hcl.read import HclPath, find_hcl_leaves, read_hcl_value
from bot.editors.hcl.syntax import HclExpression
from bot.editors.hcl.terraform import find_backend, find_file_calls, find_module_sources
from bot.editors.hcl.update import update_hcl

__all__ = [
    "HclExpression",
    "HclPath",
    "find_backend",
    "find_file_calls",
    "find_hcl_leaves",
    "find_module_sources",
    "read_hcl_value",
    "update_hcl",
]
