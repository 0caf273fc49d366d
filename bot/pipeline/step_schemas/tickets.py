"""Steps of Kargo Enterprise for Jira, ServiceNow and JFrog: known by name and by their outer keys."""

from __future__ import annotations

from collections.abc import Mapping

from bot.pipeline.schema import JsonSchema, choice, free_mapping, mapping, text
from bot.pipeline.step_schemas.parts import DURATION, one_key

_CREDENTIALS = mapping(
    {
        "secretName": text("A Secret of the project.", empty=False),
        "sharedSecretName": text("A shared Secret.", empty=False),
        "type": choice("api-token", "basic"),
    },
    rule=one_key(("secretName", "sharedSecretName"), "give exactly one of secretName and sharedSecretName"),
)
_JIRA_ACTIONS = (
    "createIssue",
    "updateIssue",
    "deleteIssue",
    "searchIssue",
    "commentOnIssue",
    "deleteComment",
    "waitForStatus",
)
_RECORD = {
    "credentials": _CREDENTIALS,
    "tableName": text("The table.", empty=False),
    "ticketId": text("The record's id.", empty=False),
    "parameters": free_mapping(),
    "template": mapping({"type": text(), "templateId": text()}),
    "condition": text("What to wait for.", empty=False),
    "pollInterval": DURATION,
}

TICKETS: Mapping[str, JsonSchema] = {
    "jira": mapping(
        {"credentials": _CREDENTIALS, **{action: free_mapping() for action in _JIRA_ACTIONS}},
        required=("credentials",),
        rule=one_key(_JIRA_ACTIONS, "give exactly one action"),
    ),
    "snow-create": mapping(_RECORD, required=("credentials",)),
    "snow-update": mapping(_RECORD, required=("credentials", "ticketId")),
    "snow-delete": mapping(_RECORD, required=("credentials", "ticketId")),
    "snow-query-for-records": mapping(_RECORD, required=("credentials",)),
    "snow-wait-for-condition": mapping(_RECORD, required=("credentials", "condition")),
    "jfrog-evidence": mapping(
        {action: free_mapping() for action in ("create", "delete", "process")},
        rule=one_key(("create", "delete", "process"), "give exactly one action"),
    ),
}
