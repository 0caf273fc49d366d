"""Setting up the demo: people, repository, App, rules, images and Applications, so that a bot can be connected.

Every step looks before it acts, so that seeding again after a crash finishes what is missing and doubles nothing.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from bot.sandbox.argocd import ArgoCD, NewApplication
from bot.sandbox.cloud import Cloud
from bot.sandbox.files import write_whole
from bot.sandbox.github.app import GitHub
from bot.sandbox.github.provisioning import DEMO_PEOPLE, AppCredentials, NewApp
from bot.sandbox.github.rules import BranchRules, Bypass
from bot.sandbox.registry import Endpoint, Registry
from bot.sandbox.seed import ACCOUNT_STATE, STAGES, Addresses, account_state, read_operations

ORGANISATION: Final = "acme"
REPOSITORY: Final = "operations"
PROJECT: Final = "acme"
CHECK: Final = "lockstep"
APP_NAME: Final = "Lockstep"
PERMISSIONS: Final = {
    "checks": "write",
    "contents": "write",
    "deployments": "write",
    "issues": "write",
    "members": "read",
    "merge_queues": "read",
    "metadata": "read",
    "packages": "read",
    "pull_requests": "write",
}
EVENTS: Final = (
    "check_run",
    "issue_comment",
    "merge_group",
    "pull_request",
    "pull_request_review",
    "push",
    "registry_package",
    "repository",
)
IMAGES: Final = {"otel-app": ("0.9.0", "1.0.0"), "lambda-app": ("0.9.0", "1.0.0")}
"""What is published at the start: 0.9.0 is what the values name, 1.0.0 is the first release to promote."""

ROLE_ACTIONS: Final = ("get", "sync", "update")
_READER: Final = "argocd-reader"


@dataclass(frozen=True, slots=True)
class BotEndpoints:
    """Where the bot listens: the App's webhook URL, and the receiver of registry notifications with its headers.

    An empty URL means that nothing is sent; the bot then finds out by polling. `callback` is where GitHub sends people
    who sign in to the bot's own pages.
    """

    github: str = ""
    registry: str = ""
    registry_headers: Mapping[str, str] = field(default_factory=dict)
    callback: str = ""


@dataclass(frozen=True, slots=True)
class Servers:
    """The running sandbox, as seeding needs it."""

    directory: Path
    addresses: Addresses
    argocd_url: str
    github: GitHub
    registry: Registry
    argocd: ArgoCD
    cloud: Cloud


@dataclass(frozen=True, slots=True)
class Demo:
    """Everything that a bot needs to work in the sandbox, and who the people in it are.

    `people` are GitHub tokens by login, `secrets` what the pipeline's `secret()` calls name, `config` is a value for
    the bot's pipeline setting.
    """

    github_url: str
    github_api_url: str
    registry_host: str
    argocd_url: str
    cloud_url: str
    repository: str
    config: str
    app_id: int
    app_slug: str
    client_id: str
    client_secret: str
    private_key_path: str
    webhook_secret: str
    installation_id: int
    argocd_token: str
    argocd_password: str
    applications: list[str]
    people: dict[str, str]
    secrets: dict[str, dict[str, str]]

    def as_json(self) -> str:
        """One line of JSON with all fields."""
        return json.dumps(asdict(self))


async def seed_demo(
    servers: Servers, endpoints: BotEndpoints, images: Mapping[str, tuple[str, ...]] = IMAGES
) -> Demo:
    """Set the demo up, or find it again, and send events to `endpoints` from now on."""
    file = servers.directory / "demo.json"
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    servers.github.create_organisation(ORGANISATION, ORGANISATION.title())
    webhook_secret = str(known.get("webhook_secret") or secrets.token_hex(24))
    app = _register_app(servers, endpoints, webhook_secret)
    await connect_registry(servers, endpoints)
    if known:
        return Demo(**{**known, "client_secret": app.client_secret})
    _publish(servers.registry, images)
    if servers.cloud.read_state(ACCOUNT_STATE) is None:
        servers.cloud.write_state(ACCOUNT_STATE, account_state())
    installation = _set_up_github(servers, app)
    token = await _set_up_argocd(servers)
    demo = _describe(servers, app, installation, token)
    write_whole(file, demo.as_json().encode(), private=True)
    return demo


async def connect_registry(servers: Servers, endpoints: BotEndpoints) -> None:
    """Send registry notifications to the bot's receiver, or to nobody."""
    wanted = [Endpoint(endpoints.registry, endpoints.registry_headers)] if endpoints.registry else []
    await servers.registry.notify(*wanted)


def _register_app(servers: Servers, endpoints: BotEndpoints, webhook_secret: str) -> AppCredentials:
    new = NewApp(
        name=APP_NAME,
        owner=ORGANISATION,
        permissions=PERMISSIONS,
        events=EVENTS,
        webhook_url=endpoints.github,
        webhook_secret=webhook_secret,
        description="Moves releases through their Stages, one pull request per Stage.",
        callback_urls=(endpoints.callback,) if endpoints.callback else (),
    )
    return servers.github.register_app(new)


def _publish(registry: Registry, images: Mapping[str, tuple[str, ...]]) -> None:
    for repository, tags in images.items():
        for tag in tags:
            if tag not in registry.tags(repository):
                registry.publish(repository, tag, platforms=("linux/amd64", "linux/arm64"))


def _set_up_github(servers: Servers, app: AppCredentials) -> int:
    github, full_name = servers.github, f"{ORGANISATION}/{REPOSITORY}"
    github.create_repository(ORGANISATION, REPOSITORY, read_operations(servers.addresses))
    github.demo_cast(ORGANISATION, [REPOSITORY])
    github.create_user(_READER, "Argo CD")
    github.set_role(full_name, _READER, "read")
    # Stages share the branch, so approvals are the check's business; the App passes only for its release commits.
    rules = BranchRules(
        required_checks=((CHECK, app.app_id),),
        required_reviews=0,
        bypass=(Bypass("Integration", app.app_id),),
    )
    github.set_rules(full_name, "main", rules)
    return github.install_app(app.app_id, ORGANISATION, [REPOSITORY])


async def _set_up_argocd(servers: Servers) -> str:
    argocd = servers.argocd
    url = f"{servers.addresses.github}/{ORGANISATION}/{REPOSITORY}.git"
    token = servers.github.create_token(_READER, read_only=True)
    argocd.register_repository(url, username=_READER, password=token)
    argocd.create_project(PROJECT, roles={CHECK: ROLE_ACTIONS})
    for stage in STAGES:
        name = f"otel-app-{stage}"
        if name not in argocd.applications():
            new = NewApplication(
                name,
                PROJECT,
                url,
                f"env/{stage}/helm",
                target_revision="main",
                labels={"app.kubernetes.io/name": "otel-app", "stage": stage},
                annotations={"kargo.akuity.io/authorized-stage": f"{PROJECT}:{stage}"},
            )
            await argocd.create_application(new)
    return argocd.create_role_token(PROJECT, CHECK)


def _describe(servers: Servers, app: AppCredentials, installation: int, argocd_token: str) -> Demo:
    key = servers.directory / "app.private-key.pem"
    write_whole(key, app.private_key_pem.encode(), private=True)
    aws = {"accessKeyID": f"AKIA{secrets.token_hex(8).upper()}", "secretAccessKey": secrets.token_urlsafe(30)}
    return Demo(
        github_url=servers.addresses.github,
        github_api_url=f"{servers.addresses.github}/api/v3",
        registry_host=servers.addresses.registry,
        argocd_url=servers.argocd_url,
        cloud_url=servers.addresses.cloud,
        repository=f"{ORGANISATION}/{REPOSITORY}",
        config=f"github:{ORGANISATION}/{REPOSITORY}/config",
        app_id=app.app_id,
        app_slug=app.slug,
        client_id=app.client_id,
        client_secret=app.client_secret,
        private_key_path=str(key),
        webhook_secret=app.webhook_secret,
        installation_id=installation,
        argocd_token=argocd_token,
        argocd_password=servers.argocd.admin_password,
        applications=servers.argocd.applications(),
        people={login: servers.github.create_token(login) for login, _, _ in DEMO_PEOPLE},
        secrets={"lambda-demo": aws},
    )
