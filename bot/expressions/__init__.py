"""Kargo's expression language: `${{ }}` templates over expr-lang, with values that may not be known yet."""
