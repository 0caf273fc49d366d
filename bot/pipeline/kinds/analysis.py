"""The shape of Argo Rollouts' AnalysisTemplate and ClusterAnalysisTemplate, as far as it is carried out."""

from __future__ import annotations

from bot.pipeline.schema import (
    JsonSchema,
    anything,
    boolean,
    choice,
    free_mapping,
    integer,
    items,
    mapping,
    text,
)

_HOLDS_ARGUMENT = r"\{\{.*\}\}"
_NUMBER: JsonSchema = {
    "anyOf": [integer(), text(pattern=rf"^\s*-?[0-9]{{1,9}}\s*$|{_HOLDS_ARGUMENT}")],
    "errorMessage": "must be a whole number",
}
_PAIRS = items(
    mapping({"key": text("The header's name.", empty=False), "value": text()}, required=("key", "value"))
)
_SECONDS = integer(minimum=0, maximum=300)

_WEB = mapping(
    {
        "url": text("Where the request goes.", empty=False),
        "method": choice("GET", "POST", "PUT"),
        "headers": _PAIRS,
        "body": text("What is sent with POST and PUT."),
        "jsonBody": anything("What is sent with POST and PUT, as JSON."),
        "jsonPath": text("Where in the answer the value is, such as {$.data.ok}."),
        "timeoutSeconds": _SECONDS,
        "insecure": boolean("Whether any certificate will do."),
        "authentication": free_mapping(),
    },
    required=("url",),
)

_PROMETHEUS = mapping(
    {
        "address": text("The address of the server."),
        "query": text("The query.", empty=False),
        "headers": _PAIRS,
        "timeout": _SECONDS,
        "insecure": boolean("Whether any certificate will do."),
        "authentication": free_mapping(),
        "rangeQuery": free_mapping(),
    },
    required=("query",),
)

_METRIC = mapping(
    {
        "name": text("The metric's name.", empty=False, maxLength=200),
        "interval": text("How long to wait between measurements."),
        "initialDelay": text("How long to wait before the first one."),
        "count": _NUMBER,
        "successCondition": text("An expression over result."),
        "failureCondition": text("An expression over result."),
        "failureLimit": _NUMBER,
        "inconclusiveLimit": _NUMBER,
        "consecutiveErrorLimit": _NUMBER,
        "consecutiveSuccessLimit": _NUMBER,
        "provider": {
            "type": "object",
            "properties": {"web": _WEB, "prometheus": _PROMETHEUS},
            "additionalProperties": True,
            "minProperties": 1,
        },
    },
    required=("name", "provider"),
)

_ARGUMENT = mapping(
    {
        "name": text("The argument's name.", empty=False),
        "value": text("Its value where the Stage gives none."),
        "valueFrom": mapping(
            {
                "secretKeyRef": mapping(
                    {"name": text("The Secret.", empty=False), "key": text("Its key.", empty=False)},
                    required=("name", "key"),
                ),
                "fieldRef": free_mapping(),
            }
        ),
    },
    required=("name",),
)

ANALYSIS_TEMPLATE = mapping(
    {
        "args": items(_ARGUMENT, uniqueBy="name"),
        "metrics": items(_METRIC, least=1, most=50, uniqueBy="name", description="What is measured."),
        "dryRun": items(mapping({"metricName": text(empty=False)}, required=("metricName",))),
        "measurementRetention": items(
            mapping(
                {"metricName": text(empty=False), "limit": integer(minimum=1, maximum=200)},
                required=("metricName", "limit"),
            )
        ),
        "templates": items(free_mapping()),
    },
    required=("metrics",),
)
"""The `spec` of a template; a key that is not in it is told as a warning."""
