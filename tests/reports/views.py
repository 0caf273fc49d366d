"""Views of one release on its way: what the reports are rendered from, built fresh for every test."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bot.domain.actions import Gate
from bot.domain.approvals import Tally, Verdict
from bot.domain.files import Change, CommitId, File, TreeId
from bot.domain.freight import Freight, FreightName, FreightOrigin, Image
from bot.domain.github import PullNumber
from bot.domain.model import Step
from bot.domain.promotion import Promotion, PromotionId, State, StepRun, StepStatus, Target
from bot.domain.review import (
    ApplyKind,
    ApplyRecord,
    CommitRecord,
    EffectRecord,
    Lane,
    Patch,
    PreparedCommit,
    Presence,
    Preview,
    PublishRecord,
    Record,
    Split,
    StepReport,
)
from bot.domain.review_policy import ApprovalRule, Approvals
from bot.domain.step_kinds import StepClass
from bot.domain.terraform import Action, AttributeChange, OutputChange, Plan, ResourceChange
from bot.domain.values import Unknown, Value
from bot.domain.view import Outcome, PromotionView, StageLine

NOW = datetime(2026, 5, 7, 15, 0, tzinfo=UTC)
MAIN = Target("https://git.example/acme/operations.git", "main")
BASE = CommitId("b" * 40)
HEAD = CommitId("c" * 40)
MERGE = CommitId("d" * 40)
DIRECTORY = "./src/env/staging/terraform"
VALUES = "env/staging/helm/values.yaml"
TFVARS = "env/staging/terraform/env.auto.tfvars"
SENTINEL = "lockstep-unknown-1-aaaaaaaa"
ORIGIN = FreightOrigin("otel")

_OLD = b"""image:
  repository: reg.example/acme/otel-app
  tag: "1.0.0"  # written by a promotion

env:
  LOG_LEVEL: info
  LAMBDA_URL: ""  # exists after the first apply
"""
_NEW = _OLD.replace(b'"1.0.0"', b'"1.1.0"')
_NEW_WITH_URL = _NEW.replace(b'""', SENTINEL.encode())

STEPS = (
    Step(uses="git-clone", alias="promote::step-1"),
    Step(uses="hcl-update", alias="promote::step-2"),
    Step(uses="tf-apply", alias="promote::apply-network"),
    Step(uses="tf-output", alias="promote::step-4"),
    Step(uses="yaml-update", alias="promote::step-5"),
    Step(uses="git-commit", alias="promote::commit"),
    Step(uses="git-push", alias="promote::step-7"),
    Step(uses="argocd-update", alias="promote::step-8"),
)


def freight(version: str, alias: str) -> Freight:
    return Freight(
        FreightName((version.replace(".", "") * 40)[:40]),
        "acme",
        alias,
        ORIGIN,
        NOW - timedelta(hours=3),
        images=(
            Image("reg.example/acme/otel-app", version, f"sha256:{version.replace('.', '') * 16}"),
            Image("reg.example/acme/lambda-app", version, f"sha256:b{version.replace('.', '') * 16}"),
        ),
    )


OLD, NEW = freight("1.0.0", "brisk-hawk"), freight("1.1.0", "solar-marmot")


def promotion(**changes: object) -> Promotion:
    made = Promotion(
        id=PromotionId("staging.01jx.1101101"),
        project="acme",
        stage="staging",
        freight=NEW,
        collection=(NEW,),
        steps=STEPS,
        variables=(),
        actor="lockstep",
        actor_id=0,
        created_at=NOW - timedelta(minutes=10),
        state=State.REVIEW,
        preview=1,
        target=MAIN,
        pull=PullNumber(7),
        head=HEAD,
        heads=(HEAD,),
        base=BASE,
        digest="379e2f7325ac4851",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def create(address: str) -> ResourceChange:
    return ResourceChange(address, address.partition(".")[0], Action.CREATE)


def plan(*resources: ResourceChange, **changes: object) -> Plan:
    made = Plan(resources, (), (), {}, "p1", "1.9.0", "")
    return replace(made, **changes)  # type: ignore[arg-type]


FIRST = plan(
    create("aws_lambda_function.app"),
    create("aws_lambda_function_url.app"),
    create("aws_iam_role.app"),
    create('aws_lambda_permission.callers["otel-app"]'),
    outputs=(
        OutputChange("lambda_url", Action.CREATE, None, Unknown("known after apply: lambda_url")),
        OutputChange("region", Action.CREATE, None, "eu-central-1"),
    ),
)
IMAGE = plan(
    ResourceChange(
        "aws_lambda_function.app",
        "aws_lambda_function",
        Action.UPDATE,
        (
            AttributeChange(
                "image_uri", "reg.example/acme/lambda-app:1.0.0", "reg.example/acme/lambda-app:1.1.0"
            ),
        ),
    )
)


def apply(found: Plan | None = FIRST, kind: ApplyKind = ApplyKind.CHANGES, **changes: object) -> ApplyRecord:
    text = "Terraform will perform the following actions:\n\n  # aws_lambda_function.app will be created"
    made = ApplyRecord("staging", DIRECTORY, kind, "i1", frozenset(), found, text=text if found else "")
    return replace(made, **changes)  # type: ignore[arg-type]


def steps(record: ApplyRecord | None, *, deferred: bool = True, holes: bool = True) -> tuple[StepReport, ...]:
    """The seed task as the preview saw it."""
    url: Value = Unknown("known after apply: lambda_url") if holes else "https://lambda.example/"
    after = _NEW_WITH_URL if holes else _NEW
    values = Change(f"src/{VALUES}", File(_OLD), File(after))
    committed = (Change(VALUES, File(_OLD), File(after)),)
    later = None if deferred else StepStatus.SUCCEEDED
    skipped = record is None
    records: tuple[tuple[StepClass, StepStatus | None, Record | None, tuple[Change, ...]], ...] = (
        (StepClass.READ, StepStatus.SUCCEEDED, None, ()),
        (StepClass.EDIT, StepStatus.SUCCEEDED, None, ()),
        (StepClass.INFRA, StepStatus.SKIPPED if skipped else None, record, ()),
        (StepClass.INFRA, StepStatus.SUCCEEDED if skipped else None, None, ()),
        (StepClass.EDIT, StepStatus.SUCCEEDED, None, (values,)),
        (
            StepClass.COMMIT,
            later,
            CommitRecord("src", "Promote staging to solar-marmot\n\nmore", committed),
            (),
        ),
        (StepClass.PUBLISH, later, PublishRecord("src", MAIN.url, "main", 1), ()),
        (
            StepClass.ACT,
            None,
            EffectRecord(
                "sync otel-app-staging",
                "Argo CD default",
                (("application", "otel-app-staging"), ("revision", Unknown("known after merge: commit"))),
                quiet=True,
            ),
            (),
        ),
    )
    return tuple(
        StepReport(
            index,
            step.alias,
            step.uses,
            step_class,
            Presence.CERTAIN,
            status,
            {"url": url},
            record=found,
            changes=changes,
        )
        for index, (step, (step_class, status, found, changes)) in enumerate(zip(STEPS, records, strict=True))
    )


def preview(record: ApplyRecord | None = None, **changes: object) -> Preview:
    """The coordinated preview of the seed task: tfvars in the diff, values after the apply."""
    wanted = record if record is not None else apply()
    made = Preview(
        target=MAIN,
        checkout="src",
        base=BASE,
        tree=TreeId("e" * 40),
        steps=steps(wanted),
        split=Split(
            cut=2,
            prepared=(PreparedCommit("prepare", (Change(TFVARS, File(b"a"), File(b"b")),)),),
            deferred=Patch(MAIN, (Change(VALUES, File(_OLD), File(_NEW_WITH_URL)),)),
        ),
        lane=Lane.COORDINATED,
        lane_reason="Terraform is applied after the merge, then the rest is committed: "
        "these values exist only after the apply: lambda_url.",
        differences={},
        touched=frozenset(),
        problems=(),
        warnings=(),
        origins={SENTINEL: "known after apply: lambda_url"},
        digest="379e2f7325ac4851",
        made_at=NOW - timedelta(minutes=5),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


STAGES = (
    StageLine("dev", NEW, NOW - timedelta(hours=2), verified=True),
    StageLine("staging", OLD, NOW - timedelta(days=3), verified=True, here=True),
    StageLine("prod", OLD, NOW - timedelta(days=2), verified=False),
)
WAITING = (Gate("freeze", True, "no freeze"), Gate("approvals", False, "0 of 1 approvals"))


def view(**changes: object) -> PromotionView:
    made = PromotionView(
        promotion=promotion(),
        preview=preview(),
        now=NOW,
        gates=WAITING,
        tally=Tally(0, 1),
        approvals=Approvals(),
        current=OLD,
        stages=STAGES,
        waiting="0 of 1 approvals",
        page="https://lockstep.example/promotions/staging.01jx.1101101",
        marker='<!-- lockstep-marker {"stage":"staging"} ' + "f" * 64 + " -->",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def run(alias: str, status: StepStatus, message: str = "", **changes: object) -> StepRun:
    """One line of the journal; it took 42 seconds."""
    kind = next(step.uses for step in STEPS if step.alias == alias)
    made = StepRun(alias, kind, 1, status, message, begun_at=NOW - timedelta(seconds=42), finished_at=NOW)
    return replace(made, **changes)  # type: ignore[arg-type]


def outcome(*runs: StepRun) -> Outcome:
    return Outcome(runs={found.alias: found for found in runs})


STRICT = Approvals(
    count=2, from_=("team:release", "user:dana"), on_destroy=ApprovalRule(2, ("team:database",))
)
EXCLUDED = Tally(
    1,
    2,
    destroy_count=0,
    destroy_needed=1,
    verdicts=(
        Verdict("dana", counted=True, reason="approved this head"),
        Verdict("olivia", counted=False, reason="asked for this promotion"),
        Verdict("rafael", counted=False, reason="approved 1234567, not the head ccccccc"),
        Verdict("renovate[bot]", counted=False, reason="is a bot"),
    ),
)
