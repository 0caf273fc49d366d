"""Steps that speak HTTP and OCI."""

from __future__ import annotations

from collections.abc import Mapping

from bot.pipeline.schema import JsonSchema, boolean, free_mapping, items, mapping, text
from bot.pipeline.step_schemas.parts import BLANK, DURATION, INSECURE, NOT_EMPTY, OUTPUTS, path

_PAIRS = items(mapping({"name": text(empty=False), "value": text(empty=False)}, required=("name", "value")))
_REFERENCE = r"^(oci://)?[a-zA-Z0-9._-]+(:\d+)?(/[a-zA-Z0-9._-]+)*[@:][a-zA-Z0-9._:-]+$"
_SOURCE = text(
    "An artifact with tag or digest.",
    empty=False,
    pattern=_REFERENCE,
    errorMessage="is no reference with a tag or digest, such as registry/repository:tag",
)

NETWORK: Mapping[str, JsonSchema] = {
    "http": mapping(
        {
            "method": text(
                "GET by default.",
                pattern="^(DELETE|GET|HEAD|PATCH|POST|PUT)$",
                errorMessage="is none of DELETE, GET, HEAD, PATCH, POST and PUT",
            ),
            "url": text("What to ask.", empty=False),
            "headers": _PAIRS,
            "queryParams": _PAIRS,
            "body": text("The request's body."),
            "bodyFromFile": text("A file with the request's body."),
            "insecureSkipTLSVerify": INSECURE,
            "proxy": text(pattern="^https?://.*$", errorMessage="is no http:// or https:// address"),
            "timeout": DURATION,
            "pollInterval": DURATION,
            "responseContentType": text(
                pattern="^(application/json|application/yaml|text/plain)$",
                errorMessage="is none of application/json, application/yaml and text/plain",
            ),
            "outputs": OUTPUTS,
            "successExpression": text("True: the step succeeded."),
            "failureExpression": text("True: the step failed."),
            "errorExpression": text("Gives the message of a failure."),
        },
        required=("url",),
        rule={
            "oneOf": [
                {"properties": {"bodyFromFile": BLANK}},
                {"required": ["bodyFromFile"], "properties": {"body": BLANK, "bodyFromFile": NOT_EMPTY}},
            ],
            "errorMessage": "give at most one of body and bodyFromFile",
        },
    ),
    "http-download": mapping(
        {
            "url": text("What to download.", empty=False),
            "outPath": path("The file to write."),
            "allowOverwrite": boolean("Replace a file that exists."),
            "headers": _PAIRS,
            "queryParams": _PAIRS,
            "insecureSkipTLSVerify": INSECURE,
            "timeout": DURATION,
            "errorExpression": text("Gives the message of a failure."),
        },
        required=("url", "outPath"),
    ),
    "oci-download": mapping(
        {
            "imageRef": _SOURCE,
            "outPath": path("The file to write."),
            "allowOverwrite": boolean("Replace a file that exists."),
            "mediaType": text("The layer to take; the first by default.", empty=False),
            "insecureSkipTLSVerify": INSECURE,
        },
        required=("imageRef", "outPath"),
    ),
    "oci-push": mapping(
        {
            "srcRef": _SOURCE,
            "destRef": text(
                "Where to, with a tag.",
                empty=False,
                pattern=r"^(oci://)?[a-zA-Z0-9._-]+(:\d+)?(/[a-zA-Z0-9._-]+)*:[a-zA-Z0-9._-]+$",
                errorMessage="is no reference with a tag, such as registry/repository:tag",
            ),
            "annotations": free_mapping(text()),
            "insecureSkipTLSVerify": INSECURE,
        },
        required=("srcRef", "destRef"),
    ),
    # Ours: Kargo has no step that waits for a name.
    "dns-wait": mapping(
        {
            "name": text("The name that must resolve.", empty=False),
            "target": text("The canonical name or address that it must resolve to; any if absent."),
            "pollInterval": DURATION,
        },
        required=("name",),
    ),
}
