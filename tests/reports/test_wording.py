"""Names, times and versions as people read them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.freight import Artifact, Chart, Freight, GitCommit, Image
from bot.domain.terraform import Action, AttributeChange, ResourceChange
from bot.domain.values import Sensitive, Unknown, Value
from bot.reports.body import render_title
from bot.reports.plans import changes_table, holds_data
from bot.reports.wording import compare_versions, duration, plural, step_name, versions_of
from tests.reports.views import NEW, OLD, promotion, view


@pytest.mark.parametrize(
    ("alias", "kind", "name"),
    [
        ("step-5", "yaml-update", "yaml-update"),
        ("promote::step-12", "git-push", "git-push"),
        ("task-1::commit", "git-commit", "commit"),
        ("network", "tf-apply", "network"),
        ("step-5", "", "step-5"),
    ],
)
def test_steps_have_the_name_that_a_person_gave(alias: str, kind: str, name: str) -> None:
    assert step_name(alias, kind) == name


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0.0 s"), (0.42, "0.4 s"), (42, "42 s"), (59.9, "1 min"), (60, "1 min"), (185, "3 min 5 s"),
        (3599.6, "1 h"), (7800, "2 h 10 min"),
    ],
)  # fmt: skip
def test_durations(seconds: float, shown: str) -> None:
    assert duration(timedelta(seconds=seconds)) == shown


def test_numbers_have_their_noun() -> None:
    assert [plural(1, "file"), plural(2, "file"), plural(1500, "reply", "replies")] == [
        "1 file", "2 files", "1,500 replies",
    ]  # fmt: skip


MIXED = Freight(
    NEW.name, "acme", "all-kinds", NEW.origin, NEW.discovered_at,
    commits=(
        GitCommit("https://git.example/acme/app.git", "a" * 40, tag="v1"),
        GitCommit("https://git.example/x", "b" * 40),
    ),
    images=(Image("reg.example/app", "1.0", "sha256:" + "c" * 64),),
    charts=(Chart("oci://reg.example/charts/web", "", "2.0"),),
    artifacts=(Artifact("model", "weights", "7"),),
)  # fmt: skip


def test_every_kind_of_artifact_has_a_name_and_a_version() -> None:
    assert [(v.name, v.tag, v.exact) for v in versions_of(MIXED)] == [
        ("app", "1.0", "c" * 12),
        ("web", "2.0", ""),
        ("app", "v1", "a" * 12),
        ("x", "", "b" * 12),
        ("weights", "7", ""),
    ]


def test_artifacts_that_come_and_go_are_changes() -> None:
    fewer = replace(MIXED, charts=(), images=(*MIXED.images, Image("reg.example/new", "1")))
    changes = compare_versions(MIXED, fewer)
    assert [(c.name, c.before is None, c.after is None) for c in changes if c.is_change] == [
        ("new", True, False),
        ("web", False, True),
    ]


@pytest.mark.parametrize(
    ("current", "freight", "rollback", "title"),
    [
        (OLD, NEW, False, "acme/staging: otel-app 1.0.0 → 1.1.0, lambda-app 1.0.0 → 1.1.0 (solar-marmot)"),
        (NEW, OLD, True, "acme/staging: roll back otel-app 1.1.0 → 1.0.0, lambda-app 1.1.0 → 1.0.0 (brisk-hawk)"),
        (None, NEW, False, "acme/staging: otel-app 1.1.0, lambda-app 1.1.0 (solar-marmot)"),
        (NEW, NEW, False, "acme/staging: solar-marmot"),
        (
            replace(NEW, images=(replace(NEW.images[0], digest="sha256:0"), NEW.images[1])), NEW, False,
            "acme/staging: otel-app 1.1.0 (new digest) (solar-marmot)",
        ),
        (
            None, replace(NEW, images=tuple(Image(f"reg.example/app-{n}", "1.2.3") for n in range(9))), False,
            f"acme/staging: {', '.join(f'app-{n} 1.2.3' for n in range(6))} and 3 more (solar-marmot)",
        ),
        (
            None, replace(NEW, images=(Image("reg.example/" + "x" * 200, "1"), Image("reg.example/b", "1"))), False,
            "acme/staging: 2 changes (solar-marmot)",
        ),
        (
            None, replace(NEW, images=(Image("r/@acme#1", "GH-1"),)), False,
            "acme/staging: ＠acme＃1 GH‑1 (solar-marmot)",
        ),
    ],
)  # fmt: skip
def test_titles(current: Freight | None, freight: Freight, rollback: bool, title: str) -> None:
    assert (
        render_title(view(current=current, promotion=promotion(freight=freight, rollback=rollback))) == title
    )


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (128, 256, "update: `x` `128` → `256`"),
        ("a" * 80 + "b", "a" * 80 + "c", f"update: `x` `…{'a' * 15}b` → `…{'a' * 15}c`"),
        ("old", Sensitive("password", "hunter2"), "update: `x` `old` → `<sensitive: password>`"),
        ("old", Unknown("known after apply: x"), "update: `x` `old` → `<known after apply: x>`"),
        (["a"], ["b"], "update: `x`"),
        (None, "new", "update: `x`"),
        (True, None, "update: `x` `true` → `null`"),
    ],
)
def test_an_update_shows_what_becomes_of_a_value(before: Value, after: Value, shown: str) -> None:
    change = ResourceChange("a.b", "a", Action.UPDATE, (AttributeChange("x", before, after),))
    assert changes_table([change]).split("\n")[-1] == f"| `~` | `a.b` | {shown} |"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("aws_db_instance", True), ("google_dns_managed_zone", True), ("aws_s3_bucket", True), ("aws_iam_role", True),
        ("aws_lambda_function", False), ("aws_security_group_rule", False), ("null_resource", False),
    ],
)  # fmt: skip
def test_kinds_whose_loss_cannot_be_undone(kind: str, data: bool) -> None:
    assert holds_data(ResourceChange("a.b", kind, Action.DELETE)) is data
