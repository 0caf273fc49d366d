"""Steps of Kargo Enterprise for GitHub issues and workflows."""

from __future__ import annotations

from collections.abc import Mapping

from bot.pipeline.schema import JsonSchema, choice, free_mapping, integer, mapping, text
from bot.pipeline.step_schemas.parts import DURATION, INSECURE, one_key, texts

_REPOSITORY = text("The repository's URL.", empty=False)
_ISSUE = integer("The number of the issue or pull request.", minimum=1)
_COMMENT = integer("The comment's id.", minimum=1)
_CREDENTIALS = mapping(
    {"secretName": text("Not used: the App signs by itself.", empty=False)}, required=("secretName",)
)


def _issue_step(
    properties: Mapping[str, JsonSchema], *required: str, combination: JsonSchema | None = None
) -> JsonSchema:
    return mapping(
        {"repoURL": _REPOSITORY, **properties, "insecureSkipTLSVerify": INSECURE},
        required=("repoURL", *required),
        rule=combination,
    )


GITHUB: Mapping[str, JsonSchema] = {
    "gh-create-issue": _issue_step(
        {
            "title": text("The title.", empty=False),
            "body": text("The body."),
            "labels": texts("Labels."),
            "assignees": texts("Logins."),
            "issueAlias": text("A key to keep the number under, in the Freight's metadata."),
        },
        "title",
    ),
    "gh-update-issue": _issue_step(
        {
            "issueNumber": _ISSUE,
            "title": text("The title."),
            "body": text("The body."),
            "state": choice("open", "closed"),
            "addLabels": texts("Labels to add."),
            "removeLabels": texts("Labels to remove."),
            "assignees": texts("Logins."),
        },
        "issueNumber",
    ),
    "gh-wait-for-issue-state": _issue_step(
        {
            "issueNumber": _ISSUE,
            "successExpression": text("True: go on.", empty=False),
            "failureExpression": text("True: fail."),
            "pollInterval": DURATION,
        },
        "issueNumber",
        "successExpression",
    ),
    "gh-search-issues": _issue_step(
        {"issueNumber": _ISSUE, "query": text("A search as GitHub reads it.", empty=False)},
        combination=one_key(("issueNumber", "query"), "give exactly one of issueNumber and query"),
    ),
    "gh-issue-add-comment": _issue_step(
        {"issueNumber": _ISSUE, "body": text("The comment.", empty=False)}, "issueNumber", "body"
    ),
    "gh-issue-update-comment": _issue_step(
        {"commentID": _COMMENT, "body": text("The comment.", empty=False)}, "commentID", "body"
    ),
    "gh-issue-delete-comment": _issue_step({"commentID": _COMMENT}, "commentID"),
    "gha-dispatch-workflow": mapping(
        {
            "credentials": _CREDENTIALS,
            "repoURL": _REPOSITORY,
            "workflowFile": text("The workflow's file name.", empty=False),
            "ref": text("The branch or tag to run on.", empty=False),
            "inputs": free_mapping(),
            "timeout": integer("Seconds to wait for the run to appear.", minimum=1, maximum=300),
            "insecureSkipTLSVerify": INSECURE,
        },
        required=("repoURL", "workflowFile", "ref"),
    ),
    "gha-wait-for-workflow": mapping(
        {
            "credentials": _CREDENTIALS,
            "repoURL": _REPOSITORY,
            "runID": integer("The run's id.", minimum=1),
            "expectedConclusion": text("How it must end; in any way by default."),
            "pollInterval": DURATION,
            "insecureSkipTLSVerify": INSECURE,
        },
        required=("repoURL", "runID"),
    ),
}
