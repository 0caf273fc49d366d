"""The schemas of Kargo's kinds, as its resource definitions have them.

Unknown keys are warned about, since Kargo drops them. What Kargo admits although it cannot work (a source without
a Stage, a receiver without a Secret) is left to the checks between resources, which name whom it concerns.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.receiving import SECRET_KEYS
from bot.pipeline.field_patterns import formed
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

NAME = formed("name", minLength=1, maxLength=253)
DURATION = formed("duration")
LABELS = free_mapping(text())

VARIABLES = items(
    mapping(
        {
            "name": formed("var_name", "The variable's name."),
            "value": text("Its value; may hold expressions."),
        },
        required=("name",),
    ),
    description="Variables for expressions; later ones may use earlier ones.",
)

SELECTOR = mapping(
    {
        "name": text("A name, or a pattern after glob:, regex: or regexp:."),
        "matchLabels": LABELS,
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
    }
)
"""Kargo's stageSelector: all parts that are given must hold."""

_STEP = {
    "uses": text("The step kind.", empty=False),
    "as": text("A name for the step, to refer to its outputs by."),
    "if": text("An expression; the step is skipped unless it is true."),
    "continueOnError": boolean("Whether the promotion goes on when the step fails."),
    "retry": mapping(
        {
            "timeout": formed("duration", "How long the step may take."),
            "errorThreshold": integer(
                "How many errors in a row end the step.", minimum=0, maximum=4294967295
            ),
        }
    ),
    "vars": VARIABLES,
    "config": anything("What the step kind takes; may hold expressions."),
}
_TASK = mapping(
    {
        "name": formed("name", "The task's name.", minLength=1, maxLength=253),
        "kind": choice("PromotionTask", "ClusterPromotionTask"),
    },
    required=("name",),
)
STAGE_STEPS = items(
    mapping(
        {**_STEP, "task": _TASK},
        rule={
            "oneOf": [{"required": ["uses"]}, {"required": ["task"]}],
            "errorMessage": "give exactly one of uses and task",
        },
    ),
    least=1,
    most=500,
    description="The steps of a promotion, in order.",
)
TASK_STEPS = items(
    # A task within a task is refused by a rule, in words that help; the key is here to be let through to it.
    mapping({**_STEP, "task": anything()}, required=("uses",)),
    least=1,
    most=500,
    description="The task's steps, in order.",
)

_SOURCES = mapping(
    {
        "direct": boolean("Take Freight straight from the Warehouse."),
        "stages": items(text(), description="Take Freight that was verified in these Stages."),
        "requiredSoakTime": formed("duration", "How long Freight must have been in the upstream Stage."),
        "availabilityStrategy": choice(
            "OneOf", "All", "", description="Whether one upstream Stage is enough."
        ),
        "autoPromotionOptions": mapping({"selectionPolicy": choice("NewestFreight", "MatchUpstream")}),
    }
)
STAGE = mapping(
    {
        "shard": text(),
        "vars": VARIABLES,
        "requestedFreight": items(
            mapping(
                {
                    "origin": mapping(
                        {"kind": choice("Warehouse"), "name": text("The Warehouse.")},
                        required=("kind", "name"),
                    ),
                    "sources": _SOURCES,
                },
                required=("origin", "sources"),
            ),
            least=1,
            description="What Freight the Stage may have, and from where.",
        ),
        "promotionTemplate": mapping(
            {"spec": mapping({"vars": VARIABLES, "steps": STAGE_STEPS})}, required=("spec",)
        ),
        "verification": mapping(
            {
                "analysisTemplates": items(
                    mapping(
                        {
                            "name": text("The template's name."),
                            "kind": choice("AnalysisTemplate", "ClusterAnalysisTemplate"),
                        },
                        required=("name",),
                    )
                ),
                "analysisRunMetadata": mapping({"labels": LABELS, "annotations": LABELS}),
                "args": items(
                    mapping(
                        {"name": text("The argument's name."), "value": text()}, required=("name", "value")
                    )
                ),
            }
        ),
        "targets": mapping({"selectors": items(free_mapping())}, strict=False),
    },
    required=("requestedFreight",),
)
PROMOTION_TASK = mapping({"vars": VARIABLES, "steps": TASK_STEPS}, required=("steps",))

# -- Warehouse -------------------------------------------------------------------------------------------------

_LIMIT = integer("How many artifacts to look at; 20 by default.", minimum=0, maximum=100)
_INSECURE = boolean("Accept any certificate of the server.")
_TAG_FILTERS = {
    "allowTagsRegexes": items(text(), most=100, description="Tags must match one of these."),
    "ignoreTagsRegexes": items(text(), most=100, description="Tags that match one of these are passed over."),
}
IMAGE = mapping(
    {
        "repoURL": formed("image_url", "The image repository.", minLength=1),
        "imageSelectionStrategy": choice("SemVer", "Lexical", "Digest", "NewestBuild", ""),
        "constraint": text("A version constraint; for Digest the tag to follow."),
        "strictSemvers": boolean("Take only tags of the form MAJOR.MINOR.PATCH."),
        **_TAG_FILTERS,
        "platform": text("os/arch or os/arch/variant."),
        "discoveryLimit": _LIMIT,
        "cacheByTag": boolean("Trust that a tag never moves."),
        "insecureSkipTLSVerify": _INSECURE,
    },
    required=("repoURL",),
)
GIT = mapping(
    {
        "repoURL": formed("git_url", "The repository.", minLength=1),
        "commitSelectionStrategy": choice("NewestFromBranch", "SemVer", "Lexical", "NewestTag", ""),
        "branch": formed("branch", "The branch; the default branch if absent.", maxLength=255),
        "semverConstraint": text("A version constraint on tags."),
        "strictSemvers": boolean("Take only tags of the form MAJOR.MINOR.PATCH."),
        **_TAG_FILTERS,
        "expressionFilter": text("An expression that commits or tags must satisfy."),
        "includePaths": items(text(), most=100, description="Only commits that change one of these."),
        "excludePaths": items(text(), most=100, description="No commits that change only these."),
        "discoveryLimit": _LIMIT,
        "since": text("No commits from before this time."),
        "blobless": boolean("Fetch file contents only when they are needed."),
        "insecureSkipTLSVerify": _INSECURE,
    },
    required=("repoURL",),
)
CHART = mapping(
    {
        "repoURL": formed("chart_url", "The chart repository.", minLength=1),
        "name": text("The chart, in an http(s) repository."),
        "semverConstraint": text("A version constraint."),
        "discoveryLimit": _LIMIT,
        "insecureSkipTLSVerify": _INSECURE,
    },
    required=("repoURL",),
)
GENERIC = mapping({"config": free_mapping(), "discoveryLimit": _LIMIT})
SUBSCRIPTION: JsonSchema = {
    "type": "object",
    "properties": {
        "name": formed("label", "A name, unique in the Warehouse.", maxLength=253),
        "image": IMAGE,
        "git": GIT,
        "chart": CHART,
    },
    "additionalProperties": GENERIC,
}
WAREHOUSE = mapping(
    {
        "shard": text(),
        "interval": formed("duration", "How often to look for artifacts; 5m0s by default."),
        "freightCreationPolicy": choice("Automatic", "Manual"),
        "freightCreationCriteria": mapping({"expression": text("When artifacts make Freight.")}),
        "subscriptions": items(SUBSCRIPTION, least=1, most=100, description="What Freight is made of."),
    },
    required=("subscriptions",),
)

# -- Project and cluster configuration ---------------------------------------------------------------------------

_SECRET = mapping({"name": text("The Secret's name.")})
RECEIVER_VENDORS = tuple(sorted(SECRET_KEYS))
"""Kargo's kinds of receivers, and `ci`, `distribution`, `ecr`, `gar` and `nexus`, which are ours."""
_OIDC = mapping(
    {
        "issuer": text("Who signs the tokens; default: GitHub Actions."),
        "audience": text("What a token must be made for.", empty=False),
        "claims": free_mapping(text("The claim's value, or glob:, regex: and a pattern.", empty=False)),
    },
    required=("audience", "claims"),
)
_VENDORS: Mapping[str, JsonSchema] = {
    **{vendor: mapping({"secretRef": _SECRET}, required=("secretRef",)) for vendor in RECEIVER_VENDORS},
    "artifactory": mapping({"secretRef": _SECRET, "virtualRepoName": text()}, required=("secretRef",)),
    "ci": mapping({"secretRef": _SECRET, "oidc": _OIDC}),
    "distribution": mapping(
        {"secretRef": _SECRET, "registry": text("Its host for clients, if not the one that it sees itself.")},
        required=("secretRef",),
    ),
    "gar": mapping(
        {
            "secretRef": _SECRET,
            "audience": text("The audience of the push subscription's tokens.", empty=False),
            "serviceAccount": text("The e-mail address of its service account.", empty=False),
        },
        required=("audience", "serviceAccount"),
    ),
    "nexus": mapping(
        {
            "secretRef": _SECRET,
            "registry": text("Host, and path if any, that images are pulled from.", empty=False),
        },
        required=("secretRef", "registry"),
    ),
    "generic": mapping(
        {
            "secretRef": _SECRET,
            "actions": items(
                mapping(
                    {
                        "action": choice("Refresh"),
                        "whenExpression": text(),
                        "parameters": free_mapping(text()),
                        "targetSelectionCriteria": items(
                            mapping(
                                {
                                    "kind": choice("Warehouse", "Promotion"),
                                    "name": text(),
                                    "labelSelector": free_mapping(),
                                    "indexSelector": free_mapping(),
                                },
                                required=("kind",),
                            ),
                            least=1,
                        ),
                    },
                    required=("action", "targetSelectionCriteria"),
                )
            ),
        },
        required=("secretRef",),
    ),
}
RECEIVERS = items(
    mapping({"name": NAME, **_VENDORS}, required=("name",)),
    description="Who may send events.",
    uniqueBy="name",
)
LINKS = items(
    mapping(
        {
            "title": text("What the link is called.", empty=False),
            "url": text("Where it leads: a Go template over `freight` or `stage`.", empty=False),
            "description": text(),
            "if": text("An expression over `freight` or `stage`; the link is shown if it is true."),
        },
        required=("title", "url"),
    )
)
_WINDOW = {
    "name": NAME,
    "stageSelector": SELECTOR,
    "kind": choice("Allow", "Deny"),
    "rrule": text("An RFC 5545 recurrence rule."),
    "dtstart": text("The start, such as TZID=Europe/Berlin:20260101T090000."),
    "dtend": text("The end, in the same form."),
}
POLICIES = items(
    mapping(
        {
            "stage": formed("name"),
            "stageSelector": SELECTOR,
            "autoPromotionEnabled": boolean("Whether the Stage promotes by itself."),
            "autoRollback": mapping(
                {
                    "onPromotion": items(choice("Failed", "Errored")),
                    "onVerification": items(choice("Failed", "Error")),
                }
            ),
        },
        rule={
            "oneOf": [{"required": ["stage"]}, {"required": ["stageSelector"]}],
            "errorMessage": "give exactly one of stageSelector and (deprecated) stage",
        },
    ),
    most=500,
    description="The first policy that selects a Stage counts.",
)
PROJECT_CONFIG = mapping(
    {
        "promotionPolicies": POLICIES,
        "webhookReceivers": RECEIVERS,
        "promotionWindows": items(mapping(_WINDOW, required=("name", "kind")), most=200, uniqueBy="name"),
        "freightLinks": LINKS,
        "stageLinks": LINKS,
    }
)
CLUSTER_CONFIG = mapping(
    {
        "webhookReceivers": RECEIVERS,
        "promotionWindows": items(
            mapping({**_WINDOW, "projectSelector": SELECTOR}, required=("name", "kind")),
            most=200,
            uniqueBy="name",
        ),
        "freightLinks": LINKS,
        "stageLinks": LINKS,
        "gitClient": mapping(
            {
                "name": text(
                    "The name in commits.", pattern=r"^[^<>\x00-\x1f]*[^<>\x00-\x1f\s][^<>\x00-\x1f]*$"
                ),
                "email": text("The e-mail address in commits.", pattern=r"^[^<>\s\x00-\x1f]+$"),
                "signingKeySecret": mapping({"name": text()}, strict=False),
            }
        ),
    }
)
PROJECT = mapping({"promotionPolicies": POLICIES})
DOCUMENT: JsonSchema = free_mapping()
