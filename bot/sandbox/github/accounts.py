"""Accounts, teams, Apps and their installations: one frozen dataclass per table, as in `records`."""

from dataclasses import dataclass, field

from bot.sandbox.github.records import Json


@dataclass(frozen=True, slots=True)
class User:
    """An account; `type` is `User`, `Organization` or `Bot` (a Bot belongs to the App with `app_id`)."""

    login: str
    name: str = ""
    type: str = "User"
    email: str = ""
    created_at: str = ""
    app_id: int | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class OrganisationMember:
    """That a user belongs to an organisation; `role` is `admin` or `member`."""

    org_id: int
    user_id: int
    role: str = "member"
    id: int = 0


@dataclass(frozen=True, slots=True)
class Team:
    """A team of an organisation."""

    org_id: int
    slug: str
    name: str
    id: int = 0


@dataclass(frozen=True, slots=True)
class TeamMember:
    """That a user belongs to a team; `role` is `member` or `maintainer`."""

    team_id: int
    user_id: int
    role: str = "member"
    id: int = 0


@dataclass(frozen=True, slots=True)
class PersonalToken:
    """A user's own token, kept as its SHA-256."""

    user_id: int
    digest: str
    read_only: bool = False
    id: int = 0


@dataclass(frozen=True, slots=True)
class App:
    """A GitHub App with its key pair and webhook."""

    slug: str
    name: str
    owner_id: int
    client_id: str
    client_secret: str
    private_key_pem: str
    public_key_pem: str
    webhook_url: str
    webhook_secret: str
    description: str = ""
    external_url: str = ""
    setup_url: str = ""
    permissions: Json = field(default_factory=dict)
    events: tuple[str, ...] = ()
    bot_user_id: int = 0
    public: bool = False
    callback_urls: tuple[str, ...] = ()
    created_at: str = ""
    updated_at: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class ManifestCode:
    """The one-time code of the manifest flow, and the App it stands for."""

    code: str
    app_id: int
    expires_at: str
    used: bool = False
    id: int = 0


@dataclass(frozen=True, slots=True)
class Installation:
    """An App on an account, with the permissions that were granted there."""

    app_id: int
    account_id: int
    permissions: Json = field(default_factory=dict)
    events: tuple[str, ...] = ()
    repository_selection: str = "selected"
    suspended_at: str | None = None
    created_at: str = ""
    updated_at: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class InstallationRepository:
    """That an installation with `repository_selection: selected` covers a repository."""

    installation_id: int
    repo_id: int
    id: int = 0


@dataclass(frozen=True, slots=True)
class InstallationToken:
    """An installation access token, kept as its SHA-256; `repo_ids` None means all of the installation."""

    installation_id: int
    digest: str
    expires_at: str
    permissions: Json = field(default_factory=dict)
    repo_ids: tuple[int, ...] | None = None
    id: int = 0
