"""Steps that copy, write, pack, edit and read files, and those that touch nothing outside."""

from __future__ import annotations

from collections.abc import Mapping

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
from bot.pipeline.step_schemas.parts import OUTPUTS, one_key, path, texts

_IGNORE = text("Files to leave out, in the syntax of .gitignore.", empty=False)


def _update(kind: str) -> JsonSchema:
    return mapping(
        {
            "path": path(f"The {kind} file."),
            "updates": items(
                mapping(
                    {
                        "key": text("The key, dotted.", empty=False),
                        "value": anything("Its new value."),
                    },
                    required=("key", "value"),
                ),
                least=1,
                description="What to change.",
            ),
        },
        required=("path", "updates"),
    )


def _parse(kind: str) -> JsonSchema:
    return mapping(
        {"path": path(f"The {kind} file."), "outputs": {**OUTPUTS, "minItems": 1}},
        required=("path", "outputs"),
    )


FILES: Mapping[str, JsonSchema] = {
    "copy": mapping(
        {"inPath": path("What to copy."), "outPath": path("Where to."), "ignore": _IGNORE},
        required=("inPath", "outPath"),
    ),
    "delete": mapping(
        {
            "path": path("What to delete."),
            "paths": texts("What to delete.", least=1),
            "pathsAreGlobs": boolean("Read the paths as globs."),
            "strict": boolean("Fail if something does not exist."),
        },
        rule=one_key(("path", "paths"), "give exactly one of path and paths"),
    ),
    "file-write": mapping(
        {
            "path": path("The file to write."),
            "contents": text("What it shall hold."),
            "permissions": text(
                "The file mode, 0600 by default.",
                pattern="^0[0-7]{3}$",
                errorMessage='is no file mode; write it like "0644"',
            ),
            "overwrite": boolean("Replace a file that exists."),
        },
        required=("path", "contents"),
    ),
    "tar": mapping(
        {
            "inPath": path("What to pack."),
            "outPath": path("The archive."),
            "gzip": boolean("Compress the archive."),
            "ignore": _IGNORE,
        },
        required=("inPath", "outPath"),
    ),
    "untar": mapping(
        {
            "inPath": path("The archive."),
            "outPath": path("The directory to unpack into."),
            "stripComponents": integer("How many leading directories to drop.", minimum=0),
            "ignore": _IGNORE,
        },
        required=("inPath", "outPath"),
    ),
    "yaml-update": _update("YAML"),
    "json-update": _update("JSON"),
    "toml-update": _update("TOML"),
    "yaml-parse": _parse("YAML"),
    "json-parse": _parse("JSON"),
    "toml-parse": _parse("TOML"),
    "yaml-merge": mapping(
        {
            "inFiles": items(text(), least=1, description="Files to merge, later ones winning."),
            "outFile": path("The file to write."),
            "ignoreMissingFiles": boolean("Pass over files that do not exist."),
        },
        required=("inFiles", "outFile"),
    ),
    "compose-output": free_mapping(minProperties=1),
    "fail": mapping({"message": text("Why the promotion fails.")}),
    "set-metadata": mapping(
        {
            "updates": items(
                mapping(
                    {
                        "kind": choice("Stage", "Freight"),
                        "name": text("Whose metadata.", empty=False),
                        "values": free_mapping(minProperties=1),
                    },
                    required=("kind", "name", "values"),
                ),
                least=1,
            )
        },
        required=("updates",),
    ),
    "set-freight-alias": mapping(
        {"name": text("The Freight's name.", empty=False), "alias": text("Its new alias.", empty=False)},
        required=("name", "alias"),
    ),
}
