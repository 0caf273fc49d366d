"""Where a task's pull request goes, what it holds, and what waits until after the merge.

Everything here follows from the step reports of one preview (sections 4 to 6 of the review gate); paths of reports lie
in the work tree, paths of the answers inside the checkout of the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.domain.files import Change, File
from bot.domain.promotion import StepStatus, Target
from bot.domain.review import (
    ApplyKind,
    ApplyRecord,
    CommitRecord,
    EffectRecord,
    Lane,
    Patch,
    Pin,
    PreparedCommit,
    Presence,
    PublishRecord,
    RequestRecord,
    Split,
    StepReport,
    checkouts_of,
    find_request,
)
from bot.domain.step_kinds import ASKS_PEOPLE, AWAITS_MERGE, StepClass
from bot.domain.values import Text, Unknown

_AFTER_APPLY = "known after apply: "
_ASKING = (StepClass.READ, StepClass.WAIT, StepClass.ACT)
"""What asks or tells the world something; the message of a commit is written in any order."""

_READS = (StepClass.READ, StepClass.WAIT)
_ADDRESSED = (StepClass.EDIT, StepClass.READ, StepClass.WAIT)


@dataclass(frozen=True, slots=True)
class Place:
    """The target of a pull request and the checkout of the work tree that stands for it.

    `source` is the head branch where the task names it: the task is then *guarded*, and what it pushes there is what
    the pull request holds. Else Lockstep names the branch, and the task is *wrapped*. `idle` is the branch that a task
    names for a pull request that would hold nothing: its pushes there push nothing.
    """

    target: Target
    checkout: str
    source: str = ""
    idle: str = ""


def choose_place(steps: Sequence[StepReport], pins: Sequence[Pin], review_in: str) -> Place | None:
    """The repository and branch whose pull request reviews this task; None if the task names none.

    A task that opens its pull request itself says so. `review_in` is the policy's answer, as `URL#BRANCH`. Else it is
    the first branch push whose checkout is edited before the first apply or act, else the first branch push, else the
    checkout with the first Terraform directory.
    """
    asked = next((s.record for s in steps if isinstance(s.record, RequestRecord)), None)
    if asked is not None:
        target = Target(asked.url, asked.target)
        if find_request(steps) is None:
            return Place(target, asked.checkout, idle=asked.source)
        return Place(target, asked.checkout, asked.source)
    by_place = {pin.path: pin for pin in pins}
    if review_in:
        url, _, branch = review_in.partition("#")
        place = next((p.path for p in pins if p.url == url and p.branch == branch), "")
        return Place(Target(url, branch), place)
    pushes = [
        s.record
        for s in steps
        if isinstance(s.record, PublishRecord) and s.record.branch and not s.record.generated
    ]
    if any(s.kind == "git-open-pr" and s.presence is not Presence.SKIPPED for s in steps):
        # It was not reached or refused: what was pushed so far is for its branch, and says nothing of the target.
        pushes = []
    first_act = next(
        (s.index for s in steps if s.kind == "tf-apply" or s.step_class is StepClass.ACT), len(steps)
    )
    edited = {
        place_of(path, by_place)
        for s in steps[:first_act]
        if s.step_class is StepClass.EDIT
        for path in s.wrote
    }
    push = next((p for p in pushes if p.checkout in edited), pushes[0] if pushes else None)
    if push is not None:
        return Place(Target(push.url, push.branch), push.checkout)
    for step in steps:
        if step.step_class is StepClass.INFRA and isinstance(step.config, dict):
            directory = step.config.get("dir")
            holder = place_of(directory, by_place) if isinstance(directory, str) else None
            if holder is not None and by_place[holder].branch:
                return Place(Target(by_place[holder].url, by_place[holder].branch), holder)
    return None


def place_of(path: str, pins: Mapping[str, Pin]) -> str | None:
    """The innermost checkout that holds a path of the work tree."""
    clean = path.removeprefix("./")
    inside = [place for place in pins if place == "." or clean == place or clean.startswith(place + "/")]
    return max(inside, key=len, default=None)


def find_cut(steps: Sequence[StepReport], place: Place) -> int:
    """The index of the first step that may not be anticipated, or the number of steps."""
    published = False
    for step in steps:
        if step.presence in (Presence.SKIPPED, Presence.ON_FAILURE):
            continue
        if step.presence is Presence.NOT_REACHED:
            return step.index
        if _is_cut(step, place, published=published):
            return step.index
        # What a guarded task pushes becomes public only by the merge that it waits for.
        published = published or (not place.source and goes_to(step, place) and _has_commits(step))
    return len(steps)


def _is_cut(step: StepReport, place: Place, *, published: bool) -> bool:
    if step.kind in AWAITS_MERGE:
        return True
    if isinstance(step.record, ApplyRecord) and step.record.kind.is_barrier:
        return True
    if step.kind == "tf-apply" and step.status is StepStatus.FAILED:
        return True
    if step.step_class is StepClass.ACT:
        return True
    if step.step_class is StepClass.PUBLISH and not goes_to(step, place):
        return not _is_idle(step, place)
    if published and step.step_class in _READS:
        return True
    if step.presence is Presence.CONDITIONAL:
        return step.step_class is not StepClass.NOTE
    return step.tainted and step.step_class in _ADDRESSED


def goes_to(step: StepReport, place: Place) -> bool:
    """Whether a step pushes to where the pull request takes its diff from."""
    record = step.record
    if not isinstance(record, PublishRecord) or record.tag or record.url != place.target.url:
        return False
    if place.source:
        return record.branch == place.source
    return not record.generated and record.branch == place.target.branch


def _is_elsewhere(step: StepReport, place: Place) -> bool:
    """Whether a step pushes neither to the pull request nor to its target."""
    ours = goes_to(step, place) or goes_to(step, Place(place.target, place.checkout))
    return not ours and not _is_idle(step, place)


def _is_idle(step: StepReport, place: Place) -> bool:
    record = step.record
    return isinstance(record, PublishRecord) and bool(place.idle) and record.branch == place.idle


def _has_commits(step: StepReport) -> bool:
    return isinstance(step.record, PublishRecord) and step.record.commits > 0


def split_task(steps: Sequence[StepReport], pins: Sequence[Pin], place: Place, title: str) -> Split:
    """What is prepared, what is deferred, and what is for others; `title` is the message of the preparing commit."""
    cut = find_cut(steps, place)
    by_place = {pin.path: pin for pin in pins}
    checkouts = checkouts_of(place.target, place.checkout, pins)
    prepared = find_published(steps[:cut], place)
    state: dict[str, File | None] = {}
    for commit in prepared:
        state |= {change.path: change.after for change in commit.changes}
    inputs = _inputs_of_barriers(steps, cut, place, state)
    if inputs:
        prepared = [*prepared, PreparedCommit(title, tuple(inputs))]
        state |= {change.path: change.after for change in inputs}
    final = _committed(steps, checkouts, place.target)
    deferred = [
        Change(path, state.get(path, change.before), change.after)
        for path, change in sorted(final.items())
        if state.get(path, change.before) != change.after
    ]
    return Split(
        cut=cut,
        prepared=tuple(prepared),
        deferred=Patch(place.target, tuple(deferred)),
        others=tuple(_other_patches(steps, place)),
        scratch=tuple(_scratch(steps, by_place, [*final, *state], checkouts)),
        warnings=tuple(_warnings(steps, cut)),
    )


def find_published(steps: Sequence[StepReport], place: Place) -> list[PreparedCommit]:
    """The commits that these steps themselves push to where the pull request takes them from, in order."""
    waiting: list[PreparedCommit] = []
    public: list[PreparedCommit] = []
    for step in steps:
        if step.presence is not Presence.CERTAIN:
            continue
        if (
            isinstance(step.record, CommitRecord)
            and step.record.checkout == place.checkout
            and step.record.changes
        ):
            waiting.append(PreparedCommit(_message(step.record), step.record.changes))
        if goes_to(step, place):
            public, waiting = public + waiting, []
    return public


def _message(record: CommitRecord) -> str:
    """The task's own message if it is fully known, else none (the title stands in)."""
    return "" if isinstance(record.message, (Unknown, Text)) else str(record.message)


def _inputs_of_barriers(
    steps: Sequence[StepReport], cut: int, place: Place, prepared: Mapping[str, File | None]
) -> list[Change]:
    """Files that Terraform reads behind the cut and that the task edits before it: a reviewer must see those."""
    wanted: dict[str, Change] = {}
    for barrier in steps[cut:]:
        if not isinstance(barrier.record, ApplyRecord) or not barrier.record.kind.is_barrier:
            continue
        # Behind a merge that the task itself waits for an edit is made, and shown, as what is committed later.
        for step in steps[: cut if place.source else barrier.index]:
            if step.step_class is not StepClass.EDIT or step.tainted or step.presence is not Presence.CERTAIN:
                continue
            for change in step.changes:
                inside = inside_checkout(place.checkout, change.path)
                if inside is not None and change.path in barrier.record.input_paths:
                    first = wanted.get(inside)
                    before = first.before if first is not None else change.before
                    wanted[inside] = Change(inside, before, change.after)
    return [c for _, c in sorted(wanted.items()) if prepared.get(c.path, c.before) != c.after]


def _committed(steps: Sequence[StepReport], checkouts: Sequence[str], target: Target) -> dict[str, Change]:
    """Everything that the task commits in some checkouts and pushes to a target, as one change a path."""
    waiting: dict[str, dict[str, Change]] = {checkout: {} for checkout in checkouts}
    public: dict[str, Change] = {}
    for step in steps:
        if step.presence is Presence.SKIPPED:
            continue
        record = step.record
        if isinstance(record, CommitRecord) and record.checkout in waiting:
            _accumulate(waiting[record.checkout], record.changes)
        if isinstance(record, PublishRecord) and record.checkout in waiting and not record.generated:
            goes_there = (record.url, record.branch or f"tag {record.tag}") == (target.url, target.branch)
            if goes_there:
                _accumulate(public, waiting[record.checkout].values())
                waiting[record.checkout] = {}
    return public


def _accumulate(into: dict[str, Change], changes: Iterable[Change]) -> None:
    for change in changes:
        first = into.get(change.path)
        into[change.path] = Change(change.path, first.before if first else change.before, change.after)


def _other_patches(steps: Sequence[StepReport], place: Place) -> list[Patch]:
    targets = {
        (s.record.checkout, Target(s.record.url, s.record.branch or f"tag {s.record.tag}"))
        for s in steps
        if isinstance(s.record, PublishRecord) and _is_elsewhere(s, place)
    }
    patches = []
    for checkout, target in sorted(targets, key=str):
        changes = _committed(steps, [checkout], target)
        patches.append(Patch(target, tuple(change for _, change in sorted(changes.items()))))
    return patches


def _scratch(
    steps: Sequence[StepReport],
    pins: Mapping[str, Pin],
    published: Sequence[str],
    checkouts: Sequence[str],
) -> list[str]:
    """Edited paths that no push publishes; `published` are those that one does, inside the checkouts of the target."""
    public = {_join(checkout, path) for checkout in checkouts for path in published}
    pushed = {s.record.checkout for s in steps if isinstance(s.record, PublishRecord)}
    loose = {
        change.path
        for step in steps
        for change in step.changes
        if change.path not in public and place_of(change.path, pins) not in pushed - set(checkouts)
    }
    return sorted(loose)


def _warnings(steps: Sequence[StepReport], cut: int) -> list[str]:
    found = []
    applied: set[str] = set()
    for step in steps:
        if isinstance(step.record, ApplyRecord) and step.record.kind.is_barrier:
            applied |= step.record.input_paths
        if step.step_class is StepClass.EDIT and step.index > cut:
            late = sorted(path for path in step.wrote if path in applied)
            found += [
                f"{step.alias} edits {path} after it was applied: the tree will not be what was applied"
                for path in late
            ]
    for step in steps:
        if isinstance(step.record, ApplyRecord):
            found += [f"Terraform deploys into the cluster: {where}" for where in step.record.boundary]
    return found


def choose_lane(steps: Sequence[StepReport], split: Split, *, has_diff: bool) -> tuple[Lane, str]:
    """What kind of pull request this is, with the reason that a person reads; `has_diff` if its diff is not empty."""
    waiting = [step for step in steps if _applies_later(step)]
    behind = bool(split.deferred.changes)
    acts = [s for s in steps if _is_effect(s)]
    if waiting and not behind:
        return Lane.INFRA_ONLY, "Terraform is applied after the merge; no file changes behind it."
    if waiting:
        names = [origin.removeprefix(_AFTER_APPLY) for origin in find_missing(steps)]
        why = (
            f"these values exist only after the apply: {', '.join(names)}"
            if names
            else ("no value is missing, but the task asks for this order")
        )
        return Lane.COORDINATED, f"Terraform is applied after the merge, then the rest is committed: {why}."
    if behind or (acts and not has_diff):
        return Lane.EFFECTS, "Nothing is applied, but effects follow the merge."
    if has_diff or any(p.changes for p in split.others):
        return Lane.COMPLETE, "The diff holds the whole change; nothing is applied."
    if any(s.kind in ASKS_PEOPLE and s.presence in (Presence.CERTAIN, Presence.CONDITIONAL) for s in steps):
        return Lane.EFFECTS, "Nothing changes, but the task asks people, and this is where they answer."
    return Lane.NO_OP, "Everything is already as the Freight asks."


def _applies_later(step: StepReport) -> bool:
    if isinstance(step.record, ApplyRecord):
        return step.record.kind.is_barrier or step.record.kind is ApplyKind.OUTPUTS_ONLY
    return step.kind == "tf-apply" and step.status is StepStatus.FAILED


def _is_effect(step: StepReport) -> bool:
    if step.presence in (Presence.SKIPPED, Presence.ON_FAILURE):
        return False
    record = step.record
    return step.step_class is StepClass.ACT and not (isinstance(record, EffectRecord) and record.quiet)


def find_missing(steps: Sequence[StepReport]) -> list[str]:
    """The origins of the values for which the rest waits, sorted.

    These are all that an edit writes, and what an apply gives to a condition, a read, a wait or an act.
    """
    origins: set[str] = set()
    for step in steps:
        if step.step_class is StepClass.EDIT and step.tainted:
            origins |= set(_origins(step.config))
        asked = _origins(step.config) if step.step_class in _ASKING else []
        origins |= {origin for origin in (step.condition, *asked) if origin.startswith(_AFTER_APPLY)}
    return sorted(origins)


def _origins(value: object) -> list[str]:
    match value:
        case Unknown(origin=origin):
            return [origin]
        case Text(parts=parts):
            return [o for part in parts for o in _origins(part)]
        case list():
            return [o for item in value for o in _origins(item)]
        case dict():
            return [o for item in value.values() for o in _origins(item)]
        case _:
            return []


def inside_checkout(place: str, path: str) -> str | None:
    """A path of the work tree as it is inside a checkout, None if it does not lie below it."""
    if place == ".":
        return path
    return path[len(place) + 1 :] if path.startswith(place + "/") else None


def _join(place: str, path: str) -> str:
    return path if place == "." else f"{place}/{path}"
