"""The routes of the pages: who looks, what they look at, and which form they sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bot.sandbox.github.actions import Actions
from bot.sandbox.github.errors import Refused
from bot.sandbox.github.pages import acts, shown
from bot.sandbox.github.pages.people import COOKIE, people, visitor
from bot.sandbox.github.pages.rendering import render, respond, static_response, static_version
from bot.sandbox.github.pages.shown import Look, Page
from bot.sandbox.github.world import World
from bot.sandbox.serving import is_same_origin

Endpoint = Callable[[Request], Awaitable[Response]]
_REPO = "/{owner}/{name}"
_PULL = _REPO + "/pull/{number:int}"


class Pages:
    """The pages of one world. `links` leads to the other servers' pages by name, and may be filled later."""

    def __init__(self, world: World, actions: Actions, links: Mapping[str, str]) -> None:
        self._world = world
        self._actions = actions
        self._links = links

    def routes(self) -> list[BaseRoute]:
        """All routes, as a literal list. They end before anything that git asks for."""
        return [
            Route("/", self._page(shown.repositories)),
            Route("/_pages/user", self._choose_user, methods=["POST"]),
            Route("/_pages/{name}", self._static),
            Route(_REPO, self._page(shown.repository)),
            Route(_REPO + "/", self._page(shown.repository)),
            Route(_REPO + "/tree/{rest:path}", self._page(shown.folder)),
            Route(_REPO + "/blob/{rest:path}", self._page(shown.file)),
            Route(_REPO + "/commits", self._page(shown.commits)),
            Route(_REPO + "/commits/{rest:path}", self._page(shown.commits)),
            Route(_REPO + "/commit/{sha}", self._page(shown.commit)),
            Route(_REPO + "/pulls", self._page(shown.pulls)),
            Route(_REPO + "/deployments", self._page(shown.deployments)),
            Route(_REPO + "/issues/{number:int}", self._page(shown.conversation)),
            Route(_REPO + "/runs/{id:int}", self._page(shown.run)),
            Route(_REPO + "/runs/{id:int}/{act}", self._act_on_run, methods=["POST"]),
            Route(_PULL, self._page(shown.conversation)),
            Route(_PULL + "/commits", self._page(shown.pull_commits)),
            Route(_PULL + "/checks", self._page(shown.pull_checks)),
            Route(_PULL + "/files", self._page(shown.files)),
            Route(_PULL + "/{act}", self._act_on_pull, methods=["POST"]),
        ]

    # ---- showing

    def _page(self, show: Callable[[Look], Page]) -> Endpoint:
        """The endpoint that shows a page; what GitHub refuses becomes a page that says so."""

        async def endpoint(request: Request) -> Response:
            return await asyncio.to_thread(self._show, request, show)

        return endpoint

    def _look(self, request: Request, fields: Mapping[str, str] | None = None, notice: str = "") -> Look:
        user = visitor(self._world, request)
        return Look(self._world, user, request.path_params, request.query_params, fields or {}, notice)

    def _show(self, request: Request, show: Callable[[Look], Page]) -> Response:
        look = self._look(request)
        try:
            page = show(look)
        except Refused as refused:
            page = shown.refused(refused)
        if page.redirect:
            return RedirectResponse(page.redirect, status_code=302)
        return respond(request, self._html(request.url.path, look, page), page.status)

    def _html(self, path: str, look: Look, page: Page) -> str:
        frame: dict[str, Any] = {
            "path": path,
            "notice": look.notice,
            "links": dict(self._links),
            "visitor": look.visitor,
            "people": people(self._world),
            "version": static_version(),
        }
        return render(page.template, **frame, **page.values)

    async def _static(self, request: Request) -> Response:
        found = static_response(request.path_params["name"])
        return found or PlainTextResponse("There is no such file.", 404)

    # ---- acting

    async def _choose_user(self, request: Request) -> Response:
        """Be somebody else from now on."""
        if not is_same_origin(request):
            return _foreign()
        form = await _fields(request)
        known = await asyncio.to_thread(lambda: {user.login for user in people(self._world)})
        if form.get("user") not in known:
            return PlainTextResponse(f"There is nobody called {form.get('user')!r} to be.", 404)
        back = RedirectResponse(_local(form.get("next", "/")), status_code=303)
        back.set_cookie(COOKIE, form["user"], httponly=True, samesite="lax", path="/")
        return back

    async def _act_on_pull(self, request: Request) -> Response:
        """Do what a button of a pull request says, then show the page; a refusal is shown with what was typed."""
        if not is_same_origin(request):
            return _foreign()
        fields = await _fields(request)
        return await asyncio.to_thread(self._do_pull, request, fields)

    def _do_pull(self, request: Request, fields: Mapping[str, str]) -> Response:
        params = request.path_params
        home, user = f"{params['owner']}/{params['name']}", visitor(self._world, request)
        path = f"/{home}/pull/{params['number']}"
        try:
            if user is None:
                raise Refused(401, "There is nobody here who could do that.")
            asked = acts.Asked(user.login, home, params["number"], fields)
            number = acts.do(self._world, self._actions, params["act"], asked)
        except Refused as refused:
            return self._show_refusal(request, refused, fields, path)
        return RedirectResponse(f"/{home}/pull/{number}", status_code=303)

    def _show_refusal(
        self, request: Request, refused: Refused, fields: Mapping[str, str], path: str
    ) -> Response:
        look = self._look(request, fields, acts.reason(refused))
        try:
            page = shown.conversation(look)
        except Refused as hidden:
            page = shown.refused(hidden)
        return respond(request, self._html(path, look, page), refused.status)

    async def _act_on_run(self, request: Request) -> Response:
        """Run a check again or press one of its buttons."""
        if not is_same_origin(request):
            return _foreign()
        fields = await _fields(request)
        return await asyncio.to_thread(self._do_run, request, fields)

    def _do_run(self, request: Request, fields: Mapping[str, str]) -> Response:
        params = request.path_params
        home, user = f"{params['owner']}/{params['name']}", visitor(self._world, request)
        look = self._look(request)
        try:
            if user is None or params["act"] not in ("rerun", "press"):
                raise Refused(404, "Not Found")
            if params["act"] == "rerun":
                self._actions.rerun_check(user.login, home, params["id"])
            else:
                self._actions.press(user.login, home, params["id"], fields.get("identifier", ""))
        except Refused as refused:
            page = shown.refused(refused)
            return respond(request, self._html(request.url.path, look, page), refused.status)
        return RedirectResponse(_local(fields.get("next", f"/{home}")), status_code=303)


async def _fields(request: Request) -> dict[str, str]:
    """The text fields of a form."""
    async with request.form(max_files=0, max_fields=20, max_part_size=1024 * 1024) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}


def _local(path: str) -> str:
    """A path of this server to go to; anything else leads to the first page."""
    safe = path.startswith("/") and not path.startswith(("//", "/\\"))
    return quote(path, safe="/?&=#%:@+,;~!$'()*-._") if safe else "/"


def _foreign() -> Response:
    return PlainTextResponse("This form is for the sandbox's own pages.", 403)
