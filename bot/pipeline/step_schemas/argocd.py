"""Steps that sync and watch Argo CD Applications."""

from __future__ import annotations

from collections.abc import Mapping

from bot.pipeline.schema import JsonSchema, boolean, choice, free_mapping, items, mapping, text
from bot.pipeline.step_schemas.parts import BLANK, FALSE, NOT_EMPTY, at_most_one

_SELECTOR = mapping(
    {
        "matchLabels": free_mapping(text()),
        "matchExpressions": items(
            mapping(
                {
                    "key": text("The label.", empty=False),
                    "operator": choice("In", "NotIn", "Exists", "DoesNotExist"),
                    "values": items(text()),
                },
                required=("key", "operator"),
            )
        ),
    },
    rule={
        "anyOf": [
            {"required": ["matchLabels"], "properties": {"matchLabels": {"minProperties": 1}}},
            {"required": ["matchExpressions"], "properties": {"matchExpressions": {"minItems": 1}}},
        ],
        "errorMessage": "give at least one label or expression to select by",
    },
)
_SELECTION = {
    "name": text("The Application's name.", empty=False),
    "namespace": text("Its namespace.", empty=False),
    "selector": _SELECTOR,
}
_BY_NAME: JsonSchema = {
    "required": ["name"],
    "properties": {"name": NOT_EMPTY, "selector": {"enum": [None]}},
}
_BY_SELECTOR: JsonSchema = {"required": ["selector"], "properties": {"name": BLANK}}
_WHICH = "give exactly one of name and selector"

_SOURCE = mapping(
    {
        "repoURL": text("The repository of the Application's source to update.", empty=False),
        "chart": text("The chart of that source.", empty=False),
        "desiredRevision": text("The revision that it shall be synced to.", empty=False),
        "updateTargetRevision": boolean("Write the revision into the source's targetRevision."),
        "kustomize": mapping(
            {
                "images": items(
                    mapping(
                        {
                            "repoURL": text("The image.", empty=False),
                            "newName": text("A name to replace it with.", empty=False),
                            "tag": text("The tag to set."),
                            "digest": text("The digest to set."),
                        },
                        required=("repoURL",),
                        rule=at_most_one(("tag", "digest"), "give at most one of tag and digest"),
                    ),
                    least=1,
                )
            }
        ),
        "helm": mapping(
            {
                "images": items(
                    mapping(
                        {"key": text("The Helm parameter.", empty=False), "value": text("Its value.")},
                        required=("key", "value"),
                    ),
                    least=1,
                )
            },
            required=("images",),
        ),
    },
    required=("repoURL",),
    rule={
        "oneOf": [
            {"properties": {"desiredRevision": BLANK, "updateTargetRevision": FALSE}},
            {"required": ["desiredRevision"], "properties": {"desiredRevision": NOT_EMPTY}},
        ],
        "errorMessage": "updateTargetRevision needs desiredRevision",
    },
)

ARGOCD: Mapping[str, JsonSchema] = {
    "argocd-update": mapping(
        {
            "apps": items(
                mapping(
                    {**_SELECTION, "sources": items(_SOURCE, least=1)},
                    rule={"oneOf": [_BY_NAME, _BY_SELECTOR], "errorMessage": _WHICH},
                ),
                least=1,
            )
        },
        required=("apps",),
    ),
    "argocd-wait": mapping(
        {
            "apps": items(
                mapping(
                    {
                        **_SELECTION,
                        "waitFor": items(
                            choice("health", "sync", "operation", "suspended", "degraded"),
                            least=1,
                            uniqueItems=True,
                        ),
                    },
                    rule={"oneOf": [_BY_NAME, _BY_SELECTOR], "errorMessage": _WHICH},
                ),
                least=1,
            )
        },
        required=("apps",),
    ),
}
