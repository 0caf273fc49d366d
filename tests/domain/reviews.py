"""Fresh domain values for decisions to be tried on; every argument overrides one field."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from bot.domain.actions import Gate, Snapshot
from bot.domain.files import Change, CommitId, File, TreeId
from bot.domain.freight import Freight, FreightName, FreightOrigin, Image
from bot.domain.github import PullNumber, PullRequest, Repository, User
from bot.domain.model import (
    FreightRequest,
    FreightSources,
    Metadata,
    Stage,
)
from bot.domain.promotion import Promotion, PromotionId, State, StepStatus, Target
from bot.domain.review import (
    ApplyKind,
    ApplyRecord,
    CommitRecord,
    EffectRecord,
    Lane,
    Patch,
    Pin,
    Presence,
    Preview,
    PublishRecord,
    Split,
    StepReport,
)
from bot.domain.review_policy import ReviewPolicy
from bot.domain.step_kinds import StepClass
from bot.domain.terraform import Action, Plan, ResourceChange
from bot.domain.values import Value

NOW = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
URL = "https://git.example/acme/ops.git"
MAIN = Target(URL, "main")
BASE = CommitId("b" * 40)
HEAD = CommitId("c" * 40)
SOURCE = Pin("src", URL, "main", BASE)
ORIGIN = FreightOrigin("apps")


def freight(name: str = "a", alias: str = "calm-otter", **changes: object) -> Freight:
    made = Freight(
        FreightName(name * 40), "shop", alias, ORIGIN, NOW, images=(Image("reg.example/app", "1.2.3"),)
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def promotion(**changes: object) -> Promotion:
    made = Promotion(
        id=PromotionId("dev.01.aaaaaaa"),
        project="shop",
        stage="dev",
        freight=freight(),
        collection=(freight(),),
        steps=(),
        variables=(),
        actor="lockstep",
        actor_id=0,
        created_at=NOW,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def in_review(**changes: object) -> Promotion:
    made = promotion(
        state=State.REVIEW,
        preview=1,
        target=MAIN,
        pull=PullNumber(7),
        head=HEAD,
        heads=(HEAD,),
        base=BASE,
        digest="d1",
        own_commits=(HEAD,),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def pull(**changes: object) -> PullRequest:
    made = PullRequest(
        repository=Repository("acme", "ops"),
        number=PullNumber(7),
        title="t",
        body="",
        open=True,
        merged=False,
        head=HEAD,
        head_branch="lockstep/shop/dev",
        base_branch="main",
        author=User("lockstep[bot]", 1, bot=True),
        url="https://git.example/acme/ops/pull/7",
        mergeable=True,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def stage(**changes: object) -> Stage:
    made = Stage(
        metadata=Metadata("dev", "shop"),
        requested_freight=(FreightRequest(ORIGIN, FreightSources(direct=True)),),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def preview(**changes: object) -> Preview:
    made = Preview(
        target=MAIN,
        checkout="src",
        base=BASE,
        tree=TreeId("e" * 40),
        steps=(),
        split=Split(cut=0, prepared=(), deferred=Patch(MAIN, ())),
        lane=Lane.COMPLETE,
        lane_reason="",
        differences={},
        touched=frozenset(),
        problems=(),
        warnings=(),
        origins={},
        digest="d1",
        made_at=NOW,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def snapshot(**changes: object) -> Snapshot:
    made = Snapshot(now=NOW, project="shop", stage=stage(), policy=ReviewPolicy())
    return replace(made, **changes)  # type: ignore[arg-type]


def reviewed(**changes: object) -> Snapshot:
    """A promotion in review with every gate open."""
    made = snapshot(
        promotion=in_review(),
        preview=preview(),
        pull=pull(),
        gates=(Gate("approvals", True, "approved by olivia"),),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


# -- step reports ------------------------------------------------------------------------------------------------


def change(path: str, after: str = "new\n", before: str | None = "old\n") -> Change:
    return Change(path, File(before.encode()) if before is not None else None, File(after.encode()))


def report(kind: str, step_class: StepClass, **changes: object) -> StepReport:
    made = StepReport(
        index=0,
        alias=kind,
        kind=kind,
        step_class=step_class,
        presence=Presence.CERTAIN,
        status=StepStatus.SUCCEEDED,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def clone() -> StepReport:
    return report("git-clone", StepClass.READ)


def edit(path: str, after: str = "new\n", *, tainted: bool = False, config: Value = None) -> StepReport:
    made = change(f"src/{path}", after)
    return report(
        "yaml-update",
        StepClass.EDIT,
        changes=(made,),
        wrote=frozenset({f"src/{path}"}),
        tainted=tainted,
        config=config,
    )


def apply(
    kind: ApplyKind = ApplyKind.CHANGES,
    *,
    directory: str = "src/tf",
    inputs: tuple[str, ...] = ("src/tf/env.auto.tfvars",),
) -> StepReport:
    record = ApplyRecord(
        "state", directory, kind, "i1", frozenset(inputs), plan=plan() if kind.is_barrier else None
    )
    status = None if kind.is_barrier or kind is ApplyKind.OUTPUTS_ONLY else StepStatus.SKIPPED
    return report("tf-apply", StepClass.INFRA, record=record, status=status, config={"dir": directory})


def plan(action: Action = Action.CREATE) -> Plan:
    resource = ResourceChange("terraform_data.url", "terraform_data", action)
    return Plan((resource,), (), (), {}, digest="p1", version="terraform 1.11.4", result="Plan: 1 to add.")


def commit(*paths: str, after: str = "new\n", message: Value = "release") -> StepReport:
    changes = tuple(change(path, after) for path in paths)
    return report("git-commit", StepClass.COMMIT, record=CommitRecord("src", message, changes), status=None)


def push(branch: str = "main", *, commits: int = 1, url: str = URL) -> StepReport:
    return report(
        "git-push", StepClass.PUBLISH, record=PublishRecord("src", url, branch, commits), status=None
    )


def sync(*, quiet: bool = True) -> StepReport:
    return report(
        "argocd-update", StepClass.ACT, record=EffectRecord("sync", "app-dev", quiet=quiet), status=None
    )


def act(kind: str = "http") -> StepReport:
    return report(kind, StepClass.ACT, record=EffectRecord("POST", "https://hooks.example"), status=None)


def steps(*reports: StepReport) -> tuple[StepReport, ...]:
    """Reports in order, with their indices and with aliases that tell twins apart."""
    return tuple(
        replace(item, index=index, alias=f"{item.alias}-{index}") for index, item in enumerate(reports)
    )
