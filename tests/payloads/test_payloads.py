"""Deliveries as events: realistic bodies of our own making, and what hostile ones do."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.events import (
    AppIdentity,
    ButtonPressed,
    CheckRerun,
    Commented,
    Event,
    ImagePushed,
    InstallationChanged,
    MergeGroupRequested,
    PullRequestChanged,
    Pushed,
    RepositoryChanged,
    ReviewChanged,
)
from bot.domain.files import CommitId
from bot.domain.github import CheckId, CommentId, PullNumber, Repository, User
from bot.payloads import SENDERS, Delivery, PayloadProblem
from bot.payloads.github import PARSERS
from bot.payloads.reading import parse_time, read_json
from tests.payloads.damage import JSON, replace_one

FOLDER = Path(__file__).parent
APP = AppIdentity(app_id=77, user_id=4242)
OPS = Repository("acme", "ops")
ANN, BOT = User("ann", 1001), User("lockstep[bot]", 4242, bot=True)
C1, C2 = CommitId("1f0c" * 10), CommitId("2e9d" * 10)
DIGEST = f"sha256:{'ab' * 32}"
BRANCH = "lockstep/otel/staging"
AT = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
IMAGE = ImagePushed("ghcr.io/acme-corp/payments-api", "1.8.2", DIGEST)

EXPECTED: dict[str, tuple[Event, ...]] = {
    "github.push.branch": (
        Pushed(
            OPS, "refs/heads/main", C1, C2, ANN, paths=("env/dev/helm/values.yaml",), default_branch="main"
        ),
    ),
    "github.push.by_app": (
        Pushed(OPS, f"refs/heads/{BRANCH}", None, C2, BOT, by_app=True, default_branch="main"),
    ),
    "github.push.tag_deleted": (Pushed(OPS, "refs/tags/v1.0.0", C1, None, ANN, default_branch="main"),),
    "github.pull_request.opened": (
        PullRequestChanged(OPS, PullNumber(7), "opened", C2, BRANCH, "main", BOT, by_app=True),
    ),
    "github.pull_request.merged": (
        PullRequestChanged(OPS, PullNumber(7), "closed", C2, BRANCH, "main", ANN, merged=True),
    ),
    "github.pull_request.deleted_fork": (
        PullRequestChanged(OPS, PullNumber(8), "synchronize", C2, "main", "main", ANN, from_fork=True),
    ),
    "github.pull_request.assigned": (),
    "github.pull_request_review.submitted": (ReviewChanged(OPS, PullNumber(7), "submitted", ANN),),
    "github.issue_comment.created": (
        Commented(OPS, PullNumber(7), CommentId(900), ANN, "/promote staging\r\nthanks", AT),
    ),
    "github.issue_comment.by_app": (
        Commented(OPS, PullNumber(7), CommentId(901), BOT, "<!-- lockstep:plan -->\n…", AT, by_app=True),
    ),
    "github.issue_comment.edited": (),
    "github.issue_comment.on_issue": (
        Commented(OPS, PullNumber(12), CommentId(902), ANN, "/drift", AT, on_pull_request=False),
    ),
    "github.check_run.rerequested": (CheckRerun(OPS, C2, "lockstep", ANN, "p1"),),
    "github.check_run.requested_action": (
        ButtonPressed(OPS, C2, CheckId(31), "lockstep", "retry", ANN, "p1"),
    ),
    "github.check_run.completed": (),
    "github.check_run.of_another_app": (),
    "github.check_suite.rerequested": (CheckRerun(OPS, C2, "", ANN),),
    "github.merge_group.checks_requested": (
        MergeGroupRequested(OPS, C2, f"refs/heads/gh-readonly-queue/main/pr-7-{C1}", "main"),
    ),
    "github.installation.created": (InstallationChanged(9, "acme", "created", added=(OPS,)),),
    "github.installation.deleted": (InstallationChanged(9, "acme", "deleted", removed=(OPS,)),),
    "github.installation_repositories.added": (
        InstallationChanged(9, "acme", "added", added=(Repository("acme", "infra"),)),
    ),
    "github.repository.renamed": (RepositoryChanged(OPS, "renamed", Repository("acme", "operations")),),
    "github.repository.transferred": (RepositoryChanged(OPS, "transferred", Repository("ann", "ops")),),
    "github.registry_package.published": (IMAGE,),
    "github.registry_package.untagged": (),
    "github.package.published": (IMAGE,),
    "github.deployment.created": (),
    "github.ping": (),
    "distribution.push": (ImagePushed("registry.acme.example:5000/pay/payments-api", "1.8.2", DIGEST),),
    "distribution.delete": (),
}


def parse(name: str, body: bytes) -> tuple[Event, ...]:
    sender, kind = name.split(".")[:2]
    return SENDERS[sender](Delivery(kind, body, APP))


def test_every_file_has_an_expectation() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(EXPECTED)


def test_every_event_that_is_read_has_a_file() -> None:
    assert set(PARSERS) <= {name.split(".")[1] for name in EXPECTED if name.startswith("github.")}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_delivery_becomes_its_event(name: str) -> None:
    assert parse(name, (FOLDER / f"{name}.json").read_bytes()) == EXPECTED[name]


@pytest.mark.parametrize(
    ("ref", "branch", "tag"), [("refs/heads/a/b", "a/b", ""), ("refs/tags/v1", "", "v1"), ("refs/x", "", "")]
)
def test_what_a_push_moved(ref: str, branch: str, tag: str) -> None:
    pushed = Pushed(OPS, ref, C1, C2, ANN)
    assert (pushed.branch, pushed.tag) == (branch, tag)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({}, ("env/dev/helm/values.yaml",), id="what its commits changed"),
        pytest.param(
            {"head_commit": {"added": ["a"], "modified": [], "removed": ["b"]}},
            ("env/dev/helm/values.yaml", "a", "b"),
            id="and its head",
        ),
        pytest.param({"commits": []}, None, id="unknown without commits"),
        pytest.param({"forced": True}, None, id="unknown where commits were taken away"),
        pytest.param({"commits": [{"added": ["a"]}] * 2048}, None, id="unknown where the list is cut"),
    ],
)
def test_which_paths_a_push_changed(change: dict[str, object], expected: tuple[str, ...] | None) -> None:
    body = json.loads((FOLDER / "github.push.branch.json").read_text()) | change
    (event,) = parse("github.push.branch", json.dumps(body).encode())
    assert isinstance(event, Pushed)
    assert event.paths == expected


def test_the_first_line_of_a_comment_ends_at_any_line_break() -> None:
    assert Commented(OPS, PullNumber(1), CommentId(1), ANN, "/plan \r\nx", AT).first_line == "/plan"


@pytest.mark.parametrize(
    ("name", "path", "value", "message"),
    [
        ("github.push.branch", ("repository",), None, "repository.full_name: is missing"),
        ("github.push.branch", ("repository", "full_name"), "acme/../ops", "owner/name was expected"),
        ("github.push.branch", ("repository", "full_name"), "acme/..", "owner/name was expected"),
        ("github.push.branch", ("after",), "main; rm -rf", "after: a commit id was expected"),
        ("github.push.branch", ("after",), 7, "after: a commit id was expected"),
        ("github.push.branch", ("sender",), "ann", "sender: an object was expected, a string is there"),
        ("github.pull_request.opened", ("pull_request", "number"), "7", "a whole number was expected"),
        ("github.pull_request.opened", ("pull_request", "number"), True, "a whole number was expected"),
        ("github.pull_request.opened", ("pull_request", "number"), -1, "out of range"),
        ("github.pull_request.opened", ("pull_request", "number"), 10**30, "out of range"),
        ("github.pull_request.opened", ("pull_request", "merged"), "no", "true or false was expected"),
        ("github.issue_comment.created", ("comment", "created_at"), "yesterday", "is no RFC 3339 time"),
        (
            "github.issue_comment.created",
            ("comment", "body"),
            ["/promote"],
            "a string was expected, a list is there",
        ),
        ("github.installation.created", ("repositories",), {}, "a list was expected"),
        ("github.check_run.requested_action", ("requested_action",), None, "is missing"),
        ("distribution.push", ("events",), None, "events: is missing"),
        ("distribution.push", ("events", 2, "request", "host"), "a/b", "a host name was expected"),
        (
            "distribution.push",
            ("events", 2, "target", "repository"),
            "../x",
            "a repository path was expected",
        ),
    ],
)
def test_a_wrong_field_is_named(name: str, path: tuple[str | int, ...], value: object, message: str) -> None:
    document: Any = json.loads((FOLDER / f"{name}.json").read_text())
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(PayloadProblem) as caught:
        parse(name, json.dumps(document).encode())
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"payload=%7B%7D", id="a form"),
        pytest.param(b"{", id="half a document"),
        pytest.param(b"\xff\xfe\x00", id="no text"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"null", id="null"),
        pytest.param(b'"push"', id="a string"),
        pytest.param(b"[" * 200_000, id="deep lists"),
        pytest.param(b'{"a":' * 200_000, id="deep objects"),
        pytest.param(b'{"ref": ' + b"9" * 10_000 + b"}", id="an endless number"),
        pytest.param(b'{"ref": NaN}', id="no JSON number"),
    ],
)
@pytest.mark.parametrize("kind", sorted(PARSERS))
def test_a_hostile_body_is_a_problem(kind: str, body: bytes) -> None:
    with pytest.raises(PayloadProblem):
        SENDERS["github"](Delivery(kind, body, APP))
    with pytest.raises(PayloadProblem):
        SENDERS["distribution"](Delivery("", body, APP))


def test_characters_that_cannot_be_stored_are_replaced() -> None:
    document = json.loads((FOLDER / "github.issue_comment.created.json").read_text())
    document["comment"]["body"] = "/hold a\x00b\ud800c"
    (event,) = parse("github.issue_comment.created", json.dumps(document).encode())
    assert isinstance(event, Commented)
    assert event.body == "/hold a\ufffdb\ufffdc"
    event.body.encode()


def test_an_author_who_is_gone_is_nobody() -> None:
    document = json.loads((FOLDER / "github.issue_comment.created.json").read_text())
    document["comment"]["user"] = None
    (event,) = parse("github.issue_comment.created", json.dumps(document).encode())
    assert isinstance(event, Commented)
    assert event.author == User("ghost", 0)
    assert not event.by_app


@given(name=st.sampled_from(sorted(EXPECTED)), seed=st.integers(0, 2**32), value=JSON)
def test_one_value_replaced_anywhere_gives_an_event_or_a_problem(name: str, seed: int, value: object) -> None:
    document: Any = json.loads((FOLDER / f"{name}.json").read_text())
    if not replace_one(document, seed, value):
        return
    # Any other exception fails the test.
    with suppress(PayloadProblem):
        parse(name, json.dumps(document).encode())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-01T12:00:00Z", AT),
        ("2026-05-01t12:00:00z", AT),
        ("2026-05-01T14:00:00+02:00", AT),
        ("2026-05-01T12:00:00.123456789Z", AT.replace(microsecond=123456)),
        ("2026-05-01T12:00:00.5Z", AT.replace(microsecond=500000)),
    ],
)
def test_times_are_read(text: str, expected: datetime) -> None:
    assert parse_time(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "2026-05-01", "2026-05-01T12:00:00", "2026-13-01T12:00:00Z", "0001-01-01T00:00:00+14:00", "x"],
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_time(text)


def test_the_reader_of_an_answer_chooses_the_error() -> None:
    node = read_json('{"a": {"b": [1]}}', lambda path, message: KeyError(path, message))
    with pytest.raises(KeyError, match=r"a\.b"):
        node.text("a", "b")
