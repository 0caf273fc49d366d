"""What is stored is read back equal, marks included, and a secret is never stored."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.domain.codec import CodecError, decode, decode_value, encode, encode_value
from bot.domain.files import Change, CommitId, File, TreeId
from bot.domain.freight import Freight, FreightName, FreightOrigin, Image
from bot.domain.model import Retry, Step, Variable
from bot.domain.promotion import Promotion, PromotionId, State, StepRun, StepStatus, Stop, Target
from bot.domain.review import (
    ApplyKind,
    ApplyRecord,
    GateRecord,
    Lane,
    MergeRecord,
    Patch,
    Presence,
    Preview,
    RequestRecord,
    Split,
    StepReport,
)
from bot.domain.step_kinds import StepClass
from bot.domain.terraform import Action, AttributeChange, OutputChange, Plan, ResourceChange
from bot.domain.values import Sensitive, Text, Unknown, Value

AT = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
FREIGHT = Freight(
    name=FreightName("a" * 40),
    project="shop",
    alias="calm-otter",
    origin=FreightOrigin("apps"),
    discovered_at=AT,
    images=(Image("registry.example/app", "1.2.3", "sha256:" + "b" * 64, {"k": "v"}),),
)


def through_json(value: object) -> object:
    return json.loads(json.dumps(encode(value)))


def test_a_promotion_is_read_back_equal() -> None:
    promotion = Promotion(
        id=PromotionId("dev.01.aaaaaaa"),
        project="shop",
        stage="dev",
        freight=FREIGHT,
        collection=(FREIGHT,),
        steps=(
            Step(
                uses="git-push",
                alias="push",
                config={"path": "./src", "n": [1, {"a": None}]},
                retry=Retry(5.0),
            ),
        ),
        variables=(Variable("image", "x"),),
        actor="olivia",
        actor_id=7,
        created_at=AT,
        state=State.STOPPED,
        target=Target("https://git.example/a/b", "main"),
        stop=Stop("differs", "abc", ("one",)),
        head=CommitId("c" * 40),
    )
    assert decode(Promotion, through_json(promotion)) == promotion
    # A row from before tasks could name the branch of their pull request.
    old = through_json(promotion)
    assert isinstance(old, dict)
    del old["source"]
    assert decode(Promotion, old).branch == "lockstep/shop/dev"


def test_a_preview_with_marks_and_records_is_read_back_equal() -> None:
    unknown = Unknown("known after apply: lambda_url")
    plan = Plan(
        resources=(
            ResourceChange(
                "terraform_data.url",
                "terraform_data",
                Action.CREATE,
                (
                    AttributeChange("id", None, unknown),
                    AttributeChange("tags", ["a"], {"k": [Text(("x", unknown))]}),
                ),
            ),
        ),
        drift=(),
        outputs=(OutputChange("lambda_url", Action.CREATE, None, unknown),),
        unchanged_outputs={"region": "eu"},
        digest="d1",
        version="terraform 1.11.4",
        result="",
    )
    record = ApplyRecord(
        state="s",
        directory="tf",
        kind=ApplyKind.CHANGES,
        inputs="i",
        input_paths=frozenset({"b", "a"}),
        plan=plan,
    )
    report = StepReport(
        index=0,
        alias="tf-apply",
        kind="tf-apply",
        step_class=StepClass.INFRA,
        presence=Presence.CERTAIN,
        status=None,
        output={"result": unknown},
        config={"dir": "tf", "$x": {"$unknown": "a user's own key"}},
        changes=(Change("values.yaml", File(b"a: 1\n"), File(b"\xff\n")),),
        wrote=frozenset({"values.yaml"}),
        record=record,
    )
    wait = StepReport(
        1,
        "w",
        "http",
        StepClass.WAIT,
        Presence.CERTAIN,
        StepStatus.RUNNING,
        record=GateRecord("w", open=False),
    )
    asked = replace(
        wait,
        kind="git-open-pr",
        record=RequestRecord("src", "https://git.example/a/b", "release", "main", Text(("v", unknown))),
    )
    merge = replace(wait, kind="git-merge-pr", record=MergeRecord("squash"))
    target = Target("https://git.example/a/b", "main")
    preview = Preview(
        target=target,
        checkout="src",
        base=CommitId("c" * 40),
        tree=TreeId("d" * 40),
        steps=(report, wait, asked, merge),
        split=Split(cut=0, prepared=(), deferred=Patch(target, ())),
        lane=Lane.COORDINATED,
        lane_reason="why",
        differences={"env.auto.tfvars": File(b"x").entry, "gone": None},
        touched=frozenset({"env.auto.tfvars"}),
        problems=(),
        warnings=(),
        origins={"lockstep-unknown-1-x": "known after apply: lambda_url"},
        digest="0123456789abcdef",
        made_at=AT,
    )
    assert decode(Preview, through_json(preview)) == preview


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1,
        1.5,
        "x",
        [1, [2]],
        {"a": {}},
        {"$unknown": ["a", "b"]},
        {"$text": []},
        Text(("a", Unknown("o"))),
    ],
)
def test_values_are_read_back_equal(value: Value) -> None:
    assert decode_value(json.loads(json.dumps(encode_value(value)))) == value


def test_a_sensitive_value_is_never_stored() -> None:
    run = StepRun("o", "tf-output", 1, StepStatus.SUCCEEDED, output={"a": {"b": [Sensitive("db", "s3cret")]}})
    with pytest.raises(CodecError, match="db") as caught:
        encode(run)
    assert "s3cret" not in str(caught.value)


def test_a_missing_field_takes_its_default_and_an_unknown_one_is_passed_over() -> None:
    stored = {"alias": "a", "kind": "k", "attempt": 1, "status": "Failed", "colour": "red"}
    assert decode(StepRun, stored) == StepRun("a", "k", 1, StepStatus.FAILED)


def test_what_does_not_fit_says_where() -> None:
    with pytest.raises(CodecError, match=r"StepRun\.attempt"):
        decode(StepRun, {"alias": "a", "kind": "k", "attempt": "one", "status": "Failed"})
