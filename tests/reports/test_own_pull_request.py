"""A task that opens its pull request itself gives it title and description; neither hides what Lockstep says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.review import RequestRecord
from bot.domain.step_kinds import StepClass
from bot.domain.values import Sensitive, Text, Unknown, Value
from bot.domain.view import PromotionView
from bot.reports.body import render_body, render_title
from bot.reports.fitting import COMMENT_LIMIT
from bot.reports.markdown import size
from tests.domain import reviews as b
from tests.reports.views import MAIN, preview, view


def asked(title: Value, description: Value = None) -> PromotionView:
    record = RequestRecord("./src", MAIN.url, "release/staging", "main", title, description)
    opening = b.report("git-open-pr", StepClass.REVIEW, record=record, status=None)
    seen = preview()
    return view(preview=replace(seen, steps=(*seen.steps, opening), source="release/staging"))


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("Release 1.1.0\nmore", "Release 1.1.0 more"),
        ("Closes #7 for @acme/sre", "Closes ＃7 for ＠acme/sre"),
        (Text(("Release ", Unknown("known after merge: commit"))), "Release <known after merge: commit>"),
        (Text(("Key ", Sensitive("db", "s3cret"))), "Key <sensitive: db>"),
    ],
    ids=["one line", "nothing that GitHub acts on", "what is not known yet", "no secret"],
)
def test_the_title_is_the_tasks(title: Value, shown: str) -> None:
    assert render_title(asked(title)) == shown


def test_without_a_title_there_is_lockstep_s() -> None:
    assert render_title(asked(None)) == render_title(view(preview=preview()))


def test_a_very_long_title_fits() -> None:
    assert size(render_title(asked("é" * 500))) <= 256


def test_the_description_stands_below_what_lockstep_says_and_above_the_marker() -> None:
    body = render_body(replace(asked("t", "## Runbook\n\n<!-- all that follows"), marker="<!-- marker -->"))
    assert body.index("### On merge") < body.index("## Runbook") < body.index("<!-- marker -->")
    assert body.endswith("<!-- marker -->")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fixes #12, says @uma", "fixes ＃12, says ＠uma"),
        ("<!-- lockstep-marker {} -->", "<\\u{21}-- lockstep-marker {} -->"),
        ("a\u202eb", "a\\u{202e}b"),
    ],
    ids=["mentions and closes nothing", "no marker of ours", "no hidden characters"],
)
def test_a_description_does_nothing(text: str, shown: str) -> None:
    assert shown in render_body(asked("t", text))


def test_a_huge_description_is_shortened_first() -> None:
    body = render_body(replace(asked("t", "line of the task\n" * 9000), marker="<!-- m -->"))
    assert size(body) <= COMMENT_LIMIT
    assert "bytes more" in body
    assert "### On merge" in body
