"""Accounts, teams, Apps and installations as JSON."""

from bot.sandbox.github.accounts import App, Installation, Team, User
from bot.sandbox.github.records import Json
from bot.sandbox.github.views.lens import Lens, node_id

_USER_LINKS = (
    ("followers_url", "/followers"),
    ("following_url", "/following{/other_user}"),
    ("gists_url", "/gists{/gist_id}"),
    ("starred_url", "/starred{/owner}{/repo}"),
    ("subscriptions_url", "/subscriptions"),
    ("organizations_url", "/orgs"),
    ("repos_url", "/repos"),
    ("events_url", "/events{/privacy}"),
    ("received_events_url", "/received_events"),
)


def user(lens: Lens, account: User) -> Json:
    """An account in the short form that stands inside other things."""
    url = f"{lens.api}/users/{account.login}"
    web = (
        f"{lens.base}/apps/{account.login.removesuffix('[bot]')}"
        if account.app_id
        else f"{lens.base}/{account.login}"
    )
    return {
        "login": account.login,
        "id": account.id,
        "node_id": node_id("BOT" if account.app_id else "U", account.id),
        "avatar_url": f"{lens.base}/avatars/{account.id}",
        "gravatar_id": "",
        "url": url,
        "html_url": web,
        **{name: url + path for name, path in _USER_LINKS},
        "type": account.type,
        "user_view_type": "public",
        "site_admin": False,
    }


def user_by_id(lens: Lens, id: int | None) -> Json | None:
    """The account of the id in short form, or None for no id."""
    return None if id is None else user(lens, lens.world.store.need(User, id))


def profile(lens: Lens, account: User) -> Json:
    """An account with its public profile."""
    return {
        **user(lens, account),
        "name": account.name or None,
        "company": None,
        "blog": "",
        "location": None,
        "email": account.email or None,
        "hireable": None,
        "bio": None,
        "public_repos": 0,
        "public_gists": 0,
        "followers": 0,
        "following": 0,
        "created_at": account.created_at,
        "updated_at": account.created_at,
    }


def team(lens: Lens, item: Team) -> Json:
    """A team in short form."""
    org = lens.world.store.need(User, item.org_id)
    url = f"{lens.api}/organizations/{org.id}/team/{item.id}"
    return {
        "id": item.id,
        "node_id": node_id("T", item.id),
        "name": item.name,
        "slug": item.slug,
        "description": None,
        "privacy": "closed",
        "notification_setting": "notifications_enabled",
        "permission": "pull",
        "url": url,
        "html_url": f"{lens.base}/orgs/{org.login}/teams/{item.slug}",
        "members_url": url + "/members{/member}",
        "repositories_url": url + "/repos",
        "type": "organization",
        "organization_id": org.id,
        "parent": None,
    }


def app(lens: Lens, item: App) -> Json:
    """An App as everybody sees it."""
    return {
        "id": item.id,
        "client_id": item.client_id,
        "slug": item.slug,
        "node_id": node_id("A", item.id),
        "owner": user_by_id(lens, item.owner_id),
        "name": item.name,
        "description": item.description,
        "external_url": item.external_url,
        "html_url": f"{lens.base}/apps/{item.slug}",
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "permissions": item.permissions,
        "events": list(item.events),
    }


def app_by_id(lens: Lens, id: int | None) -> Json | None:
    """The App of the id, or None for no id."""
    return None if id is None else app(lens, lens.world.store.need(App, id))


def installation(lens: Lens, item: Installation) -> Json:
    """An installation as its App sees it."""
    owner = lens.world.store.need(App, item.app_id)
    account = lens.world.store.need(User, item.account_id)
    return {
        "id": item.id,
        "client_id": owner.client_id,
        "account": user(lens, account),
        "repository_selection": item.repository_selection,
        "access_tokens_url": f"{lens.api}/app/installations/{item.id}/access_tokens",
        "repositories_url": f"{lens.api}/installation/repositories",
        "html_url": f"{lens.base}/settings/installations/{item.id}",
        "app_id": item.app_id,
        "app_slug": owner.slug,
        "target_id": item.account_id,
        "target_type": account.type,
        "permissions": item.permissions,
        "events": list(item.events),
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "single_file_name": None,
        "has_multiple_single_files": False,
        "single_file_paths": [],
        "suspended_by": None,
        "suspended_at": item.suspended_at,
    }
