"""The schema of our own kind, ReviewPolicy, and its way into the model.

An unknown key is an error here: a policy that is misspelt must not be weaker than its author thinks.
"""

from __future__ import annotations

from bot.domain.model import Metadata
from bot.domain.review_policy import DEFAULT_COMMANDS, ApprovalRule, Approvals, ReviewPolicy
from bot.domain.values import Json
from bot.pipeline.access import (
    bool_at,
    int_at,
    mapping_at,
    seconds_at,
    text_at,
    texts_at,
    variables_at,
)
from bot.pipeline.field_patterns import formed
from bot.pipeline.kinds.selectors import build_selector
from bot.pipeline.kinds.tables import SELECTOR
from bot.pipeline.schema import JsonSchema, boolean, choice, integer, items, mapping, text

COMMANDS = (
    "promote",
    "plan",
    "apply",
    "retry",
    "verify",
    "approve",
    "hold",
    "resume",
    "rollback",
    "freight",
    "cancel",
    "freeze",
    "unfreeze",
    "drift",
    "explain",
    "status",
    "doctor",
    "help",
)
"""Every command that a comment may hold."""

_WHO = text(
    pattern=r"^((team|user):[A-Za-z0-9][A-Za-z0-9-]*(/[A-Za-z0-9._-]+)?|perm:(read|triage|write|maintain|admin))$",
    errorMessage="names nobody; write team:org/slug, user:login, or perm: with read, triage, write, maintain or admin",
)
_MAY = text(
    pattern=(
        r"^(approvers|read|triage|write|maintain|admin|perm:(read|triage|write|maintain|admin)"
        r"|(team|user):[A-Za-z0-9][A-Za-z0-9-]*(/[A-Za-z0-9._-]+)?)$"
    ),
    errorMessage="names nobody; write read, triage, write, maintain, admin, approvers, team:org/slug or user:login",
)
_COUNT = integer("How many approvals.", minimum=0, maximum=100)
_FROM = items(_WHO, description="Whose approvals count; anybody with write permission if empty.")
_AUTO_MERGE: JsonSchema = {
    "anyOf": [
        {"type": "boolean"},
        mapping({"allow": items(choice("destroy"))}),
    ],
    "errorMessage": "must be true, false, or {allow: [destroy]}",
}

REVIEW_POLICY = mapping(
    {
        "stageSelector": SELECTOR,
        "review": choice("PullRequest", "None"),
        "apply": choice("AfterMerge", "BeforeMerge"),
        "approvals": mapping(
            {
                "count": _COUNT,
                "from": _FROM,
                "requester": boolean("Whether the approval of whoever asked counts."),
                "onDestroy": mapping({"count": _COUNT, "from": _FROM}),
            }
        ),
        "autoMerge": _AUTO_MERGE,
        "supersede": choice("UntilApproved", "Always", "Never"),
        "commands": mapping(dict.fromkeys(COMMANDS, _MAY)),
        "rollback": mapping({"count": _COUNT, "infra": choice("WithFreight", "Keep")}),
        "reviewIn": text(
            "The repository that pull requests go to, with #branch if it is not the default.",
            pattern=r"^(https?://[^\s#]+(#[^\s#]+)?)?$",
            errorMessage="is no repository; write it like https://host/owner/repository#branch",
        ),
        "unchangedInputs": choice("Skip", "Plan"),
        "showOtherRepositories": boolean("Show patches of repositories that others may not read."),
        "effectsBeforeReview": boolean("Let a task act before its own pull request."),
        "writeBack": choice("Push", "PullRequest"),
        "planEnv": items(
            mapping(
                {
                    "name": text(
                        pattern="^[a-zA-Z_][a-zA-Z0-9_]*$",
                        errorMessage="is no name of an environment variable",
                    ),
                    "value": text("May hold expressions such as secret('aws').key."),
                },
                required=("name", "value"),
            ),
            uniqueBy="name",
        ),
        "planMaxAge": formed("duration"),
        "sensitiveOutputs": items(text(empty=False)),
        "masks": items(text(empty=False), most=100),
        "stateInGit": boolean("Allow Terraform state in the repository."),
        "recordFile": text(
            "A one-line file for promotions that prepare nothing.",
            pattern=r"^(?!(.*/)?\.{1,2}(/|$))(?!(.*/)?\.[gG][iI][tT](hub/workflows)?(/|$))([^/\x00-\x1f\\]+(/[^/\x00-\x1f\\]+)*)?$",
            errorMessage="is no path of a file in the repository; write it like deploy/promotion.txt",
        ),
        "argocd": mapping(
            {"server": text(empty=False), "settle": formed("duration"), "timeout": formed("duration")}
        ),
        "drift": mapping(
            {
                "schedule": text(
                    "A cron expression; empty means never.",
                    pattern=r"^([0-9A-Za-z*,/?#-]+( +[0-9A-Za-z*,/?#-]+){4})?$",
                    errorMessage='is no cron expression; write five fields, like "0 6 * * 1-5"',
                ),
                "correct": items(
                    text("Addresses of resources: exact, glob: or regex:.", empty=False), most=100
                ),
            }
        ),
    }
)


def build_review_policy(metadata: Metadata, spec: dict[str, Json]) -> ReviewPolicy:
    """The policy that a checked `spec` describes; what it leaves out has the defaults."""
    base = ReviewPolicy()
    merge = spec.get("autoMerge", False)
    rollback, argocd, drift = (mapping_at(spec, key) for key in ("rollback", "argocd", "drift"))
    return ReviewPolicy(
        metadata=metadata,
        selector=build_selector(mapping_at(spec, "stageSelector")),
        review=text_at(spec, "review", base.review),
        apply=text_at(spec, "apply", base.apply),
        approvals=_approvals(mapping_at(spec, "approvals")),
        auto_merge=merge is True or isinstance(merge, dict),
        auto_merge_allow=texts_at(merge, "allow") if isinstance(merge, dict) else (),
        supersede=text_at(spec, "supersede", base.supersede),
        commands={**DEFAULT_COMMANDS, **{key: str(who) for key, who in mapping_at(spec, "commands").items()}},
        rollback_count=int_at(rollback, "count", base.rollback_count),
        rollback_infra=text_at(rollback, "infra", base.rollback_infra),
        review_in=text_at(spec, "reviewIn"),
        unchanged_inputs=text_at(spec, "unchangedInputs", base.unchanged_inputs),
        show_other_repositories=bool_at(spec, "showOtherRepositories"),
        effects_before_review=bool_at(spec, "effectsBeforeReview"),
        write_back=text_at(spec, "writeBack", base.write_back),
        plan_env=variables_at(spec, "planEnv"),
        plan_max_age=seconds_at(spec, "planMaxAge", base.plan_max_age),
        sensitive_outputs=texts_at(spec, "sensitiveOutputs"),
        masks=texts_at(spec, "masks"),
        state_in_git=bool_at(spec, "stateInGit"),
        record_file=text_at(spec, "recordFile"),
        argocd_server=text_at(argocd, "server", base.argocd_server),
        argocd_settle=seconds_at(argocd, "settle", base.argocd_settle),
        argocd_timeout=seconds_at(argocd, "timeout", base.argocd_timeout),
        drift_schedule=text_at(drift, "schedule"),
        drift_correct=texts_at(drift, "correct"),
    )


def _approvals(given: dict[str, Json]) -> Approvals:
    base = Approvals()
    destroy = mapping_at(given, "onDestroy")
    return Approvals(
        count=int_at(given, "count", base.count),
        from_=texts_at(given, "from"),
        requester=bool_at(given, "requester"),
        on_destroy=ApprovalRule(
            count=int_at(destroy, "count", base.on_destroy.count), from_=texts_at(destroy, "from")
        ),
    )
