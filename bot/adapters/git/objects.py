"""Git's plumbing formats to our values: tree listings, object batches, raw diffs and commits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone

from bot.domain.files import BlobId, CommitId, Entry, Mode, TreeId
from bot.ports import Commit, Signature, TerminalError

EMPTY_TREE = TreeId("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
"""The tree without entries, which git knows without having it stored."""

_MODES = {mode.value: mode for mode in Mode} | {"100664": Mode.FILE}
"""Git's modes; 100664 stands in trees of very old tools and means an ordinary file."""

_IDENTITY = re.compile(r"^(?P<name>.*?) ?<(?P<email>[^>]*)>(?: (?P<at>-?\d+) (?P<zone>[+-]\d{4}))?")
_TRAILER = re.compile(r"^(?P<key>[A-Za-z0-9][A-Za-z0-9-]*):(?:[ \t]+(?P<value>.*))?$")


def parse_listing(output: bytes) -> dict[str, Entry]:
    """The entries of `ls-tree -r -z`, by path; bytes that are not UTF-8 are kept as surrogates."""
    entries: dict[str, Entry] = {}
    for record in output.decode("utf-8", "surrogateescape").split("\0"):
        if record:
            head, _, path = record.partition("\t")
            entries[path] = Entry(_MODES[head[:6]], BlobId(head[-40:]))
    return entries


def parse_diff(output: bytes) -> list[tuple[str, Entry | None, Entry | None]]:
    """Path, entry before and entry after of each record of `diff-tree -r -z`."""
    fields = output.decode("utf-8", "surrogateescape").split("\0")
    changes: list[tuple[str, Entry | None, Entry | None]] = []
    for head, path in zip(fields[0::2], fields[1::2], strict=False):
        before_mode, after_mode, before, after, _ = head[1:].split(" ")
        changes.append((path, _entry(before_mode, before), _entry(after_mode, after)))
    return changes


def _entry(mode: str, blob: str) -> Entry | None:
    return None if mode == "000000" else Entry(_MODES[mode], BlobId(blob))


def parse_batch(output: bytes) -> Iterator[tuple[str, str, bytes]]:
    """Id, kind and content of each object of `cat-file --batch`; the kind of an absent one is `missing`."""
    position = 0
    while position < len(output):
        end = output.index(b"\n", position)
        head = output[position:end].decode("utf-8", "surrogateescape")
        position = end + 1
        if head.endswith((" missing", " ambiguous")):
            yield head.rpartition(" ")[0], "missing", b""
            continue
        name, kind, size = head.split(" ")
        yield name, kind, output[position : position + int(size)]
        position += int(size) + 1


def parse_commit(commit: CommitId, raw: bytes) -> Commit:
    """A commit object as a value; its message is read by its encoding header, else as UTF-8."""
    header, _, body = raw.partition(b"\n\n")
    fields: dict[str, list[str]] = {}
    for line in header.decode("utf-8", "replace").split("\n"):
        if not line.startswith(" "):
            key, _, value = line.partition(" ")
            fields.setdefault(key, []).append(value)
    message = _decode(body, fields.get("encoding", ["utf-8"])[0])
    return Commit(
        id=commit,
        tree=TreeId(fields["tree"][0]),
        parents=tuple(CommitId(parent) for parent in fields.get("parent", [])),
        message=message,
        author=_signature(fields["author"][0]),
        committer=_signature(fields["committer"][0]),
        trailers=parse_trailers(message),
    )


def _decode(body: bytes, encoding: str) -> str:
    try:
        return body.decode(encoding, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def parse_trailers(message: str) -> Mapping[str, str]:
    """The trailers of a message: its last paragraph, if every line of it is one (or continues one).

    The paragraph with the subject is never one. Of a key that stands there twice the last counts.
    """
    paragraphs = re.split(r"\n[ \t]*\n", message.replace("\r\n", "\n").strip("\n"))
    trailers: dict[str, str] = {}
    key = ""
    for line in paragraphs[-1].split("\n") if len(paragraphs) > 1 else ():
        found = _TRAILER.match(line)
        if found:
            key = found["key"]
            trailers[key] = (found["value"] or "").strip()
        elif line.startswith((" ", "\t")) and key:
            trailers[key] = f"{trailers[key]} {line.strip()}"
        else:
            return {}
    return trailers


def _signature(text: str) -> Signature:
    found = _IDENTITY.match(text)
    if found is None:
        return Signature(text, "", datetime.fromtimestamp(0, UTC))
    zone = found["zone"] or "+0000"
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:5])) * (-1 if zone[0] == "-" else 1)
    # Some tools wrote zones that no clock has; the moment itself is right without them.
    moved = timezone(offset) if abs(offset) < timedelta(hours=24) else UTC
    return Signature(found["name"], found["email"], _moment(int(found["at"] or 0), moved))


def parse_moment(text: str) -> datetime | None:
    """A time as git writes it raw, `1700000000 +0100`; None for an empty text."""
    return _signature(f"- <-> {text}").at if text else None


def _moment(seconds: int, zone: timezone) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, zone)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)


def identity(signature: Signature, role: str) -> Mapping[str, str]:
    """The variables that make a signature a commit's `AUTHOR` or `COMMITTER`."""
    offset = signature.at.utcoffset() or timedelta()
    minutes = int(offset.total_seconds()) // 60
    sign = "-" if minutes < 0 else "+"
    zone = f"{sign}{abs(minutes) // 60:02d}{abs(minutes) % 60:02d}"
    return {
        f"GIT_{role}_NAME": signature.name,
        f"GIT_{role}_EMAIL": signature.email,
        f"GIT_{role}_DATE": f"@{int(signature.at.timestamp())} {zone}",
    }


_REF_NAME = re.compile(
    r"^(?![-/.])(?!.*(\.\.|@\{|//|/\.|\.lock(/|$)))(?!@$)[^\x00-\x20~^:?*\[\\\x7f]+(?<![/.])$"
)


def is_ref_name(name: str) -> bool:
    """Whether it can be the name of a branch, a tag or a full ref (git-check-ref-format)."""
    return _REF_NAME.match(name) is not None and not name.endswith("\n")


def check_path(path: str) -> None:
    """Raises TerminalError unless the path is a plain relative path that git takes into a tree."""
    parts = path.split("/")
    bad = any(part in ("", ".", "..") or part.lower() in (".git", "git~1") for part in parts)
    if bad or "\0" in path or "\n" in path:
        raise TerminalError(
            f"The path {path!r} cannot be written to a repository; use a plain relative path."
        )


def check_id(name: str) -> str:
    """The id itself; raises TerminalError for any other text, so that none is ever read as an option."""
    if not re.fullmatch(r"[0-9a-f]{40}", name):
        raise TerminalError(f"{name!r} is not the id of a git object (40 hex digits).")
    return name
