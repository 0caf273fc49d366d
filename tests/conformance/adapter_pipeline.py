"""Areas 09 (git), 10, 12, 13 and 14: step configurations, admission, field patterns, selection with expressions."""

from __future__ import annotations

from datetime import datetime
from functools import partial
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
from bot.expressions.filters import keeps_commit, keeps_tag
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
    ordered = order_git_tags(subscription, tags, partial(keeps_tag, subscription.expression_filter))
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
    ordered = order_branch_commits(
        subscription, commits, partial(keeps_commit, subscription.expression_filter)
    )
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
