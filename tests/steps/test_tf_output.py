"""tf-output: from the plan before an apply, from what was recorded or the state otherwise, and compared afterwards."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bot.domain.promotion import StepStatus
from bot.domain.review_policy import ReviewPolicy
from bot.domain.terraform import Output
from bot.domain.values import Sensitive, Unknown, Value
from bot.ports import TerminalError
from bot.steps.contract import Config, StepResult
from bot.steps.git_clone import GitClone
from bot.steps.tf_apply import TfApply
from bot.steps.tf_output import TfOutput
from tests.steps.bench import Bench

DIRECTORY = "src/env/dev/terraform"
WHERE: Config = {"dir": DIRECTORY}
KNOWN = 'fn__image = "app:1"\noutput_name = "otel"\noutput_url = id(fn)\noutput_key = "secret:hunter2"\n'


async def walk(bench: Bench, config: Config, text: str = KNOWN, *, preview: bool = True) -> StepResult:
    """Clone, write the variables, apply and read the outputs."""
    run = bench.preview if preview else bench.fulfil
    checkout: Value = {"path": "src", "branch": "main"}
    await run(GitClone(bench.git), {"repoURL": bench.url, "checkout": [checkout]})
    await bench.tree.write(f"{DIRECTORY}/main.auto.tfvars", text.encode())
    await run(TfApply(bench.git, bench.terraform, bench.vault, bench.plans), WHERE)
    return await run(TfOutput(bench.git, bench.terraform, bench.vault, bench.plans), config)


def value(result: StepResult, name: str) -> Value:
    output = result.output[name]
    assert isinstance(output, dict)
    return output["value"]


async def test_before_the_apply_the_plan_tells_what_is_known(bench: Bench) -> None:
    result = await walk(bench, WHERE)
    assert value(result, "name") == "otel"
    assert value(result, "url") == Unknown("known after apply: url")
    assert "key" not in result.output
    assert [what for what, _ in bench.terraform.ran] == ["plan"]


async def test_after_the_apply_the_state_tells_all(bench: Bench) -> None:
    await walk(bench, WHERE)
    bench.again()
    result = await walk(bench, WHERE, preview=False)
    assert result.output["url"] == {"value": "id-fn-1", "type": "string", "sensitive": False}
    assert "key" not in result.output


async def test_a_named_output_is_its_bare_value(bench: Bench) -> None:
    result = await walk(bench, {**WHERE, "name": "name"})
    assert result.output == {"name": "otel"}


async def test_a_named_sensitive_output_is_marked(bench: Bench) -> None:
    config: Config = {**WHERE, "name": "key"}
    result = await walk(bench, config)
    assert result.output == {"key": Sensitive("key", "hunter2")}
    bench.again()
    assert (await walk(bench, config, preview=False)).output == {"key": Sensitive("key", "hunter2")}


async def test_an_output_that_does_not_exist_fails_the_preview(bench: Bench) -> None:
    result = await walk(bench, {**WHERE, "name": "nope"})
    assert result.status is StepStatus.FAILED
    assert "no output 'nope' (outputs: key, name, url)" in result.message


async def test_an_image_only_release_needs_no_backend(bench: Bench) -> None:
    await walk(bench, WHERE)
    bench.again()
    await walk(bench, WHERE, preview=False)
    (applied,) = bench.plans.applied.values()
    assert applied.outputs is not None
    assert applied.outputs["key"] == Output(None, sensitive=True, type="string")
    bench.again()
    bench.approved.clear()
    bench.journal.clear()
    bench.terraform.dead = True
    expected = {"value": "id-fn-1", "type": "string", "sensitive": False}
    result = await walk(bench, WHERE)
    assert result.output["url"] == expected
    bench.again()
    assert (await walk(bench, WHERE, preview=False)).output["url"] == expected


async def test_a_sensitive_output_is_read_from_the_state_when_it_is_asked_for(bench: Bench) -> None:
    await walk(bench, WHERE)
    bench.again()
    await walk(bench, WHERE, preview=False)
    bench.again()
    bench.terraform.ran.clear()
    result = await walk(bench, {**WHERE, "name": "key"})
    assert result.output == {"key": Sensitive("key", "hunter2")}
    assert [what for what, _ in bench.terraform.ran] == ["output"]


async def test_another_value_than_the_expected_one_stops(bench: Bench) -> None:
    await walk(bench, WHERE)
    bench.again()
    bench.terraform.surprise = {"name": "somebody else"}
    result = await walk(bench, WHERE, preview=False)
    assert result.stop is not None
    assert result.stop.details == ("output name: approved as otel, now somebody else",)
    bench.again(promotion=replace(bench.promotion, accepted=(result.stop.digest,)))
    accepted = await walk(bench, WHERE, preview=False)
    assert value(accepted, "name") == "somebody else"


async def test_outputs_of_an_unknowable_apply_are_unknown_as_a_whole(bench: Bench) -> None:
    sentinel = bench.tree.sentinels.write(Unknown("known after apply: x"))
    result = await walk(bench, WHERE, f'fn__image = "{sentinel}"\n')
    assert (result.status, result.output) == (None, {})
    bench.again()
    sentinel = bench.tree.sentinels.write(Unknown("known after apply: x"))
    named = await walk(bench, {**WHERE, "name": "url"}, f'fn__image = "{sentinel}"\n')
    assert named.output == {"url": Unknown("known after apply: url")}


async def test_out_writes_a_file_and_leaves_the_outputs_empty(bench: Bench) -> None:
    result = await walk(bench, {**WHERE, "out": "src/outputs.json"})
    assert result.output == {}
    written = json.loads(await bench.tree.read("src/outputs.json"))
    assert written["name"]["value"] == "otel"
    assert bench.tree.sentinels.read(written["url"]["value"]) == Unknown("known after apply: url")


async def test_a_sensitive_output_reaches_no_file_unless_the_policy_names_it(bench: Bench) -> None:
    config: Config = {**WHERE, "sensitive": True, "out": "src/outputs.json"}
    with pytest.raises(TerminalError, match="sensitive value key"):
        await walk(bench, config)
    bench.again(policy=ReviewPolicy(sensitive_outputs=("key",)))
    await walk(bench, config)
    assert json.loads(await bench.tree.read("src/outputs.json"))["key"]["value"] == "hunter2"


async def test_without_an_apply_the_state_is_read(bench: Bench) -> None:
    checkout: Value = {"path": "src", "branch": "main"}
    await walk(bench, WHERE)
    bench.again()
    await walk(bench, WHERE, preview=False)
    bench.again()
    await bench.preview(GitClone(bench.git), {"repoURL": bench.url, "checkout": [checkout]})
    step = TfOutput(bench.git, bench.terraform, bench.vault, bench.plans)
    result = await bench.preview(step, {**WHERE, "name": "url"})
    assert result.output == {"url": "id-fn-1"}
    assert result.record is not None
