"""One request to the REST API and its answer, and the routes that lead from one to the other."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from bot.sandbox.github.auth import Actor
from bot.sandbox.github.errors import not_found
from bot.sandbox.github.git import Git
from bot.sandbox.github.records import Json, Repository
from bot.sandbox.github.views.lens import Lens
from bot.sandbox.github.world import World

T = TypeVar("T")
MOST_PER_PAGE = 100
# Parameters that may hold slashes; all others end at one.
GREEDY = ("ref", "path", "branch", "basehead", "name")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answers; `body` None means an empty one."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """One request after routing, authentication and validation; `repo` is set where the path names one."""

    lens: Lens
    actor: Actor
    path: str
    params: Mapping[str, str]
    query: Mapping[str, str]
    fields: Json
    found: Repository | None = None

    @property
    def world(self) -> World:
        """The world that the call is about."""
        return self.lens.world

    @property
    def repo(self) -> Repository:
        """The repository in the path."""
        if self.found is None:
            raise not_found()
        return self.found

    @property
    def git(self) -> Git:
        """The bare repository of the repository in the path."""
        return self.world.git(self.repo)

    def number(self, name: str) -> int:
        """A numeric path parameter; 404 if it is not a number, as GitHub answers."""
        value = self.params[name]
        if not value.isdigit() or len(value) > 18:
            raise not_found()
        return int(value)

    def page_size(self) -> int:
        """How many items the caller wants on a page."""
        return min(max(_number(self.query.get("per_page"), 30), 1), MOST_PER_PAGE)

    def page(self, items: Iterable[T], view: Callable[[T], Any], wrap: str | None = None) -> Answer:
        """The asked page of the items with its `Link` header; `wrap` puts the list under a key with a total."""
        everything = list(items)
        size = self.page_size()
        page = max(_number(self.query.get("page"), 1), 1)
        shown = [view(item) for item in everything[(page - 1) * size : page * size]]
        last = max(1, -(-len(everything) // size))
        links = []
        if page > 1:
            links += [self._link("prev", min(page - 1, last)), self._link("first", 1)]
        if page < last:
            links = [*links[:1], self._link("next", page + 1), self._link("last", last), *links[1:]]
        headers = {"link": ", ".join(links)} if links else {}
        body: Any = shown if wrap is None else {"total_count": len(everything), wrap: shown}
        return Answer(200, body, headers)

    def _link(self, relation: str, page: int) -> str:
        query = urlencode({**self.query, "page": str(page)})
        return f'<{self.lens.api}{quote(self.path)}?{query}>; rel="{relation}"'


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isdigit() and len(text) < 10 else otherwise


Handler = Callable[[Call], Answer]


@dataclass(frozen=True, slots=True)
class Route:
    """One operation.

    `needs` is the permission that an App's token must have (`name:level`, alternatives by `|`); `app` is for JWTs,
    `installation` for any installation token, empty for everybody. `role` is what a person needs on the repository.
    `body` describes the JSON body as `body.check` reads it.
    """

    method: str
    path: str
    handler: Handler
    needs: str = "metadata:read"
    role: str = "read"
    body: Mapping[str, Any] | None = None

    def pattern(self) -> re.Pattern[str]:
        """The regular expression of the path."""
        parts = re.split(r"\{(\w+)\}", self.path)
        text = "".join(
            re.escape(part) if at % 2 == 0 else f"(?P<{part}>{'.+' if part in GREEDY else '[^/]+'})"
            for at, part in enumerate(parts)
        )
        return re.compile(text)
