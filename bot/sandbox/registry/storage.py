"""What the registry keeps on disk: blobs once, links to them by repository, manifests, tags and unfinished uploads."""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bot.sandbox.files import write_whole
from bot.sandbox.registry.errors import Code, RegistryError

NAME: Final = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
TAG: Final = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}")
DIGEST: Final = re.compile(r"sha256:[a-f0-9]{64}")
_UPLOAD: Final = re.compile(r"[a-f0-9]{32}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest or index as it was pushed."""

    digest: str
    media_type: str
    body: bytes


def digest_of(body: bytes) -> str:
    """The digest under which content is addressed."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


class Storage:
    """The registry's directory. Every change is one rename, so a crash leaves the old or the new."""

    def __init__(self, directory: Path) -> None:
        self._blobs = directory / "blobs"
        self._repositories = directory / "repositories"
        self._uploads = directory / "uploads"
        for folder in (self._blobs, self._repositories, self._uploads):
            folder.mkdir(parents=True, exist_ok=True)

    def repositories(self) -> list[str]:
        """Repositories that hold a manifest, sorted."""
        found = []
        for folder, folders, _ in os.walk(self._repositories):
            if "_manifests" in folders:
                found.append(Path(folder).relative_to(self._repositories).as_posix())
            # What a repository holds is not walked: it may be many thousand tags.
            folders[:] = [name for name in folders if not name.startswith("_")]
        return sorted(found)

    def exists(self, repository: str) -> bool:
        """Whether anything was ever pushed to the repository."""
        return (self._folder(repository) / "_blobs").exists()

    def blob(self, repository: str, digest: str) -> Path:
        """The file that holds a blob; BLOB_UNKNOWN unless the repository has it."""
        if not DIGEST.fullmatch(digest):
            raise RegistryError(Code.DIGEST_INVALID, "provided digest is no sha256 digest", digest=digest)
        if not self._link(repository, digest).exists():
            raise RegistryError(Code.BLOB_UNKNOWN, "blob unknown to registry", digest=digest)
        return self._blob_file(digest)

    def put_blob(self, repository: str, body: bytes) -> str:
        """Store a blob in a repository; its digest."""
        digest = digest_of(body)
        if not self._blob_file(digest).exists():
            write_whole(self._blob_file(digest), body)
        write_whole(self._link(repository, digest), b"")
        return digest

    def mount_blob(self, repository: str, digest: str, source: str) -> bool:
        """Give a repository a blob of another one; False if that one has no such blob."""
        if not DIGEST.fullmatch(digest) or not self._link(source, digest).exists():
            return False
        write_whole(self._link(repository, digest), b"")
        return True

    def delete_blob(self, repository: str, digest: str) -> None:
        """Take a blob from a repository."""
        self.blob(repository, digest)
        self._link(repository, digest).unlink()

    def start_upload(self) -> str:
        """Open an upload; its id."""
        name = uuid.uuid4().hex
        (self._uploads / name).touch()
        return name

    def upload_size(self, upload: str) -> int:
        """Bytes received so far."""
        return self._upload(upload).stat().st_size

    def append(self, upload: str, body: bytes) -> int:
        """Add a chunk; bytes received so far."""
        with self._upload(upload).open("ab") as file:
            file.write(body)
        return self.upload_size(upload)

    def finish_upload(self, repository: str, upload: str, digest: str) -> None:
        """Make a blob of an upload; DIGEST_INVALID when its content is another."""
        if not DIGEST.fullmatch(digest):
            raise RegistryError(Code.DIGEST_INVALID, "provided digest is no sha256 digest", digest=digest)
        file = self._upload(upload)
        body = file.read_bytes()
        if digest_of(body) != digest:
            raise RegistryError(
                Code.DIGEST_INVALID, "provided digest did not match uploaded content", digest=digest
            )
        self.put_blob(repository, body)
        file.unlink()

    def cancel_upload(self, upload: str) -> None:
        """Forget an upload."""
        self._upload(upload).unlink()

    def manifest(self, repository: str, reference: str) -> Manifest:
        """A manifest by tag or digest; NAME_UNKNOWN or MANIFEST_UNKNOWN."""
        if not self.exists(repository):
            raise RegistryError(Code.NAME_UNKNOWN, "repository name not known to registry", name=repository)
        digest = reference if DIGEST.fullmatch(reference) else self._tagged(repository, reference)
        file = self._folder(repository) / "_manifests" / digest.removeprefix("sha256:")
        if not digest or not file.is_file():
            raise RegistryError(
                Code.MANIFEST_UNKNOWN, "manifest unknown", name=repository, reference=reference
            )
        return Manifest(digest, file.read_text(), self._blob_file(digest).read_bytes())

    def has_manifest(self, repository: str, digest: str) -> bool:
        """Whether the repository holds this manifest."""
        return (self._folder(repository) / "_manifests" / digest.removeprefix("sha256:")).is_file()

    def put_manifest(self, repository: str, manifest: Manifest, tag: str | None) -> None:
        """Store a manifest and point a tag at it."""
        folder = self._folder(repository)
        self.put_blob(repository, manifest.body)
        write_whole(
            folder / "_manifests" / manifest.digest.removeprefix("sha256:"), manifest.media_type.encode()
        )
        if tag is not None:
            write_whole(folder / "_tags" / tag, manifest.digest.encode())

    def delete_manifest(self, repository: str, digest: str) -> list[str]:
        """Remove a manifest and every tag that points at it; those tags."""
        self.manifest(repository, digest)
        (self._folder(repository) / "_manifests" / digest.removeprefix("sha256:")).unlink()
        gone = [tag for tag, at in self.tags(repository).items() if at == digest]
        for tag in gone:
            self.delete_tag(repository, tag)
        return gone

    def delete_tag(self, repository: str, tag: str) -> None:
        """Remove a tag and leave its manifest."""
        (self._folder(repository) / "_tags" / tag).unlink()

    def tag_names(self, repository: str) -> list[str]:
        """The tags, sorted bytewise as Distribution lists them."""
        folder = self._folder(repository) / "_tags"
        return sorted(name for name in os.listdir(folder) if TAG.fullmatch(name)) if folder.exists() else []

    def tags(self, repository: str) -> dict[str, str]:
        """Digest by tag."""
        folder = self._folder(repository) / "_tags"
        return {tag: (folder / tag).read_text() for tag in self.tag_names(repository)}

    def _tagged(self, repository: str, tag: str) -> str:
        file = self._folder(repository) / "_tags" / tag
        return file.read_text() if TAG.fullmatch(tag) and file.exists() else ""

    def _folder(self, repository: str) -> Path:
        if not NAME.fullmatch(repository) or len(repository) > 255:
            raise RegistryError(Code.NAME_INVALID, "invalid repository name", name=repository)
        return self._repositories / repository

    def _blob_file(self, digest: str) -> Path:
        return self._blobs / digest.removeprefix("sha256:")

    def _link(self, repository: str, digest: str) -> Path:
        return self._folder(repository) / "_blobs" / digest.removeprefix("sha256:")

    def _upload(self, upload: str) -> Path:
        file = self._uploads / upload
        if not _UPLOAD.fullmatch(upload) or not file.exists():
            raise RegistryError(Code.BLOB_UPLOAD_UNKNOWN, "blob upload unknown to registry", upload=upload)
        return file
