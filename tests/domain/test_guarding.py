"""Tasks with pull-request steps of their own: what their pull request holds, and which cannot be guarded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.guarding import find_unguarded
from bot.domain.promotion import StepStatus
from bot.domain.review import (
    ApplyKind,
    CommitRecord,
    Lane,
    MergeRecord,
    Pin,
    Presence,
    Problem,
    PublishRecord,
    RequestRecord,
    Split,
    StepReport,
)
from bot.domain.splitting import Place, choose_lane, choose_place, find_cut, split_task
from bot.domain.step_kinds import StepClass
from bot.domain.values import Unknown
from tests.domain import reviews as b

SOURCE = "release/dev"
AFTER = Pin("out", b.URL, "main", b.BASE)
PINS = (b.SOURCE, AFTER)
TFVARS, VALUES = "tf/env.auto.tfvars", "helm/values.yaml"
LATE = Unknown("known after apply: lambda_url")


def opening(source: str = SOURCE, status: StepStatus | None = None) -> StepReport:
    record = RequestRecord("src", b.URL, source, "main", "Release", "Because.")
    return b.report("git-open-pr", StepClass.REVIEW, record=record, status=status)


def waiting(kind: str = "git-wait-for-pr", **changes: object) -> StepReport:
    return b.report(kind, StepClass.REVIEW, status=None, **changes)


def out(report: StepReport) -> StepReport:
    """The same step in the checkout that is made behind the merge."""
    record = report.record
    if isinstance(record, CommitRecord | PublishRecord):
        record = replace(record, checkout="out")
    moved = tuple(replace(c, path=c.path.replace("src/", "out/")) for c in report.changes)
    wrote = frozenset(path.replace("src/", "out/") for path in report.wrote)
    return replace(report, record=record, changes=moved, wrote=wrote)


BEFORE = (b.clone(), b.edit(TFVARS), b.commit(TFVARS, message="infra"), b.push(SOURCE), opening(), waiting())
BEHIND = (b.edit(VALUES, tainted=True), b.commit(VALUES), b.push(commits=2), b.sync())


def split(*reports: StepReport) -> tuple[Place, Split, Problem | None]:
    listed = b.steps(*reports)
    place = choose_place(listed, PINS, "")
    assert place is not None
    answer = split_task(listed, PINS, place, "prepare dev calm-otter")
    return place, answer, find_unguarded(listed, place, answer.cut)


def prepared(answer: Split) -> dict[str, list[str]]:
    return {c.message: [change.path for change in c.changes] for c in answer.prepared}


def test_the_task_says_where_its_pull_request_goes_whatever_the_policy_says() -> None:
    place = choose_place(b.steps(*BEFORE), PINS, f"{b.URL}#other")
    assert place == Place(b.MAIN, "src", SOURCE)


@pytest.mark.parametrize(
    "behind",
    [
        pytest.param((b.apply(), *BEHIND), id="in the same checkout"),
        pytest.param(
            (b.clone(), b.apply(directory="out/tf"), *(out(step) for step in BEHIND)),
            id="in a fresh checkout",
        ),
    ],
)
def test_what_is_pushed_before_the_merge_is_prepared_and_the_rest_waits(
    behind: tuple[StepReport, ...],
) -> None:
    place, answer, problem = split(*BEFORE, *behind)
    assert problem is None
    assert answer.cut == 5
    assert prepared(answer) == {"infra": [TFVARS]}
    assert [change.path for change in answer.deferred.changes] == [VALUES]
    assert (answer.others, answer.scratch) == ((), ())
    assert place.source == SOURCE
    assert choose_lane(b.steps(*BEFORE, *behind), answer, has_diff=True)[0] is Lane.COORDINATED


def test_a_generated_branch_is_the_pull_requests_too() -> None:
    record = PublishRecord("src", b.URL, SOURCE, commits=1, generated=True)
    generated = replace(b.push(SOURCE), record=record)
    _, answer, problem = split(b.clone(), b.edit(VALUES), b.commit(VALUES), generated, opening(), waiting())
    assert problem is None
    assert prepared(answer) == {"release": [VALUES]}


def test_an_edit_of_terraforms_files_behind_the_merge_is_not_brought_forward() -> None:
    late = b.edit(TFVARS, "late\n")
    _, answer, problem = split(*BEFORE, late, b.apply(), b.commit(TFVARS, after="late\n"), b.push(commits=2))
    assert problem is None
    assert prepared(answer) == {"infra": [TFVARS]}
    assert [change.path for change in answer.deferred.changes] == [TFVARS]


def test_a_read_between_the_push_and_the_merge_is_made_before_it() -> None:
    reading = b.report("http", StepClass.READ)
    listed = b.steps(*BEFORE[:4], reading, *BEFORE[4:])
    assert find_cut(listed, Place(b.MAIN, "src", SOURCE)) == 6


def test_without_a_diff_the_rest_is_wrapped() -> None:
    skipped = waiting(presence=Presence.SKIPPED)
    nothing = (b.clone(), b.push(SOURCE, commits=0), opening(status=StepStatus.SKIPPED), skipped)
    place, answer, problem = split(*nothing, b.apply(), *BEHIND)
    assert problem is None
    assert place == Place(b.MAIN, "src", idle=SOURCE)
    assert answer.cut == 4
    assert answer.prepared == ()
    assert [change.path for change in answer.deferred.changes] == [VALUES]
    assert answer.others == ()


@pytest.mark.parametrize(
    ("early", "kind"),
    [
        pytest.param(b.act(), "http", id="an effect"),
        pytest.param(b.apply(), "tf-apply", id="an apply that has changes"),
        pytest.param(b.push("main"), "git-push", id="a push to the target"),
        pytest.param(b.push("elsewhere"), "git-push", id="a push to another branch"),
        pytest.param(b.edit(VALUES, tainted=True), "yaml-update", id="an edit that nobody can foresee"),
    ],
)
def test_nothing_takes_effect_before_the_merge(early: StepReport, kind: str) -> None:
    _, _, problem = split(*BEFORE[:5], early, *BEFORE[5:])
    assert problem is not None
    assert problem.prepared
    assert problem.message.startswith(f"{kind} stands before the step that waits for the merge")


def test_an_apply_with_equal_inputs_may_stand_before_the_merge() -> None:
    _, _, problem = split(*BEFORE[:5], b.apply(ApplyKind.UNCHANGED), *BEFORE[5:])
    assert problem is None


def test_a_pull_request_that_nothing_waits_for_is_refused() -> None:
    _, _, problem = split(*BEFORE[:5])
    assert problem is not None
    assert "add git-wait-for-pr" in problem.message


def test_another_branch_than_the_one_that_holds_peoples_commits_is_refused() -> None:
    listed = b.steps(*BEFORE)
    for source in ("", "release/old"):
        problem = find_unguarded(listed, Place(b.MAIN, "src", source), 5)
        assert problem is not None
        assert "holds commits of people" in problem.message


def test_before_the_pull_request_is_known_a_push_says_nothing_of_its_target() -> None:
    unreached = b.report("git-open-pr", StepClass.REVIEW, presence=Presence.NOT_REACHED, status=None)
    assert choose_place(b.steps(*BEFORE[:4], unreached), PINS, "") is None


def test_a_preview_knows_what_the_task_asks_for() -> None:
    merging = waiting("git-merge-pr", record=MergeRecord("squash"))
    found = b.preview(steps=b.steps(*BEFORE[:5], merging), pins=PINS, source=SOURCE)
    assert found.request is not None
    assert (found.request.title, found.merge_method) == ("Release", "squash")
    assert found.checkouts == ("src", "out")
    assert replace(found, source="").request is None
