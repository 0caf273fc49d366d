"""The update steps: marks in values, and failures that name file, line and key."""

from __future__ import annotations

import pytest

from bot.domain.promotion import StepStatus
from bot.domain.review_policy import ReviewPolicy
from bot.domain.values import Sensitive, Text, Unknown, Value
from bot.ports import TerminalError
from bot.steps.contract import Config, Step
from bot.steps.git_clone import GitClone
from bot.steps.hcl_update import HclUpdate
from bot.steps.json_update import JsonUpdate
from bot.steps.toml_update import TomlUpdate
from bot.steps.yaml_update import YamlUpdate
from tests.steps.bench import Bench

PATH = "src/env/dev/values.yaml"
URL = Unknown("known after apply: lambda_url")


def update(key: Value, value: Value, path: Value = PATH) -> Config:
    item: Value = {"key": key, "value": value}
    return {"path": path, "updates": [item]}


@pytest.fixture
async def cloned(bench: Bench) -> Bench:
    checkout: Value = {"path": "src", "branch": "main"}
    await bench.preview(GitClone(bench.git), {"repoURL": bench.url, "checkout": [checkout]})
    return bench


@pytest.mark.parametrize(
    ("step", "before", "after"),
    [
        (YamlUpdate(), "a:\n  b: 1 # kept\n", "a:\n  b: two # kept\n"),
        (JsonUpdate(), '{"a": {"b": 1}}\n', '{"a": {"b": "two"}}\n'),
        (TomlUpdate(), "[a]\nb = 1 # kept\n", "[a]\nb = 'two' # kept\n"),
        (HclUpdate(), "a = { b = 1 } # kept\n", 'a = { b = "two" } # kept\n'),
    ],
    ids=lambda value: (
        value.kind.name if isinstance(value, YamlUpdate | JsonUpdate | TomlUpdate | HclUpdate) else ""
    ),
)
async def test_a_value_is_replaced_and_nothing_else(
    bench: Bench, step: Step, before: str, after: str
) -> None:
    await bench.tree.write("file", before.encode())
    result = await bench.preview(step, update("a.b", "two", "./file"))
    assert await bench.tree.read_text("file") == after
    assert result.output["commitMessage"] == "Updated ./file\n\n- a.b: two"


async def test_an_unknown_value_is_written_as_a_stand_in(cloned: Bench) -> None:
    result = await cloned.preview(YamlUpdate(), update("env.LAMBDA_URL", URL))
    text = await cloned.tree.read_text(PATH)
    assert f"LAMBDA_URL: {cloned.tree.sentinels.write(URL)}\n" in text
    assert result.output["commitMessage"] == Text(
        ("Updated src/env/dev/values.yaml\n\n- env.LAMBDA_URL: ", URL)
    )


async def test_a_text_with_a_hole_keeps_the_text_around_it(cloned: Bench) -> None:
    await cloned.preview(YamlUpdate(), update("env.LAMBDA_URL", Text(("https://", URL, "/v1"))))
    sentinel = cloned.tree.sentinels.write(URL)
    assert f"LAMBDA_URL: https://{sentinel}/v1\n" in await cloned.tree.read_text(PATH)


async def test_a_missing_key_names_the_nearest(cloned: Bench) -> None:
    result = await cloned.preview(YamlUpdate(), update("env.LAMDA_URL", "x"))
    assert result.status is StepStatus.FAILED
    assert "yaml-update: src/env/dev/values.yaml" in result.message
    assert "LAMBDA_URL" in result.message
    assert result.problem is not None
    assert result.problem.path == "env/dev/values.yaml"


async def test_a_missing_file_names_the_nearest(cloned: Bench) -> None:
    result = await cloned.preview(YamlUpdate(), update("a", "x", "src/env/dev/value.yaml"))
    assert result.status is StepStatus.FAILED
    assert "'src/env/dev/value.yaml' does not exist in http" in result.message
    assert "did you mean src/env/dev/values.yaml?" in result.message


@pytest.mark.parametrize(
    "config",
    [update(Text(("env.", URL)), "x"), update("a", "x", Text(("src/", URL)))],
    ids=["key", "path"],
)
async def test_an_unknown_address_is_refused(cloned: Bench, config: Config) -> None:
    with pytest.raises(TerminalError, match="a reviewer cannot see it"):
        await cloned.preview(YamlUpdate(), config)


@pytest.mark.parametrize(
    "value",
    [
        Sensitive("db_password", "hunter2"),
        Text(("postgres://", Sensitive("db_password", "hunter2"))),
        Unknown("known after apply: db_password", sensitive="db_password"),
    ],
    ids=["known", "inside a text", "not known yet"],
)
async def test_a_sensitive_value_is_written_only_if_the_policy_names_it(cloned: Bench, value: Value) -> None:
    with pytest.raises(TerminalError, match="sensitive value db_password"):
        await cloned.preview(YamlUpdate(), update("env.LAMBDA_URL", value))
    assert "hunter2" not in await cloned.tree.read_text(PATH)
    cloned.policy = ReviewPolicy(sensitive_outputs=("db_password",))
    assert (
        await cloned.preview(YamlUpdate(), update("env.LAMBDA_URL", value))
    ).status is StepStatus.SUCCEEDED


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "src/../../x", "src/.git/config"])
async def test_paths_never_leave_the_work_tree(cloned: Bench, path: str) -> None:
    with pytest.raises(TerminalError):
        await cloned.preview(YamlUpdate(), update("a", "x", path))
