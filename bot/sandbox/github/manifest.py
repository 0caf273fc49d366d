"""The App manifest flow: the page that shows what an App asks for, its button, and the redirect with the code."""

import asyncio
import html
import json
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bot.sandbox.github.accounts import App, ManifestCode, OrganisationMember, User
from bot.sandbox.github.errors import Refused, not_found
from bot.sandbox.github.git import stamp
from bot.sandbox.github.installing import install, ping
from bot.sandbox.github.pages.people import visitor
from bot.sandbox.github.provisioning import NewApp, register_app, slug_of
from bot.sandbox.github.rest import body
from bot.sandbox.github.world import World
from bot.sandbox.serving import is_same_origin

CODE_LIFE = timedelta(hours=1)
_MANIFEST = {
    "name": "string",
    "url!": "string",
    "hook_attributes": {"url!": "string", "active": "boolean"},
    "redirect_url": "string",
    "callback_urls": ["string"],
    "setup_url": "string",
    "setup_on_update": "boolean",
    "description": "string",
    "public": "boolean",
    "default_events": ["string"],
    "default_permissions": {"*": "string"},
    "request_oauth_on_install": "boolean",
}
_READ_WRITE = ("read", "write")
_PERMISSIONS = {
    "actions": _READ_WRITE,
    "administration": _READ_WRITE,
    "checks": _READ_WRITE,
    "contents": _READ_WRITE,
    "deployments": _READ_WRITE,
    "environments": _READ_WRITE,
    "issues": _READ_WRITE,
    "members": _READ_WRITE,
    "merge_queues": _READ_WRITE,
    "metadata": ("read",),
    "packages": _READ_WRITE,
    "pull_requests": _READ_WRITE,
    "statuses": _READ_WRITE,
    "workflows": ("write",),
}
_EVENTS = {
    "check_run": ("checks",),
    "check_suite": ("checks",),
    "create": ("contents",),
    "delete": ("contents",),
    "deployment": ("deployments",),
    "deployment_status": ("deployments",),
    "issue_comment": ("issues", "pull_requests"),
    "issues": ("issues",),
    "member": ("members",),
    "merge_group": ("merge_queues",),
    "pull_request": ("pull_requests",),
    "pull_request_review": ("pull_requests",),
    "push": ("contents",),
    "registry_package": ("packages",),
    "repository": ("metadata",),
    "status": ("statuses",),
}
_MOST_CALLBACKS = 10
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><main><h1>{title}</h1>{content}</main></body></html>"""


class ManifestPages:
    """The pages `/settings/apps/new`, its twin for organisations, and the one to install an App."""

    def __init__(self, world: World) -> None:
        self._world = world

    def routes(self) -> list[BaseRoute]:
        """All routes, as a literal list."""
        return [
            Route("/settings/apps/new", self._show, methods=["POST"]),
            Route("/settings/apps/create", self._create, methods=["POST"]),
            Route("/organizations/{org}/settings/apps/new", self._show, methods=["POST"]),
            Route("/organizations/{org}/settings/apps/create", self._create, methods=["POST"]),
            Route("/apps/{slug}/installations/new", self._choose, methods=["GET"]),
            Route("/apps/{slug}/installations/new", self._install, methods=["POST"]),
        ]

    async def _manifest(self, request: Request) -> dict[str, Any]:
        form = await request.form()
        manifest: dict[str, Any] = body.parse(str(form.get("manifest", "")).encode())
        body.check(_MANIFEST, manifest)
        _check_rights(manifest)
        name = form.get("name")
        return {**manifest, "name": str(name)} if name else manifest

    async def _show(self, request: Request) -> Response:
        """What the App asks for, with a button that creates it."""
        try:
            manifest = await self._manifest(request)
            await asyncio.to_thread(self._admit, request)
        except Refused as refused:
            return _problem(refused)
        action = html.escape(f"create?{request.url.query}")
        asked = "".join(
            f"<li>{html.escape(name)}: {html.escape(level)}</li>"
            for name, level in sorted(manifest.get("default_permissions", {}).items())
        )
        content = (
            f'<form method="post" action="{action}">'
            f'<input type="hidden" name="manifest" value="{html.escape(json.dumps(manifest))}">'
            f'<label>App name <input name="name" value="{html.escape(manifest.get("name", ""))}"></label>'
            f"<p>It asks for:</p><ul>{asked}</ul>"
            f'<button type="submit">Create GitHub App for {html.escape(self._owner(request))}</button></form>'
        )
        return HTMLResponse(PAGE.format(title="Register new GitHub App", content=content))

    def _owner(self, request: Request) -> str:
        """The organisation in the path, or the person that the browser acts as."""
        user = visitor(self._world, request)
        return str(request.path_params.get("org") or (user.login if user else ""))

    def _admit(self, request: Request) -> None:
        """404 for an organisation that is none, or of which the person is no member."""
        login = request.path_params.get("org")
        if login is None:
            return
        world, user = self._world, visitor(self._world, request)
        org = world.user(login)
        if org is None or org.type != "Organization" or user is None:
            raise not_found()
        if world.store.first(OrganisationMember, org_id=org.id, user_id=user.id) is None:
            raise not_found()

    async def _create(self, request: Request) -> Response:
        """Create the App and send the browser back with the code."""
        if not is_same_origin(request):
            return _problem(Refused(403, "The button has to be pressed on this page itself."))
        try:
            manifest = await self._manifest(request)
            await asyncio.to_thread(self._admit, request)
            code = await asyncio.to_thread(self._register, manifest, self._owner(request))
        except Refused as refused:
            return _problem(refused)
        target = manifest.get("redirect_url") or manifest["url"]
        query = {"code": code}
        if "state" in request.query_params:
            query["state"] = request.query_params["state"]
        glue = "&" if urlsplit(target).query else "?"
        return RedirectResponse(f"{target}{glue}{urlencode(query)}", 302)

    def _register(self, manifest: dict[str, Any], owner: str) -> str:
        name = str(manifest.get("name") or "").strip()
        if not name or len(name) > 34:
            raise Refused(422, "Name must have 1 to 34 characters.")
        world = self._world
        world.need_user(owner)
        with world.store.transaction():
            if world.store.first(App, slug=slug_of(name)) or world.user(slug_of(name)):
                raise Refused(422, "Name is already in use")
            hook = manifest.get("hook_attributes", {})
            made = register_app(
                world,
                NewApp(
                    name,
                    owner,
                    manifest.get("default_permissions", {}),
                    manifest.get("default_events", []),
                    hook.get("url", "") if hook.get("active", True) else "",
                    world.secret(""),
                    manifest.get("description", ""),
                    manifest["url"],
                    manifest.get("setup_url", ""),
                    manifest.get("public", False),
                    manifest.get("callback_urls", []),
                ),
            )
            expires = stamp(world.clock() + CODE_LIFE)
            return world.store.add(ManifestCode(world.secret(""), made.app_id, expires)).code

    async def _choose(self, request: Request) -> Response:
        """The page with the button that installs the App on its owner's account."""
        app = await asyncio.to_thread(self._world.store.first, App, slug=request.path_params["slug"])
        if app is None:
            return _problem(Refused(404, "Not Found"))
        content = '<form method="post"><button type="submit">Install</button></form>'
        return HTMLResponse(PAGE.format(title=f"Install {html.escape(app.name)}", content=content))

    async def _install(self, request: Request) -> Response:
        """Install the App on all of its owner's repositories and go on to its setup page."""
        if not is_same_origin(request):
            return _problem(Refused(403, "The button has to be pressed on this page itself."))
        app = await asyncio.to_thread(self._world.store.first, App, slug=request.path_params["slug"])
        if app is None:
            return _problem(Refused(404, "Not Found"))
        owner = await asyncio.to_thread(self._login, app)
        id = await asyncio.to_thread(install, self._world, app.id, owner, None)
        await asyncio.to_thread(ping, self._world, app)
        query = urlencode({"installation_id": id, "setup_action": "install"})
        return RedirectResponse(f"{app.setup_url}?{query}" if app.setup_url else f"/{owner}", 302)

    def _login(self, app: App) -> str:
        return self._world.store.need(User, app.owner_id).login


def _check_rights(manifest: dict[str, Any]) -> None:
    """422 for permissions and events that GitHub does not have, or events that no asked permission covers."""
    asked = manifest.get("default_permissions", {})
    problems = [
        f"Default permission records resource {name!r} is not included in the list"
        for name, level in asked.items()
        if level not in _PERMISSIONS.get(name, ())
    ]
    # Metadata is granted with anything else.
    granted = {*asked, "metadata"}
    problems += [
        f"Default events are not supported by permissions: {name}"
        for name in manifest.get("default_events", [])
        if not granted & set(_EVENTS.get(name, ()))
    ]
    if len(manifest.get("callback_urls", [])) > _MOST_CALLBACKS:
        problems.append(f"At most {_MOST_CALLBACKS} callback URLs are allowed.")
    for key in ("url", "redirect_url", "setup_url"):
        if key in manifest and urlsplit(manifest[key]).scheme not in ("http", "https"):
            problems.append(f"{key} must be a valid URL")
    if urlsplit(manifest.get("hook_attributes", {}).get("url", "https:")).scheme not in ("http", "https"):
        problems.append("Hook url is not a valid URL")
    if problems:
        raise Refused(422, "; ".join(problems))


def _problem(refused: Refused) -> Response:
    content = f"<p>{html.escape(refused.message)}</p>"
    return HTMLResponse(PAGE.format(title="That did not work", content=content), refused.status)
