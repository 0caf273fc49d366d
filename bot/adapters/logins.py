"""Logins for repositories from the Secrets of the pipeline, exchanged for short-lived ones where a provider wants that.

Keys of Secrets are Kargo's: `username` and `password`; `awsAccessKeyID`, `awsSecretAccessKey` and `awsRegion` for
Amazon ECR; `gcpServiceAccountKey` (the key's JSON, in base64) for Google Artifact Registry; `githubAppClientID` (or
`githubAppID`), `githubAppInstallationID` and `githubAppPrivateKey` for git. Azure's registries take a service
principal as user and password, and exchange it themselves.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlsplit

from bot.adapters.exchanges import Exchanged, exchange_amazon, exchange_github, exchange_google
from bot.adapters.oci.wire import Wire
from bot.adapters.secrets import CREDENTIAL_LABEL, SecretStore
from bot.ports import Clock, TerminalError

Login = tuple[str, str]
"""User and password."""

_MARGIN = timedelta(minutes=5)
_MOST_KEPT = 1000
_PASSWORD = ("username", "password")
_CLOUDS = ("awsAccessKeyID", "gcpServiceAccountKey")
_GITHUB_APP = ("githubAppClientID", "githubAppID")


@dataclass(slots=True)
class Logins:
    """Finds logins; those that were exchanged are kept until five minutes before they end.

    `hosts` are logins of the operator's by registry host, which come before Secrets.
    """

    secrets: SecretStore
    wire: Wire
    clock: Clock
    hosts: Mapping[str, Login] = field(default_factory=dict)
    kept: OrderedDict[str, Exchanged] = field(default_factory=OrderedDict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def of_image(self, project: str, repository: str) -> Login | None:
        """The login that a project has for `host/path` of an image.

        Raises TransientError and TerminalError, as all of these.
        """
        known = self.hosts.get(repository.partition("/")[0].lower())
        if known is not None:
            return known
        return await self._of(self.secrets.find_image_login(project, repository, keys=(*_PASSWORD, *_CLOUDS)))

    async def of_chart(self, project: str, repository: str) -> Login | None:
        """The login for a chart repository, by its address; for `oci://` ones without that."""
        found = self.secrets.find_login(project, "helm", repository, keys=(*_PASSWORD, *_CLOUDS))
        if found is None and "://" not in repository:
            return self.hosts.get(repository.partition("/")[0].lower())
        return await self._of(found)

    async def of_dependency(self, project: str, url: str) -> Login | None:
        """The login for where a chart's dependency comes from, by its address with its scheme."""
        # Kargo labels what signs in to charts in an OCI registry `helm`, and what pulls images from it `image`.
        keys = (*_PASSWORD, *_CLOUDS)
        found = self.secrets.find_login(project, "helm", url, keys=keys)
        bare = url.removeprefix("oci://")
        if found is None and bare != url:
            known = self.hosts.get(bare.partition("/")[0].lower())
            if known is not None:
                return known
            found = self.secrets.find_login(project, "image", bare, keys=keys)
        return await self._of(found)

    async def of_git(self, project: str, url: str, *, write: bool = False) -> Login | None:
        """The login for a git repository, to push to it if `write`."""
        found = self.secrets.find_login(project, "git", url, keys=(*_PASSWORD, *_GITHUB_APP))
        return await self._of(found, urlsplit(url).netloc, write=write)

    def advise_git(self, project: str, url: str) -> str:
        """What to do where a server refuses a git repository to a project: it names the Secret that is asked for."""
        keys = (*_PASSWORD, *_GITHUB_APP)
        used = self.secrets.find_login(project, "git", url, keys=keys)
        if used is not None:
            return f"the Secret {used[0]} was shown; see that it is right and may read and write there"
        empty = self.secrets.find_login(project, "git", url, keys=("repoURL",))
        if empty is not None:
            return (
                f"the App is not installed there, and the Secret {empty[0]} for it holds neither `username` and "
                "`password` nor the keys of a GitHub App; provide them"
            )
        return (
            f"install the App there, or give the project {project} a Secret with the label {CREDENTIAL_LABEL}: git, "
            f"`repoURL: {url}`, `username` and `password`"
        )

    async def _of(
        self, found: tuple[str, Mapping[str, str]] | None, host: str = "", *, write: bool = False
    ) -> Login | None:
        if found is None:
            return None
        name, values = found
        if not values.keys().isdisjoint(_PASSWORD):
            return values.get("username", ""), values.get("password", "")
        if "awsAccessKeyID" in values:
            return await self._exchanged(name, values, lambda: exchange_amazon(self.wire, self.clock, values))
        if "gcpServiceAccountKey" in values:
            return await self._exchanged(name, values, lambda: exchange_google(self.wire, self.clock, values))
        return await self._exchanged(
            f"{name} {host} {'write' if write else 'read'}",
            values,
            lambda: exchange_github(self.wire, self.clock, values, host, write=write),
        )

    async def _exchanged(
        self, name: str, values: Mapping[str, str], exchange: Callable[[], Awaitable[Exchanged]]
    ) -> Login:
        # A Secret whose values were changed is another one.
        key = hashlib.sha256(repr((name, sorted(values.items()))).encode()).hexdigest()
        async with self.lock:
            kept = self.kept.get(key)
            if kept is None or kept.until - self.clock.now() < _MARGIN:
                kept = self.kept[key] = await _named(name, exchange)
                while len(self.kept) > _MOST_KEPT:
                    self.kept.popitem(last=False)
        return kept.username, kept.password


async def _named(name: str, exchange: Callable[[], Awaitable[Exchanged]]) -> Exchanged:
    """The exchanged login; what is refused names the Secret that it came from."""
    try:
        return await exchange()
    except TerminalError as error:
        raise TerminalError(f"Secret {name.split()[0]}: {error}") from error
