"""What we need of the world, as Protocols, and the errors that it may raise.

Every method that is asked twice with the same arguments ends in the same state of the world, or says in its
docstring why not.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.ports.artifacts import Artifacts, ArtifactsOfProjects
from bot.ports.branch_rules import BranchRules
from bot.ports.commands import Commands
from bot.ports.errors import TerminalError, TransientError
from bot.ports.git import (
    Commit,
    Conflicted,
    Git,
    Merged,
    Moved,
    ProjectGit,
    Pushed,
    PushOutcome,
    Refused,
    Signature,
    WatchedGit,
)
from bot.ports.github import GitHub, MergeDone, MergeRefused
from bot.ports.issues import Issues, Workflows
from bot.ports.messages import Messages
from bot.ports.registering import AppCredentials, Registering
from bot.ports.rendering import Renderer
from bot.ports.signed_push import SignedPush
from bot.ports.signing_in import SignIn
from bot.ports.store import (
    AppliedState,
    Delivery,
    DueLook,
    DuePost,
    Look,
    Post,
    PromotionLine,
    StageRecord,
    Store,
)
from bot.ports.terraform import Terraform, TerraformRun
from bot.ports.timeline import Event
from bot.ports.world import (
    ArgoCD,
    Charts,
    Clock,
    ConfigSource,
    Dns,
    Http,
    HttpRequest,
    HttpResponse,
    ImageFacts,
    Registries,
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
    """With the App's own token alone; for what a project's task does there is `project_git`."""
    project_git: ProjectGit
    terraform: Terraform
    github: GitHub
    branch_rules: BranchRules
    argocd: ArgoCD
    registry: Registries
    charts: Charts
    watched: WatchedGit
    secrets: Secrets
    vault: Vault
    http: Http
    dns: Dns
    store: Store
    renderer: Renderer
    artifacts: ArtifactsOfProjects
    issues: Issues
    workflows: Workflows
    messages: Messages
    signed_push: SignedPush
    commands: Commands


__all__ = [
    "AppCredentials",
    "AppliedState",
    "ArgoCD",
    "Artifacts",
    "ArtifactsOfProjects",
    "BranchRules",
    "Charts",
    "Clock",
    "Commands",
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
    "Issues",
    "Look",
    "MergeDone",
    "MergeRefused",
    "Merged",
    "Messages",
    "Moved",
    "Ports",
    "Post",
    "ProjectGit",
    "PromotionLine",
    "PushOutcome",
    "Pushed",
    "Refused",
    "Registering",
    "Registries",
    "Registry",
    "Renderer",
    "Secrets",
    "SignIn",
    "Signature",
    "SignedPush",
    "StageRecord",
    "Store",
    "SyncRefused",
    "SyncStarted",
    "TerminalError",
    "Terraform",
    "TerraformRun",
    "TransientError",
    "Vault",
    "WatchedGit",
    "Workflows",
]
