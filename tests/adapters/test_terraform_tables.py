"""What Terraform's JSON lines mean, row by row, and what is read of a lock's text."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.adapters.masks import Masks
from bot.adapters.terraform.sources import find_ephemeral_variables, find_resource_lines, line_of
from bot.adapters.terraform.stream import SUMMARIES, JsonLog, Reason, bounded, read_lock
from bot.adapters.terraform.tool import Version
from bot.domain.files import File
from bot.domain.terraform import Diagnostic, Lock

BEGUN = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
NO_MASKS = Masks({})


def log_of(*messages: dict[str, Any] | str, masks: Masks | None = NO_MASKS) -> JsonLog:
    log = JsonLog(masks)
    for message in messages:
        log.feed((message if isinstance(message, str) else json.dumps(message)).encode())
    return log


def diagnostic(summary: str, **fields: Any) -> dict[str, Any]:
    return {"type": "diagnostic", "diagnostic": {"severity": "error", "summary": summary, **fields}}


ROWS = [
    ("Error acquiring the state lock", Reason.LOCKED),
    ("Error locking state", Reason.LOCKED),
    ("Saved plan is stale", Reason.STALE),
    ("Saved plan does not match the given state", Reason.STALE),
    ("Plan file can no longer be applied", Reason.STALE),
    ("Failed to persist state to backend", Reason.UNSAVED),
    ("Failed to save state", Reason.UNSAVED),
    ("Error saving state", Reason.UNSAVED),
    ("Failed to update state", Reason.UNSAVED),
    ("Error releasing the state lock", Reason.UNSAVED),
]


@pytest.mark.parametrize(("summary", "reason"), ROWS)
def test_a_summary_has_its_meaning(summary: str, reason: Reason) -> None:
    assert log_of(diagnostic(summary)).reason is reason
    assert log_of(diagnostic(f"In other words: {summary}")).reason is Reason.FAILED
    warning = {"type": "diagnostic", "diagnostic": {"severity": "warning", "summary": summary}}
    assert log_of(warning).reason is Reason.FAILED


def test_every_row_of_the_table_has_its_test() -> None:
    assert list(SUMMARIES) == ROWS


def test_a_log_has_messages_diagnostics_and_noise() -> None:
    place = {"filename": "main.tf", "start": {"line": 7}}
    log = log_of(
        {"@message": "Terraform 1.11.4", "type": "version"},
        {"@message": "a: Creating...", "type": "apply_start"},
        "panic: something",
        diagnostic("It broke", detail="because", range=place),
        {"@message": "Apply complete!", "type": "change_summary"},
    )
    assert log.text.splitlines() == [
        "Terraform 1.11.4",
        "a: Creating...",
        "panic: something",
        "Error: It broke",
        "  on main.tf line 7",
        "because",
        "Apply complete!",
    ]
    assert log.diagnostics == [Diagnostic("error", "It broke", "because", "main.tf", 7)]
    assert log.changing
    assert log.summary == "Apply complete!"


def test_a_failure_without_a_diagnostic_gets_one_from_the_text() -> None:
    log = log_of()
    log.add_text("Error: Backend initialization required\n\nRun init.")
    (made,) = log.errors("tofu 1.9.0")
    assert made.summary == "Backend initialization required"
    assert "Run init." in made.detail
    (silent,) = log_of().errors("tofu 1.9.0")
    assert silent.summary == "tofu 1.9.0 failed without a message"


def test_everything_that_comes_out_is_masked() -> None:
    seen: list[str] = []
    log = JsonLog(Masks({"T": "secretword"}), seen.append)
    log.feed(json.dumps({"@message": "secretword"}).encode())
    log.feed(
        json.dumps(diagnostic("secretword", detail="secretword", range={"filename": "secretword"})).encode()
    )
    log.add_text("secretword")
    assert "secretword" not in repr((seen, log.text, log.diagnostics))
    hidden = log_of(diagnostic("secretword"), masks=None)
    assert (hidden.text, hidden.diagnostics) == ("", [])
    assert "withheld" in hidden.errors("terraform")[0].summary


S3 = """Error message: operation error S3: PutObject, StatusCode: 412, api error PreconditionFailed
Lock Info:
  ID:        1f0b-holder
  Path:      bucket/dev.tfstate
  Operation: OperationTypeApply
  Who:       ada@laptop
  Version:   1.11.4
  Created:   2024-05-06 07:00:00.123456789 +0000 UTC
  Info:

Terraform acquires a state lock to protect the state from being written
by multiple users at the same time."""

HTTP = S3.replace(
    "operation error S3: PutObject, StatusCode: 412, api error PreconditionFailed",
    "HTTP remote state already locked: ID=9999",
)
PG = S3.replace(
    "operation error S3: PutObject, StatusCode: 412, api error PreconditionFailed",
    "Workspace is already locked: stg",
).replace("07:00:00.123456789", "07:08:10")


@pytest.mark.parametrize(
    ("detail", "lock"),
    [
        pytest.param(
            S3,
            Lock(
                "1f0b-holder",
                "ada@laptop",
                "OperationTypeApply",
                "2024-05-06 07:00:00.123456789 +0000 UTC",
                "operation error S3: PutObject, StatusCode: 412, api error PreconditionFailed",
            ),
            id="s3 prints the holder",
        ),
        pytest.param(
            HTTP, Lock(id="9999", message="HTTP remote state already locked: ID=9999"), id="http prints ours"
        ),
        pytest.param(
            PG, Lock(message="Workspace is already locked: stg"), id="pg prints ours, made after our start"
        ),
        pytest.param("", Lock(), id="nothing"),
        pytest.param("Error message: it is locked", Lock(message="it is locked"), id="no lock info"),
    ],
)
def test_a_locks_holder(detail: str, lock: Lock) -> None:
    assert read_lock(detail, BEGUN, NO_MASKS) == lock


def test_a_long_text_keeps_beginning_and_end() -> None:
    text = bounded("a" * 500 + "b" * 500, 100)
    assert text.startswith("a" * 25 + "\n[900 characters left out]\n")
    assert text.endswith("b" * 75)
    assert bounded("short", 100) == "short"


def test_only_flags_that_a_version_has_are_used() -> None:
    assert Version("terraform", (1, 9, 0)).has_json_init
    assert not Version("terraform", (1, 8, 5)).has_json_init
    assert not Version("tofu", (1, 10, 0)).has_json_init
    assert Version("terraform", (1, 11, 0)).takes_variables_at_apply
    assert not Version("tofu", (1, 11, 0)).takes_variables_at_apply
    assert str(Version("tofu", (1, 6, 2))) == "tofu 1.6.2"


SOURCE = b"""# a comment
resource "aws_instance" "web" {
}
  data "aws_ami" "base" {
}
module "net" { source = "./net" }
variable "plain" {
  type = string
}
variable "token" {
  ephemeral = true
}
variable "last" {}
"""


def test_resources_have_their_lines() -> None:
    lines = find_resource_lines({"infra/main.tf": File(SOURCE), "infra/net/main.tf": File(SOURCE)}, "infra")
    assert line_of("aws_instance.web", lines) == ("main.tf", 2)
    assert line_of('aws_instance.web["a.b"]', lines) == ("main.tf", 2)
    assert line_of("data.aws_ami.base", lines) == ("main.tf", 4)
    assert line_of("module.net[0].aws_vpc.main", lines) == ("main.tf", 6)
    assert line_of("module.other.aws_vpc.main", lines) is None
    assert line_of("aws_instance.gone", lines) is None


def test_ephemeral_variables_are_found() -> None:
    assert find_ephemeral_variables({"infra/main.tf": File(SOURCE)}, "infra") == {"token"}
