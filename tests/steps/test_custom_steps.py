"""Custom steps: outputs and their transforms, what each class may do, and that an act runs once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.adapters.commands import AllowedCommands, AllowList
from bot.adapters.git import GitMirror
from bot.domain.custom_steps import OUTPUT_LIMIT, CustomStep, OutputFormat, OutputSource
from bot.domain.files import File, Mode
from bot.domain.model import Metadata, Retry
from bot.domain.model import Step as ModelStep
from bot.domain.promotion import StepRun, StepStatus
from bot.domain.review import EffectRecord, FrozenRecord, Pin
from bot.domain.step_kinds import StepClass
from bot.domain.values import Json, Sensitive, Text, Unknown, Value
from bot.ports import TerminalError
from bot.steps.custom import Custom, StepBook, Undefined
from bot.steps.custom_output import OutputError, read_output
from bot.steps.git_clear import GitClear
from tests.adapters.test_commands import make_program
from tests.steps.bench import NOW, Bench
from tests.steps.fakes import FakeVault

LATER = Unknown("known after apply: url")
SECRET = Sensitive("token", "s3cret-value")
COUNT = 'echo ran >> "$0.log"'
"""Counts runs beside the program, where only a run without isolation may write."""


def make(*command: str, **changes: object) -> CustomStep:
    """A definition `scan` that runs `tool`."""
    made = CustomStep(Metadata(name="scan"), image="acme/scan", command=("tool", *command))
    return replace(made, **changes)  # type: ignore[arg-type]


async def no_token(url: str) -> str | None:
    return None


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A bench with one checkout, `src`, which is empty but for what a test writes."""
    made = Bench(GitMirror(tmp_path / "mirrors", no_token))
    made.tree.add_checkout(Pin("src", "https://git.example/acme/ops", "main", None, created=True), {})
    return made


def custom(tmp_path: Path, script: str, definition: CustomStep, *, isolated: bool = True) -> Custom:
    make_program(tmp_path / "programs", "tool", script)
    commands = AllowedCommands(tmp_path / "runs", AllowList((tmp_path / "programs",)), isolated=isolated)
    return Custom(definition, commands, FakeVault())


def runs(tmp_path: Path) -> int:
    log = tmp_path / "programs" / "tool.log"
    return len(log.read_text().splitlines()) if log.exists() else 0


# -- outputs -------------------------------------------------------------------------------------------------------


def nobody(text: str) -> str:
    """Finds no secret."""
    del text
    return ""


JSON, YAML, KEYS, TEXT = OutputFormat.JSON, OutputFormat.YAML, OutputFormat.KEY_VALUE, OutputFormat.TEXT


@pytest.mark.parametrize(
    ("format_", "text", "transform", "output"),
    [
        pytest.param(KEYS, "a=1\nb = two words \n", {}, {"a": "1", "b": "two words"}, id="keys stay text"),
        pytest.param(KEYS, "# note\n\nurl=http://x?a=b\n", {}, {"url": "http://x?a=b"}, id="the first = counts"),
        pytest.param(KEYS, "a=1\na=2\n", {}, {"a": "2"}, id="a later key wins"),
        pytest.param(KEYS, "a=\n", {}, {"a": ""}, id="an empty value"),
        pytest.param(KEYS, "", {}, {}, id="no keys at all"),
        pytest.param(JSON, '{"n": 1, "l": [true, null]}', {}, {"n": 1, "l": [True, None]}, id="JSON"),
        pytest.param(JSON, "", {}, {}, id="no JSON at all"),
        pytest.param(JSON, '\ufeff{"n": 1}', {}, {"n": 1}, id="JSON with a byte order mark"),
        pytest.param(JSON, "[1, 2]", {"n": "len(output)"}, {"n": 2}, id="a list, by a transform"),
        pytest.param(YAML, "n: 1\nm: {a: b}\n", {}, {"n": 1, "m": {"a": "b"}}, id="YAML"),
        pytest.param(YAML, "", {}, {}, id="no YAML at all"),
        pytest.param(TEXT, "1.20\n", {}, {"output": "1.20"}, id="a text is not coerced"),
        pytest.param(TEXT, "", {}, {}, id="no text at all"),
        pytest.param(TEXT, " a\nb\n", {"x": "trim(output)"}, {"x": "a\nb"}, id="a text, by a transform"),
        pytest.param(JSON, '{"a": {"b": 7}}', {"x": "output.a.b + 1"}, {"x": 8}, id="an expression"),
        pytest.param(JSON, '{"a": 7}', {"x": "v${{ output.a }}"}, {"x": "v7"}, id="a template"),
        pytest.param(KEYS, "a=1\nb=2\n", {"only": "output.a"}, {"only": "1"}, id="a transform leaves the rest out"),
    ],
)  # fmt: skip
def test_an_output_is_read_by_its_format(
    format_: OutputFormat, text: str, transform: dict[str, str], output: dict[str, Json]
) -> None:
    step = make(format=format_, transform=transform)
    assert read_output(step, text.encode(), nobody) == output


@pytest.mark.parametrize(
    ("format_", "data", "transform", "said"),
    [
        pytest.param(KEYS, b"a=1\nnonsense\n", {}, "line 2 is not KEY=VALUE", id="a line without ="),
        pytest.param(KEYS, b"=1\n", {}, "line 1 is not KEY=VALUE", id="a line without a key"),
        pytest.param(JSON, b'{"a": }', {}, "no valid JSON", id="broken JSON"),
        pytest.param(JSON, b"[1]", {}, "no mapping", id="a list"),
        pytest.param(JSON, b"null", {}, "no mapping", id="null"),
        pytest.param(JSON, b"[" * 100_000, {}, "JSON", id="JSON that is nested too deep"),
        pytest.param(YAML, b"a: [", {}, "YAML", id="broken YAML"),
        pytest.param(TEXT, b"\xff\xfe", {}, "not UTF-8", id="bytes"),
        pytest.param(TEXT, b"x" * (OUTPUT_LIMIT + 1), {}, "longer than 256 KiB", id="too much"),
        pytest.param(JSON, b"{}", {"x": "output.a.b"}, "transform x", id="a transform of what is not there"),
        pytest.param(JSON, b"{}", {"x": "${{ output.a.b }}"}, "transform x", id="a template of what is not there"),
    ],
)  # fmt: skip
def test_an_output_that_cannot_be_read_says_why(
    format_: OutputFormat, data: bytes, transform: dict[str, str], said: str
) -> None:
    with pytest.raises(OutputError, match=said):
        read_output(make(format=format_, transform=transform), data, nobody)


def test_a_secret_in_an_output_is_marked_and_stays_so_through_a_transform() -> None:
    def find(text: str) -> str:
        return "token" if "s3cret" in text else ""

    found = read_output(make(format=JSON), b'{"a": ["x s3cret"], "b": "y"}', find)
    assert found == {"a": [Sensitive("token", "x s3cret")], "b": "y"}
    turned = read_output(make(format=KEYS, transform={"u": "upper(output.a)"}), b"a=s3cret", find)
    assert turned == {"u": Sensitive("token", "S3CRET")}
    with pytest.raises(OutputError, match="a key of it holds a secret"):
        read_output(make(format=KEYS), b"s3cret=1", find)


# -- an act ----------------------------------------------------------------------------------------------------------


async def test_a_preview_shows_an_act_and_does_not_run_it(tmp_path: Path, bench: Bench) -> None:
    await bench.tree.write("src/values.yaml", b"tag: 1\n")
    definition = make(
        "--to", "${{ config.url }}", env=(("TOKEN", "${{ config.token }}"),), transform={"id": "output.id"}
    )
    step = custom(tmp_path, COUNT, definition, isolated=False)
    result = await bench.preview(step, {"url": LATER, "token": SECRET})
    assert result.status is None
    assert result.output == {"id": Unknown("known after step: scan.id")}
    assert isinstance(result.record, EffectRecord)
    shown = dict(result.record.details)
    assert (result.record.title, shown["arguments"]) == ("run tool", ["--to", Text((LATER,))])
    assert "s3cret" not in str(shown["env TOKEN"])
    assert bench.reports[-1].reads >= {"src/values.yaml"}, "it may read any file, so it depends on all"
    assert runs(tmp_path) == 0


async def test_fulfil_runs_an_act_in_the_tree_and_publishes_its_output(tmp_path: Path, bench: Bench) -> None:
    await bench.tree.write("src/values.yaml", b"tag: 1.20\n")
    script = 'echo "arg=$1" > $KARGO_OUTPUT; echo "file=$(cat src/values.yaml)" >> $KARGO_OUTPUT'
    step = custom(tmp_path, script, make("${{ config.tag }}-${{ config.n }}"))
    config: dict[str, Value] = {"tag": "1.20", "n": 7}
    await bench.preview(step, config)
    bench.approved = {report.alias: report for report in bench.reports}
    result = await bench.fulfil(step, config)
    assert result.status is StepStatus.SUCCEEDED
    assert result.output == {"arg": "1.20-7", "file": "tag: 1.20"}


async def test_an_act_whose_end_was_not_seen_is_not_repeated(tmp_path: Path, bench: Bench) -> None:
    step = custom(tmp_path, COUNT, make(), isolated=False)
    bench.journal["scan"] = StepRun("scan", "scan", 1, StepStatus.RUNNING, begun_at=NOW)
    result = await bench.fulfil(step, {})
    assert (result.status, runs(tmp_path)) == (StepStatus.ERRORED, 0)
    assert result.message.startswith("outcome unknown: scan was begun and its end was not seen")
    bench.again(attempt=2)
    assert (await bench.fulfil(step, {})).status is StepStatus.SUCCEEDED
    assert runs(tmp_path) == 1, "a person said /retry"


async def test_an_act_that_is_stopped_has_an_unknown_outcome(tmp_path: Path, bench: Bench) -> None:
    own = ModelStep(uses="scan", alias="scan", retry=Retry(timeout=0.2))
    bench.promotion = replace(bench.promotion, steps=(own,))
    step = custom(tmp_path, f"{COUNT}; exec sleep 600", make(timeout=500.0), isolated=False)
    result = await bench.fulfil(step, {})
    assert (result.status, runs(tmp_path)) == (StepStatus.ERRORED, 1)
    assert "was stopped, because the time limit was reached" in result.message
    assert result.message.startswith("outcome unknown")


async def test_another_definition_than_was_approved_is_not_run(tmp_path: Path, bench: Bench) -> None:
    await bench.preview(custom(tmp_path, COUNT, make("a"), isolated=False), {})
    bench.approved = {report.alias: report for report in bench.reports}
    result = await bench.fulfil(custom(tmp_path, COUNT, make("b"), isolated=False), {})
    assert (result.status, runs(tmp_path)) == (StepStatus.FAILED, 0)
    assert "is another one than was approved" in result.message
    same = custom(tmp_path, COUNT, make("a", image="acme/scan:2", timeout=9.0), isolated=False)
    bench.journal.clear()
    assert (await bench.fulfil(same, {})).status is StepStatus.SUCCEEDED, "it does the same as before"


@pytest.mark.parametrize(("before", "now"), [("act", "edit"), ("edit", "act")])
async def test_a_definition_that_has_changed_its_class_is_not_run(
    tmp_path: Path, bench: Bench, before: str, now: str
) -> None:
    await bench.preview(custom(tmp_path, "true", make(step_class=StepClass(before)), isolated=False), {})
    bench.approved = {report.alias: report for report in bench.reports}
    step = custom(tmp_path, COUNT, make(step_class=StepClass(now)), isolated=False)
    result = await bench.fulfil(step, {})
    assert (result.status, runs(tmp_path)) == (StepStatus.FAILED, 0)
    bench.journal["scan"] = StepRun("scan", "scan", 1, StepStatus.RUNNING, begun_at=NOW)
    assert (await bench.fulfil(step, {})).message.startswith("outcome unknown"), "it may have acted"


async def test_a_failed_command_says_what_it_said_without_secrets(tmp_path: Path, bench: Bench) -> None:
    step = custom(tmp_path, 'echo "no: $TOKEN" >&2; exit 4', make(env=(("TOKEN", "${{ config.token }}"),)))
    result = await bench.fulfil(step, {"token": SECRET})
    assert result.status is StepStatus.ERRORED
    assert result.message == "scan: tool ended with code 4: no: <sensitive: TOKEN>"


async def test_a_secret_in_the_output_stays_one(tmp_path: Path, bench: Bench) -> None:
    step = custom(tmp_path, 'echo "a=$TOKEN" > $KARGO_OUTPUT', make(env=(("TOKEN", "${{ config.token }}"),)))
    result = await bench.fulfil(step, {"token": SECRET})
    assert result.output == {"a": Sensitive("TOKEN", "s3cret-value")}


async def test_a_secret_is_not_put_on_the_command_line(tmp_path: Path, bench: Bench) -> None:
    step = custom(tmp_path, COUNT, make("--token=${{ config.token }}"))
    for walk in (bench.preview, bench.fulfil):
        with pytest.raises(TerminalError, match="pass it by `env`"):
            await walk(step, {"token": SECRET})


async def test_what_is_unknown_never_reaches_a_command(tmp_path: Path, bench: Bench) -> None:
    with pytest.raises(TerminalError, match="known after apply: url"):
        await bench.fulfil(custom(tmp_path, COUNT, make("${{ config.url }}")), {"url": LATER})


async def test_an_act_may_not_change_a_checkout(tmp_path: Path, bench: Bench) -> None:
    result = await bench.fulfil(custom(tmp_path, "mkdir -p src; echo x > src/new", make()), {})
    assert result.status is StepStatus.FAILED
    assert "changed src/new in a checkout, which nobody could review" in result.message
    assert not bench.tree.exists("src/new")


async def test_what_an_act_leaves_beside_the_checkouts_is_said_not_to_be_kept(
    tmp_path: Path, bench: Bench
) -> None:
    result = await bench.fulfil(custom(tmp_path, "echo x > report", make()), {})
    assert (result.status, bench.tree.exists("report")) == (StepStatus.SUCCEEDED, False)
    assert result.message == "1 file(s) that it left beside the checkouts are not kept"


async def test_an_output_that_cannot_be_read_fails_the_step(tmp_path: Path, bench: Bench) -> None:
    step = custom(tmp_path, "echo nonsense", make(source=OutputSource.STDOUT))
    result = await bench.fulfil(step, {})
    assert result.status is StepStatus.FAILED
    assert "tool ended well, but its output cannot be read: line 1 is not KEY=VALUE" in result.message


# -- declared ones ---------------------------------------------------------------------------------------------------

EDIT, READ = StepClass.EDIT, StepClass.READ


async def test_an_edit_runs_in_the_preview_and_its_files_are_the_change(tmp_path: Path, bench: Bench) -> None:
    await bench.tree.write("src/a", b"1\n")
    script = 'rm src/a; echo "$1" > src/b; chmod +x src/b; echo n=1 > $KARGO_OUTPUT'
    step = custom(tmp_path, script, make("${{ config.tag }}", step_class=EDIT))
    result = await bench.preview(step, {"tag": "1.20"})
    assert (result.status, result.output) == (StepStatus.SUCCEEDED, {"n": "1"})
    changes = {change.path: change.after for change in bench.reports[-1].changes}
    assert changes == {"src/a": None, "src/b": File(b"1.20\n", Mode.EXECUTABLE)}


async def test_an_edit_meets_what_is_unknown_by_what_stands_for_it(tmp_path: Path, bench: Bench) -> None:
    step = custom(
        tmp_path, 'mkdir -p src; printf %s "$1" > src/b', make("${{ config.url }}", step_class=EDIT)
    )
    await bench.preview(step, {"url": LATER})
    text = await bench.tree.read_text("src/b")
    assert bench.tree.sentinels.read(text) == LATER


async def test_an_edit_may_not_make_a_repository(tmp_path: Path, bench: Bench) -> None:
    script = "mkdir -p src/.git; echo x > src/.git/config"
    result = await bench.preview(custom(tmp_path, script, make(step_class=EDIT)), {})
    assert result.status is StepStatus.FAILED
    assert "src/.git/config, which git would take for its own" in result.message


async def test_a_read_is_asked_in_the_preview_and_its_answer_frozen(tmp_path: Path, bench: Bench) -> None:
    step = custom(tmp_path, "echo n=1 > $KARGO_OUTPUT", make(step_class=READ))
    result = await bench.preview(step, {})
    assert (result.status, result.output) == (StepStatus.SUCCEEDED, {"n": "1"})
    assert isinstance(result.record, FrozenRecord)


async def test_a_read_of_what_is_unknown_or_behind_an_act_waits(tmp_path: Path, bench: Bench) -> None:
    read = custom(tmp_path, COUNT, make("${{ config.url }}", step_class=READ), isolated=False)
    assert (await bench.preview(read, {"url": LATER})).status is None
    await bench.preview(custom(tmp_path, COUNT, make(), isolated=False), {}, "act")
    assert (await bench.preview(read, {"url": "known"})).status is None
    assert runs(tmp_path) == 0


@pytest.mark.parametrize("step_class", [EDIT, READ])
async def test_what_runs_before_the_review_gets_no_secret(
    tmp_path: Path, bench: Bench, step_class: StepClass
) -> None:
    definition = make(env=(("TOKEN", "${{ config.token }}"),), step_class=step_class)
    step = custom(tmp_path, COUNT, definition, isolated=False)
    for walk in (bench.preview, bench.fulfil):
        with pytest.raises(TerminalError, match="runs before anybody has approved, and gets no secrets"):
            await walk(step, {"token": SECRET})
    assert runs(tmp_path) == 0


# -- how steps find them ---------------------------------------------------------------------------------------------


async def test_a_step_is_found_by_its_name_as_the_pipeline_defines_it_now(
    tmp_path: Path, bench: Bench
) -> None:
    defined = {"scan": make(step_class=EDIT), "git-clear": make()}
    commands = AllowedCommands(tmp_path / "runs", AllowList())
    book = StepBook({"git-clear": GitClear()}, lambda: defined, commands, FakeVault())
    assert sorted(book) == ["git-clear", "scan"]
    assert isinstance(book["git-clear"], GitClear), "a step of the program is not replaced"
    assert (book["scan"].kind.name, book["scan"].kind.step_class) == ("scan", EDIT)
    del defined["scan"]
    gone = book["scan"]
    assert isinstance(gone, Undefined)
    for walk in (bench.preview, bench.fulfil):
        result = await walk(gone, {})
        assert result.status is StepStatus.FAILED
        assert "no CustomPromotionStep of this name any more" in result.message


async def test_a_program_that_is_allowed_no_longer_is_not_run(tmp_path: Path, bench: Bench) -> None:
    step = Custom(make(), AllowedCommands(tmp_path / "runs", AllowList()), FakeVault())
    with pytest.raises(TerminalError, match="LOCKSTEP_CUSTOM_STEPS"):
        await bench.fulfil(step, {})
