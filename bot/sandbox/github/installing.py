"""Installing Apps on accounts, and the events that tell the App so."""

from collections.abc import Sequence

from bot.sandbox.github.accounts import App, Installation, InstallationRepository, OrganisationMember, User
from bot.sandbox.github.auth import person
from bot.sandbox.github.events import Notice, emit_to_app
from bot.sandbox.github.provisioning import put_installation
from bot.sandbox.github.records import Json, Repository
from bot.sandbox.github.views.lens import Lens, node_id
from bot.sandbox.github.views.people import installation as view
from bot.sandbox.github.world import BASE_MARK, World


def install(world: World, app_id: int, owner: str, repositories: Sequence[str] | None) -> int:
    """Install the App, or add repositories to its installation, and return the installation's id.

    An installation takes over the permissions that the App has now, as if its owner had accepted them.
    """
    app, account = world.store.need(App, app_id), world.need_user(owner)
    sender = person(_sender(world, account))
    with world.store.transaction():
        before = world.store.first(Installation, app_id=app.id, account_id=account.id)
        found, added, created = put_installation(world, app, account, repositories)
        lens = Lens(world, BASE_MARK)
        if created:
            named = [_short(world, repo) for repo in world.repositories_of(found)]
            body: Json = {"installation": view(lens, found), "repositories": named, "requester": None}
            emit_to_app(world, app, found, Notice("installation", "created", sender), body)
        elif added:
            _tell_repositories(world, found, added, "added")
        if before and before.permissions != found.permissions:
            notice = Notice("installation", "new_permissions_accepted", sender)
            emit_to_app(world, app, found, notice, {"installation": view(lens, found)})
        return found.id


def remove_repositories(world: World, installation: Installation, repositories: Sequence[str]) -> None:
    """Take repositories out of an installation with selected ones."""
    account = world.store.need(User, installation.account_id)
    gone = []
    with world.store.transaction():
        for name in repositories:
            repo = world.repository(account.login, name)
            keys = {"installation_id": installation.id, "repo_id": repo.id}
            row = world.store.first(InstallationRepository, **keys)
            if row:
                world.store.remove(row)
                gone.append(repo)
        if gone:
            _tell_repositories(world, installation, gone, "removed")


def set_suspended(world: World, installation: Installation, *, suspended: bool) -> Installation:
    """Suspend the installation, or lift that."""
    app = world.store.need(App, installation.app_id)
    account = world.store.need(User, installation.account_id)
    with world.store.transaction():
        installation = world.store.change(installation, suspended_at=world.now() if suspended else None)
        notice = Notice(
            "installation", "suspend" if suspended else "unsuspend", person(_sender(world, account))
        )
        body: Json = {"installation": view(Lens(world, BASE_MARK), installation)}
        emit_to_app(world, app, installation, notice, body)
        return installation


def uninstall(world: World, installation: Installation) -> None:
    """Remove the installation; its tokens stop working."""
    app = world.store.need(App, installation.app_id)
    account = world.store.need(User, installation.account_id)
    with world.store.transaction():
        body: Json = {"installation": view(Lens(world, BASE_MARK), installation)}
        notice = Notice("installation", "deleted", person(_sender(world, account)))
        emit_to_app(world, app, installation, notice, body)
        for row in world.store.find(InstallationRepository, installation_id=installation.id):
            world.store.remove(row)
        world.store.remove(installation)


def ping(world: World, app: App) -> None:
    """Send `ping` to the App's webhook, as when its settings are saved."""
    hook = {
        "id": app.id,
        "type": "App",
        "name": "web",
        "active": True,
        "events": list(app.events),
        "app_id": app.id,
        "config": {"content_type": "json", "insecure_ssl": "0", "secret": "********", "url": app.webhook_url},
        "created_at": app.created_at,
        "updated_at": app.updated_at,
    }
    owner = world.store.need(User, app.owner_id)
    body: Json = {"zen": "Keep it logically awesome.", "hook_id": app.id, "hook": hook}
    emit_to_app(world, app, None, Notice("ping", None, person(owner)), body)


def _tell_repositories(
    world: World, installation: Installation, repos: list[Repository], action: str
) -> None:
    app = world.store.need(App, installation.app_id)
    account = world.store.need(User, installation.account_id)
    named = [_short(world, repo) for repo in repos]
    body: Json = {
        "installation": view(Lens(world, BASE_MARK), installation),
        "repository_selection": installation.repository_selection,
        "repositories_added": named if action == "added" else [],
        "repositories_removed": named if action == "removed" else [],
        "requester": None,
    }
    notice = Notice("installation_repositories", action, person(_sender(world, account)))
    emit_to_app(world, app, installation, notice, body)


def _short(world: World, repo: Repository) -> Json:
    return {
        "id": repo.id,
        "node_id": node_id("R", repo.id),
        "name": repo.name,
        "full_name": world.full_name(repo),
        "private": repo.private,
    }


def _sender(world: World, account: User) -> User:
    """The person who stands behind an account: itself, or for an organisation its first admin."""
    admin = world.store.first(OrganisationMember, org_id=account.id, role="admin")
    return world.store.need(User, admin.user_id) if admin else account
