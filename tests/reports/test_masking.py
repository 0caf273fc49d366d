"""What has the shape of a credential is not shown, whatever way it came."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from bot.domain.promotion import State, StepStatus
from bot.domain.review import EffectRecord
from bot.domain.values import Sensitive, Text
from bot.reports.body import render_body
from bot.reports.comments import render_outcome_comment
from bot.reports.markdown import clean
from tests.reports.views import MERGE, apply, outcome, preview, promotion, run, steps, view

# Put together here, so that nobody's scanner takes them for real ones.
SECRETS = [
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2_" * 9,
    "glpat-" + "a1B2" * 5,
    "xoxb-" + "123456789012-abcdef",
    "hvs." + "a1B2" * 8,
    "a" * 14 + ".atlasv1." + "b" * 60,
    "eyJ" + "hbGciOiJI" + ".eyJ" + "zdWIiOiIx" + "." + "c2lnbmF0dXJl",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nMIIE",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_credentials_are_masked(secret: str) -> None:
    assert clean(f'token: "{secret}') == 'token: "<masked>'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://bot:hunter2@git.example/x.git", "https://<masked>@git.example/x.git"),
        ("Authorization: Bearer abcdef1234567890", "Authorization: Bearer <masked>"),
        ("authorization: basic YWJjZGVmZ2hpag==", "authorization: basic <masked>"),
        ("\x1b[1mghp_" + "a1B2" * 9, "<masked>"),
    ],
)
def test_addresses_and_headers_lose_their_credentials(text: str, shown: str) -> None:
    assert clean(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "https://git.example/acme/ops", "basic authentication is off", "bearer of news", "sha256:" + "a" * 64, "a" * 40,
        "http://host:8080/a@b", "Reference to undeclared resource", "ghp_short", "<known after apply: token>",
    ],
)  # fmt: skip
def test_what_is_no_credential_stays(text: str) -> None:
    assert clean(text) == text


def test_headers_that_hold_secrets_are_not_shown_in_clear() -> None:
    reports = list(steps(apply()))
    details = (
        ("header Authorization", "Basic b3Blbg"),
        ("header X-Api-Key", Text(("key ", Sensitive("secret('x').key", "hunter2")))),
        ("query access_token", "hunter2"),
        ("header Accept", "text/plain"),
    )
    reports[7] = replace(reports[7], record=EffectRecord("POST https://api.example", "", details))
    body = render_body(view(preview=preview(steps=tuple(reports))))
    assert "hunter2" not in body
    assert "b3Blbg" not in body
    assert "header X-Api-Key `key <sensitive: secret('x').key>`" in body
    assert "header Authorization `<masked>`, " in body
    assert "header Accept `text/plain`" in body


def test_outputs_of_steps_are_not_shown() -> None:
    found = run(
        "promote::step-8",
        StepStatus.SUCCEEDED,
        output={"token": "hunter2", "result": "done", "body": "hunter2"},
    )
    seen = view(promotion=promotion(state=State.SUCCEEDED, merge_commit=MERGE), outcome=outcome(found))
    comment = render_outcome_comment(seen)
    assert "hunter2" not in comment
    assert "| done |" in comment


@pytest.mark.parametrize(
    "piece",
    [
        "eyJ-",
        "eyJaaaaaaaa.",
        "://a:",
        "-----BEGIN PRIVATE KEY-----",
        "ghp_",
        "Bearer ",
        "a.atlasv1.",
        "basic a",
        "eyJ",
    ],
)
def test_looking_takes_no_longer_than_the_text_is(piece: str) -> None:
    text = piece * (400_000 // len(piece))
    begun = time.process_time()
    clean(text)
    # Anything quadratic takes minutes.
    assert time.process_time() - begun < 2.0
