"""Which rows follow from markers, by tables: what is certain is restored, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from bot.domain.audit import AuditHead
from bot.domain.auto_promotion import Hold
from bot.domain.files import CommitId
from bot.domain.freight import Freight, FreightName, FreightOrigin
from bot.domain.github import DeploymentState, PullNumber, PullRequest, Repository, User
from bot.domain.marker import AppliedInputs, Marker, Standing
from bot.domain.model import Metadata, Stage, Verification
from bot.domain.promotion import Promotion, State, Target
from bot.domain.review_policy import ReviewPolicy
from bot.ports.restoring import DeploymentResult, Rebuilt
from bot.workflow.configuration import Configuration
from bot.workflow.rebuilding import LOST, Branch, Evidence, Unrestored, rebuild_rows

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=9)
URL = "https://github.example/acme/operations.git"
ORIGIN = FreightOrigin("apps")
OLD = Freight(FreightName("a" * 40), "shop", "old-otter", ORIGIN, NOW)
NEW = Freight(FreightName("b" * 40), "shop", "new-newt", ORIGIN, NOW + timedelta(hours=1))


@dataclass(frozen=True, slots=True)
class Stages:
    """A configuration with these Stages of `shop`; `measured` ones have a verification, `early` ones apply before
    the merge."""

    names: tuple[str, ...] = ("dev", "prod")
    measured: tuple[str, ...] = ()

    early: tuple[str, ...] = ()

    def policy(self, stage: Stage) -> ReviewPolicy:
        return ReviewPolicy(apply="BeforeMerge" if stage.metadata.name in self.early else "AfterMerge")

    def stage(self, project: str, name: str) -> Stage | None:
        if project != "shop" or name not in self.names:
            return None
        verification = Verification() if name in self.measured else None
        return Stage(Metadata(name, project), (), verification=verification)


def pull(number: int, state: str) -> PullRequest:
    return PullRequest(
        repository=Repository("acme", "operations"),
        number=PullNumber(number),
        title="",
        body="",
        open=state == "open",
        merged=state == "merged",
        head=CommitId("c" * 40),
        head_branch="lockstep/shop/dev",
        base_branch="main",
        author=User("lockstep[bot]", 1, bot=True),
        url="",
        merge_commit=CommitId("d" * 40) if state == "merged" else None,
    )


def evidence(number: int, is_now: str = "merged", **said: object) -> Evidence:
    """What is known of the pull request of that number, made so many hours after NOW; `said` is its marker's."""
    at = NOW + timedelta(hours=number)
    marker = Marker(
        promotion=f"dev.{number}",
        project="shop",
        stage="dev",
        freight=OLD,
        digest="d1",
        state="Succeeded",
        created_at=at,
        finished_at=at + timedelta(minutes=30),
        target=Target(URL, "main"),
        actor="olivia",
        actor_id=7,
    )
    told = replace(marker, **said)  # type: ignore[arg-type]
    return Evidence(f"acme/operations#{number}", told, pull(number, is_now), URL, by_body=True)


def rows(*found: Evidence, stages: Stages | None = None) -> tuple[Rebuilt, list[Unrestored]]:
    rebuilt, unrestored = rebuild_rows(found, cast(Configuration, stages or Stages()), LATER)
    return rebuilt, list(unrestored)


def only(*found: Evidence) -> Promotion:
    (promotion,) = rows(*found)[0].promotions
    return promotion


SUCCESS = DeploymentResult(DeploymentState.SUCCESS, NOW + timedelta(days=1))
FAILURE = DeploymentResult(DeploymentState.FAILURE, NOW + timedelta(days=1))


@pytest.mark.parametrize(
    ("found", "state", "blocked", "says"),
    [
        (evidence(1), State.SUCCEEDED, False, "it ended Succeeded"),
        (evidence(1, state="Failed", reason="no quota"), State.FAILED, True, "no quota"),
        (evidence(1, state="Fulfilling"), State.ERRORED, True, LOST),
        (evidence(1, state="Review"), State.ERRORED, True, LOST),
        (evidence(1, state="Nonsense"), State.ERRORED, True, LOST),
        (replace(evidence(1), by_body=False), State.ERRORED, True, LOST),
        (replace(evidence(1, state="Fulfilling"), result=SUCCESS), State.SUCCEEDED, False, "deployment"),
        (replace(evidence(1, state="Fulfilling"), result=FAILURE), State.ERRORED, True, LOST),
        (evidence(1, state="Aborted", reason="reverted"), State.ABORTED, False, "reverted"),
        (evidence(1, "closed", state="Review"), State.ABORTED, False, "old-otter is rejected here"),
        (evidence(1, "open", state="Review"), State.QUEUED, False, "previewed again"),
    ],
    ids=[
        "what succeeded has succeeded",
        "what failed holds its Stage",
        "what was under way holds its Stage until a person acts",
        "what was merged before it was seen holds its Stage until a person acts",
        "a state that nobody knows holds its Stage until a person acts",
        "a commit alone never tells of an end",
        "a deployment tells of a success that the body does not tell yet",
        "a failed deployment may have stopped, so a person acts",
        "what was reverted holds nothing",
        "what was closed is rejected",
        "what is open is previewed again",
    ],
)
def test_how_far_a_promotion_came(found: Evidence, state: State, blocked: bool, says: str) -> None:
    promotion = only(found)
    assert (promotion.state, promotion.blocked) == (state, blocked)
    assert says in promotion.reason
    assert (promotion.actor, promotion.actor_id, promotion.pull) == ("olivia", 7, 1)


def test_an_open_one_keeps_its_name_and_knows_which_commits_are_ours() -> None:
    branch = Branch(CommitId("e" * 40), (CommitId("f" * 40),))
    promotion = only(replace(evidence(4, "open", pushers=(3,), rollback=True), branch=branch))
    assert (promotion.id, promotion.pushers, promotion.rollback) == ("dev.4", (3,), True)
    assert (promotion.base, promotion.own_commits, promotion.heads) == (branch.base, branch.own, ())
    assert promotion.digest == ""


def test_a_stage_has_what_arrived_last_and_soak_counts_as_it_did() -> None:
    rebuilt, unrestored = rows(evidence(1), evidence(3, freight=NEW))
    (record,) = rebuilt.stages
    assert [collection.items[ORIGIN] for collection in record.history] == [NEW.name, OLD.name]
    assert record.since == NOW + timedelta(hours=3, minutes=30)
    status = {item.freight.alias: item.status for item in rebuilt.freight}
    assert status["old-otter"].currently_in == {}
    assert status["old-otter"].verified_in["dev"].longest_soak == 7200
    assert status["new-newt"].currently_in == {"dev": record.since}
    assert unrestored == []


def test_where_a_stage_measures_only_what_was_proven_is_verified() -> None:
    proven = NOW + timedelta(hours=2)
    measured = Stages(measured=("dev",))
    first, second = evidence(1, verified_at=proven), evidence(3, freight=NEW)
    status = {item.freight.alias: item.status for item in rows(first, second, stages=measured)[0].freight}
    assert status["old-otter"].verified_in["dev"].verified_at == proven
    assert status["new-newt"].verified_in == {}


def test_only_the_last_failure_holds_its_stage() -> None:
    rebuilt, _ = rows(evidence(1, state="Failed"), evidence(2), evidence(3, "open", freight=NEW))
    assert [promotion.blocked for promotion in rebuilt.promotions] == [False, False, False]


def test_a_stage_has_one_open_promotion_and_the_others_are_named() -> None:
    rebuilt, unrestored = rows(evidence(1, "open"), evidence(2, "open", freight=NEW))
    assert [promotion.id for promotion in rebuilt.promotions] == ["dev.2"]
    assert [item.why for item in unrestored] == ["dev has a newer open pull request; close this one"]


def test_an_open_one_of_a_stage_that_is_gone_is_named() -> None:
    rebuilt, unrestored = rows(evidence(1, "open"), stages=Stages(names=("prod",)))
    assert rebuilt.promotions == ()
    assert "no Stage shop/dev" in unrestored[0].why


def test_what_people_decided_is_that_of_the_newest_marker() -> None:
    hold = Hold(ORIGIN, OLD.name, "dev.1", NOW, "wait")
    before = Standing(frozen="long ago")
    now = Standing(holds=(hold,), quarantine=(NEW.name,), differs="reverted")
    rebuilt, _ = rows(evidence(1, standing=before), evidence(2, standing=now))
    (record,) = rebuilt.stages
    assert (record.holds, record.frozen) == ({ORIGIN: hold}, "")
    assert (record.quarantine, record.differs) == ((NEW.name,), "reverted")


def inputs(hour: int, digest: str) -> AppliedInputs:
    return AppliedInputs("state", digest, "c", NOW + timedelta(hours=hour))


@pytest.mark.parametrize(
    ("found", "known"),
    [
        ((evidence(1, applied=(inputs(1, "i1"),)), evidence(2, applied=(inputs(2, "i2"),))), "i2"),
        ((evidence(1, applied=(inputs(1, "i1"),)), evidence(2)), "i1"),
        ((evidence(1, applied=(inputs(1, "i1"),)), evidence(2, state="Fulfilling")), ""),
        ((evidence(1, applied=(inputs(1, "i1"),)), evidence(2, state="Failed")), ""),
        ((evidence(1, state="Failed"), evidence(2, applied=(inputs(2, "i2"),))), "i2"),
        ((evidence(1, applied=(inputs(1, "i1"),)), evidence(2, "open")), "i1"),
    ],
    ids=[
        "the last apply counts",
        "a release without Terraform leaves it",
        "what was under way may have applied: it is planned again",
        "what failed may have applied: it is planned again",
        "a success behind a failure counts",
        "what is open has applied nothing",
    ],
)
def test_what_is_known_as_applied(found: tuple[Evidence, ...], known: str) -> None:
    rebuilt, _ = rows(*found)
    assert "".join(item.inputs for item in rebuilt.applied) == known


EARLIER = evidence(1, applied=(inputs(1, "i1"),))
BEFORE_MERGE = Stages(early=("dev",))


@pytest.mark.parametrize(
    ("found", "stages", "known"),
    [
        (evidence(2, "open", state="Fulfilling"), Stages(), ""),
        (evidence(2, "open", state="Stopped"), Stages(), ""),
        (evidence(2, "closed", state="Stopped"), Stages(), ""),
        (evidence(2, "open", state="Review"), BEFORE_MERGE, ""),
        (evidence(2, "open", state="Review"), Stages(), "i1"),
        (evidence(2, "closed", state="Aborted", applied=(inputs(2, "i2"),)), BEFORE_MERGE, "i2"),
        (evidence(2, "closed", state="Aborted"), BEFORE_MERGE, "i1"),
        (replace(evidence(2, state="Fulfilling"), pull=None), Stages(), ""),
        (replace(evidence(0, state="Fulfilling"), pull=None), Stages(), "i1"),
    ],
    ids=[
        "it was being applied before its merge",
        "its apply before the merge stopped",
        "that, and it was closed since",
        "its body may not tell yet that it was applied before its merge",
        "under a policy that applies after the merge it is certain",
        "what ended before its merge tells what it applied",
        "or that it applied nothing",
        "a deployment alone tells of a re-promotion, which may have applied",
        "an older one than the last release tells nothing",
    ],
)
def test_what_may_be_applied_without_a_merge_of_ours_is_planned_again(
    found: Evidence, stages: Stages, known: str
) -> None:
    rebuilt, _ = rows(EARLIER, found, stages=stages)
    assert "".join(item.inputs for item in rebuilt.applied) == known


def test_an_open_one_that_undoes_drift_goes_on_doing_so() -> None:
    assert only(evidence(4, "open", corrects=True)).corrects


def test_a_release_commit_tells_what_was_applied_but_not_that_it_arrived() -> None:
    alone = replace(
        evidence(1, state="Fulfilling", applied=(inputs(1, "i1"),)), pull=None, commit=CommitId("9" * 40)
    )
    rebuilt, unrestored = rows(alone)
    assert (rebuilt.promotions, rebuilt.stages, len(rebuilt.applied)) == ((), (), 1)
    assert "so it is promoted again" in unrestored[0].why


def test_the_log_goes_on_behind_the_newest_entry_that_a_marker_names() -> None:
    found = [evidence(n, audit=AuditHead(n * 10, str(n) * 64)) for n in (2, 1)]
    assert rows(*found)[0].audit == AuditHead(20, "2" * 64)


def test_what_is_under_way_is_named() -> None:
    _, unrestored = rows(evidence(1, state="Fulfilling"))
    assert [item.why for item in unrestored] == [
        "old-otter was merged, its end is not known: it holds its Stage"
    ]
