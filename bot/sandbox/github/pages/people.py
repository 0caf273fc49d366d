"""Who looks at the pages: one of the demo's people, chosen in the header and kept in a cookie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from starlette.requests import Request

from bot.sandbox.github.accounts import User
from bot.sandbox.github.auth import person, require_sight
from bot.sandbox.github.provisioning import DEMO_PEOPLE
from bot.sandbox.github.records import Repository
from bot.sandbox.github.world import World

COOKIE: Final = "sandbox_user"
_FIRST: Final = "rafael"
"""Who somebody is that has not chosen yet: the reviewer, who can approve and merge."""


@dataclass(frozen=True, slots=True)
class Who:
    """An account as pages show it; `hue` (0 to 359) is the colour of its picture."""

    login: str
    name: str
    bot: bool
    hue: int

    @property
    def initial(self) -> str:
        """The letter in its picture."""
        return self.login[:1].upper()


def who(world: World, user_id: int) -> Who:
    """The account of this id."""
    user = world.store.need(User, user_id)
    return Who(user.login, user.name or user.login, user.app_id is not None, (user_id * 67) % 360)


def people(world: World) -> list[User]:
    """The people that one may be: the demo's cast, or everybody where that is not on the stage."""
    cast = [user for login, _, _ in DEMO_PEOPLE if (user := world.user(login))]
    return cast or world.store.find(User, type="User")


def visitor(world: World, request: Request) -> User | None:
    """The person that the browser acts as; None while there is nobody at all."""
    known = {user.login: user for user in people(world)}
    chosen = known.get(request.cookies.get(COOKIE, "")) or known.get(_FIRST)
    return chosen or next(iter(known.values()), None)


def visible_repository(world: World, user: User | None, path: tuple[str, str]) -> Repository:
    """The repository `(owner, name)`; GitHub's 404 if there is none that the person may see."""
    repo = world.repository(*path)
    if user is not None:
        require_sight(world, person(user), repo)
    return repo
