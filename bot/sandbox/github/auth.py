"""Who calls, and what they may do: App JWTs, installation tokens and personal tokens, as GitHub checks them."""

import base64
import binascii
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import jwt

from bot.sandbox.github.accounts import App, Installation, InstallationToken, PersonalToken, User
from bot.sandbox.github.errors import Refused, forbidden, not_found
from bot.sandbox.github.git import stamp
from bot.sandbox.github.records import Repository
from bot.sandbox.github.world import World, digest

LEVELS = ("none", "read", "write", "admin")
TOKEN_LIFE = timedelta(hours=1)
LONGEST_JWT = timedelta(minutes=10)
# GitHub lets a JWT's clock differ by this much before it complains.
SKEW = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Actor:
    """The caller of one request. `kind` is `anonymous`, `user`, `app` (a JWT) or `installation` (its token)."""

    kind: str
    user: User | None = None
    app: App | None = None
    installation: Installation | None = None
    permissions: dict[str, str] = field(default_factory=dict)
    repo_ids: tuple[int, ...] | None = None
    read_only: bool = False

    @property
    def account(self) -> User:
        """The account that is shown as the author of what the caller does."""
        if self.user is None:
            raise Refused(401, "Requires authentication")
        return self.user

    @property
    def app_id(self) -> int | None:
        """The id of the App that acts, or None for a person."""
        return self.app.id if self.app else None

    @property
    def name(self) -> str:
        """The caller as the request log shows it."""
        if self.kind == "app" and self.app:
            return f"app:{self.app.slug}"
        return self.user.login if self.user else "anonymous"


ANONYMOUS = Actor("anonymous")


def person(user: User) -> Actor:
    """The user as a caller, as if signed in on the web."""
    return Actor("user", user=user)


def authenticate(world: World, header: str | None) -> Actor:
    """The caller that an `Authorization` header stands for; 401 for one that proves nothing."""
    if not header:
        return ANONYMOUS
    scheme, _, value = header.strip().partition(" ")
    value = value.strip()
    if scheme.lower() == "basic":
        return token_actor(world, _basic_password(value))
    if scheme.lower() not in ("bearer", "token"):
        raise Refused(401, "Bad credentials")
    # An installation token may itself hold a JWT, so the prefix decides before the dots do.
    if not value.startswith(("ghs_", "ghp_", "ghu_")) and value.count(".") == 2:
        return _app_actor(world, value)
    return token_actor(world, value)


def _basic_password(value: str) -> str:
    try:
        user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise Refused(401, "Bad credentials") from None
    # A token is taken as the password, or as the user name with an empty or filler password.
    return password if password and password != "x-oauth-basic" else user


def token_actor(world: World, token: str) -> Actor:
    """The caller that a token stands for; 401 for an unknown or expired one."""
    store = world.store
    own = store.first(PersonalToken, digest=digest(token))
    if own:
        return Actor("user", user=store.need(User, own.user_id), read_only=own.read_only)
    given = store.first(InstallationToken, digest=digest(token))
    if given is None or given.expires_at <= world.now():
        raise Refused(401, "Bad credentials")
    installation = store.get(Installation, given.installation_id)
    if installation is None:
        raise Refused(401, "Bad credentials")
    if installation.suspended_at:
        raise forbidden("This installation has been suspended")
    app = store.need(App, installation.app_id)
    return Actor(
        "installation",
        user=store.need(User, app.bot_user_id),
        app=app,
        installation=installation,
        # What the owner has taken back since the token was made is gone from the token too.
        permissions={
            name: min(level, installation.permissions.get(name, "none"), key=LEVELS.index)
            for name, level in given.permissions.items()
        },
        repo_ids=given.repo_ids,
    )


def _app_actor(world: World, token: str) -> Actor:
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except jwt.PyJWTError:
        raise Refused(401, "A JSON web token could not be decoded") from None
    issuer = claims.get("iss")
    store = world.store
    app = store.first(App, client_id=str(issuer))
    if app is None and str(issuer).isdigit():
        app = store.get(App, int(str(issuer)))
    if app is None:
        raise Refused(401, "'Issuer' claim ('iss') must be an Integer or a client ID of an App")
    try:
        jwt.decode(
            token,
            app.public_key_pem,
            algorithms=["RS256"],
            # The times are checked below, by the sandbox's own clock.
            options={"verify_exp": False, "verify_iat": False, "verify_nbf": False, "verify_iss": False},
        )
    except jwt.PyJWTError:
        raise Refused(401, "A JSON web token could not be decoded") from None
    _check_times(claims, world.clock())
    return Actor("app", app=app)


def _check_times(claims: dict[str, object], now: datetime) -> None:
    issued, expires = claims.get("iat"), claims.get("exp")
    if not isinstance(expires, int | float):
        raise Refused(401, "Missing 'exp' claim in assertion")
    if not isinstance(issued, int | float):
        raise Refused(401, "Missing 'iat' claim in assertion")
    seconds = now.timestamp()
    if issued > seconds + SKEW.total_seconds():
        raise Refused(
            401,
            "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
        )
    if expires <= seconds:
        raise Refused(
            401,
            "'Expiration time' claim ('exp') must be a numeric value representing the future time at which"
            " the assertion expires",
        )
    if (
        expires > seconds + (LONGEST_JWT + SKEW).total_seconds()
        or expires - issued > (LONGEST_JWT + 2 * SKEW).total_seconds()
    ):
        raise Refused(401, "'Expiration time' claim ('exp') is too far in the future")


def mint_token(
    world: World,
    installation: Installation,
    permissions: dict[str, str],
    repo_ids: tuple[int, ...] | None,
) -> tuple[str, InstallationToken]:
    """A new installation token that lives an hour, with the permissions and repositories given."""
    # The long form that GitHub has used since 2026: of no fixed length, with dots, underscores and hyphens.
    token = f"ghs_{installation.app_id}_" + ".".join(secrets.token_urlsafe(size) for size in (40, 240, 64))
    record = InstallationToken(
        installation_id=installation.id,
        digest=digest(token),
        expires_at=stamp(world.clock() + TOKEN_LIFE),
        permissions=permissions,
        repo_ids=repo_ids,
    )
    return token, world.store.add(record)


def level(actor: Actor, permission: str) -> str:
    """The level an App's token has for a permission; `metadata` is always readable."""
    return actor.permissions.get(permission, "read" if permission == "metadata" else "none")


def may_see(world: World, actor: Actor, repo: Repository) -> bool:
    """Whether the caller may know that the repository exists."""
    if not repo.private:
        return True
    if actor.kind == "user":
        return world.has_role(actor.account, repo, "read")
    if actor.kind == "installation" and actor.installation:
        reaches = world.covers(actor.installation, repo)
        return reaches and (actor.repo_ids is None or repo.id in actor.repo_ids)
    return False


def require_sight(world: World, actor: Actor, repo: Repository) -> None:
    """GitHub's 404 for a repository that the caller may not see."""
    if not may_see(world, actor, repo):
        raise not_found()


def require_permission(world: World, actor: Actor, repo: Repository, needs: str, role: str) -> None:
    """403 unless the App has one of `needs` (`name:level`, alternatives by `|`) or the user has `role`."""
    require_sight(world, actor, repo)
    if actor.kind == "user":
        if not world.has_role(actor.account, repo, role):
            raise forbidden(
                "Must have push access to repository"
                if role == "write"
                else "Must have admin rights to Repository."
            )
        if actor.read_only and any(part.endswith(":write") for part in needs.split("|")):
            raise forbidden("Resource not accessible by personal access token")
        return
    if actor.kind == "installation":
        if not _reaches(world, actor, repo) and needs != "metadata:read":
            raise forbidden()
        for part in needs.split("|"):
            name, _, wanted = part.partition(":")
            if LEVELS.index(level(actor, name)) >= LEVELS.index(wanted):
                return
        raise forbidden()
    if actor.kind == "app":
        raise Refused(401, "A JSON web token could not be decoded")
    if not needs.endswith(":read"):
        raise Refused(401, "Requires authentication")


def _reaches(world: World, actor: Actor, repo: Repository) -> bool:
    """Whether an installation token is for this repository, which a public one may not be."""
    covered = actor.installation is not None and world.covers(actor.installation, repo)
    return covered and (actor.repo_ids is None or repo.id in actor.repo_ids)
