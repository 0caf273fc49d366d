"""What an operator decides, read once from the environment.

Every secret has a `_FILE` twin that names a file holding it. The names that users of other GitHub Apps know
(`APP_ID`, `PRIVATE_KEY`, `PRIVATE_KEY_PATH`, `WEBHOOK_SECRET`) are understood as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bot.domain.retention import FEWEST_PROMOTIONS, SHORTEST_DAYS


class SettingsError(ValueError):
    """The environment is wrong; the message names the variable and what it takes."""


@dataclass(frozen=True, slots=True)
class ArgoServer:
    """One Argo CD server: its address, a token, and the project that the token is for."""

    url: str
    token: str = field(repr=False)
    project: str = ""
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class RegistryLogin:
    """Credentials for one registry host."""

    host: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the program is told from outside."""

    data: Path
    config: str
    host: str
    port: int
    public_url: str
    database: str
    executor: str
    """The name of this process among replicas; empty: chosen at the start."""
    github_url: str
    app_id: int
    private_key: str = field(repr=False)
    webhook_secrets: tuple[str, ...] = field(repr=False)
    terraform: str = "terraform"
    helm: str = "helm"
    kustomize: str = ""
    """A name or path of `kustomize` or `kubectl`; empty: whichever is on PATH, in this order."""
    isolation: str = "landlock"
    provider_mirror: str = ""
    argocd: Mapping[str, ArgoServer] = field(default_factory=dict)
    registries: tuple[RegistryLogin, ...] = ()
    receiver_secret: str = field(default="", repr=False)
    api_token: str = field(default="", repr=False)
    """Opens `/api`; without one there is no such address."""
    client_id: str = ""
    """With it and its secret people sign in with GitHub to see the bot's pages; without them there are none."""
    client_secret: str = field(default="", repr=False)
    secrets_directory: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables that hold secrets of pipelines: `LOCKSTEP_SECRET_…`, `LOCKSTEP_CONFIGMAP_…`."""
    pace: float = 1.0
    sweep: float = 60.0
    settle: float = 5.0
    """Seconds for which new artifacts must stand still before they become Freight."""
    keep_days: int = 14
    """How long is remembered what nobody needs any longer; Kargo's garbage collector spares as much."""
    keep_promotions: int = 50
    keep_freight: int = 20
    log_format: str = "json"

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Settings:
        """Read the environment; raises SettingsError with every problem at once."""
        reader = _Reader(environ)
        data = Path(reader.text("LOCKSTEP_DATA", default="lockstep-data")).absolute()
        database = reader.text("LOCKSTEP_DATABASE", default=f"sqlite:///{data / 'lockstep.db'}")
        settings = cls(
            data=data,
            config=reader.text("LOCKSTEP_CONFIG"),
            host=reader.text("LOCKSTEP_HOST", default="127.0.0.1"),
            port=reader.number("LOCKSTEP_PORT", "PORT", default=8080),
            public_url=reader.text("LOCKSTEP_URL", default="").rstrip("/"),
            database=database,
            executor=reader.text("LOCKSTEP_EXECUTOR", default=""),
            github_url=reader.text("LOCKSTEP_GITHUB_URL", default="https://api.github.com"),
            app_id=reader.number("LOCKSTEP_APP_ID", "APP_ID", default=0),
            private_key=reader.secret("LOCKSTEP_PRIVATE_KEY", "PRIVATE_KEY", path="PRIVATE_KEY_PATH"),
            webhook_secrets=tuple(
                secret
                for secret in (
                    reader.secret("LOCKSTEP_WEBHOOK_SECRET", "WEBHOOK_SECRET"),
                    reader.secret("LOCKSTEP_WEBHOOK_SECRET_OLD", required=False),
                )
                if secret
            ),
            terraform=reader.text("LOCKSTEP_TERRAFORM", default="terraform"),
            helm=reader.text("LOCKSTEP_HELM", default="helm"),
            kustomize=reader.text("LOCKSTEP_KUSTOMIZE", default=""),
            isolation=reader.choice("LOCKSTEP_ISOLATION", ("landlock", "none")),
            provider_mirror=reader.text("LOCKSTEP_PROVIDER_MIRROR", default=""),
            argocd=reader.argocd(),
            registries=reader.registries(),
            receiver_secret=reader.secret("LOCKSTEP_RECEIVER_SECRET", required=False),
            api_token=reader.secret("LOCKSTEP_API_TOKEN", required=False),
            client_id=reader.text("LOCKSTEP_CLIENT_ID", default=""),
            client_secret=reader.secret("LOCKSTEP_CLIENT_SECRET", required=False),
            secrets_directory=reader.text("LOCKSTEP_SECRETS", default=""),
            environment=_pipeline_secrets(environ),
            pace=reader.seconds("LOCKSTEP_PACE", default=1.0),
            sweep=reader.seconds("LOCKSTEP_SWEEP", default=60.0),
            settle=reader.seconds("LOCKSTEP_SETTLE", default=5.0),
            keep_days=reader.at_least(SHORTEST_DAYS, "LOCKSTEP_KEEP_DAYS", default=14),
            keep_promotions=reader.at_least(
                FEWEST_PROMOTIONS, "LOCKSTEP_KEEP_PROMOTIONS", default=FEWEST_PROMOTIONS
            ),
            keep_freight=reader.at_least(1, "LOCKSTEP_KEEP_FREIGHT", default=20),
            log_format=reader.choice("LOCKSTEP_LOG", ("json", "text")),
        )
        if not settings.app_id:
            reader.problems.append("LOCKSTEP_APP_ID is missing: the number on the App's settings page")
        reader.problems += _sign_in_problems(settings)
        if reader.problems:
            raise SettingsError("\n".join(reader.problems))
        return settings


def _sign_in_problems(settings: Settings) -> list[str]:
    """What is missing for people to sign in, where that was asked for at all."""
    if not settings.client_id and not settings.client_secret:
        return []
    problems = []
    if not settings.client_id:
        problems.append("LOCKSTEP_CLIENT_ID is missing: LOCKSTEP_CLIENT_SECRET belongs to it")
    if not settings.client_secret:
        problems.append(
            "LOCKSTEP_CLIENT_SECRET (or LOCKSTEP_CLIENT_SECRET_FILE) is missing: people sign in by it"
        )
    if not settings.public_url.startswith(("https://", "http://")):
        problems.append("LOCKSTEP_URL is missing: GitHub sends people who sign in back to it")
    return problems


def _pipeline_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    prefixes = ("LOCKSTEP_SECRET_", "LOCKSTEP_CONFIGMAP_")
    return {name: value for name, value in environ.items() if name.startswith(prefixes)}


@dataclass(slots=True)
class _Reader:
    """Reads variables and collects what is wrong with them."""

    environ: Mapping[str, str]
    problems: list[str] = field(default_factory=list)

    def text(self, name: str, *, default: str | None = None) -> str:
        value = self.environ.get(name, default)
        if value is None:
            self.problems.append(f"{name} is missing")
            return ""
        return value

    def number(self, *names: str, default: int) -> int:
        for name in names:
            if name in self.environ:
                try:
                    return int(self.environ[name])
                except ValueError:
                    self.problems.append(f"{name} must be a whole number, not {self.environ[name]!r}")
                    return default
        return default

    def at_least(self, least: int, name: str, *, default: int) -> int:
        """A whole number that may not be lower; decisions rest on what it keeps."""
        found = self.number(name, default=default)
        if found < least:
            self.problems.append(f"{name} must be {least} or more, not {found}")
        return found

    def seconds(self, name: str, *, default: float) -> float:
        try:
            return float(self.environ.get(name, default))
        except ValueError:
            self.problems.append(f"{name} must be a number of seconds, not {self.environ[name]!r}")
            return default

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        value = self.environ.get(name, choices[0])
        if value not in choices:
            self.problems.append(f"{name} must be one of {', '.join(choices)}, not {value!r}")
        return value

    def secret(self, *names: str, path: str = "", required: bool = True) -> str:
        """A secret by any of its names, or from the file that a `_FILE` twin (or `path`) names."""
        files = [f"{name}_FILE" for name in names] + ([path] if path else [])
        for name in names:
            if self.environ.get(name):
                return self.environ[name].replace("\\n", "\n")
        for name in files:
            if self.environ.get(name):
                try:
                    return Path(self.environ[name]).read_text().strip()
                except OSError as error:
                    self.problems.append(f"{name} names {self.environ[name]}: {error.strerror}")
                    return ""
        if required:
            self.problems.append(f"{names[0]} (or {names[0]}_FILE) is missing")
        return ""

    def argocd(self) -> dict[str, ArgoServer]:
        """Servers as `LOCKSTEP_ARGOCD_<NAME>_URL`, `…_TOKEN`, `…_PROJECT`, `…_INSECURE`."""
        servers = {}
        for name, value in self.environ.items():
            if name.startswith("LOCKSTEP_ARGOCD_") and name.endswith("_URL"):
                prefix = name.removesuffix("_URL")
                servers[prefix.removeprefix("LOCKSTEP_ARGOCD_").lower()] = ArgoServer(
                    url=value.rstrip("/"),
                    token=self.secret(f"{prefix}_TOKEN"),
                    project=self.environ.get(f"{prefix}_PROJECT", ""),
                    insecure=self.environ.get(f"{prefix}_INSECURE", "") == "true",
                )
        return servers

    def registries(self) -> tuple[RegistryLogin, ...]:
        """Logins as `LOCKSTEP_REGISTRY_<NAME>_HOST`, `…_USERNAME`, `…_PASSWORD`."""
        logins = []
        for name, value in sorted(self.environ.items()):
            if name.startswith("LOCKSTEP_REGISTRY_") and name.endswith("_HOST"):
                prefix = name.removesuffix("_HOST")
                username = self.text(f"{prefix}_USERNAME")
                logins.append(RegistryLogin(value, username, self.secret(f"{prefix}_PASSWORD")))
        return tuple(logins)
