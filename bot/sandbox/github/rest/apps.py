"""Apps, installations, their tokens and webhook deliveries: what a JWT or an installation token may ask."""

import json
from dataclasses import replace

from bot.sandbox.github.accounts import App, Installation, InstallationToken, ManifestCode
from bot.sandbox.github.auth import LEVELS, mint_token
from bot.sandbox.github.errors import Refused, not_found
from bot.sandbox.github.records import Delivery, Json, Repository
from bot.sandbox.github.rest.call import Answer, Call, Route
from bot.sandbox.github.views.lens import Lens
from bot.sandbox.github.views.people import app, installation
from bot.sandbox.github.views.repositories import full_repository
from bot.sandbox.github.webhooks import redeliver, with_base

# More deliveries than one page can show, so that a filter still fills it.
MOST_LISTED = 10_000


def _app(call: Call) -> App:
    if call.actor.kind != "app" or call.actor.app is None:
        raise Refused(401, "A JSON web token could not be decoded")
    return call.actor.app


def get_app(call: Call) -> Answer:
    """The App itself."""
    item = _app(call)
    count = call.world.store.count(Installation, app_id=item.id)
    return Answer(200, {**app(call.lens, item), "installations_count": count})


def get_public_app(call: Call) -> Answer:
    """An App by its slug."""
    found = call.world.store.first(App, slug=call.params["app_slug"])
    if found is None:
        raise not_found()
    return Answer(200, app(call.lens, found))


def list_installations(call: Call) -> Answer:
    """The App's installations."""
    items = call.world.store.find(Installation, app_id=_app(call).id)
    return call.page(items, lambda item: installation(call.lens, item))


def _installation(call: Call) -> Installation:
    found = call.world.store.get(Installation, call.number("installation_id"))
    if found is None or found.app_id != _app(call).id:
        raise Refused(404, "Integration not found")
    return found


def get_installation(call: Call) -> Answer:
    """One installation of the App."""
    return Answer(200, installation(call.lens, _installation(call)))


def installation_of_repository(call: Call) -> Answer:
    """The App's installation that reaches a repository."""
    item = _app(call)
    repo = call.world.repository(call.params["owner"], call.params["repo"])
    found = call.world.installation_for(item.id, repo)
    if found is None:
        raise not_found()
    return Answer(200, installation(call.lens, found))


def installation_of_account(call: Call) -> Answer:
    """The App's installation on an account."""
    account = call.world.need_user(call.params["username"])
    found = call.world.store.first(Installation, app_id=_app(call).id, account_id=account.id)
    if found is None:
        raise not_found()
    return Answer(200, installation(call.lens, found))


def create_token(call: Call) -> Answer:
    """An installation token, narrowed to the asked repositories and permissions."""
    item = _installation(call)
    if item.suspended_at:
        raise Refused(403, "This installation has been suspended")
    permissions = _narrowed(item, call.fields.get("permissions"))
    repo_ids = _chosen(call, item)
    token, record = mint_token(call.world, item, permissions, repo_ids)
    return Answer(201, _token_view(call.lens, item, token, record))


def _token_view(lens: Lens, item: Installation, token: str, record: InstallationToken) -> Json:
    view: Json = {
        "token": token,
        "expires_at": record.expires_at,
        "permissions": record.permissions,
        "repository_selection": "selected" if record.repo_ids is not None else item.repository_selection,
    }
    if record.repo_ids is not None:
        repos = [lens.world.store.need(Repository, id) for id in record.repo_ids]
        view["repositories"] = [full_repository(lens, repo, "none") for repo in repos]
    return view


def _narrowed(item: Installation, wanted: dict[str, str] | None) -> dict[str, str]:
    if not wanted:
        return dict(item.permissions)
    for name, level in wanted.items():
        granted = item.permissions.get(name, "none")
        if level not in LEVELS[1:]:
            raise Refused(
                422, f"Invalid request.\n\nFor 'properties/permissions', {level} is not a permission level."
            )
        if LEVELS.index(level) > LEVELS.index(granted):
            raise Refused(422, "The permissions requested are not granted to this installation.")
    return {"metadata": "read", **wanted}


def _chosen(call: Call, item: Installation) -> tuple[int, ...] | None:
    names, ids = call.fields.get("repositories"), call.fields.get("repository_ids")
    if names is None and ids is None:
        return None
    reached = {repo.id: repo.name.lower() for repo in call.world.repositories_of(item)}
    by_name = {name: id for id, name in reached.items()}
    chosen = [by_name.get(name.lower(), 0) for name in names or []] + list(ids or [])
    if not chosen or any(id not in reached for id in chosen):
        raise Refused(
            422,
            "There is at least one repository that does not exist or is not accessible to the parent installation.",
        )
    return tuple(dict.fromkeys(chosen))


def installation_repositories(call: Call) -> Answer:
    """The repositories that the token reaches."""
    actor = call.actor
    if actor.installation is None:
        raise Refused(403, "Resource not accessible by integration")
    repos = [
        repo
        for repo in call.world.repositories_of(actor.installation)
        if actor.repo_ids is None or repo.id in actor.repo_ids
    ]
    role = "write" if actor.permissions.get("contents") == "write" else "read"
    answer = call.page(repos, lambda repo: full_repository(call.lens, repo, role), "repositories")
    selection = actor.installation.repository_selection if actor.repo_ids is None else "selected"
    return replace(answer, body={**answer.body, "repository_selection": selection})


# ---- webhooks


def hook_config(call: Call) -> Answer:
    """Where the App's webhooks go; the secret is never shown."""
    item = _app(call)
    body = {"content_type": "json", "insecure_ssl": "0", "secret": "********", "url": item.webhook_url}
    return Answer(200, body)


def change_hook_config(call: Call) -> Answer:
    """Change where the App's webhooks go and how they are signed."""
    names = {"url": "webhook_url", "secret": "webhook_secret"}
    changes = {names[name]: value for name, value in call.fields.items() if name in names}
    if changes:
        call.world.store.change(_app(call), **changes)
    return hook_config(
        replace(call, actor=replace(call.actor, app=call.world.store.need(App, _app(call).id)))
    )


def list_deliveries(call: Call) -> Answer:
    """The App's deliveries, newest first, with a cursor to the next page in `Link`."""
    item = _app(call)
    size = call.page_size()
    cursor = call.query.get("cursor", "")
    if cursor and not cursor.removeprefix("v1_").isdigit():
        raise Refused(400, "Invalid cursor")
    before = int(cursor.removeprefix("v1_")) if cursor else 2**62
    rows = call.world.store.newest(Delivery, MOST_LISTED, before=before, app_id=item.id)
    wanted = call.query.get("status")
    found = [row for row in rows if row.state != "pending" and _has_status(row, wanted)]
    shown, more = found[:size], len(found) > size
    headers = {}
    if more:
        link = f"{call.lens.api}/app/hook/deliveries?per_page={size}&cursor=v1_{shown[-1].id}"
        headers["link"] = f'<{link}>; rel="next"'
    return Answer(200, [_delivery(row) for row in shown], headers)


def _has_status(row: Delivery, wanted: str | None) -> bool:
    """GitHub's `failure` covers only answers of 400 to 599."""
    if wanted == "success":
        return 200 <= row.status_code < 400
    return wanted != "failure" or 400 <= row.status_code < 600


def _delivery(row: Delivery) -> Json:
    return {
        "id": row.id,
        "guid": row.guid,
        "delivered_at": row.delivered_at,
        "redelivery": row.redelivery,
        "duration": round(row.duration, 3),
        "status": row.status,
        "status_code": row.status_code,
        "event": row.event,
        "action": row.action,
        "installation_id": row.installation_id,
        "repository_id": row.repo_id,
        "throttled_at": None,
    }


def _one_delivery(call: Call) -> Delivery:
    row = call.world.store.get(Delivery, call.number("delivery_id"))
    if row is None or row.app_id != _app(call).id:
        raise not_found()
    return row


def get_delivery(call: Call) -> Answer:
    """One delivery with what was sent and what came back."""
    row = _one_delivery(call)
    payload = json.loads(with_base(row.payload, call.lens.base))
    body = {
        **_delivery(row),
        "url": _app(call).webhook_url,
        "request": {"headers": row.request_headers, "payload": payload},
        "response": {"headers": row.response_headers, "payload": row.response_body},
    }
    return Answer(200, body)


def redeliver_attempt(call: Call) -> Answer:
    """Send a delivery again under the same GUID."""
    redeliver(call.world, _one_delivery(call))
    return Answer(202, {})


def convert_manifest(call: Call) -> Answer:
    """The secrets of an App made by the manifest flow; the code works once and for an hour."""
    store = call.world.store
    found = store.first(ManifestCode, code=call.params["code"])
    if found is None or found.used or found.expires_at <= call.world.now():
        raise not_found()
    store.change(found, used=True)
    item = store.need(App, found.app_id)
    secrets = {
        "client_secret": item.client_secret,
        "webhook_secret": item.webhook_secret,
        "pem": item.private_key_pem,
    }
    return Answer(201, {**app(call.lens, item), **secrets})


ROUTES = [
    Route("GET", "/app", get_app, ""),
    Route("GET", "/apps/{app_slug}", get_public_app, ""),
    Route("GET", "/app/installations", list_installations, ""),
    Route("GET", "/app/installations/{installation_id}", get_installation, ""),
    Route(
        "POST",
        "/app/installations/{installation_id}/access_tokens",
        create_token,
        "",
        body={"repositories": ["string"], "repository_ids": ["integer"], "permissions": {"*": "string"}},
    ),
    Route("GET", "/repos/{owner}/{repo}/installation", installation_of_repository, ""),
    Route("GET", "/orgs/{username}/installation", installation_of_account, ""),
    Route("GET", "/users/{username}/installation", installation_of_account, ""),
    Route("GET", "/installation/repositories", installation_repositories, ""),
    Route("GET", "/app/hook/config", hook_config, ""),
    Route(
        "PATCH",
        "/app/hook/config",
        change_hook_config,
        "",
        body={
            "url": "string",
            "secret": "string",
            "content_type": "string",
            "insecure_ssl": "string/integer",
        },
    ),
    Route("GET", "/app/hook/deliveries", list_deliveries, ""),
    Route("GET", "/app/hook/deliveries/{delivery_id}", get_delivery, ""),
    Route("POST", "/app/hook/deliveries/{delivery_id}/attempts", redeliver_attempt, ""),
    Route("POST", "/app-manifests/{code}/conversions", convert_manifest, ""),
]
