"""Request bodies checked against a short literal description, refused in the words of GitHub.

A description maps names to kinds. `title!` must be there, `body?` may be null, `tree!?` both. A kind is a word
(`string`, `integer`, `boolean`, `object`, `any`, or several joined by `/`), a tuple of allowed texts, a list with
the kind of its items, or a dict that describes an object. A key `*` allows names that are not described.
"""

import json
from collections.abc import Mapping
from typing import Any

from bot.sandbox.github.errors import Refused

_WORDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


def parse(raw: bytes) -> Any:
    """The JSON of a request body, `{}` for an empty one; 400 if it is not JSON."""
    if not raw.strip():
        return {}
    try:
        return json.loads(raw)
    except ValueError:
        raise Refused(400, "Problems parsing JSON") from None


def check(described: Mapping[str, Any], value: Any) -> None:
    """422 with every problem of the body; nothing if there is none."""
    problems = (
        _object(described, value, "") if isinstance(value, dict) else [f"{_shown(value)} is not an object."]
    )
    if problems:
        raise Refused(422, "Invalid request.\n\n" + "\n".join(problems))


def _object(described: Mapping[str, Any], value: Mapping[str, Any], path: str) -> list[str]:
    kinds: dict[str, tuple[Any, bool]] = {}
    problems: list[str] = []
    for key, kind in described.items():
        name = key.rstrip("!?")
        kinds[name] = (kind, "?" in key)
        if "!" in key and name not in value:
            problems.append(
                f'"{name}" wasn\'t supplied.' if not path else f"For '{path}', \"{name}\" wasn't supplied."
            )
    for name, item in value.items():
        if name not in kinds:
            if "*" not in described:
                problems.append(f'"{name}" is not a permitted key.')
            continue
        kind, nullable = kinds[name]
        if item is None and nullable:
            continue
        problems += _value(kind, item, f"{path}/properties/{name}" if path else f"properties/{name}")
    return problems


def _value(kind: Any, value: Any, path: str) -> list[str]:
    if isinstance(kind, tuple):
        if value in kind and isinstance(value, str):
            return []
        allowed = ", ".join(json.dumps(item) for item in kind)
        return [f"For '{path}', {_shown(value)} is not a member of [{allowed}]."]
    if isinstance(kind, list):
        if not isinstance(value, list):
            return [f"For '{path}', {_shown(value)} is not an array."]
        return [text for at, item in enumerate(value) for text in _value(kind[0], item, f"{path}/items/{at}")]
    if isinstance(kind, dict):
        if not isinstance(value, dict):
            return [f"For '{path}', {_shown(value)} is not an object."]
        return _object(kind, value, path)
    words = kind.split("/")
    if "any" in words or any(_is(word, value) for word in words):
        return []
    article = "an" if words[0][0] in "aio" else "a"
    return [f"For '{path}', {_shown(value)} is not {article} {' or '.join(words)}."]


def _is(word: str, value: Any) -> bool:
    # In Python a bool is an int; in JSON it is not.
    return isinstance(value, _WORDS[word]) and (word == "boolean" or not isinstance(value, bool))


def _shown(value: Any) -> str:
    text = "nil" if value is None else json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."
