"""Tar archives in memory: the same files give the same bytes, and nothing that is unpacked leaves its folder."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Mapping

from bot.domain.files import File, Mode
from bot.ports import TerminalError
from bot.steps.worktree import clean_path

_MAX_FILES = 50_000
_MAX_BYTES = 512 * 1024 * 1024


def pack(files: Mapping[str, File], *, compress: bool) -> bytes:
    """An archive of these files in the order of their names, without times, owners and links."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, file in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size = len(file.data)
            member.mode = 0o755 if file.mode is Mode.EXECUTABLE else 0o644
            archive.addfile(member, io.BytesIO(file.data))
    plain = out.getvalue()
    return gzip.compress(plain, mtime=0) if compress else plain


def unpack(data: bytes, where: str, *, strip: int) -> dict[str, File]:
    """The regular files of an archive, compressed or not, with `strip` leading directories dropped.

    Raises TerminalError for what is no archive, for links and devices, for paths that leave the archive, and beyond
    50,000 files or 512 MiB.
    """
    plain = _inflate(data, where)
    files: dict[str, File] = {}
    total = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
            for member in archive:
                total += member.size
                if len(files) >= _MAX_FILES or total > _MAX_BYTES:
                    raise TerminalError(
                        f"untar: {where!r} holds more than {_MAX_FILES} files or {_MAX_BYTES >> 20} MiB"
                    )
                path = _path(member, where, strip)
                if path is not None:
                    content = archive.extractfile(member)
                    mode = Mode.EXECUTABLE if member.mode & 0o100 else Mode.FILE
                    files[path] = File(content.read() if content is not None else b"", mode)
    except (tarfile.TarError, EOFError) as error:
        raise TerminalError(f"untar: {where!r} is no tar archive, or is damaged: {error}") from error
    return files


def _inflate(data: bytes, where: str) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data
    inflater = zlib.decompressobj(wbits=31)
    try:
        plain = inflater.decompress(data, _MAX_BYTES + 1)
    except zlib.error as error:
        raise TerminalError(f"untar: {where!r} is damaged: {error}") from error
    if len(plain) > _MAX_BYTES:
        raise TerminalError(f"untar: {where!r} unpacks to more than {_MAX_BYTES >> 20} MiB")
    if not inflater.eof:
        raise TerminalError(f"untar: {where!r} is cut off")
    return plain


def _path(member: tarfile.TarInfo, where: str, strip: int) -> str | None:
    """Where a member goes, None if nowhere (a directory, or one that is stripped away)."""
    if member.isdir():
        return None
    if not member.isfile():
        raise TerminalError(
            f"untar: {where!r} holds {member.name!r}, which is no regular file; links are not unpacked"
        )
    cleaned = clean_path(member.name)
    parts = cleaned.split("/")
    return "/".join(parts[strip:]) if len(parts) > strip else None
