"""What we need of the world, as Protocols, and the errors that it may raise.

Every method that is asked twice with the same arguments ends in the same state of the world, or says in its
docstring why not.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.ports.errors import TerminalError, TransientError
from bot.ports.git import (
    Commit,
    Conflicted,
    Git,
    Merged,
    Moved,
    Pushed,
    PushOutcome,
    Refused,
    Signature,
)
from bot.ports.github import GitHub, MergeDone, MergeRefused
from bot.ports.registering import AppCredentials, Registering
from bot.ports.signing_in import SignIn
from bot.ports.store import (
    AppliedState,
    Delivery,
    DueLook,
    DuePost,
    Event,
    Look,
    Post,
    PromotionLine,
    StageRecord,
    Store,
)
from bot.ports.terraform import Terraform, TerraformRun
from bot.ports.world import (
    ArgoCD,
    Clock,
    ConfigSource,
    Dns,
    Http,
    HttpRequest,
    HttpResponse,
    ImageFacts,
    Registry,
    Secrets,
    SyncRefused,
    SyncStarted,
    Vault,
)


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that steps and workflows may ask of the world; each takes only what it declares."""

    clock: Clock
    git: Git
    terraform: Terraform
    github: GitHub
    argocd: ArgoCD
    registry: Registry
    secrets: Secrets
    vault: Vault
    http: Http
    dns: Dns
    store: Store


__all__ = [
    "AppCredentials",
    "AppliedState",
    "ArgoCD",
    "Clock",
    "Commit",
    "ConfigSource",
    "Conflicted",
    "Delivery",
    "Dns",
    "DueLook",
    "DuePost",
    "Event",
    "Git",
    "GitHub",
    "Http",
    "HttpRequest",
    "HttpResponse",
    "ImageFacts",
    "Look",
    "MergeDone",
    "MergeRefused",
    "Merged",
    "Moved",
    "Ports",
    "Post",
    "PromotionLine",
    "PushOutcome",
    "Pushed",
    "Refused",
    "Registering",
    "Registry",
    "Secrets",
    "SignIn",
    "Signature",
    "StageRecord",
    "Store",
    "SyncRefused",
    "SyncStarted",
    "TerminalError",
    "Terraform",
    "TerraformRun",
    "TransientError",
    "Vault",
]
