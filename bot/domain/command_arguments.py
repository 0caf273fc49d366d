"""The arguments of commands: how a line is split, and what each kind of argument may hold.

Every function but `parse_reason` raises WrongArgumentError.
"""

from __future__ import annotations

import re

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_FREIGHT = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_HEX = re.compile(r"[0-9a-f]{7,64}")
_PLAIN = re.compile(r"[\x20-\x7e\t]*")
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Characters that are not seen, or change how the rest of a line is shown."""


class WrongArgumentError(ValueError):
    """An argument that cannot be what stands in its place; the text is a message for a person."""


def split_arguments(rest: str, least: int, most: int) -> list[str]:
    """The arguments, between `least` and `most` of them, plain characters only and no options."""
    if _PLAIN.fullmatch(rest) is None:
        raise WrongArgumentError(
            "an argument holds characters that no name has (perhaps an invisible one): type it anew"
        )
    parts = rest.split()
    if any(part.startswith("-") for part in parts):
        raise WrongArgumentError("this command takes no options")
    if len(parts) < least:
        raise WrongArgumentError("an argument is missing" if parts or least == 1 else "arguments are missing")
    if len(parts) > most:
        raise WrongArgumentError(
            f"this command takes {'no' if most == 0 else f'at most {most}'} argument{'s' if most != 1 else ''}"
        )
    return parts


def parse_stage(text: str, kind: str = "Stage") -> tuple[str, str]:
    """Project (may be empty) and name of `[PROJECT/]STAGE`, or of another kind."""
    project, slash, name = text.rpartition("/")
    if _NAME.fullmatch(name) is None or (slash and _NAME.fullmatch(project) is None):
        word = kind.upper()
        raise WrongArgumentError(
            f"a {kind} is written {word} or PROJECT/{word}, in lower-case letters, digits, - and ."
        )
    return project, name


def parse_freight_name(text: str) -> str:
    """A name of Freight, as it was typed."""
    if _FREIGHT.fullmatch(text) is None:
        raise WrongArgumentError("Freight is named by its alias or its hash")
    return text


def parse_hex(text: str, what: str) -> str:
    """Digits of a commit or digest, in lower case; `what` is what a message calls it."""
    lowered = text.lower()
    if _HEX.fullmatch(lowered) is None:
        raise WrongArgumentError(f"{what} is given by 7 to 64 hexadecimal digits")
    return lowered


def parse_reason(rest: str) -> str:
    """Free text for people, without characters that change how a line is shown."""
    return CONTROL.sub("", rest)
