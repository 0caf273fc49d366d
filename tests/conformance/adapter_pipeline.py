"""Areas 09 (git), 10, 12, 13 and 14: step configurations, admission, field patterns, selection with expressions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import yaml

from bot.domain import promotion_rules
from bot.domain.model import Retry
from bot.domain.problems import Severity
from bot.domain.promotion import StepStatus
from bot.domain.selection import (
    BranchCommit,
    GitTag,
    keep_by_paths,
    order_branch_commits,
    order_git_tags,
)
from bot.expressions.functions import TEMPLATE_FUNCTIONS, UTILITY_FUNCTIONS
from bot.expressions.gotime import make_moment
from bot.expressions.templates import Scope, evaluate_criteria
from bot.pipeline import STEP_SCHEMAS, load_pipeline
from bot.pipeline.access import parse_duration
from bot.pipeline.field_patterns import is_valid_field
from bot.pipeline.schema import check
from tests.conformance.adapter_selection import build_git, parse_time

Case = dict[str, Any]


def step_config(case: Case) -> Case:
    findings = check(case["config"], STEP_SCHEMAS[case["step"]])
    return {
        "valid": not findings,
        "fields": [".".join(map(str, finding.path)) or "(root)" for finding in findings],
    }


def admission(case: Case) -> Case:
    document = {
        "apiVersion": "kargo.akuity.io/v1alpha1",
        "kind": case["kind"],
        "metadata": {"name": "proj", "namespace": "proj"},
        "spec": case["spec"],
    }
    loaded = load_pipeline({"case.yaml": yaml.safe_dump(document)}, revision="", step_schemas=STEP_SCHEMAS)
    # What admission refuses stops the configuration; what only a run would trip over names its Stage.
    refused = [item for item in loaded.problems if item.severity is Severity.ERROR and not item.stage]
    return {"valid": not refused, "fields": [item.key for item in refused]}


def field_patterns(case: Case) -> bool:
    return is_valid_field(case["field"], case["value"])


def _filter(source: str, names: Callable[[Any], Case]) -> Callable[[Any], bool] | None:
    if not source:
        return None

    def keeps(item: Any) -> bool:
        scope = Scope(names(item), {**TEMPLATE_FUNCTIONS, **UTILITY_FUNCTIONS})
        answer = evaluate_criteria(source, scope)
        assert isinstance(answer, bool)
        return answer

    return keeps


def git_tag_selection(case: Case) -> list[str]:
    subscription = build_git(case["subscription"])
    tags = [
        GitTag(
            tag=item["tag"],
            id=item["id"],
            created_at=_moment(item, "creatorDate"),
            author=item.get("author", ""),
            committer=item.get("committer", ""),
            subject=item.get("subject", ""),
            tagger=item.get("tagger", ""),
            annotation=item.get("annotation", ""),
        )
        for item in case["tags"]
    ]
    paths = {item["tag"]: item["paths"] for item in case["tags"]}
    keeps = _filter(
        subscription.expression_filter,
        lambda tag: {
            "tag": tag.tag,
            "id": tag.id,
            "creatorDate": tag.created_at and make_moment(tag.created_at),
            "author": tag.author,
            "committer": tag.committer,
            "subject": tag.subject,
            "tagger": tag.tagger,
            "annotation": tag.annotation,
        },
    )
    ordered = order_git_tags(subscription, tags, keeps)
    return [tag.tag for tag in keep_by_paths(subscription, ordered, lambda tag: paths[tag.tag])]


def git_branch_selection(case: Case) -> list[str]:
    subscription = build_git(case["subscription"])
    commits = [
        BranchCommit(
            id=item["id"],
            committed_at=_moment(item, "commitDate"),
            author=item.get("author", ""),
            committer=item.get("committer", ""),
            subject=item.get("subject", ""),
        )
        for item in case["commits"]
    ]
    paths = {item["id"]: item["paths"] for item in case["commits"]}
    keeps = _filter(
        subscription.expression_filter,
        lambda commit: {
            "id": commit.id,
            "commitDate": commit.committed_at and make_moment(commit.committed_at),
            "author": commit.author,
            "committer": commit.committer,
            "subject": commit.subject,
        },
    )
    ordered = order_branch_commits(subscription, commits, keeps)
    return [commit.id for commit in keep_by_paths(subscription, ordered, lambda commit: paths[commit.id])]


def _moment(item: Case, key: str) -> datetime | None:
    return parse_time(item[key]) if item.get(key) else None


# -- 10 steps -------------------------------------------------------------------------------------------------


def final_phase(case: Case) -> str:
    steps = [(step["as"], step.get("continueOnError", False)) for step in case["steps"]]
    # A status that does not exist can only come of an error of ours.
    known = {status.value: status for status in StepStatus}
    statuses = {item["alias"]: known.get(item["status"], StepStatus.ERRORED) for item in case["results"]}
    return promotion_rules.final_phase(steps, statuses)


def retry_defaults(case: Case) -> Case:
    given = case["retry"] or {}
    retry = Retry(
        parse_duration(given["timeout"]) if "timeout" in given else None, given.get("errorThreshold")
    )
    return {
        "timeout_seconds": promotion_rules.retry_timeout(retry, parse_duration(case["default_timeout"])),
        "error_threshold": promotion_rules.error_threshold(retry, case["default_threshold"]),
    }
