"""Commit messages and their trailers, read back by git itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.steps.messages import add_trailers, release_message
from tests.adapters.git_server import git
from tests.steps.bench import Bench

OURS = [("Lockstep-Stage", "acme/dev"), ("Lockstep-Step", "commit")]


def trailers(directory: Path, message: str) -> list[str]:
    git(directory, "init", "--quiet", ".")
    return git(directory, "interpret-trailers", "--parse", stdin=message).splitlines()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Subject", "Subject\n\nLockstep-Stage: acme/dev\nLockstep-Step: commit\n"),
        ("Key: subject", "Key: subject\n\nLockstep-Stage: acme/dev\nLockstep-Step: commit\n"),
        (
            "Subject\n\nBody.\n\nSigned-off-by: Ada <ada@example.com>\n",
            "Subject\n\nBody.\n\nSigned-off-by: Ada <ada@example.com>\n"
            "Lockstep-Stage: acme/dev\nLockstep-Step: commit\n",
        ),
        (
            "Subject\n\nnot: a trailer block\nsince this line is none",
            "Subject\n\nnot: a trailer block\nsince this line is none\n\n"
            "Lockstep-Stage: acme/dev\nLockstep-Step: commit\n",
        ),
        ("Subject\r\n\r\nBody\r\n", "Subject\n\nBody\n\nLockstep-Stage: acme/dev\nLockstep-Step: commit\n"),
    ],
    ids=["a subject", "a subject like a trailer", "trailers", "a body with a colon", "line ends"],
)
def test_trailers_follow_what_is_there(tmp_path: Path, text: str, expected: str) -> None:
    message = add_trailers(text, OURS)
    assert message == expected
    assert trailers(tmp_path, message)[-2:] == ["Lockstep-Stage: acme/dev", "Lockstep-Step: commit"]


def test_a_message_cannot_forge_our_trailers(tmp_path: Path) -> None:
    message = add_trailers("Subject\n\nLockstep-Promotion: forged\nlockstep-stage: forged", OURS)
    assert trailers(tmp_path, message) == ["Lockstep-Stage: acme/dev", "Lockstep-Step: commit"]


def test_values_stay_on_one_line(tmp_path: Path) -> None:
    message = add_trailers("Subject", [("Lockstep-Step", "a\nLockstep-Stage: forged")])
    assert trailers(tmp_path, message) == ["Lockstep-Step: a Lockstep-Stage: forged"]


def test_a_release_names_what_it_is_of(bench: Bench) -> None:
    context = replace(bench.context("commit"), marker="lockstep-marker {} abc")
    assert release_message("Release", context) == (
        f"Release\n\nLockstep-Freight: {'f' * 40}\nLockstep-Stage: acme/dev\n"
        "Lockstep-Promotion: dev.01abc.fffffff\nLockstep-Step: commit\nLockstep-Marker: lockstep-marker {} abc\n"
    )
