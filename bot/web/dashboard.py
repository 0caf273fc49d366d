"""The bot's own pages: what runs where, and every promotion with its gates, steps, plan and patch; read-only.

Somebody must be signed in with GitHub, and sees what belongs to repositories that they may read. What they may not
see looks as if it were not there.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bot.domain.github import User
from bot.domain.promotion import PromotionId
from bot.ports import TransientError
from bot.web.access import Access
from bot.web.overview import ProjectPage, show_project
from bot.web.promotion_page import show_promotion
from bot.web.reading import Reading
from bot.web.rendering import Renderer
from bot.web.session import Cookies
from bot.web.sign_in import SigningIn

_BUSY, _CALM = 2, 10
"""Seconds after which an open page asks again while a promotion is under way, and else."""
_RELOAD = 30
"""Seconds after which a page without scripts is loaded anew while it waits for people, who may be reading it."""
_LONGEST_ID = 300


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The routes of the pages."""

    reading: Reading
    access: Access
    cookies: Cookies
    signing_in: SigningIn
    renderer: Renderer

    def routes(self) -> list[BaseRoute]:
        """All routes, as a literal list."""
        return [
            Route("/", self.overview),
            Route("/promotions/{id}", self.promotion),
            Route("/static/{name}", self.renderer.static),
            *self.signing_in.routes(),
        ]

    async def overview(self, request: Request) -> Response:
        """What runs where, in every project of which somebody may see a Stage."""
        user = self.cookies.user(request)
        if user is None:
            return self._ask(request, "/")
        try:
            projects = [
                page for page in [await self._project(n, user) for n in self.reading.project_names()] if page
            ]
        except TransientError as error:
            return self._unavailable(error)
        every = _BUSY if any(project.open for project in projects) else _CALM
        return self.renderer.page(
            "overview.html",
            user=user,
            projects=projects,
            every=every,
            reload=_BUSY if any(project.busy for project in projects) else _RELOAD,
            revision=self.reading.configuration.pipeline.revision,
            broken=self._is_broken(),
            pull_of=self.reading.pull_of,
        )

    def _is_broken(self) -> bool:
        configuration = self.reading.configuration
        return bool(configuration.newest) and configuration.newest != configuration.pipeline.revision

    async def _project(self, name: str, user: User) -> ProjectPage | None:
        """The project as this person may see it, None if they may see none of its Stages."""
        facts = await self.reading.project(name)
        needed = self.reading.repositories(facts)
        asked = frozenset().union(*needed.values()) if needed else frozenset()
        readable = await self.access.readable(user, sorted(asked))
        visible = frozenset(stage for stage, of in needed.items() if of and of <= readable)
        return show_project(facts, visible) if visible else None

    async def promotion(self, request: Request) -> Response:
        """One promotion. 404 if there is none of that name, or it is none of this person's business."""
        name = request.path_params["id"]
        user = self.cookies.user(request)
        if user is None:
            return self._ask(request, f"/promotions/{name}")
        promotion = (
            await self.reading.store.get_promotion(PromotionId(name)) if len(name) <= _LONGEST_ID else None
        )
        try:
            needed = await self.reading.repositories_of(promotion) if promotion is not None else frozenset()
            if promotion is None or not needed or not needed <= await self.access.readable(user, needed):
                return self._missing(user)
            page = show_promotion(await self.reading.promotion(promotion))
        except TransientError as error:
            return self._unavailable(error)
        ended = promotion.state.ended
        return self.renderer.page(
            "promotion.html",
            user=user,
            page=page,
            every=0 if ended else _BUSY,
            reload=0 if ended else _BUSY if page.busy else _RELOAD,
            live="live" in request.query_params,
        )

    def _ask(self, request: Request, path: str) -> Response:
        if "live" in request.query_params:
            # The script of an open page cannot sign anybody in; it loads the page anew.
            return Response(status_code=401)
        return self.signing_in.ask(path)

    def _missing(self, user: User) -> Response:
        text = f"There is no such page, or {user.login} may not read the repository that it belongs to."
        return self.renderer.message(404, "Not found", text, label="All Stages")

    def _unavailable(self, error: TransientError) -> Response:
        text = f"GitHub does not tell what you may see: {error}"
        return self.renderer.message(503, "Not now", text, label="Try again")
