"""Receivers end to end: from a vendor's request by its address to the Warehouse that is looked at."""

from __future__ import annotations

import hashlib
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
import pytest

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
from bot.web.receivers import CAP, GITHUB_ISSUER, GOOGLE_ISSUER, Receivers
from bot.web.server import make_app
from bot.web.webhooks import Webhooks
from bot.workflow.intake import Intake
from bot.workflow.receivers import ReceivedIntake, ReceiverBook, describe_receivers, find_receivers

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


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with its tables and nothing in them, to be copied."""
    directory = tmp_path_factory.mktemp("store")
    open_store(f"sqlite:///{directory / 'lockstep.db'}", KeyFileVault(directory / "vault.key")).close()
    return directory


@pytest.fixture
async def bed(tmp_path: Path, empty_store: Path) -> AsyncIterator[Bed]:
    for name in ("lockstep.db", "vault.key"):
        shutil.copy(empty_store / name, tmp_path / name)
    async with open_bed(tmp_path) as opened:
        yield opened


def test_every_receiver_that_is_open_is_tried() -> None:
    assert set(SENT) == set(SUBSCRIPTIONS) | {"actions"}


@pytest.mark.parametrize("name", sorted(SENT))
async def test_a_push_makes_its_warehouse_look(bed: Bed, name: str) -> None:
    answer = await bed.post(name)
    assert (answer.status_code, answer.json()) == (202, {"message": "stored"})
    assert bed.nudges == ["once"]
    assert await bed.looks() == [("warehouse", f"shop/{LOOKED_AT[name]}")]
    assert await bed.count() == 0


BY_ADDRESS = {"azure", "hub", "generic", "quay"}


@pytest.mark.parametrize("name", sorted(set(SENT) - BY_ADDRESS))
async def test_who_cannot_prove_who_he_is_is_refused(bed: Bed, name: str) -> None:
    right = proof(name, read(SENT[name][0]))
    (header, value), *_ = right.items()
    flipped = value[:-1] + ("0" if value[-1] != "0" else "1")
    for headers in (
        {},
        {header: ""},
        {header: flipped},
        {header: "sha256=\u00e9"},
        {header: value.upper() + "x"},
    ):
        answer = await bed.post(name, headers=headers)
        assert (answer.status_code, await bed.count()) == (401, 0)
    if "secret" not in value.lower() and "Bearer" not in value and value != SECRET:
        changed = read(SENT[name][0]) + b" "
        assert (await bed.post(name, body=changed, headers=right)).status_code == 401


async def test_artifactory_may_send_its_secret_as_it_is(bed: Bed) -> None:
    assert (await bed.post("jfrog", headers={"X-JFrog-Event-Auth": SECRET})).status_code == 202


@pytest.mark.parametrize("header", ["X-Gitea-Signature", "X-Forgejo-Signature"])
async def test_gitea_may_sign_without_a_prefix(bed: Bed, header: str) -> None:
    assert (await bed.post("gitea", headers={header: sign(read("gitea.push"))})).status_code == 202


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(f"/quay/{'0' * 64}", id="a guess"),
        pytest.param("/quay/", id="nothing"),
        pytest.param("/quay/\u00e9%ff", id="no ASCII"),
        pytest.param("/nobody/x", id="an unknown kind"),
    ],
)
async def test_no_other_address_exists(bed: Bed, path: str) -> None:
    assert (await bed.post("quay", path=path)).status_code == 404


async def test_the_address_of_one_kind_is_none_of_another(bed: Bed) -> None:
    path = bed.path("hub")
    assert (await bed.post("quay", path=path.replace("dockerhub", "quay"))).status_code == 404
    assert (await bed.client.get(path)).status_code == 405


async def test_a_body_over_the_cap_is_refused_unread(bed: Bed) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * (1024 * 1024)

    assert (await bed.client.post(bed.path("quay"), content=endless())).status_code == 413
    declared = {"Content-Length": str(CAP + 1)}
    assert (await bed.client.post(bed.path("quay"), content=b"", headers=declared)).status_code == 413
    assert await bed.count() == 0


@pytest.mark.parametrize(
    ("name", "headers", "body", "note"),
    [
        ("github", {"X-GitHub-Event": "star"}, {"action": "created"}, "of no interest: the event 'star'"),
        ("github", {"X-GitHub-Event": "ping"}, {"zen": "x"}, "of no interest"),
        ("harbor", {}, {"type": "DELETE_ARTIFACT"}, "of no interest: the type 'DELETE_ARTIFACT'"),
        ("quay", {}, {"docker_url": "quay.io/other/thing", "updated_tags": ["1.0.0"]}, "of no interest"),
        ("quay", {}, "{", "the body is no JSON"),
        ("google", {}, {"message": {"data": "%"}}, "JSON in base64 was expected"),
        ("registry", {}, {"events": [{"action": "pull"}]}, "of no interest"),
        ("generic", {"X-Event-Type": "published"}, {}, "normalizeImage"),
    ],
)
async def test_noise_of_an_authentic_sender_is_taken_and_noted(
    bed: Bed, name: str, headers: dict[str, str], body: object, note: str
) -> None:
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    answer = await bed.post(name, body=content, headers={**proof(name, content), **headers})
    assert answer.status_code == 202
    (delivery,) = await bed.store.list_pending_deliveries()
    looks, said = await bed.intake.received.read(delivery)
    assert looks == []
    assert note in said
    assert await bed.looks() == []


async def test_a_repeated_delivery_is_kept_once(bed: Bed) -> None:
    for _ in range(3):
        assert (await bed.post("github")).status_code == 202
        bed.clock.turn(300)
    assert await bed.count() == 1
    assert bed.nudges == ["once"]


async def test_the_same_body_a_minute_later_is_another_push(bed: Bed) -> None:
    for _ in range(3):
        await bed.post("quay")
    assert await bed.count() == 1
    bed.clock.turn(60)
    await bed.post("quay")
    assert await bed.count() == 2


async def test_an_id_that_two_receivers_use_is_two_deliveries(bed: Bed) -> None:
    await bed.post("github")
    await bed.post("gitea")
    await bed.post("github", body=read("github.push") + b"\n")
    assert await bed.count() == 3


async def test_a_new_secret_is_a_new_address(bed: Bed) -> None:
    old = bed.path("quay")
    assert (await bed.post("quay")).status_code == 202
    (bed.folder / "secret").write_text("another")
    new = bed.path("quay")
    assert new != old
    bed.clock.turn(11)
    assert (await bed.post("quay", path=old)).status_code == 404
    assert (await bed.post("quay", path=new)).status_code == 202


async def test_a_secret_that_is_gone_closes_the_receiver(bed: Bed) -> None:
    path = bed.path("quay")
    (bed.folder / "secret").write_text("")
    bed.clock.turn(11)
    assert (await bed.post("quay", path=path)).status_code == 404


async def test_a_flood_of_guesses_reads_no_secrets(bed: Bed) -> None:
    path = bed.path("quay")
    assert (await bed.post("quay", path=f"/quay/{'1' * 64}")).status_code == 404
    (bed.folder / "secret").unlink()
    for _ in range(20):
        assert (await bed.post("quay", path=f"/quay/{'1' * 64}")).status_code == 404
    # Within ten seconds what was read stays in force.
    assert (await bed.post("quay", path=path)).status_code == 202


async def test_the_clusters_receiver_looks_in_every_project(bed: Bed) -> None:
    assert (await bed.post("quay", path=bed.path("all"))).status_code == 202
    (delivery,) = await bed.store.list_pending_deliveries()
    assert delivery.receiver == "/all"
    assert await bed.looks() == [("warehouse", "shop/quay")]


async def test_a_receiver_that_was_removed_meanwhile_does_nothing(bed: Bed) -> None:
    await bed.post("quay")
    (delivery,) = await bed.store.list_pending_deliveries()
    gone = ReceivedIntake(bed.store, bed.intake.github, Pipeline)
    assert await gone.read(delivery) == ([], "the receiver shop/quay is no longer configured")


async def test_neither_address_nor_credentials_are_kept(bed: Bed) -> None:
    headers = {"Authorization": "Bearer hush", "X-Event-Type": "published"}
    await bed.post("generic", headers=headers)
    (delivery,) = await bed.store.list_pending_deliveries()
    assert b"hush" not in delivery.body
    assert bed.path("generic").rpartition("/")[2].encode() not in delivery.body
    assert bed.path("generic").rpartition("/")[2] not in delivery.id


def test_the_operator_sees_every_address() -> None:
    pipeline, _ = load({"config.yaml": CONFIG}, "r1")
    secrets = SecretStore(lambda: pipeline, environment={"LOCKSTEP_SECRET_SHOP_HOOKS_SECRET_TOKEN": SECRET})
    lines = describe_receivers(pipeline, secrets, "https://bot.example").splitlines()
    digest = hashlib.sha256(f"shopgitlab{SECRET}".encode()).hexdigest()
    assert f"shop/gitlab (gitlab): https://bot.example/gitlab/{digest}" in lines
    assert any(line.startswith("/all (quay): https://bot.example/quay/") for line in lines)
    forgotten = next(line for line in lines if line.startswith("shop/forgotten"))
    assert forgotten == (
        "shop/forgotten (quay): closed, the Secret 'nowhere' has no value under the key 'secret', which quay needs"
    )
    assert describe_receivers(Pipeline(), secrets, "") == "the configuration has no webhook receivers"


# -- Tokens --------------------------------------------------------------------------------------------------

JOB: dict[str, Json] = {"repository": "acme/api", "ref": "refs/heads/main", "event_name": "push"}
PUSH: dict[str, Json] = {"email": "push@acme.example", "email_verified": True}


@pytest.mark.parametrize(
    ("name", "token", "issuer", "claims", "status"),
    [
        pytest.param("actions", "job", GITHUB_ISSUER, JOB, 202, id="the job"),
        pytest.param(
            "actions", "job", GITHUB_ISSUER, JOB | {"repository": "evil/api"}, 401, id="of another owner"
        ),
        pytest.param(
            "actions", "job", GITHUB_ISSUER, JOB | {"ref": "refs/heads/x"}, 401, id="of another branch"
        ),
        pytest.param("actions", "job", GITHUB_ISSUER, {"repository": "acme/api"}, 401, id="without a claim"),
        pytest.param("actions", "job", GITHUB_ISSUER, JOB | {"ref": 7}, 401, id="a claim that is no text"),
        pytest.param(
            "actions", "job", GITHUB_ISSUER, JOB | {"event_name": "pull_request"}, 401, id="of a pull request"
        ),
        pytest.param(
            "actions",
            "job",
            GITHUB_ISSUER,
            JOB | {"event_name": "pull_request_target"},
            401,
            id="of a pull request's target",
        ),
        pytest.param("actions", "job", "https://evil.example", JOB, 401, id="of another issuer"),
        pytest.param("google", "google", GOOGLE_ISSUER, PUSH, 202, id="the subscription"),
        pytest.param(
            "google",
            "google",
            GOOGLE_ISSUER,
            PUSH | {"email": "x@evil.example"},
            401,
            id="of another account",
        ),
        pytest.param(
            "google",
            "google",
            GOOGLE_ISSUER,
            PUSH | {"email_verified": False},
            401,
            id="an unverified address",
        ),
        pytest.param(
            "google",
            "google",
            GOOGLE_ISSUER,
            {"email": "push@acme.example"},
            401,
            id="an address of unknown standing",
        ),
        pytest.param("google", "job", GITHUB_ISSUER, JOB, 401, id="a job's token at Google's receiver"),
    ],
)
async def test_whose_token_is_taken(
    bed: Bed, name: str, token: str, issuer: str, claims: dict[str, Json], status: int
) -> None:
    bed.issuers.known = {token: (issuer, claims)}
    answer = await bed.post(name, headers={"Authorization": f"Bearer {token}"})
    assert (answer.status_code, await bed.count()) == (status, 1 if status == 202 else 0)


async def test_a_token_that_cannot_be_verified_now_is_asked_for_again(bed: Bed) -> None:
    bed.issuers.down = True
    assert (await bed.post("actions")).status_code == 503
    assert await bed.count() == 0


async def test_without_a_secret_a_signature_proves_nothing(bed: Bed) -> None:
    body = read("ci.image")
    empty = hmac.new(b"", body, "sha256").hexdigest()
    assert (await bed.post("actions", headers={"X-Signature": f"sha256={empty}"})).status_code == 401


async def test_where_only_signatures_are_taken_a_token_proves_nothing(bed: Bed) -> None:
    assert (await bed.post("signed", headers={"Authorization": "Bearer job"})).status_code == 401
