"""Repository URLs in the one spelling by which they are compared.

The rules are Kargo's: a git URL loses credentials, trailing slash and `.git`; an image loses Docker Hub's host and
`library/`; a chart loses `oci://`. What cannot be understood is returned as it came. Since Kargo parses with Go's
`net/url`, the parts of its grammar that can be seen in a result are restated here.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace

_SCP = re.compile(r"((?:[A-Za-z0-9_-]+@)?[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)(?::(.*))?")
_UNRESERVED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~")
_PATH_SAFE = _UNRESERVED | frozenset("$&+,/:;=@")
_PATH_AS_WRITTEN = _PATH_SAFE | frozenset("!'()*[]%")
_FRAGMENT_SAFE = _UNRESERVED | frozenset("$&+,/:;=?@!()*")
_HOST_SAFE = _UNRESERVED | frozenset("!$&'()*+,;=:[]<>\"")
_USER_SAFE = _UNRESERVED | frozenset("$&+,;=")
_USER_ALLOWED = _UNRESERVED | frozenset(":!$&'()*+,;=%@")
_HEX = frozenset("0123456789abcdefABCDEF")
_REPOSITORY = re.compile(r"[a-z0-9_\-./]{2,255}")
_TAG = re.compile(r"[A-Za-z0-9_\-.]{1,128}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_DOCKER_HUB = frozenset({"", "docker.io", "index.docker.io", "registry-1.docker.io"})


def sanitize_url(url: str) -> str:
    """The URL without outer whitespace and without any character that cannot be printed."""
    return "".join(char for char in url if _is_printable(char)).strip()


def _is_printable(char: str) -> bool:
    return char == " " or unicodedata.category(char)[0] in "LMNPS"


def normalize_git_url(url: str) -> str:
    """The spelling of a git URL that is compared and hashed: https, ssh or scp form.

    `git@host:path` becomes `ssh://git@host/path`. A URL with a query, or one that cannot be parsed, is returned
    unchanged.
    """
    text = sanitize_url(url.lower())
    if text.startswith(("http://", "https://", "ssh://")):
        parsed = _parse(text)
        if parsed is None or _has_query(parsed.query):
            return url
        if not text.startswith("ssh://"):
            parsed = replace(parsed, user=None)
        return _render(_trim_path(parsed))
    match = _SCP.fullmatch(text)
    if match is None:
        return url
    path = _parse(match.group(2) or "")
    if path is None or _has_query(path.query):
        return url
    path = _trim_path(path)
    return f"ssh://{match.group(1)}/{_render(path)}" if path.path else f"ssh://{match.group(1)}"


def normalize_image_url(url: str) -> str:
    """The spelling of an image repository that is compared: without tag, and without Docker Hub's host.

    What is no valid image reference is returned unchanged.
    """
    text = sanitize_url(url.lower())
    parsed = _split_image(text)
    if parsed is None:
        return url
    registry, repository = parsed
    if registry in _DOCKER_HUB:
        return repository.removeprefix("library/")
    return f"{registry}/{repository}"


def normalize_chart_url(url: str) -> str:
    """The spelling of a chart repository that is compared: without `oci://`, otherwise as an image."""
    return normalize_image_url(sanitize_url(url.lower()).removeprefix("oci://"))


def _split_image(text: str) -> tuple[str, str] | None:
    base, colon, tag = text.rpartition(":")
    if not colon or "/" in tag:
        base, tag = text, ""
    elif not tag:
        return None
    if not tag or _TAG.fullmatch(tag):
        found = _split_repository(base)
        if found is not None:
            return found
    base, at, digest = text.partition("@")
    if not at or not _DIGEST.fullmatch(digest):
        return None
    name, colon, tag = base.rpartition(":")
    return _split_repository(name if colon and "/" not in tag else base)


def _split_repository(text: str) -> tuple[str, str] | None:
    head, slash, rest = text.partition("/")
    if slash and ("." in head or ":" in head or head == "localhost"):
        registry, repository = head, rest
    else:
        registry, repository = "", text
    if not _REPOSITORY.fullmatch(repository):
        return None
    if registry and _parse_host(registry) != registry:
        return None
    return registry, repository


# -- Go's net/url, as far as it shows ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Url:
    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    host: str = ""
    path: str = ""
    raw_path: str = ""
    query: str | None = None
    fragment: str | None = None


def _parse(text: str) -> _Url | None:
    text, hash_sign, fragment = text.partition("#")
    if hash_sign and _unescape(fragment) is None:
        return None
    scheme = ""
    match = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]*):", text)
    rest = text
    if match is not None:
        scheme, rest = match.group(1).lower(), text[match.end() :]
    elif text.startswith(":"):
        return None
    rest, question, query = rest.partition("?")
    url = _Url(scheme=scheme, query=query if question else None, fragment=fragment if fragment else None)
    if not rest.startswith("/"):
        if scheme:
            return replace(url, opaque=rest)
        if ":" in rest.partition("/")[0]:
            return None
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, tail = rest[2:].partition("/")
        user, host = _parse_authority(authority)
        if host is None:
            return None
        url, rest = replace(url, user=user, host=host), slash + tail
    path = _unescape(rest)
    return None if path is None else replace(url, path=path, raw_path=rest)


def _parse_authority(text: str) -> tuple[str | None, str | None]:
    user, at, host = text.rpartition("@")
    parsed = _parse_host(host)
    if not at:
        return None, parsed
    if not set(user) <= _USER_ALLOWED or _unescape(user) is None:
        return None, None
    return user, parsed


def _parse_host(text: str) -> str | None:
    if text.startswith("["):
        end = text.rfind("]")
        return text if end > 0 and re.fullmatch(r"(:[0-9]*)?", text[end + 1 :]) else None
    _, colon, port = text.rpartition(":")
    if colon and not re.fullmatch(r"[0-9]*", port):
        return None
    if "%" in text or any(char.isascii() and char not in _HOST_SAFE for char in text):
        return None
    return text


def _has_query(query: str | None) -> bool:
    # Go drops pairs that hold a semicolon or a broken escape before it counts them.
    return any(part and ";" not in part and _unescape(part) is not None for part in (query or "").split("&"))


def _trim_path(url: _Url) -> _Url:
    return replace(url, path=url.path.removesuffix("/").removesuffix(".git"))


def _render(url: _Url) -> str:
    text = f"{url.scheme}:" if url.scheme else ""
    if url.opaque:
        text += url.opaque
    else:
        if (url.scheme or url.host or url.user is not None) and (
            url.host or url.path or url.user is not None
        ):
            text += "//"
        if url.user is not None:
            text += f"{_render_user(url.user)}@"
        text += _escape(url.host, _HOST_SAFE)
        path = _render_path(url)
        text += f"/{path}" if path and not path.startswith("/") and url.host else path
    if url.query is not None:
        text += f"?{url.query}"
    if url.fragment is not None:
        text += f"#{_as_written(url.fragment, _FRAGMENT_SAFE)}"
    return text


def _render_user(user: str) -> str:
    name, colon, password = user.partition(":")
    shown = _escape(_unescape(name) or "", _USER_SAFE)
    return f"{shown}:{_escape(_unescape(password) or '', _USER_SAFE)}" if colon else shown


def _render_path(url: _Url) -> str:
    # The path as it was written is kept only while it still stands for the path that is meant.
    if _unescape(url.raw_path) == url.path and set(url.raw_path) <= _PATH_AS_WRITTEN:
        return url.raw_path
    return "*" if url.path == "*" else _escape(url.path, _PATH_SAFE)


def _as_written(text: str, safe: frozenset[str]) -> str:
    if set(text) <= safe | frozenset("!'()*[]%"):
        return text
    return _escape(_unescape(text) or "", safe)


def _unescape(text: str) -> str | None:
    """The text with percent escapes decoded, or None where one is broken."""
    if "%" not in text:
        return text
    data = bytearray()
    index = 0
    while index < len(text):
        if text[index] == "%":
            digits = text[index + 1 : index + 3]
            if len(digits) != 2 or not set(digits) <= _HEX:
                return None
            data.append(int(digits, 16))
            index += 3
        else:
            data += text[index].encode("utf-8", "surrogatepass")
            index += 1
    return data.decode("utf-8", "surrogateescape")


def _escape(text: str, safe: frozenset[str]) -> str:
    shown = []
    for char in text:
        if char in safe:
            shown.append(char)
        else:
            codepoint = ord(char)
            raw = (
                bytes([codepoint - 0xDC00])
                if 0xDC80 <= codepoint <= 0xDCFF
                else char.encode("utf-8", "replace")
            )
            shown.append("".join(f"%{byte:02X}" for byte in raw))
    return "".join(shown)
