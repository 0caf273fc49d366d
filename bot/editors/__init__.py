"""Text in, text out: edits of YAML, HCL, JSON and TOML that leave every other byte as it was.

Each editor finds the exact place of a value, replaces only that, reads the result again and compares it with
what was there: an edit that would change anything else is refused with an `EditError`.
"""
