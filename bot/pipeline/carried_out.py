"""What is loaded but cannot be carried out: an error on every Stage that would need it, never silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from bot.domain.model import GitSubscription, Stage, Step, Warehouse
from bot.domain.patterns import matches_selector
from bot.domain.pipeline import Pipeline
from bot.domain.problems import ConfigProblem, sort_problems
from bot.domain.review_policy import ReviewPolicy
from bot.domain.step_kinds import AWAITS_MERGE, StepClass
from bot.pipeline.asking import find_asking_problem
from bot.pipeline.router_checks import find_router_problems
from bot.pipeline.without_effect import find_without_effect

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_EFFECTS = frozenset(
    {"argocd-update", "gha-dispatch-workflow", "git-tag", "jfrog-evidence", "oci-push", "tf-apply"}
)
"""Kinds that take effect whatever their config says."""


@dataclass(frozen=True, slots=True)
class _Finding:
    key: str
    message: str


def find_not_carried_out(
    pipeline: Pipeline, *, replicas: bool = False, unusable: Mapping[str, str] | None = None
) -> tuple[ConfigProblem, ...]:
    """The problems of a pipeline that has loaded; an error stops the Stages that it names, and no others.

    `replicas` says that several bots may work on it, for which some things are not safe; `unusable` are the step kinds
    that this machine cannot carry out, each with the reason.
    """
    found: list[ConfigProblem] = []
    for (project, name), stage in pipeline.stages.items():
        for finding in [
            *_of_stage(stage, pipeline),
            *_of_machine(stage, pipeline, unusable or {}),
            *_of_channels(stage, pipeline),
            *(_of_replicas(stage, pipeline) if replicas else ()),
        ]:
            source = stage.metadata.source
            found.append(
                ConfigProblem(
                    source.path, source.line, finding.key, finding.message, stage=name, project=project
                )
            )
    found += find_without_effect(pipeline)
    found += find_router_problems(pipeline)
    return sort_problems(found)


def _of_stage(stage: Stage, pipeline: Pipeline) -> Iterator[_Finding]:
    yield from _of_warehouses(stage, pipeline.warehouses)
    steps, policy = [*_steps_of(stage, pipeline)], _policy_of(stage, pipeline)
    acts = {name for name, step in pipeline.custom_steps.items() if step.step_class is StepClass.ACT}
    unguarded = _why_unguarded(steps, policy or ReviewPolicy(), _EFFECTS | acts)
    if unguarded:
        yield _Finding("spec.promotionTemplate", unguarded)
    asking = find_asking_problem(steps, policy or ReviewPolicy())
    if asking:
        yield _Finding("spec.promotionTemplate.spec.steps", asking)
    if policy is not None:
        unapplied = _why_not_before_merge(steps, policy)
        if unapplied:
            yield _Finding("spec.promotionTemplate", unapplied)
        if policy.apply == "BeforeMerge" and policy.state_in_git:
            yield _Finding(
                "spec",
                f"the ReviewPolicy {policy.metadata.name} says apply: BeforeMerge and stateInGit: true: a pull request "
                "that is closed after its apply would take the state with it. Configure a backend, or set apply: "
                "AfterMerge",
            )


def _of_machine(stage: Stage, pipeline: Pipeline, unusable: Mapping[str, str]) -> Iterator[_Finding]:
    for kind in sorted({step.uses for step in _steps_of(stage, pipeline)} & set(unusable)):
        yield _Finding(
            "spec.promotionTemplate.spec.steps",
            f"the step {kind} is understood, but cannot be carried out here: {unusable[kind]}",
        )


def _of_channels(stage: Stage, pipeline: Pipeline) -> Iterator[_Finding]:
    """Channels that `send-message` names and that are not among the files; a name with an expression is not known."""
    project = stage.metadata.namespace
    for step in _steps_of(stage, pipeline):
        channel = step.config.get("channel") if step.uses == "send-message" else None
        kind, name = (channel.get("kind"), channel.get("name")) if isinstance(channel, dict) else (None, None)
        if not isinstance(kind, str) or not isinstance(name, str) or "${" in f"{kind}{name}":
            continue
        owner = project if kind == "MessageChannel" else ""
        known = [d.metadata for d in pipeline.others if d.kind == kind]
        if not any((metadata.namespace, metadata.name) == (owner, name) for metadata in known):
            yield _Finding(
                "spec.promotionTemplate.spec.steps",
                f"send-message names the {kind} {name!r}, which does not exist",
            )


def _why_unguarded(steps: Sequence[Step], policy: ReviewPolicy, effects: frozenset[str]) -> str:
    """Why a task with pull-request steps of its own cannot be guarded, as far as its text says; empty if it can."""
    opens = [index for index, step in enumerate(steps) if step.uses == "git-open-pr"]
    waits = [index for index, step in enumerate(steps) if step.uses in AWAITS_MERGE]
    if not opens and not waits:
        return ""
    if len(opens) > 1:
        return (
            f"the task opens {len(opens)} pull requests, and a promotion has one; split it into Stages, or push "
            "everything to one branch"
        )
    if not opens or (waits and waits[0] < opens[0]):
        return (
            f"{steps[waits[0]].uses} waits for a pull request that the task has not opened; only that of git-open-pr "
            "before it is supported"
        )
    if not waits:
        return (
            "nothing waits for the pull request that the task opens; add git-wait-for-pr behind git-open-pr"
        )
    early = next((step.uses for step in steps[: waits[0]] if step.uses in effects), "")
    if early:
        also = " (effectsBeforeReview is not carried out yet)" if policy.effects_before_review else ""
        return (
            f"{early} stands before {steps[waits[0]].uses}, so it would take effect before the review{also}; "
            "move it behind it"
        )
    if policy.review == "None":
        return (
            f"the ReviewPolicy {policy.metadata.name} says review: None, but the task opens a pull request itself; "
            "leave git-open-pr out, or say autoMerge: true"
        )
    return ""


def _why_not_before_merge(steps: Sequence[Step], policy: ReviewPolicy) -> str:
    """Why nothing could be applied before the merge as the policy asks, empty if it could or does not ask."""
    if policy.apply != "BeforeMerge":
        return ""
    said = f"the ReviewPolicy {policy.metadata.name} says apply: BeforeMerge"
    own = next((step.uses for step in steps if step.uses == "git-open-pr" or step.uses in AWAITS_MERGE), "")
    if own:
        return (
            f"{said}, but the task waits for its pull request itself ({own}), and what stands behind that is "
            "done after the merge; leave git-open-pr and the wait out, or say apply: AfterMerge"
        )
    return ""


def _steps_of(stage: Stage, pipeline: Pipeline) -> Iterator[Step]:
    """The steps of a Stage, those of its tasks included."""
    for step in stage.template.steps if stage.template is not None else ():
        if step.task is None:
            yield step
        elif step.task.kind == "ClusterPromotionTask":
            shared = pipeline.cluster_tasks.get(step.task.name)
            yield from shared.steps if shared is not None else ()
        else:
            task = pipeline.tasks.get((stage.metadata.namespace, step.task.name))
            yield from task.steps if task is not None else ()


def _of_warehouses(stage: Stage, warehouses: Mapping[tuple[str, str], Warehouse]) -> Iterator[_Finding]:
    for request in stage.requested_freight:
        warehouse = warehouses.get((stage.metadata.namespace, request.origin.name))
        if warehouse is None:
            continue
        name = warehouse.metadata.name
        for subscription in warehouse.subscriptions:
            if isinstance(subscription, GitSubscription) and not _can_be_fetched(subscription.repo_url):
                yield _Finding(
                    "spec.requestedFreight",
                    f"the Warehouse {name} watches {subscription.repo_url}, but repositories are fetched by https "
                    "alone, with credentials from Secrets or by the App; write https://HOST/PATH",
                )


def _can_be_fetched(url: str) -> bool:
    """Whether an address is one by https without credentials in it; on this machine itself http will do."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    is_local = parts.scheme == "http" and host in _LOOPBACK
    return bool(host) and "@" not in parts.netloc and (parts.scheme == "https" or is_local)


def _policy_of(stage: Stage, pipeline: Pipeline) -> ReviewPolicy | None:
    metadata = stage.metadata
    return next(
        (
            policy
            for policy in pipeline.review_policies
            if policy.metadata.namespace in ("", metadata.namespace)
            and matches_selector(policy.selector, metadata.name, metadata.labels)
        ),
        None,
    )


def _of_replicas(stage: Stage, pipeline: Pipeline) -> Iterator[_Finding]:
    policy = _policy_of(stage, pipeline)
    if policy is not None and policy.state_in_git:
        yield _Finding(
            "spec",
            f"the ReviewPolicy {policy.metadata.name} says stateInGit: true, which is refused on PostgreSQL: nothing "
            "locks such a state against another replica. Configure a backend with locks, or run one bot on SQLite",
        )
