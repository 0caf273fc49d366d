"""Whether a branch with commits of people holds what the task writes (section 7 of the review gate).

It does if the merge has, on every path that the prepared zone writes, the blob that the zone writes from the base. The
zone is then not run on its own result: a number that grows with each release has grown. Else the branch holds if the
zone, run on the merge, changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.domain.files import CommitId, Entry, File
from bot.domain.review import CommitRecord, Presence, Split, StepReport
from bot.domain.splitting import Place, find_cut, find_published, goes_to
from bot.domain.step_kinds import StepClass
from bot.ports import Git
from bot.steps.worktree import WorkTree

_MADE_ANEW = (StepClass.INFRA, StepClass.REVIEW)
_LOCAL = (StepClass.COMMIT, StepClass.PUBLISH)
_MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class Zone:
    """The prepared zone as it ran from the base, all of whose bytes the merge has.

    `reports` are those of its steps, `public` is the index of the last commit that it pushes to the target (-1 for
    none), `inputs` are the files that it prepares for Terraform alone, and `written` all that it writes, both inside
    the target's checkout.
    """

    place: Place
    reports: tuple[StepReport, ...]
    public: int
    inputs: frozenset[str]
    written: Mapping[str, Entry | None]

    async def recall(self, index: int, before: Sequence[StepReport], tree: WorkTree) -> StepReport | None:
        """The report of a step as it ran from the base; None if it must run on the merge.

        Checkouts are of the merge, and so is what Terraform says. What is committed only later is edited anew, so that
        it stands beside the edits of people. `before` are the reports of this walk so far: from a cut of its own on, or
        where Terraform says something else than from the base, nothing is recalled.
        """
        if index >= len(self.reports) or self._is_other(before):
            return None
        report = self.reports[index]
        if report.step_class in _MADE_ANEW or report.kind == "git-clone":
            return None
        if index > self.public:
            ours = {
                inner for path in _paths(report) if (inner := _inside(tree, self.place, path)) is not None
            }
            if report.step_class in _LOCAL or not ours <= self.inputs:
                return None
        # What lies elsewhere is in no merge, so it is put where the steps behind look for it.
        await tree.put({c.path: c.after for c in report.changes if _inside(tree, self.place, c.path) is None})
        if isinstance(report.record, CommitRecord) and report.record.changes:
            elsewhere = report.record.checkout != self.place.checkout
            tree.commit(
                report.record.checkout, report.record.message, report.record.changes if elsewhere else ()
            )
        return report

    def why_not_held(self, split: Split) -> str:
        """Why the walk on the merge does not let the branch hold after all, empty if it holds.

        A cut of its own may leave to later what the branch has already; done once more it would be done twice.
        """
        if split.cut >= len(self.reports):
            return ""
        twice = sorted(change.path for change in split.deferred.changes if change.path in self.written)
        return _not_held(twice) if twice else ""

    def _is_other(self, before: Sequence[StepReport]) -> bool:
        if find_cut(before, self.place) < len(before):
            return True
        return any(
            (now.presence, now.status, now.output) != (then.presence, then.status, then.output)
            for now, then in zip(before, self.reports, strict=False)
            if now.step_class is StepClass.INFRA
        )


async def find_zone(
    git: Git, place: Place, split: Split, ran: tuple[Sequence[StepReport], WorkTree], merge: CommitId
) -> Zone | None:
    """The prepared zone of a walk from the base, if the merge has all that it writes; None if it has not.

    `ran` are the reports and the tree of that walk. A path that the zone addresses without changing it counts as well:
    there the merge must have what the base has.
    """
    reports, tree = ran
    zone = tuple(reports[: split.cut])
    if not split.prepared or any(report.presence is Presence.NOT_REACHED for report in zone):
        return None
    prepared = {change.path: change.after for commit in split.prepared for change in commit.changes}
    written = {path: None if file is None else file.entry for path, file in prepared.items()}
    base = tree.checkout_at(place.checkout).files
    public = last_public(zone, place)
    for report in zone[: public + 1]:
        for path in report.wrote:
            inner = _inside(tree, place, path)
            if inner is not None:
                written.setdefault(inner, base.get(inner))
    merged = await git.list_files(place.target.url, merge)
    if any(merged.get(path) != entry for path, entry in written.items()):
        return None
    return Zone(place, zone, public, find_inputs(split, zone, place), written)


def why_not_held(written: Mapping[str, File | None], merged: Mapping[str, Entry]) -> str:
    """Why a merge does not hold these files, empty if it does."""
    missing = [
        path for path, file in written.items() if merged.get(path) != (None if file is None else file.entry)
    ]
    return _not_held(sorted(missing)) if missing else ""


def find_inputs(split: Split, zone: Sequence[StepReport], place: Place) -> frozenset[str]:
    """The prepared files that no push of the zone publishes: Terraform reads them. Paths inside the checkout."""
    behind = split.prepared[len(find_published(zone, place)) :]
    return frozenset(change.path for commit in behind for change in commit.changes)


def last_public(zone: Sequence[StepReport], place: Place) -> int:
    """The index of the last commit that a push of the zone brings to the target, -1 for none."""
    waiting = public = -1
    for report in zone:
        if report.presence is not Presence.CERTAIN:
            continue
        record = report.record
        if isinstance(record, CommitRecord) and record.checkout == place.checkout and record.changes:
            waiting = report.index
        if goes_to(report, place):
            public = waiting
    return public


def _paths(report: StepReport) -> frozenset[str]:
    return report.wrote | {change.path for change in report.changes}


def _inside(tree: WorkTree, place: Place, path: str) -> str | None:
    """The path inside the target's checkout, None if it lies elsewhere."""
    found = tree.find_checkout(path)
    return found[2] if found is not None and found[0] == place.checkout else None


def _not_held(paths: Sequence[str]) -> str:
    names = ", ".join(paths[:_MOST_NAMES])
    return f"the branch does not hold what the task writes to {names}: set it back, or rebuild it with `/promote`"
