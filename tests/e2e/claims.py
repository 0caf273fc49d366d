"""What must hold of every release, said once: the invariants of the review gate that the scenarios share."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.sandbox.github.git import Commit
from tests.e2e.road import OPERATIONS, Road, quoted_patch

OUTBOX = re.compile(
    r"POST /app/installations/\d+/access_tokens"
    rf"|POST /repos/{OPERATIONS}/check-runs|PATCH /repos/{OPERATIONS}/check-runs/\d+"
    rf"|POST /repos/{OPERATIONS}/pulls|PATCH /repos/{OPERATIONS}/pulls/\d+"
    rf"|POST /repos/{OPERATIONS}/issues/\d+/comments|PATCH /repos/{OPERATIONS}/issues/comments/\d+"
    rf"|POST /{OPERATIONS}\.git/git-receive-pack"
)
"""The changing requests that a gate's outbox may make before a merge."""


@dataclass(frozen=True, slots=True)
class Before:
    """How things stood before a promotion's preview began."""

    tip: str
    requests: int
    operation: str
    state_versions: int


async def look_before(road: Road, stage: str = "dev") -> Before:
    """Note how things stand; Terraform's requests are counted anew from here."""
    road.forget_terraform()
    return Before(
        tip=await road.tip(),
        requests=len(await road.requests()),
        operation=str(road.operation(stage).get("startedAt", "")),
        state_versions=len(road.sandbox.cloud.versions(f"acme/{stage}")),
    )


async def claim_nothing_happened_but_the_outbox(road: Road, before: Before, stage: str = "dev") -> None:
    """Invariant 1: up to the merge only the gate's outbox, and locks of states, have changed anything anywhere."""
    strange = [r for r in await road.requests_of_bot(before.requests) if not OUTBOX.fullmatch(r)]
    assert strange == []
    assert await road.tip() == before.tip
    assert set(await road.branches()) <= {"main", f"lockstep/acme/{stage}"}
    assert len(road.sandbox.cloud.versions(f"acme/{stage}")) == before.state_versions
    assert str(road.operation(stage).get("startedAt", "")) == before.operation


async def claim_comments(road: Road, number: int, *, outcome: bool = True) -> None:
    """One sticky plan comment, one outcome comment, and nothing else."""
    assert len(road.comments(number, "plan")) == 1
    assert len(road.comments(number, "outcome")) == (1 if outcome else 0)
    assert len(road.comments(number)) == (2 if outcome else 1)


async def claim_no_leak(road: Road) -> None:
    """Invariant 4: no stand-in and no secret has reached GitHub."""
    assert await road.leaks() == []


async def claim_release(
    road: Road, before: Before, number: int, lines: list[str], *, released: bool, stage: str = "dev"
) -> Commit | None:
    """The end of a merged promotion: exactly these lines differ, in a merge and at most one release commit.

    `lines` are as `Road.changed` shows them, placeholders allowed; the answer is the release commit.
    """
    assert await road.changed(before.tip) == [road.address(line) for line in lines]
    mine = await road.commits_since(before.tip)
    merge = road.pull(number).merge_commit_sha
    assert [c.sha for c in mine][-1] == merge
    assert len(mine) == (2 if released else 1), [c.message for c in mine]
    outcome = road.check(merge or "", f"lockstep / {stage}")
    assert outcome is not None
    assert outcome.conclusion == "success"
    await claim_comments(road, number)
    await claim_no_leak(road)
    # The promotion branch has done its work.
    assert await road.branches() == ["main"]
    if not released:
        return None
    assert list(mine[0].parents) == [merge]
    return mine[0]


def trailers(message: str) -> dict[str, str]:
    """Our trailers of a commit by name."""
    return dict(re.findall(r"^(Lockstep-\w+): (.*)$", message, re.MULTILINE))


def patch_lines(patch: str) -> list[str]:
    """The lines that a unified diff takes out and puts in."""
    return [line for line in patch.splitlines() if re.match(r"[+-](?![+-]{2} )", line)]


def deferred(road: Road, number: int) -> list[str]:
    """The lines of the deferred patch in a pull request's body."""
    return patch_lines(quoted_patch(road.issue(number).body or ""))


def on_merge(road: Road, number: int, heading: str = "On merge") -> list[str]:
    """The names of the steps that the body says will be done on merge, in order."""
    body = road.issue(number).body or ""
    part = re.search(rf"### {heading}, in this order\n\n((?:\d+\. .*\n)+)", body + "\n")
    return re.findall(r"^\d+\. \*\*([^*]+)\*\*", part[1], re.MULTILINE) if part else []


async def lane(road: Road, stage: str = "dev") -> str:
    """What kind of pull request the newest preview of a Stage was published as."""
    found = [re.match(r"([a-z-]+), digest", e.message) for e in await road.events() if e.stage == stage]
    return next(match[1] for match in reversed(found) if match)
