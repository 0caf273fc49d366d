"""What the actions of a generic receiver choose."""

from __future__ import annotations

import json
import re

import pytest

from bot.domain.model import LabelRequirement
from bot.domain.receiving import ActionFailed, Notice, TargetsChosen
from bot.domain.values import Json
from bot.payloads.generic import write_envelope
from bot.payloads.receivers import read_notices


def act(action: dict[str, Json], **body: Json) -> tuple[Notice, ...]:
    """What one action chooses from a request with headers, a query and this body."""
    headers = [("X-Event-Type", "published"), ("Authorization", "Bearer x"), ("Accept", "a"), ("accept", "b")]
    envelope = write_envelope("POST", "/generic/any?env=prod&env=dev", headers, json.dumps(body).encode())
    chosen: Json = [{"kind": "Warehouse", "name": "apps"}]
    given: dict[str, Json] = {"action": "Refresh", "targetSelectionCriteria": chosen, **action}
    return read_notices("generic", "", envelope, {"actions": [given]})


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("", True),
        ("request.header('x-event-type') == 'published'", True),
        ("${{ request.header('X-Event-Type') == 'published' }}", True),
        ("request.header('X-Event-Type') == 'deleted'", False),
        ("request.header('X-Missing') == ''", True),
        ("request.headers('Accept') == ['a', 'b']", True),
        ("request.header('Authorization') == ''", True),
        ("request.method == 'POST' && request.params('env') == 'prod' && request.params('x') == ''", True),
        ("request.body.count > 2 && request.body.team in ['pay', 'shop']", True),
        ("request.body.missing?.deeper == nil", True),
        ("normalizeGit(request.body.repo) == 'https://git.acme.example/pay/ops'", True),
    ],
)
def test_a_condition_sees_the_request(condition: str, *, holds: bool) -> None:
    found = act(
        {"whenExpression": condition}, count=3, team="pay", repo="https://Git.Acme.example/pay/ops.git"
    )
    assert bool(found) is holds


def test_a_condition_sees_the_parameters_and_a_request_may_have_no_body() -> None:
    target: Json = [{"kind": "Warehouse", "name": "apps"}]
    action: dict[str, Json] = {
        "whenExpression": "request.body == nil && params.on == request.params('on')",
        "parameters": {"on": "yes"},
        "targetSelectionCriteria": target,
    }
    envelope = write_envelope("POST", "/generic/any?on=yes", [], b"")
    assert read_notices("generic", "", envelope, {"actions": [action]}) == (
        TargetsChosen("Warehouse", "apps", {}),
    )


def test_a_target_is_chosen_by_what_the_request_says() -> None:
    target: Json = {
        "kind": "Warehouse",
        "name": "${{ params.prefix }}-${{ request.body.team }}",
        "labelSelector": {
            "matchLabels": {"team": "${{ request.body.team }}"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["${{ params.prefix }}", "b"]}],
        },
        "indexSelector": {
            "matchIndices": [
                {
                    "key": "subscribedURLs",
                    "operator": "Equals",
                    "value": "${{ normalizeImage(request.body.image) }}",
                },
                {"key": "subscribedURLs", "operator": "NotEquals", "value": "other.example/a"},
            ]
        },
    }
    action: dict[str, Json] = {
        "parameters": {"prefix": "${{ request.body.kind }}"},
        "targetSelectionCriteria": [target],
    }
    (chosen,) = act(action, team="pay", kind="apps", image="docker.io/library/nginx")
    assert chosen == TargetsChosen(
        "Warehouse",
        "apps-pay",
        {"team": "pay"},
        (LabelRequirement("tier", "In", ("apps", "b")),),
        (("nginx", True), ("other.example/a", False)),
    )


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"whenExpression": "request.body.("}, "actions\\[0\\]"),
        ({"whenExpression": "1 + 1"}, "must give true or false"),
        ({"whenExpression": "missing()"}, "missing"),
        ({"whenExpression": "request.header() == ''"}, "one name is expected"),
        ({"targetSelectionCriteria": [{"kind": "Warehouse", "name": "${{ request.body.count }}"}]}, "quote"),
        (
            {
                "targetSelectionCriteria": [
                    {
                        "kind": "Warehouse",
                        "indexSelector": {
                            "matchIndices": [{"key": "receiverPaths", "operator": "Equals", "value": "x"}]
                        },
                    }
                ]
            },
            "subscribedURLs",
        ),
        (
            {
                "targetSelectionCriteria": [
                    {
                        "kind": "Warehouse",
                        "indexSelector": {
                            "matchIndices": [{"key": "subscribedURLs", "operator": "Like", "value": "x"}]
                        },
                    }
                ]
            },
            "neither Equals nor NotEquals",
        ),
    ],
)
def test_an_action_that_fails_says_so(action: dict[str, Json], message: str) -> None:
    (failed,) = act(action, count=3)
    assert isinstance(failed, ActionFailed)
    assert re.search(message, failed.reason)


def test_one_failed_action_stops_no_other() -> None:
    good: Json = {"action": "Refresh", "targetSelectionCriteria": [{"kind": "Warehouse", "name": "apps"}]}
    bad: Json = {"action": "Refresh", "whenExpression": "nope(", "targetSelectionCriteria": []}
    body = write_envelope("POST", "/", [], b"{}")
    first, second = read_notices("generic", "", body, {"actions": [bad, good]})
    assert isinstance(first, ActionFailed)
    assert second == TargetsChosen("Warehouse", "apps", {})


def test_credentials_in_headers_are_not_kept() -> None:
    headers = [("Authorization", "Bearer hush"), ("Cookie", "hush"), ("X-Kept", "y")]
    envelope = write_envelope("POST", "/", headers, b"\xff")
    assert b"hush" not in envelope
    assert json.loads(envelope)["headers"] == [["X-Kept", "y"]]
