"""What an operator decides, read once from the environment.

Every secret has a `_FILE` twin that names a file holding it. The names that users of other GitHub Apps know
(`APP_ID`, `PRIVATE_KEY`, `PRIVATE_KEY_PATH`, `WEBHOOK_SECRET`) are understood as well. What the environment does not
say of the App is read from the file that `lockstep setup` wrote to the data directory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bot.adapters.app_file import AppFile
from bot.domain.retention import FEWEST_PROMOTIONS, SHORTEST_DAYS
from bot.ports import AppCredentials, TerminalError

_APP_NAMES = (
    *(f"{name}{twin}" for name in ("APP_ID", "PRIVATE_KEY", "WEBHOOK_SECRET") for twin in ("", "_FILE")),
    "PRIVATE_KEY_PATH",
)
"""Names by which the environment names an App; each but the last may have the prefix of our own variables."""

_SYSTEM_PARENTS = frozenset(map(Path, ("/", "/usr", "/usr/local")))
_SYSTEM = frozenset(
    Path(name).resolve()
    for name in ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")
)


class SettingsError(ValueError):
    """The environment is wrong; the message names the variable and what it takes."""


class NoAppError(SettingsError):
    """Nothing is wrong but that no App was ever named: `lockstep setup` makes one."""


@dataclass(frozen=True, slots=True)
class SetupSettings:
    """What setting up needs to be told: where to write, where GitHub is, and where the bot will be."""

    data: Path
    port: int
    public_url: str
    github_url: str

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> SetupSettings:
        """Read the environment; raises SettingsError with every problem at once."""
        reader = _Reader(environ)
        settings = cls(
            data=_data(reader),
            port=reader.number("LOCKSTEP_PORT", "PORT", default=8080),
            public_url=reader.text("LOCKSTEP_URL", default="").rstrip("/"),
            github_url=reader.text("LOCKSTEP_GITHUB_URL", default="https://api.github.com"),
        )
        if not settings.public_url.startswith(("https://", "http://")):
            reader.problems.append(
                "LOCKSTEP_URL is missing: the bot's address from outside, to which GitHub sends webhooks"
            )
        named = _named(environ)
        if named:
            reader.problems.append(
                f"{', '.join(named)}: the environment names an App already, and it would win over a new one"
            )
        if reader.problems:
            raise SettingsError("\n".join(reader.problems))
        return settings


def addresses_of(github_url: str) -> tuple[str, str]:
    """The API and the web pages of a GitHub by its API's address, each ending in a slash."""
    api = github_url.rstrip("/")
    # github.com and GHE.com have a host for the API, GitHub Enterprise Server a path.
    web = api.replace("://api.", "://", 1) if "://api." in api else api.removesuffix("/api/v3")
    return f"{api}/", f"{web}/"


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
    custom_steps: tuple[Path, ...] = ()
    """Programs, and directories of programs, that custom steps may run; none by default."""
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
    keep_audit_days: int = 400
    keep_promotions: int = 50
    keep_freight: int = 20
    log_format: str = "json"

    @property
    def on_sqlite(self) -> bool:
        """Whether this is the only process on its database; on PostgreSQL there may be others."""
        return self.database.startswith("sqlite:///")

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Settings:
        """Read the environment; raises SettingsError with every problem at once."""
        reader = _Reader(environ)
        data = _data(reader)
        app = reader.app(data)
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
            app_id=reader.number("LOCKSTEP_APP_ID", "APP_ID", default=app.app_id),
            private_key=reader.secret(
                "LOCKSTEP_PRIVATE_KEY", "PRIVATE_KEY", path="PRIVATE_KEY_PATH", default=app.private_key
            ),
            webhook_secrets=tuple(
                secret
                for secret in (
                    reader.secret("LOCKSTEP_WEBHOOK_SECRET", "WEBHOOK_SECRET", default=app.webhook_secret),
                    reader.secret("LOCKSTEP_WEBHOOK_SECRET_OLD", required=False),
                )
                if secret
            ),
            terraform=reader.text("LOCKSTEP_TERRAFORM", default="terraform"),
            helm=reader.text("LOCKSTEP_HELM", default="helm"),
            kustomize=reader.text("LOCKSTEP_KUSTOMIZE", default=""),
            custom_steps=reader.programs("LOCKSTEP_CUSTOM_STEPS"),
            isolation=reader.choice("LOCKSTEP_ISOLATION", ("landlock", "none")),
            provider_mirror=reader.text("LOCKSTEP_PROVIDER_MIRROR", default=""),
            argocd=reader.argocd(),
            registries=reader.registries(),
            receiver_secret=reader.secret("LOCKSTEP_RECEIVER_SECRET", required=False),
            api_token=reader.secret("LOCKSTEP_API_TOKEN", required=False),
            client_id=reader.text("LOCKSTEP_CLIENT_ID", default=app.client_id),
            client_secret=reader.secret("LOCKSTEP_CLIENT_SECRET", required=False, default=app.client_secret),
            secrets_directory=reader.text("LOCKSTEP_SECRETS", default=""),
            environment=_pipeline_secrets(environ),
            pace=reader.seconds("LOCKSTEP_PACE", default=1.0),
            sweep=reader.seconds("LOCKSTEP_SWEEP", default=60.0),
            settle=reader.seconds("LOCKSTEP_SETTLE", default=5.0),
            keep_days=reader.at_least(SHORTEST_DAYS, "LOCKSTEP_KEEP_DAYS", default=14),
            keep_audit_days=reader.at_least(SHORTEST_DAYS, "LOCKSTEP_KEEP_AUDIT_DAYS", default=400),
            keep_promotions=reader.at_least(
                FEWEST_PROMOTIONS, "LOCKSTEP_KEEP_PROMOTIONS", default=FEWEST_PROMOTIONS
            ),
            keep_freight=reader.at_least(1, "LOCKSTEP_KEEP_FREIGHT", default=20),
            log_format=reader.choice("LOCKSTEP_LOG", ("json", "text")),
        )
        if not settings.app_id:
            reader.problems.append("LOCKSTEP_APP_ID is missing: the number on the App's settings page")
        reader.problems += _sign_in_problems(settings)
        reader.problems += _exposed_by_programs(settings, environ)
        if reader.problems:
            kind = NoAppError if _lacks_only_an_app(environ, reader.problems) else SettingsError
            raise kind("\n".join(reader.problems))
        return settings


def _data(reader: _Reader) -> Path:
    return Path(reader.text("LOCKSTEP_DATA", default="lockstep-data")).absolute()


def _lacks_only_an_app(environ: Mapping[str, str], problems: Sequence[str]) -> bool:
    """Whether nothing of an App was given, and nothing else is wrong."""
    expected = ("LOCKSTEP_APP_ID ", "LOCKSTEP_PRIVATE_KEY ", "LOCKSTEP_WEBHOOK_SECRET ")
    return not _named(environ) and all(problem.startswith(expected) for problem in problems)


def _named(environ: Mapping[str, str]) -> list[str]:
    """The variables that name an App."""
    return sorted(
        name for name, value in environ.items() if value and name.removeprefix("LOCKSTEP_") in _APP_NAMES
    )


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


def _exposed_by_programs(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    """What custom steps could read of the bot's, since directories of programs are readable to them as a whole."""
    named = [value for name, value in environ.items() if name.endswith(("_FILE", "_PATH")) and "KEY" in name]
    named += [
        value for name, value in environ.items() if name.startswith("LOCKSTEP_") and name.endswith("_FILE")
    ]
    # Who writes a pipeline in a directory would add programs beside it.
    named += [settings.secrets_directory, "" if settings.config.startswith("github:") else settings.config]
    private = [settings.data, *(Path(value) for value in named if value)]
    return [
        f"LOCKSTEP_CUSTOM_STEPS names {str(entry)!r}, which holds {str(path)!r} or lies in it; give programs a "
        "directory that holds nothing else"
        for entry in settings.custom_steps
        for path in dict.fromkeys(private)
        if path.resolve().is_relative_to(entry.resolve()) or entry.resolve().is_relative_to(path.resolve())
    ]


def parse_programs(text: str) -> tuple[Path, ...]:
    """The programs and directories of a list with colons; raises SettingsError for what would allow too much.

    The system's own directories hold shells and interpreters, which would let whoever writes a pipeline run anything.
    """
    entries = tuple(Path(part) for part in text.split(":") if part)
    for entry in entries:
        if not entry.is_absolute() or ".." in entry.parts:
            raise SettingsError(f"takes absolute paths, separated by colons, not {str(entry)!r}")
        if not entry.exists():
            raise SettingsError(f"names {str(entry)!r}, which does not exist")
        if entry.resolve() in _SYSTEM or (entry.is_dir() and entry.resolve() in _SYSTEM_PARENTS):
            raise SettingsError(
                f"names {str(entry)!r}, which holds shells and interpreters; make a directory of the programs that "
                "pipelines may run"
            )
    return entries


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

    def programs(self, name: str) -> tuple[Path, ...]:
        try:
            return parse_programs(self.environ.get(name, ""))
        except SettingsError as error:
            self.problems.append(f"{name} {error}")
            return ()

    def app(self, data: Path) -> AppCredentials:
        """What `lockstep setup` left in the data directory, unless the environment names another App."""
        nothing = AppCredentials(0, "", "", "", "", "", "", "")
        try:
            kept = AppFile(data).read()
        except TerminalError as error:
            self.problems.append(str(error))
            return nothing
        if kept is None or self.number("LOCKSTEP_APP_ID", "APP_ID", default=kept.app_id) != kept.app_id:
            return nothing
        return kept

    def secret(self, *names: str, path: str = "", required: bool = True, default: str = "") -> str:
        """A secret by any of its names, or from the file that a `_FILE` twin (or `path`) names, else the default."""
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
        if required and not default:
            self.problems.append(f"{names[0]} (or {names[0]}_FILE) is missing")
        return default

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
