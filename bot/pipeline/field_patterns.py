"""The forms that Kargo's fields must have, by name, and what to say when one has not."""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.regex import compile_regex
from bot.domain.values import Json
from bot.pipeline.schema import JsonSchema, text

FIELD_PATTERNS: Mapping[str, tuple[str, str]] = {
    "name": (
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        "is no Kubernetes name: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit",
    ),
    "label": (
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        "is no name: lower-case letters, digits and '-', beginning and ending with a letter or digit",
    ),
    "duration": (r"^([0-9]+(\.[0-9]+)?(s|m|h))+$", "is no duration; write it like 30s, 5m0s or 1h30m"),
    "digest": (r"^[a-z0-9]+:[a-f0-9]+$", "is no digest such as sha256:0123abcd"),
    "tag": (r"^[\w.\-\_]+$", "is no tag: letters, digits, '_', '.' and '-'"),
    "var_name": (
        r"^[a-zA-Z_]\w*$",
        "is no name of a variable: letters, digits and '_', not beginning with a digit",
    ),
    "branch": (r"^([a-zA-Z0-9]([a-zA-Z0-9._\/-]*[a-zA-Z0-9_-])?)?$", "is no branch name"),
    "git_url": (
        r"(?:^(ssh|https?)://(?:([\w-]+)(:(.+))?@)?([\w-]+(?:\.[\w-]+)*)(?::(\d{1,5}))?(/.*)$)"
        r"|(?:^([\w-]+)@([\w+]+(?:\.[\w-]+)*):(/?.*))",
        "is no git address; write it like https://host/owner/repository",
    ),
    "image_url": (
        r"^(\w+([\.-]\w+)*(:[\d]+)?/)?(\w+([\.-]\w+)*)(/\w+([\.-]\w+)*)*$",
        "is no image repository; write it without scheme and tag, like registry.example/owner/image",
    ),
    "chart_url": (
        r"^(((https?)|(oci))://)([\w\d\.\-]+)(:[\d]+)?(/.*)*$",
        "is no chart repository; it begins with https://, http:// or oci://",
    ),
}
"""Pattern (Go's syntax) and message of each field."""


def is_valid_field(field: str, value: str) -> bool:
    """Whether a text has the form that the field asks for."""
    return compile_regex(FIELD_PATTERNS[field][0]).search(value)


def formed(field: str, description: str = "", **more: Json) -> JsonSchema:
    """The schema of a text that has a field's form."""
    pattern, message = FIELD_PATTERNS[field]
    return {**text(description), "pattern": pattern, "errorMessage": message, **more}
