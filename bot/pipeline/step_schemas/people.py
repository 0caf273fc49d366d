"""Steps of Kargo Enterprise in which people take part."""

from __future__ import annotations

from collections.abc import Mapping

from bot.pipeline.schema import JsonSchema, boolean, choice, free_mapping, integer, items, mapping, text
from bot.pipeline.step_schemas.parts import DURATION

_APPROVER = mapping(
    {
        "claim": text("A claim of the person's identity.", empty=False),
        "value": text("What the claim must say.", empty=False),
        "role": text("A role that the person must have.", empty=False),
        "required": boolean("Without this approver nothing goes on."),
    },
    rule={
        "oneOf": [
            {"required": ["claim", "value"], "properties": {"role": {"enum": [None]}}},
            {"required": ["role"], "properties": {"claim": {"enum": [None]}, "value": {"enum": [None]}}},
        ],
        "errorMessage": "give either role, or claim and value",
    },
)

PEOPLE: Mapping[str, JsonSchema] = {
    "wait-for-approval": mapping(
        {
            "approvers": items(_APPROVER, least=1),
            "minApprovals": integer("How many people must approve; 1 by default.", minimum=1),
            "pollInterval": DURATION,
        },
    ),
    "get-user-input": mapping(
        {
            "schema": free_mapping(),
            "responders": items(_APPROVER),
            "display": free_mapping(),
            "pollInterval": DURATION,
        },
        required=("schema",),
    ),
    "record-audit-event": mapping(
        {
            "message": text("What happened.", empty=False),
            "type": text("The event's type."),
            "actor": text("Who did it."),
            "data": free_mapping(),
        },
        required=("message",),
    ),
    "send-message": mapping(
        {
            "channel": mapping(
                {
                    "kind": choice("MessageChannel", "ClusterMessageChannel"),
                    "name": text("The channel's name.", empty=False),
                },
                required=("kind", "name"),
            ),
            "message": text("What to say.", empty=False),
            "encodingType": text("How the message is encoded."),
            "slack": mapping({"channelID": text(), "threadTS": text()}),
            "smtp": mapping({"to": items(text(empty=False)), "subject": text(), "html": boolean()}),
        },
        required=("channel", "message"),
    ),
}
