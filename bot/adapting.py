"""The settings as the adapters take them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bot.adapters.argocd import ArgoCDServer
from bot.adapters.config import DirectorySource, RepositorySource, parse_source
from bot.adapters.git import GitMirror
from bot.adapters.github.app import GitHubApp
from bot.adapters.github.connection import GitHubSettings
from bot.adapters.logins import Logins
from bot.adapters.oci.wire import Wire
from bot.adapters.rendering import RenderTools
from bot.adapters.secrets import SecretStore
from bot.adapters.terraform.tool import Tool
from bot.domain.pipeline import Pipeline
from bot.ports import Clock, ConfigSource
from bot.settings import Settings, addresses_of


def github_settings(settings: Settings) -> GitHubSettings:
    """Where GitHub is, and who we are there."""
    api, web = addresses_of(settings.github_url)
    return GitHubSettings(
        app_id=settings.app_id,
        private_key=settings.private_key,
        api_url=api,
        web_url=web,
        write_interval=settings.pace,
    )


def config_source(settings: Settings, git: GitMirror, github: GitHubApp) -> ConfigSource:
    """Where the pipeline is read from; raises TerminalError for a source that is not written so."""
    source = parse_source(settings.config)
    if isinstance(source, Path):
        return DirectorySource(source)
    return RepositorySource(source[0], source[1], git, github)


def terraform_tool(settings: Settings) -> Tool:
    """The Terraform binary and how it is isolated."""
    return Tool(
        binary=settings.terraform,
        isolation="none" if settings.isolation == "none" else "landlock",
        mirror=Path(settings.provider_mirror) if settings.provider_mirror else None,
        cache=settings.data / "providers",
    )


def argocd_servers(settings: Settings) -> dict[str, ArgoCDServer]:
    """Every Argo CD server by its name."""
    return {
        name: ArgoCDServer(server.url, server.token, insecure=server.insecure, project=server.project)
        for name, server in settings.argocd.items()
    }


def render_tools(settings: Settings) -> RenderTools:
    """The binaries that render charts and kustomizations, and whether they are isolated."""
    return RenderTools(settings.helm, settings.kustomize, isolated=settings.isolation != "none")


def secret_store(settings: Settings, pipeline: Callable[[], Pipeline]) -> SecretStore:
    """The Secrets of the pipeline in force, of the operator's directory and of the environment."""
    directory = Path(settings.secrets_directory) if settings.secrets_directory else None
    return SecretStore(pipeline, directory=directory, environment=settings.environment)


def make_logins(settings: Settings, secrets: SecretStore, wire: Wire, clock: Clock) -> Logins:
    """Logins of repositories: those of the settings, else those of Secrets."""
    hosts = {login.host.lower(): (login.username, login.password) for login in settings.registries}
    return Logins(secrets, wire, clock, hosts)


def engine_database(settings: Settings) -> str:
    """The engine's own database: beside ours on SQLite, the same one on PostgreSQL."""
    if settings.on_sqlite:
        path = Path(settings.database.removeprefix("sqlite:///"))
        return f"sqlite:///{path.with_name(f'{path.stem}-engine.db')}"
    return settings.database
