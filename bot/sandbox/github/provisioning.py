"""Setting the stage: accounts, repositories, Apps and installations, each made once and found again after that."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.sandbox.github.accounts import (
    App,
    Installation,
    InstallationRepository,
    OrganisationMember,
    PersonalToken,
    Team,
    TeamMember,
    User,
)
from bot.sandbox.github.errors import Refused
from bot.sandbox.github.git import ZERO, Person
from bot.sandbox.github.records import Collaborator, Repository
from bot.sandbox.github.world import ROLES, World, digest

ACCESS = ("read", "write", "admin")
# Login, name and role: a platform engineer, a reviewer, an admin who may pass rules by, a reader.
DEMO_PEOPLE = (
    ("olivia", "Olivia Berg", "maintain"),
    ("rafael", "Rafael Costa", "write"),
    ("dana", "Dana Levi", "admin"),
    ("uma", "Uma Patel", "read"),
)


@dataclass(frozen=True, slots=True)
class AppCredentials:
    """What an App's owner needs to run it."""

    app_id: int
    client_id: str
    private_key_pem: str
    webhook_secret: str
    slug: str
    client_secret: str


def create_user(world: World, login: str, name: str = "", type: str = "User") -> User:
    """The account of this login, made if it is not there."""
    with world.store.transaction():
        return world.user(login) or world.store.add(
            User(login, name or login, type, f"{login}@users.noreply.github.com", world.now())
        )


def create_token(world: World, login: str, *, read_only: bool = False) -> str:
    """A new personal access token of the user."""
    token = world.secret("ghp_")
    world.store.add(PersonalToken(world.need_user(login).id, digest(token), read_only))
    return token


def add_member(world: World, organisation: str, login: str, role: str = "member") -> None:
    """Make the user a member (or `admin`) of the organisation."""
    keys = {"org_id": world.need_user(organisation).id, "user_id": world.need_user(login).id}
    with world.store.transaction():
        found = world.store.first(OrganisationMember, **keys)
        if found is None:
            world.store.add(OrganisationMember(**keys, role=role))
        else:
            world.store.change(found, role=role)


def create_team(world: World, organisation: str, slug: str, members: Sequence[str]) -> Team:
    """The team with (at least) these members."""
    with world.store.transaction():
        org = world.need_user(organisation)
        team = world.store.first(Team, org_id=org.id, slug=slug) or world.store.add(
            Team(org.id, slug, slug.title())
        )
        for login in members:
            user = world.need_user(login)
            if not world.in_team(team.id, user):
                world.store.add(TeamMember(team.id, user.id))
        return team


def demo_cast(world: World, organisation: str, repositories: Sequence[str]) -> None:
    """The demo's organisation, people and team, with their roles on the repositories that are there."""
    create_user(world, organisation, organisation.title(), "Organization")
    for login, name, _ in DEMO_PEOPLE:
        create_user(world, login, name)
        add_member(world, organisation, login)
    create_team(world, organisation, "platform", ["olivia", "rafael"])
    for name in repositories:
        for login, _, role in DEMO_PEOPLE:
            set_role(world, world.repository(organisation, name), login, role)


def set_role(world: World, repo: Repository, login: str, role: str) -> None:
    """Give the user the role on the repository; `none` takes it away."""
    if role not in ROLES:
        raise ValueError(f"{role} is not a role; it is one of {', '.join(ROLES)}.")
    keys = {"repo_id": repo.id, "user_id": world.need_user(login).id}
    with world.store.transaction():
        found = world.store.first(Collaborator, **keys)
        if found and role == "none":
            world.store.remove(found)
        elif found:
            world.store.change(found, role=role)
        elif role != "none":
            world.store.add(Collaborator(**keys, role=role))


def create_repository(
    world: World, owner: str, name: str, files: Mapping[str, bytes], *, private: bool = True
) -> Repository:
    """The repository, made with one commit of the files on its default branch if it is not there."""
    account = world.need_user(owner)
    with world.store.transaction():
        found = world.store.first(Repository, owner_id=account.id, name=name)
        if found is None:
            now = world.now()
            found = world.store.add(
                Repository(account.id, name, private, created_at=now, updated_at=now, pushed_at=now)
            )
        init_bare(world, found, files)
        return found


def init_bare(world: World, repo: Repository, files: Mapping[str, bytes]) -> None:
    """Make the bare repository; a second run after a crash finishes what the first began."""
    git = world.git(repo)
    git.path.mkdir(parents=True, exist_ok=True)
    if not (git.path / "HEAD").exists():
        git.run("init", "-q", "--bare", "--template=", f"--initial-branch={repo.default_branch}")
    for key, value in (
        ("http.receivepack", "true"),
        ("uploadpack.allowFilter", "true"),
        ("uploadpack.allowAnySHA1InWant", "true"),
        ("core.logAllRefUpdates", "false"),
    ):
        git.run("config", key, value)
    if files and git.ref(f"refs/heads/{repo.default_branch}") is None:
        owner = world.owner(repo)
        who = Person(owner.name, owner.email, world.now())
        tree = git.tree_with(None, files)
        commit = git.commit_tree(tree, [], "Initial commit\n", author=who, committer=who)
        git.update_ref(f"refs/heads/{repo.default_branch}", commit, ZERO)


@dataclass(frozen=True, slots=True)
class NewApp:
    """What an App is registered with: `permissions` by name and level, webhook events by name."""

    name: str
    owner: str
    permissions: Mapping[str, str]
    events: Sequence[str]
    webhook_url: str
    webhook_secret: str
    description: str = ""
    external_url: str = "http://127.0.0.1"
    setup_url: str = ""
    public: bool = False
    callback_urls: Sequence[str] = ()


def slug_of(name: str) -> str:
    """The App's slug: lower case, words joined by hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def register_app(world: World, new: NewApp) -> AppCredentials:
    """The App of this name, made if it is not there; an existing one takes over all settings but its keys."""
    slug = slug_of(new.name)
    settings = {
        "permissions": {"metadata": "read", **new.permissions},
        "events": tuple(new.events),
        "webhook_url": new.webhook_url,
        "webhook_secret": new.webhook_secret,
        "description": new.description,
        "external_url": new.external_url,
        "setup_url": new.setup_url,
        "public": new.public,
        "callback_urls": tuple(new.callback_urls),
        "updated_at": world.now(),
    }
    for name, level in new.permissions.items():
        if level not in ACCESS:
            raise Refused(
                422, f"Invalid request.\n\nFor 'permissions/{name}', {level} is not a permission level."
            )
    with world.store.transaction():
        app = world.store.first(App, slug=slug)
        if app is None:
            app = _make_app(world, new, slug)
        app = world.store.change(app, **settings)
        if not app.bot_user_id:
            bot = world.store.add(
                User(
                    f"{slug}[bot]", slug, "Bot", f"{slug}[bot]@users.noreply.github.com", world.now(), app.id
                )
            )
            app = world.store.change(app, bot_user_id=bot.id)
        return credentials(app)


def _make_app(world: World, new: NewApp, slug: str) -> App:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return world.store.add(
        App(
            slug=slug,
            name=new.name,
            owner_id=world.need_user(new.owner).id,
            client_id=world.secret("Iv23li")[:20],
            client_secret=world.secret(""),
            private_key_pem=private.decode(),
            public_key_pem=public.decode(),
            webhook_url=new.webhook_url,
            webhook_secret=new.webhook_secret,
            description=new.description,
            external_url=new.external_url,
            setup_url=new.setup_url,
            public=new.public,
            created_at=world.now(),
        )
    )


def credentials(app: App) -> AppCredentials:
    """What the App's owner needs to run it."""
    return AppCredentials(
        app.id, app.client_id, app.private_key_pem, app.webhook_secret, app.slug, app.client_secret
    )


def rotate_webhook_secret(world: World, app_id: int, secret: str) -> None:
    """Sign later deliveries with another secret, as the App's settings page does."""
    world.store.change(world.store.need(App, app_id), webhook_secret=secret)


def put_installation(
    world: World, app: App, account: User, repositories: Sequence[str] | None
) -> tuple[Installation, list[Repository], bool]:
    """The App's installation on the account, the repositories added to it, and whether it is new.

    `repositories` None means all of the account, also those made later.
    """
    store = world.store
    found = store.first(Installation, app_id=app.id, account_id=account.id)
    created = found is None
    selection = "all" if repositories is None else "selected"
    changes = {"permissions": app.permissions, "events": app.events, "updated_at": world.now()}
    if found is None:
        found = store.add(Installation(app.id, account.id, created_at=world.now()))
    found = store.change(found, repository_selection=selection, **changes)
    added = []
    for name in repositories or ():
        repo = world.repository(account.login, name)
        keys = {"installation_id": found.id, "repo_id": repo.id}
        if store.first(InstallationRepository, **keys) is None:
            store.add(InstallationRepository(**keys))
            added.append(repo)
    return found, added, created
