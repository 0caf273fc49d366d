"""The port `Secrets`: where the values of Kargo's Secrets and ConfigMaps come from without a cluster.

A Secret is put together key by key from three places; a later one wins:

1. the document in the pipeline (`data` in base64, overridden by `stringData`, as Kubernetes does);
2. a file `DIRECTORY/PROJECT/NAME/KEY`, as mounted by Kubernetes or Docker; one line break at its end is dropped;
3. an environment variable `LOCKSTEP_SECRET_PROJECT_NAME_KEY`, in capitals, every other character as `_`; a key that
   has lower-case letters is taken as it is spelled (`LOCKSTEP_SECRET_ACME_AWS_accessKeyID`).

So the document can stand in Git with nothing but its labels and `repoURL`, and the password comes from elsewhere.
A ConfigMap is its document alone.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bot.domain.model import Document
from bot.domain.pipeline import Pipeline
from bot.domain.regex import compile_regex
from bot.domain.urls import normalize_chart_url, normalize_git_url, normalize_image_url
from bot.domain.values import Json
from bot.ports import TerminalError

SHARED_PROJECT = "kargo-shared-resources"
"""Kargo's default namespace for Secrets that every project may use."""

CREDENTIAL_LABEL = "kargo.akuity.io/cred-type"

_PREFIX = "LOCKSTEP_SECRET_"
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,253}")
_LARGEST = 1024 * 1024
_KNOWN_KEYS = (
    "repoURL",
    "repoURLIsRegex",
    "username",
    "password",
    "token",
    "secret",
    "githubAppClientID",
    "githubAppID",
    "githubAppInstallationID",
    "githubAppPrivateKey",
    "awsAccessKeyID",
    "awsSecretAccessKey",
    "awsRegion",
    "gcpServiceAccountKey",
    "auth-header",
    "auth-header-old",
    "secret-old",
    "secret-token",
    "secret-token-old",
)
"""Keys with capitals or dashes that an environment variable may set; all others are lower case."""

_PASSWORD_KEYS = ("username", "password")

_NORMALIZERS: Mapping[str, Callable[[str], str]] = {
    "git": normalize_git_url,
    "helm": normalize_chart_url,
    "image": normalize_image_url,
    "generic": str.strip,
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """User and password for a repository, and the Secret that they come from."""

    username: str
    password: str = field(repr=False)
    secret: str = ""


class SecretStore:
    """Secrets and ConfigMaps of the pipeline that is in force; files are read anew at every call.

    `pipeline` gives that pipeline; `environment` is the process's as it was at the start. Values are never part of a
    message that this class raises.
    """

    def __init__(
        self,
        pipeline: Callable[[], Pipeline],
        *,
        directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
        shared_project: str = SHARED_PROJECT,
    ) -> None:
        self._pipeline = pipeline
        self._directory = directory
        self._environment = {
            name: value for name, value in (environment or {}).items() if name.startswith(_PREFIX)
        }
        self._shared_project = shared_project

    def secret(self, project: str, name: str) -> Mapping[str, str] | None:
        """The values of a Secret, None if no place knows it. Raises TerminalError for values that are no text."""
        if not _is_name(project) or not _is_name(name):
            return None
        document = self._pipeline().secrets.get((project, name))
        values = _read_document(document) if document is not None else {}
        values |= self._read_files(project, name)
        from_environment = self._read_environment(project, name, values)
        known = document is not None or bool(values) or bool(from_environment)
        return values | from_environment if known else None

    def config_map(self, project: str, name: str) -> Mapping[str, str] | None:
        """The values of a ConfigMap, None if there is none; `binaryData` is left out, as it is no text."""
        document = self._pipeline().config_maps.get((project, name))
        return None if document is None else _read_texts(document, "data")

    def find_credentials(self, project: str, kind: str, url: str) -> Credentials | None:
        """The first credentials, by Secret name, for a repository; `kind` is git, helm, image or generic.

        Kargo's rules: the project's own Secrets come before the shared ones; the URL is compared in its normal
        spelling; with `repoURLIsRegex` the expression is searched for in both spellings. A URL with plain http gets
        none, as they could be read on the way.
        """
        found = self.find_login(project, kind, url, keys=_PASSWORD_KEYS)
        if found is None:
            return None
        secret, values = found
        return Credentials(values.get("username", ""), values.get("password", ""), secret)

    def find_login(
        self, project: str, kind: str, url: str, *, keys: Collection[str]
    ) -> tuple[str, Mapping[str, str]] | None:
        """Name and values of the first Secret for a repository that has one of these keys; as `find_credentials`."""
        if url.strip().lower().startswith("http://"):
            return None
        found = (self._find(owner, kind, url, keys) for owner in self._owners(project))
        return next((item for item in found if item is not None), None)

    def find_image_login(
        self, project: str, repository: str, *, keys: Collection[str]
    ) -> tuple[str, Mapping[str, str]] | None:
        """As `find_login`, for an image repository, which a Secret for charts in OCI registries fits as well."""
        for owner in self._owners(project):
            # Kargo labels what signs in to charts in an OCI registry `helm`, and writes `oci://` before it.
            found = self._find(owner, "image", repository, keys)
            found = found or self._find(owner, "helm", f"oci://{repository}", keys)
            if found is not None:
                return found
        return None

    # -- underneath ----------------------------------------------------------------------------------------

    def _owners(self, project: str) -> Iterable[str]:
        """Whose Secrets a project may use: its own, then the shared ones."""
        return dict.fromkeys((project, self._shared_project))

    def _find(
        self, owner: str, kind: str, url: str, keys: Collection[str]
    ) -> tuple[str, Mapping[str, str]] | None:
        for name in self._labelled(owner, kind):
            values = self.secret(owner, name) or {}
            if not values.keys().isdisjoint(keys) and _matches(owner, name, values, kind, url):
                return f"{owner}/{name}", values
        return None

    def _labelled(self, project: str, kind: str) -> Iterator[str]:
        for (owner, name), document in sorted(self._pipeline().secrets.items()):
            if owner == project and document.metadata.labels.get(CREDENTIAL_LABEL) == kind:
                yield name

    def _read_files(self, project: str, name: str) -> dict[str, str]:
        if self._directory is None:
            return {}
        folder = self._directory / project / name
        if not folder.is_dir():
            return {}
        values: dict[str, str] = {}
        for path in sorted(folder.iterdir()):
            # Kubernetes keeps the versions of a mounted Secret in entries that begin with two dots.
            if path.name.startswith(".") or not path.is_file() or _KEY.fullmatch(path.name) is None:
                continue
            try:
                if path.stat().st_size > _LARGEST:
                    raise TerminalError(
                        f"the file {path} is larger than {_LARGEST} bytes, so it is no Secret"
                    )
                content = path.read_bytes()
            except OSError as error:
                raise TerminalError(f"the file {path} cannot be read: {error.strerror}") from error
            values[path.name] = _decode(content, f"the file {path}").removesuffix("\n").removesuffix("\r")
        return values

    def _read_environment(self, project: str, name: str, known: Mapping[str, str]) -> dict[str, str]:
        prefix = f"{_PREFIX}{_shout(project)}_{_shout(name)}_"
        # With Secrets `db` and `db-main` a variable for the second begins as one for the first would.
        longer = tuple(
            f"{_PREFIX}{_shout(project)}_{_shout(other)}_"
            for owner, other in self._pipeline().secrets
            if owner == project and _shout(other).startswith(f"{_shout(name)}_")
        )
        spelled = {_shout(key): key for key in (*_KNOWN_KEYS, *known)}
        values: dict[str, str] = {}
        for variable, value in self._environment.items():
            rest = variable.removeprefix(prefix)
            if rest and rest != variable and not variable.startswith(longer or ("\0",)):
                values[spelled.get(rest, rest.lower()) if rest == rest.upper() else rest] = value
        return values


def _matches(project: str, name: str, values: Mapping[str, str], kind: str, url: str) -> bool:
    """Whether a Secret is for an address."""
    pattern = values.get("repoURL", "")
    if not pattern:
        return False
    normalize = _NORMALIZERS[kind]
    if values.get("repoURLIsRegex", "").lower() != "true":
        return normalize(pattern) == normalize(url)
    try:
        expression = compile_regex(pattern)
    except ValueError as error:
        raise TerminalError(f"repoURL of Secret {project}/{name} is no expression: {error}") from error
    return bool(expression.search(url) or expression.search(normalize(url)))


def _read_document(document: Document) -> dict[str, str]:
    values: dict[str, str] = {}
    what = f"Secret {document.metadata.namespace}/{document.metadata.name}"
    for key, encoded in _read_texts(document, "data").items():
        try:
            content = base64.b64decode("".join(encoded.split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise TerminalError(
                f"data.{key} of {what} is no base64; plain text stands under stringData"
            ) from error
        values[key] = _decode(content, f"data.{key} of {what}")
    return values | _read_texts(document, "stringData")


def _read_texts(document: Document, section: str) -> dict[str, str]:
    """The texts of a section; Kubernetes would refuse other values, so those are left out."""
    found: Json = document.body.get(section)
    if not isinstance(found, dict):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _decode(content: bytes, what: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise TerminalError(f"{what} is no UTF-8 text; encode binary data in base64 once more") from error


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None and ".." not in text


def _shout(text: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", text.upper())
