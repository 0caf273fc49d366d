"""What a pull request holds follows from when the task itself would make it public."""

from __future__ import annotations

import pytest

from bot.domain.promotion import StepStatus, Target
from bot.domain.review import ApplyKind, Lane, Pin, Presence, Split, StepReport
from bot.domain.splitting import Place, choose_lane, choose_place, split_task
from bot.domain.step_kinds import StepClass
from bot.domain.values import Text, Unknown
from tests.domain import reviews as b

PLACE = Place(b.MAIN, "src")
TFVARS, VALUES = "tf/env.auto.tfvars", "helm/values.yaml"
LATE = Unknown("known after apply: lambda_url")


def split(*reports: StepReport) -> Split:
    return split_task(b.steps(*reports), (b.SOURCE,), PLACE, "prepare dev calm-otter")


def prepared(answer: Split) -> dict[str, list[str]]:
    return {c.message: [change.path for change in c.changes] for c in answer.prepared}


def deferred(answer: Split) -> list[str]:
    return [change.path for change in answer.deferred.changes]


def test_terraforms_input_is_prepared_and_the_values_wait_for_the_apply() -> None:
    answer = split(
        b.clone(),
        b.edit(TFVARS),
        b.apply(),
        b.edit(VALUES, tainted=True),
        b.commit(TFVARS, VALUES, message=Text(("x ", LATE))),
        b.push(),
        b.sync(),
    )
    assert answer.cut == 2
    assert prepared(answer) == {"prepare dev calm-otter": [TFVARS]}
    assert deferred(answer) == [VALUES]


def test_values_written_above_the_apply_wait_too_because_their_push_stands_behind_it() -> None:
    answer = split(b.clone(), b.edit(VALUES), b.edit(TFVARS), b.apply(), b.commit(TFVARS, VALUES), b.push())
    assert prepared(answer) == {"prepare dev calm-otter": [TFVARS]}
    assert deferred(answer) == [VALUES]


def test_what_is_pushed_before_the_apply_is_prepared_with_its_own_message() -> None:
    answer = split(b.clone(), b.edit(TFVARS), b.commit(TFVARS, message="infra"), b.push(), b.apply())
    assert answer.cut == 4
    assert prepared(answer) == {"infra": [TFVARS]}
    assert deferred(answer) == []


def test_an_image_only_release_is_prepared_whole() -> None:
    answer = split(
        b.clone(),
        b.apply(ApplyKind.UNCHANGED),
        b.edit(VALUES),
        b.commit(VALUES, message="m"),
        b.push(),
        b.sync(),
    )
    assert answer.cut == 5
    assert prepared(answer) == {"m": [VALUES]}
    assert deferred(answer) == []


def test_edits_behind_an_effect_wait_for_it() -> None:
    answer = split(b.clone(), b.act(), b.edit(VALUES), b.commit(VALUES), b.push())
    assert answer.cut == 1
    assert answer.prepared == ()
    assert deferred(answer) == [VALUES]


def test_a_file_published_twice_is_prepared_once_and_its_second_content_waits() -> None:
    answer = split(
        b.clone(),
        b.edit(VALUES, "one\n"),
        b.commit(VALUES, after="one\n", message="first"),
        b.push(),
        b.act(),
        b.edit(VALUES, "two\n"),
        b.commit(VALUES, after="two\n", message="second"),
        b.push(),
    )
    assert prepared(answer) == {"first": [VALUES]}
    (change,) = answer.deferred.changes
    assert change.before is not None
    assert change.after is not None
    assert (change.before.data, change.after.data) == (b"one\n", b"two\n")


def test_a_push_to_another_repository_is_a_cut_and_its_patch_is_shown_apart() -> None:
    answer = split(
        b.clone(), b.edit(VALUES), b.commit(VALUES), b.push(url="https://git.example/acme/other.git")
    )
    assert answer.cut == 3
    assert answer.prepared == ()
    assert [(p.target.url, [c.path for c in p.changes]) for p in answer.others] == [
        ("https://git.example/acme/other.git", [VALUES])
    ]


def test_a_read_after_a_push_that_has_something_to_push_is_a_cut() -> None:
    reading = b.report("http", StepClass.READ)
    answer = split(b.clone(), b.edit(VALUES), b.commit(VALUES), b.push(), reading)
    assert answer.cut == 4
    assert split(b.clone(), b.push(commits=0), reading).cut == 3


def test_a_step_whose_condition_is_unknown_is_a_cut_unless_it_is_a_note() -> None:
    maybe = b.report("yaml-update", StepClass.EDIT, presence=Presence.CONDITIONAL)
    note = b.report("set-metadata", StepClass.NOTE, presence=Presence.CONDITIONAL)
    assert split(b.clone(), note, maybe).cut == 2


def test_a_skipped_step_is_never_a_cut() -> None:
    skipped = b.report("http", StepClass.ACT, presence=Presence.SKIPPED, status=StepStatus.SKIPPED)
    assert split(b.clone(), skipped).cut == 2


def test_turning_a_known_value_into_an_unknown_one_never_prepares_more() -> None:
    known = split(b.clone(), b.edit(TFVARS), b.apply(), b.edit(VALUES), b.commit(TFVARS, VALUES), b.push())
    unknown = split(b.clone(), b.edit(TFVARS, tainted=True), b.apply(), b.commit(TFVARS), b.push())
    assert prepared(known) == {"prepare dev calm-otter": [TFVARS]}
    assert unknown.prepared == ()


def test_edits_that_no_push_publishes_are_scratch() -> None:
    assert split(b.clone(), b.edit("notes.txt"), b.sync()).scratch == ("src/notes.txt",)


def test_an_edit_of_terraforms_directory_behind_its_apply_is_warned_of() -> None:
    answer = split(b.clone(), b.apply(), b.edit(TFVARS), b.commit(TFVARS), b.push())
    assert answer.warnings == (
        "yaml-update-2 edits src/tf/env.auto.tfvars after it was applied: the tree will not be what was applied",
    )


@pytest.mark.parametrize(
    ("reports", "lane"),
    [
        pytest.param((b.clone(), b.sync()), Lane.NO_OP, id="nothing but a quiet sync"),
        pytest.param(
            (b.edit(VALUES), b.commit(VALUES), b.push(), b.sync()), Lane.COMPLETE, id="all in the diff"
        ),
        pytest.param((b.act(),), Lane.EFFECTS, id="only an effect"),
        pytest.param(
            (b.act(), b.edit(VALUES), b.commit(VALUES), b.push()), Lane.EFFECTS, id="edits behind an effect"
        ),
        pytest.param(
            (b.edit(TFVARS), b.commit(TFVARS), b.push(), b.apply()), Lane.INFRA_ONLY, id="an apply alone"
        ),
        pytest.param((b.apply(ApplyKind.OUTPUTS_ONLY),), Lane.INFRA_ONLY, id="outputs alone"),
        pytest.param(
            (b.edit(TFVARS), b.apply(), b.edit(VALUES), b.commit(TFVARS, VALUES), b.push()),
            Lane.COORDINATED,
            id="values behind an apply",
        ),
    ],
)
def test_the_lane_says_what_kind_of_pull_request_it_is(reports: tuple[StepReport, ...], lane: Lane) -> None:
    listed = b.steps(b.clone(), *reports)
    answer = split_task(listed, (b.SOURCE,), PLACE, "t")
    found, reason = choose_lane(listed, answer, has_diff=bool(answer.prepared))
    assert found is lane
    assert reason.endswith(".")


def test_a_coordinated_lane_names_the_values_that_are_missing() -> None:
    late = b.edit(VALUES, tainted=True, config={"updates": [{"key": "env.URL", "value": LATE}]})
    listed = b.steps(b.clone(), b.edit(TFVARS), b.apply(), late, b.commit(TFVARS, VALUES), b.push())
    _, reason = choose_lane(listed, split_task(listed, (b.SOURCE,), PLACE, "t"), has_diff=True)
    assert "lambda_url" in reason


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(
            b.report("dns-wait", StepClass.WAIT, tainted=True, config={"host": Text(("api.", LATE))}),
            id="by what is waited for",
        ),
        pytest.param(
            b.report("http", StepClass.ACT, config={"body": {"url": LATE}}), id="by what somebody is told"
        ),
        pytest.param(
            b.report("fail", StepClass.PURE, presence=Presence.CONDITIONAL, condition=LATE.origin),
            id="by a condition",
        ),
    ],
)
def test_a_value_is_missing_also_where_no_file_holds_it(step: StepReport) -> None:
    listed = b.steps(b.clone(), b.apply(), step, b.edit(VALUES), b.commit(VALUES), b.push())
    lane, reason = choose_lane(listed, split_task(listed, (b.SOURCE,), PLACE, "t"), has_diff=False)
    assert lane is Lane.COORDINATED
    assert reason.endswith("these values exist only after the apply: lambda_url.")


def test_a_commits_message_and_the_merges_commit_are_no_missing_values() -> None:
    sync = b.report("argocd-update", StepClass.ACT, config={"rev": Unknown("known after merge: commit")})
    message = Text(("done: ", Unknown("known after apply: result")))
    listed = b.steps(b.clone(), b.apply(), b.edit(VALUES), b.commit(VALUES, message=message), b.push(), sync)
    _, reason = choose_lane(listed, split_task(listed, (b.SOURCE,), PLACE, "t"), has_diff=False)
    assert "no value is missing" in reason


def test_a_failed_plan_is_a_barrier_like_one_that_has_changes() -> None:
    failed = b.report("tf-apply", StepClass.INFRA, status=StepStatus.FAILED, config={"dir": "src/tf"})
    listed = b.steps(b.clone(), b.edit(TFVARS), failed, b.edit(VALUES), b.commit(TFVARS, VALUES), b.push())
    assert split_task(listed, (b.SOURCE,), PLACE, "t").cut == 2


# -- where the pull request goes -----------------------------------------------------------------------------------

ENV = Pin("out", b.URL, "env/dev", b.BASE)


def test_the_policy_decides_where_the_pull_request_goes() -> None:
    place = choose_place(b.steps(b.clone(), b.push()), (b.SOURCE,), f"{b.URL}#main")
    assert place == PLACE


def test_the_first_push_of_a_checkout_that_is_edited_before_the_apply_decides() -> None:
    other = b.report("git-push", StepClass.PUBLISH, record=None)
    listed = b.steps(b.clone(), b.edit(VALUES), b.apply(), other, b.commit(VALUES), b.push())
    assert choose_place(listed, (b.SOURCE, ENV), "") == PLACE


def test_without_a_push_the_checkout_with_the_terraform_directory_decides() -> None:
    assert choose_place(b.steps(b.clone(), b.apply()), (b.SOURCE,), "") == PLACE


def test_a_task_that_names_no_place_has_none() -> None:
    assert choose_place(b.steps(b.act()), (), "") is None


def test_a_generated_branch_is_no_target() -> None:
    generated = b.push("kargo/promotion/x")
    assert generated.record is not None
    listed = b.steps(b.clone(), b.edit(VALUES), b.push("main"))
    assert choose_place(listed, (b.SOURCE,), "") == Place(Target(b.URL, "main"), "src")
