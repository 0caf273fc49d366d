"""Steps for Terraform and OpenTofu, as Kargo Enterprise documents them."""

from __future__ import annotations

from collections.abc import Mapping

from bot.pipeline.schema import JsonSchema, boolean, items, mapping, text
from bot.pipeline.step_schemas.parts import SCALAR, path

_VARIABLES = items(
    mapping(
        {
            "file": text("A file with values, relative to `dir`.", empty=False),
            "name": text("The variable's name.", empty=False),
            "value": SCALAR,
        },
        rule={
            "oneOf": [
                {"required": ["file"], "properties": {"name": {"enum": [None]}, "value": {"enum": [None]}}},
                {"required": ["name", "value"], "properties": {"file": {"enum": [None]}}},
            ],
            "errorMessage": "give either file, or name and value",
        },
    ),
    description="Input variables.",
)
_ENVIRONMENT = items(
    mapping(
        {
            "name": text(
                "The environment variable.",
                pattern="^[a-zA-Z_][a-zA-Z0-9_]*$",
                errorMessage="is no name of an environment variable",
            ),
            "value": SCALAR,
        },
        required=("name", "value"),
    ),
    description="Environment of the run, such as credentials.",
    uniqueBy="name",
)
_DIRECTORY = path("The root module's directory.")

TERRAFORM: Mapping[str, JsonSchema] = {
    "hcl-update": mapping(
        {
            "path": path("The HCL file."),
            "updates": items(
                mapping(
                    {
                        "key": text("An attribute, or block path and attribute, dotted.", empty=False),
                        "value": SCALAR,
                    },
                    required=("key", "value"),
                ),
                least=1,
            ),
        },
        required=("path", "updates"),
    ),
    "tf-plan": mapping(
        {
            "dir": _DIRECTORY,
            "out": text("A file for the plan, relative to `dir`.", empty=False),
            "vars": _VARIABLES,
            "env": _ENVIRONMENT,
        },
        required=("dir",),
    ),
    "tf-apply": mapping(
        {
            "dir": _DIRECTORY,
            "plan": text("A saved plan, relative to `dir`.", empty=False),
            "vars": _VARIABLES,
            "env": _ENVIRONMENT,
        },
        required=("dir",),
    ),
    "tf-output": mapping(
        {
            "dir": _DIRECTORY,
            "name": text("One output; all of them by default.", empty=False),
            "out": text("A file to write them to.", empty=False),
            "state": text("A state file, relative to `dir`.", empty=False),
            "sensitive": boolean("Include sensitive outputs."),
            "vars": _VARIABLES,
            "env": _ENVIRONMENT,
        },
        required=("dir",),
    ),
}
