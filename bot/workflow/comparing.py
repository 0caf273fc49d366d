"""Before a deferred commit: is it the approved patch with its holes filled?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.accepted import changed_outputs, with_accepted
from bot.domain.compare import compare_patch, paths_left_open
from bot.domain.digest import DIGEST_LENGTH, canonical
from bot.domain.files import Change, CommitId
from bot.domain.model import Step
from bot.domain.promotion import Promotion, Stop
from bot.domain.review import CommitRecord, Preview, StepReport
from bot.domain.step_kinds import StepClass
from bot.ports import Vault
from bot.steps.worktree import WorkTree, join


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a walk has done so far against what was approved; `reports` are those of its steps.

    `merge` is the merge that brought the prepared change, None where there was none; `base` the commit that the walk
    stands on, None if that is the one that was previewed.
    """

    promotion: Promotion
    preview: Preview
    tree: WorkTree
    reports: tuple[StepReport, ...]
    vault: Vault
    merge: CommitId | None = None
    base: CommitId | None = None

    async def find_stop(self, step: Step, approved: StepReport) -> Stop | None:
        """Why a step must not commit what is staged, None if it may, or commits nothing."""
        if approved.step_class is not StepClass.COMMIT or not isinstance(approved.record, CommitRecord):
            return None
        place = approved.record.checkout
        actual = self._without_states(await self.tree.staged(place), place)
        open_ = paths_left_open(self.preview.steps, self.reports, place)
        wanted = [change for change in self._wanted(approved.record) if change.path not in open_]
        found = [change for change in actual if change.path not in open_]
        accepted = with_accepted(wanted, found, changed_outputs(self.preview.steps, self.reports))
        differences = compare_patch(accepted, found, self.preview.origins)
        if not differences:
            return None
        digest = self._digest(actual)
        if digest in self.promotion.accepted:
            return None
        return Stop(
            f"{step.alias} would commit something else than was approved",
            digest,
            tuple(str(difference) for difference in differences),
        )

    def _without_states(self, changes: Sequence[Change], checkout: str) -> tuple[Change, ...]:
        """The changes less Terraform states that are kept in Git: an apply changes them, and nobody reviews them."""
        states = {path for apply in self.preview.applies for path in apply.state_files}
        return tuple(change for change in changes if not {change.path, join(checkout, change.path)} & states)

    def _wanted(self, record: CommitRecord) -> list[Change]:
        """The approved patch less what the branch holds already, by the merge or by an earlier push of this walk."""
        if record.checkout not in self.preview.checkouts or self.base is None:
            return list(record.changes)
        # Without a merge nothing was prepared, so every change is still to be committed.
        unmerged = self.merge is None
        deferred = {change.path for change in self.preview.split.deferred.changes}
        files = self.tree.checkout_at(record.checkout).files
        return [
            change
            for change in record.changes
            if (unmerged or change.path in deferred)
            and files.get(change.path) != (change.after and change.after.entry)
        ]

    def _digest(self, changes: tuple[Change, ...]) -> str:
        text = canonical([[c.path, c.after.data.hex() if c.after is not None else None] for c in changes])
        return self.vault.digest(text)[:DIGEST_LENGTH]
