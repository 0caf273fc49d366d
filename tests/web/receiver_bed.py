"""A bot's receivers and intake over a real store, and what each vendor sends to them."""

from __future__ import annotations

import hmac
import json
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import httpx

from bot.adapters.github.app import GitHubApp
from bot.adapters.github.connection import GitHubSettings
from bot.adapters.secrets import SecretStore
from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.app import load
from bot.domain.events import AppIdentity
from bot.domain.pipeline import Pipeline
from bot.domain.problems import Severity
from bot.domain.values import Json
from bot.ports import TransientError
from bot.web.api import Api
from bot.web.receivers import GITHUB_ISSUER, GOOGLE_ISSUER, Receivers
from bot.web.server import make_app
from bot.web.webhooks import Webhooks
from bot.workflow.intake import Intake
from bot.workflow.receivers import ReceivedIntake, ReceiverBook, find_receivers

BODIES = Path(__file__).parents[1] / "payloads" / "receivers"
SECRET = "s3cret-\u00e9"
CONFIG = """
apiVersion: kargo.akuity.io/v1alpha1
kind: ProjectConfig
metadata: {name: shop, namespace: shop}
spec:
  webhookReceivers:
    - {name: jfrog, artifactory: {secretRef: {name: hooks}}}
    - {name: azure, azure: {secretRef: {name: hooks}}}
    - {name: bitbucket, bitbucket: {secretRef: {name: hooks}}}
    - {name: hub, dockerhub: {secretRef: {name: hooks}}}
    - name: generic
      generic:
        secretRef: {name: hooks}
        actions:
          - action: Refresh
            whenExpression: request.header('X-Event-Type') == 'published'
            targetSelectionCriteria:
              - kind: Warehouse
                indexSelector:
                  matchIndices:
                    - {key: subscribedURLs, operator: Equals, value: "${{ normalizeImage(request.body.image) }}"}
    - {name: gitea, gitea: {secretRef: {name: hooks}}}
    - {name: github, github: {secretRef: {name: hooks}}}
    - {name: gitlab, gitlab: {secretRef: {name: hooks}}}
    - {name: harbor, harbor: {secretRef: {name: hooks}}}
    - {name: quay, quay: {secretRef: {name: hooks}}}
    - {name: registry, distribution: {secretRef: {name: hooks}}}
    - {name: aws, ecr: {secretRef: {name: hooks}}}
    - {name: google, gar: {audience: lockstep, serviceAccount: push@acme.example}}
    - {name: nexus, nexus: {secretRef: {name: hooks}, registry: "nexus.acme.example:5000"}}
    - name: actions
      ci: {oidc: {audience: lockstep, claims: {repository: "glob:acme/*", ref: refs/heads/main}}}
    - {name: signed, ci: {secretRef: {name: hooks}}}
    - {name: forgotten, quay: {secretRef: {name: nowhere}}}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: ClusterConfig
metadata: {name: cluster}
spec:
  webhookReceivers: [{name: all, quay: {secretRef: {name: shared}}}]
---
apiVersion: v1
kind: Secret
metadata: {name: hooks, namespace: shop}
---
apiVersion: v1
kind: Secret
metadata: {name: shared, namespace: kargo-system-resources}
stringData: {secret: all}
"""
SUBSCRIPTIONS = {
    "jfrog": {"image": {"repoURL": "jfrog.acme.example/docker-local/pay/api"}},
    "azure": {"image": {"repoURL": "acme.azurecr.io/pay/api"}},
    "bitbucket": {"git": {"repoURL": "https://bitbucket.org/acme/ops"}},
    "hub": {"image": {"repoURL": "acme/api"}},
    "generic": {"image": {"repoURL": "docker.io/library/nginx"}},
    "gitea": {"git": {"repoURL": "https://gitea.acme.example/acme/ops", "includePaths": ["charts"]}},
    "github": {"git": {"repoURL": "https://github.com/acme/charts"}},
    "gitlab": {"git": {"repoURL": "https://gitlab.acme.example/acme/ops"}},
    "harbor": {"image": {"repoURL": "harbor.acme.example:8443/pay/api"}},
    "quay": {"chart": {"repoURL": "oci://quay.io/acme/api"}},
    "registry": {"image": {"repoURL": "registry.acme.example:5000/pay/payments-api"}},
    "aws": {"image": {"repoURL": "111122223333.dkr.ecr.eu-central-1.amazonaws.com/pay/api"}},
    "google": {"image": {"repoURL": "europe-docker.pkg.dev/acme/pay/api"}},
    "nexus": {"image": {"repoURL": "nexus.acme.example:5000/pay/api"}},
    "signed": {"image": {"repoURL": "registry.acme.example/pay/api"}},
}
"""For each receiver a Warehouse of the same name, and what it subscribes to."""


def sign(body: bytes, digest: str = "sha256") -> str:
    return hmac.new(SECRET.encode(), body, digest).hexdigest()


def proof(name: str, body: bytes) -> dict[str, str]:
    """The headers by which each sender proves who it is; empty where the address is all there is."""
    return {
        "jfrog": {"X-JFrog-Event-Auth": sign(body)},
        "bitbucket": {"X-Hub-Signature": f"sha256={sign(body)}"},
        "gitea": {"X-Hub-Signature-256": f"sha256={sign(body)}"},
        "github": {"X-Hub-Signature-256": f"sha256={sign(body)}"},
        "gitlab": {"X-Gitlab-Token": SECRET},
        "harbor": {"Authorization": SECRET},
        "registry": {"Authorization": f"Bearer {SECRET}"},
        "aws": {"X-Webhook-Secret": SECRET},
        "google": {"Authorization": "Bearer google"},
        "nexus": {"X-Nexus-Webhook-Signature": sign(body, "sha1")},
        "actions": {"Authorization": "Bearer job"},
        "signed": {"X-Signature": f"sha256={sign(body)}"},
    }.get(name, {})


SENT = {
    "jfrog": ("artifactory.pushed", {}),
    "azure": ("azure.push", {"User-Agent": "AzureContainerRegistry/1.0"}),
    "bitbucket": ("bitbucket.push", {"X-Event-Key": "repo:push", "X-Request-UUID": "u1"}),
    "hub": ("dockerhub.push", {}),
    "generic": ("generic.request", {"X-Event-Type": "published"}),
    "gitea": ("gitea.push", {"X-Gitea-Event": "push", "X-Gitea-Delivery": "d1"}),
    "github": ("github.push", {"X-GitHub-Event": "push", "X-GitHub-Delivery": "d1"}),
    "gitlab": ("gitlab.push", {"X-Gitlab-Event": "Push Hook", "X-Gitlab-Event-UUID": "u1"}),
    "harbor": ("harbor.push", {}),
    "quay": ("quay.push", {}),
    "registry": ("distribution.push", {}),
    "aws": ("ecr.push", {}),
    "google": ("gar.insert", {}),
    "nexus": ("nexus.created", {"X-Nexus-Webhook-Id": "rm:repository:component"}),
    "actions": ("ci.image", {}),
    "signed": ("ci.image", {}),
}
"""What each receiver is sent: a file, and the headers beside the proof."""
LOOKED_AT = {name: name for name in SENT} | {"actions": "signed"}


@dataclass
class Hands:
    """A clock that is turned by hand."""

    time: datetime = datetime(2026, 8, 20, 10, 0, 10, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def turn(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass
class Issuers:
    """Tokens that are believed, with issuer, audience and claims; `down` tells that keys cannot be read."""

    known: dict[str, tuple[str, dict[str, Json]]] = field(
        default_factory=lambda: {
            "google": (GOOGLE_ISSUER, {"email": "push@acme.example", "email_verified": True}),
            "job": (
                GITHUB_ISSUER,
                {"repository": "acme/api", "ref": "refs/heads/main", "event_name": "push"},
            ),
        }
    )
    down: bool = False

    async def verify(self, token: str, *, issuer: str, audience: str) -> Mapping[str, Json] | None:
        if self.down:
            raise TransientError("the issuer is away")
        known = self.known.get(token)
        return known[1] if known is not None and (issuer, audience) == (known[0], "lockstep") else None


@dataclass
class Bed:
    """A bot's web side and intake over a real store; Secrets are files that a test may change."""

    client: httpx.AsyncClient
    store: DatabaseStore
    intake: Intake
    pipeline: Pipeline
    secrets: SecretStore
    folder: Path
    clock: Hands
    issuers: Issuers
    nudges: list[str]

    def path(self, name: str) -> str:
        """The address of a receiver at present."""
        opened, _ = find_receivers(self.pipeline, self.secrets)
        return next(item.path for item in opened if item.receiver.name == name)

    async def post(
        self, name: str, body: bytes | None = None, headers: Mapping[str, str] | None = None, path: str = ""
    ) -> httpx.Response:
        """Send what a vendor sends, with its proof unless other headers are given."""
        file, given = SENT[name]
        content = body if body is not None else read(file)
        sent = {**given, **(proof(name, content) if headers is None else headers)}
        encoded = [(key.encode(), value.encode()) for key, value in sent.items()]
        return await self.client.post(path or self.path(name), content=content, headers=encoded)

    async def looks(self) -> list[tuple[str, str]]:
        """Work on what is stored; what is to be looked at then, as (kind, key)."""
        await self.intake.drain()
        due = await self.store.list_due_looks(datetime.now(UTC) + timedelta(days=1))
        return [(look.kind, look.key) for look in due]

    async def count(self) -> int:
        return len(await self.store.list_pending_deliveries())


def read(file: str) -> bytes:
    body = (BODIES / f"{file}.json").read_bytes()
    # The generic receiver's file is the envelope in which a request is kept.
    return json.loads(body)["body"].encode() if file == "generic.request" else body


@cache
def make_github() -> GitHubApp:
    """Our adapter, which is asked for nothing but addresses here."""
    return GitHubApp(GitHubSettings(7, "", "https://api.github.com/", "https://github.com/"), Hands())


@cache
def load_once() -> Pipeline:
    """The receivers, and their Warehouses."""
    warehouses = [
        {
            "apiVersion": "kargo.akuity.io/v1alpha1",
            "kind": "Warehouse",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"subscriptions": [subscription]},
        }
        for name, subscription in SUBSCRIPTIONS.items()
    ]
    files = {"config.yaml": CONFIG, "warehouses.yaml": "\n---\n".join(map(json.dumps, warehouses))}
    pipeline, problems = load(files, "r1")
    assert [item.message for item in problems if item.severity is Severity.ERROR] == []
    return pipeline


@asynccontextmanager
async def open_bed(directory: Path) -> AsyncIterator[Bed]:
    folder = directory / "secrets" / "shop" / "hooks"
    folder.mkdir(parents=True)
    for key in ("secret", "secret-token", "auth-header"):
        (folder / key).write_text(SECRET, encoding="utf-8")
    pipeline = load_once()
    clock, issuers, nudges = Hands(), Issuers(), []
    store = open_store(f"sqlite:///{directory / 'lockstep.db'}", KeyFileVault(directory / "vault.key"))
    github = make_github()
    secrets = SecretStore(lambda: pipeline, directory=directory / "secrets")
    receivers = Receivers(
        store=store,
        nudge=lambda: nudges.append("once"),
        book=ReceiverBook(lambda: pipeline, secrets, clock),
        tokens=issuers,
        clock=clock,
    )

    async def ready() -> str:
        return ""

    webhooks = Webhooks(store, lambda: None, ())
    app = make_app(webhooks, Api(store, ""), ready, None, receivers)
    received = ReceivedIntake(store, github, lambda: pipeline)
    intake = Intake(store, github, lambda: AppIdentity(7, 8), lambda: pipeline, None, received)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://bot.example") as client:
        client.headers.pop("user-agent")
        yield Bed(client, store, intake, pipeline, secrets, folder, clock, issuers, nudges)
    store.close()


def make_empty_store(directory: Path) -> None:
    """A database with its tables and nothing in them, to be copied."""
    open_store(f"sqlite:///{directory / 'lockstep.db'}", KeyFileVault(directory / "vault.key")).close()


@asynccontextmanager
async def open_copy(directory: Path, empty: Path) -> AsyncIterator[Bed]:
    """A bed on a copy of an empty store."""
    for name in ("lockstep.db", "vault.key"):
        shutil.copy(empty / name, directory / name)
    async with open_bed(directory) as opened:
        yield opened
