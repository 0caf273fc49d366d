"""The policy's `recordFile`: one line in the diff of a pull request that would otherwise be empty.

For repositories in which an empty commit does not go through, as with rebasing. The line names the promotion, so that
it is never there already.
"""

from __future__ import annotations

from dataclasses import replace

from bot.domain.files import Change, CommitId, File, Mode
from bot.domain.promotion import Promotion
from bot.domain.review import Lane, PreparedCommit, Split
from bot.domain.review_policy import ReviewPolicy
from bot.domain.splitting import Place
from bot.ports import Git, TerminalError

_BEGINNING = b"Lockstep: "


async def with_record(
    git: Git, url: str, tip: CommitId, split: Split, promotion: Promotion, path: str
) -> Split:
    """The split with a commit that writes the line to `path` on `tip`.

    Raises TerminalError if something else stands there: it is not overwritten.
    """
    files = await git.list_files(url, tip)
    parents = [path[:place] for place, letter in enumerate(path) if letter == "/"]
    if any(parent in files for parent in parents) or any(name.startswith(f"{path}/") for name in files):
        raise TerminalError(f"recordFile {path}: a file and a directory would stand in the same place")
    entry = files.get(path)
    before = (await git.read_files(url, {path: entry})).get(path) if entry is not None else None
    if entry is not None and (
        entry.mode is not Mode.FILE or before is None or not before.data.startswith(_BEGINNING)
    ):
        raise TerminalError(
            f"recordFile {path} is something else already; name a file that does not exist yet"
        )
    freight = promotion.freight
    line = f"{freight.alias} ({freight.name[:7]}) to {promotion.project}/{promotion.stage}, {promotion.id}\n"
    change = Change(path, before, File(_BEGINNING + line.encode()))
    commit = PreparedCommit(f"promote {freight.alias} to {promotion.stage}", (change,))
    return replace(split, prepared=(*split.prepared, commit))


def choose_record_file(policy: ReviewPolicy, place: Place, lane: Lane) -> str:
    """The file that makes an empty pull request one with a diff; empty where none is wanted."""
    reviewed = policy.review != "None" and lane is not Lane.NO_OP
    # A task's own pull request holds what the task pushes, and nothing else.
    return policy.record_file if reviewed and not place.source else ""
