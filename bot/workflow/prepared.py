"""The prepared zone of the second walk: its steps keep what the preview found, since their bytes are in the merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bot.domain.files import CommitId
from bot.domain.model import Step
from bot.domain.promotion import StepStatus
from bot.domain.review import FrozenRecord, Preview, StepReport
from bot.domain.splitting import Place
from bot.domain.step_kinds import StepClass
from bot.domain.values import Value, has_empty_secret
from bot.steps.worktree import WorkTree, join
from bot.workflow.holding import find_inputs, last_public
from bot.workflow.merges import is_merged, is_public

_ASKED_AGAIN = (StepClass.INFRA, StepClass.READ, StepClass.PURE)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was approved, the tree of the walk, and the merge that the walk stands on (None: nothing was merged)."""

    preview: Preview
    tree: WorkTree
    merge: CommitId | None

    async def report(self, step: Step, approved: StepReport) -> StepReport | None:
        """The report of a step of the prepared zone, its bytes restored where they are not in the merge."""
        if approved.step_class is StepClass.REVIEW and approved.status is StepStatus.SKIPPED:
            return approved
        if approved.index >= self.preview.split.cut or step.uses == "git-clone":
            return None
        if approved.step_class in _ASKED_AGAIN and has_empty_secret(dict(approved.output)):
            # Secrets are never stored, so the step that reads one is the only place to have it from.
            return None
        match approved.step_class:
            case StepClass.COMMIT if not is_public(approved, self.preview):
                return None
            case StepClass.COMMIT | StepClass.PUBLISH if is_merged(approved, self.preview, self.merge):
                merged: Mapping[str, Value] = {**approved.output, "commit": self.merge or ""}
                return replace(approved, status=StepStatus.SUCCEEDED, output=merged)
            case StepClass.WAIT | StepClass.NOTE | StepClass.REVIEW:
                return None
            case StepClass.INFRA if approved.status is None or step.uses == "tf-apply":
                return None
            case StepClass.INFRA if step.uses == "tf-output" and isinstance(approved.record, FrozenRecord):
                # What a state answered is asked again: another answer stops the walk before any effect.
                return None
            case StepClass.EDIT:
                await self._restore(approved)
        return approved

    async def _restore(self, approved: StepReport) -> None:
        """Write what an edit of the prepared zone wrote, unless the merge holds it."""
        preview = self.preview
        place = Place(preview.target, preview.checkout, preview.source)
        zone = preview.steps[: preview.split.cut]
        brought = set(preview.differences)
        if approved.index > last_public(zone, place):
            # Of such a file the merge may hold other lines, of people or of an earlier commit: this edit is in none.
            later = {change.path for change in preview.split.deferred.changes}
            brought -= later - find_inputs(preview.split, zone, place)
        merged = {join(checkout, path) for checkout in preview.checkouts for path in brought}
        for change in approved.changes:
            if change.path in merged:
                continue
            if change.after is None:
                await self.tree.delete(change.path)
            else:
                await self.tree.write(change.path, change.after.data, mode=change.after.mode)
