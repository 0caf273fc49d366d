"""Steps that clone, commit, push and open pull requests."""

from __future__ import annotations

from collections.abc import Mapping

from bot.pipeline.schema import JsonSchema, boolean, integer, items, mapping, text
from bot.pipeline.step_schemas.parts import (
    BLANK,
    DURATION,
    FALSE,
    INSECURE,
    NOT_EMPTY,
    PROVIDER,
    at_most_one,
    path,
    texts,
)

_AUTHOR = mapping(
    {
        "name": text("The author's name.", empty=False),
        "email": text("The author's e-mail address.", format="email"),
        "signingKey": text("A GPG key to sign with."),
    },
    required=("name", "email"),
)
_REPOSITORY = text("The repository's URL.", empty=False)
_REPOSITORY_URI = text("The repository's URL.", empty=False, format="uri")
_NUMBER = integer("The pull request's number.", minimum=1)
_ATTEMPTS = integer("How often a push is tried.", minimum=1, maximum=2147483647)

_CHECKOUT = mapping(
    {
        "path": path("Where the work tree goes."),
        "as": text("The key of this checkout in the output `commits`."),
        "branch": text("A branch to check out."),
        "commit": text("A commit to check out."),
        "tag": text("A tag to check out."),
        "create": boolean("Create the branch, empty, if it does not exist."),
        "sparse": texts("Directories to check out, instead of all.", least=1),
    },
    required=("path",),
    rule=at_most_one(("branch", "commit", "tag"), "give at most one of branch, commit and tag"),
)

_PUSH_TARGET = {
    "path": path("The work tree to push from."),
    "targetBranch": text("The branch to push to."),
    "generateTargetBranch": boolean("Push to a new branch that is named after the promotion."),
    "force": boolean("Overwrite what the branch has."),
    "maxAttempts": _ATTEMPTS,
}

GIT: Mapping[str, JsonSchema] = {
    "git-clone": mapping(
        {
            "repoURL": _REPOSITORY,
            "checkout": items(_CHECKOUT, least=1, description="What to check out, and where.", uniqueBy="as"),
            "author": _AUTHOR,
            "insecureSkipTLSVerify": INSECURE,
            "recurseSubmodules": boolean("Clone submodules too."),
            "blobless": boolean("Fetch file contents only when they are needed."),
        },
        required=("repoURL", "checkout"),
    ),
    "git-clear": mapping({"path": path("The work tree to empty.")}, required=("path",)),
    "git-commit": mapping(
        {
            "path": path("The work tree to commit."),
            "message": text("The commit message.", empty=False),
            "author": _AUTHOR,
        },
        required=("path", "message"),
    ),
    "git-push": mapping(
        {**_PUSH_TARGET, "tag": text("A tag to push instead of a branch."), "provider": PROVIDER},
        required=("path",),
        rule={
            "oneOf": [
                {"properties": {"targetBranch": BLANK, "generateTargetBranch": FALSE, "tag": BLANK}},
                {
                    "required": ["targetBranch"],
                    "properties": {"targetBranch": NOT_EMPTY, "generateTargetBranch": FALSE, "tag": BLANK},
                },
                {
                    "required": ["generateTargetBranch"],
                    "properties": {
                        "targetBranch": BLANK,
                        "generateTargetBranch": {"const": True},
                        "tag": BLANK,
                    },
                },
                {
                    "required": ["tag"],
                    "properties": {
                        "targetBranch": BLANK,
                        "generateTargetBranch": FALSE,
                        "tag": NOT_EMPTY,
                        "force": FALSE,
                    },
                },
            ],
            "errorMessage": "give at most one of targetBranch, generateTargetBranch and tag, and no force with a tag",
        },
    ),
    "github-push": mapping(
        {**_PUSH_TARGET, "insecureSkipTLSVerify": INSECURE},
        required=("path",),
        rule={
            "oneOf": [
                {"properties": {"targetBranch": BLANK, "generateTargetBranch": FALSE}},
                {
                    "required": ["targetBranch"],
                    "properties": {"targetBranch": NOT_EMPTY, "generateTargetBranch": FALSE},
                },
                {
                    "required": ["generateTargetBranch"],
                    "properties": {"targetBranch": BLANK, "generateTargetBranch": {"const": True}},
                },
            ],
            "errorMessage": "give at most one of targetBranch and generateTargetBranch",
        },
    ),
    "git-tag": mapping(
        {
            "path": path("The work tree whose commit is tagged."),
            "tag": text("The tag's name.", empty=False),
            "message": text("The tag's message.", empty=False),
            "force": boolean("Move the tag if it exists."),
        },
        required=("path", "tag", "message"),
    ),
    "git-open-pr": mapping(
        {
            "repoURL": _REPOSITORY_URI,
            "sourceBranch": text("The branch with the changes.", empty=False),
            "targetBranch": text("The branch that they go to.", empty=False),
            "createTargetBranch": boolean("Without effect, as in Kargo."),
            "title": text("The title; by default the commit's subject.", empty=False),
            "description": text("The body; by default the rest of the commit message.", empty=False),
            "labels": texts("Labels to put on it."),
            "provider": PROVIDER,
            "insecureSkipTLSVerify": INSECURE,
        },
        required=("repoURL", "sourceBranch", "targetBranch"),
    ),
    "git-wait-for-pr": mapping(
        {
            "repoURL": _REPOSITORY_URI,
            "prNumber": _NUMBER,
            "provider": PROVIDER,
            "pollInterval": DURATION,
            "insecureSkipTLSVerify": INSECURE,
        },
        required=("repoURL", "prNumber"),
    ),
    "git-merge-pr": mapping(
        {
            "repoURL": _REPOSITORY_URI,
            "prNumber": _NUMBER,
            "wait": boolean("Wait until it can be merged, instead of failing."),
            "pollInterval": DURATION,
            "mergeMethod": text("The server's word for the way to merge.", empty=False),
            "provider": PROVIDER,
            "insecureSkipTLSVerify": INSECURE,
        },
        required=("repoURL", "prNumber"),
    ),
}
