"""The command line: reads arguments, calls, prints."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING

from bot import __version__

if TYPE_CHECKING:
    from datetime import datetime

    from bot.settings import Settings, SetupSettings

_KEPT = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "PYTHONPATH",
    "VIRTUAL_ENV",
)
"""Variables that child processes may inherit; everything else is read once and then removed."""

_PARTLY = 3
"""The exit status of a command that did a part of what was asked, and said what it could not do."""
_MOST_READ = 6000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the answer is the exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.command is None:
        parser.print_help()
        return 2
    return _COMMANDS[given.command](given)


def _serve(_given: argparse.Namespace) -> int:
    from bot.serving import serve
    from bot.settings import NoAppError, Settings, SettingsError, SetupSettings

    environ = dict(os.environ)
    try:
        try:
            settings = Settings.from_env(environ)
        except NoAppError:
            if not environ.get("LOCKSTEP_URL"):
                raise
            reduce_environment()
            status = _set_up("serve", SetupSettings.from_env(environ), "", replace=False)
            if status:
                return status
            settings = Settings.from_env(environ)
    except SettingsError as error:
        print(f"lockstep serve: the environment is not complete:\n{error}", file=sys.stderr)
        return 2
    reduce_environment()
    return serve(settings)


def _setup(given: argparse.Namespace) -> int:
    from bot.settings import SettingsError, SetupSettings

    try:
        settings = SetupSettings.from_env(dict(os.environ))
    except SettingsError as error:
        print(f"lockstep setup: the environment does not fit:\n{error}", file=sys.stderr)
        return 2
    reduce_environment()
    return _set_up("setup", settings, given.organisation, replace=given.replace)


def _set_up(command: str, settings: SetupSettings, organisation: str, *, replace: bool) -> int:
    """Register the App; 0 once its credentials are kept."""
    from bot.ports import TerminalError
    from bot.setup import SetupOptions, run_setup

    try:
        made = run_setup(settings, SetupOptions(organisation, replace), lambda text: print(text, flush=True))
    except TerminalError as error:
        print(f"lockstep {command}: {error}", file=sys.stderr)
        return 1
    if made is None:
        print(f"lockstep {command}: ended before an App was registered", file=sys.stderr)
        return 130
    return 0


def _doctor(given: argparse.Namespace) -> int:
    from functools import partial

    from bot.adapters.commands import AllowList
    from bot.app import load
    from bot.doctor import diagnose
    from bot.domain.doctor import judge_settings, must_mend
    from bot.reports.doctor import render_json, render_table
    from bot.settings import Settings, SettingsError

    environ = dict(os.environ)
    try:
        settings = Settings.from_env(environ)
    except SettingsError as error:
        findings = judge_settings(str(error).splitlines())
    else:
        reduce_environment()
        findings = [
            *judge_settings([]),
            *diagnose(settings, partial(load, programs=AllowList(settings.custom_steps))),
        ]
    print(render_json(findings) if given.json else render_table(findings))
    return 1 if must_mend(findings) else 0


def _validate(given: argparse.Namespace) -> int:
    from pathlib import Path

    from bot.adapters.commands import AllowList
    from bot.adapters.config import read_directory
    from bot.adapters.rendering import RenderTools
    from bot.app import load
    from bot.domain.problems import Severity
    from bot.ports import TerminalError
    from bot.settings import SettingsError, parse_programs

    try:
        revision, files = read_directory(Path(given.directory))
        programs = AllowList(parse_programs(os.environ.get("LOCKSTEP_CUSTOM_STEPS", "")))
    except SettingsError as error:
        print(f"lockstep validate: LOCKSTEP_CUSTOM_STEPS {error}", file=sys.stderr)
        return 2
    except TerminalError as error:
        print(f"lockstep validate: {error}", file=sys.stderr)
        return 2
    tools = RenderTools(os.environ.get("LOCKSTEP_HELM", "helm"), os.environ.get("LOCKSTEP_KUSTOMIZE", ""))
    pipeline, problems = load(files, revision, missing=tools.find_missing(), programs=programs)
    for problem in problems:
        where = f"{problem.path}:{problem.line}" if problem.line else problem.path
        print(f"{where}: {problem.severity.value}: {problem.key}: {problem.message}")
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    found = f"{len(pipeline.stages)} Stage(s), {len(pipeline.warehouses)} Warehouse(s)"
    print(f"{found}, {errors} error(s), {len(problems) - errors} warning(s)")
    return 1 if errors else 0


def _schema(given: argparse.Namespace) -> int:
    import json

    from bot.pipeline import STEP_SCHEMAS
    from bot.pipeline.json_schema import SCHEMA_KINDS, editor_schema, kind_schema
    from bot.pipeline.schema import listed, nearest

    if given.kind and given.kind not in SCHEMA_KINDS:
        hint = nearest(given.kind, SCHEMA_KINDS) or f"; there are {listed(SCHEMA_KINDS)}"
        print(f"lockstep schema: there is no schema of a kind {given.kind!r}{hint}", file=sys.stderr)
        return 2
    kind = SCHEMA_KINDS.get(given.kind)
    schema = kind_schema(kind, STEP_SCHEMAS) if kind is not None else editor_schema(STEP_SCHEMAS)
    print(json.dumps(schema, indent=2))
    return 0


def _demo(given: argparse.Namespace) -> int:
    from pathlib import Path

    from bot.sandbox.demo import run_demo

    return run_demo(Path(given.keep) if given.keep else None, auto=given.auto)


def _preview(given: argparse.Namespace) -> int:
    from bot.app import preview_stage

    return _show("preview", lambda settings: preview_stage(settings, given.stage, given.freight))


def _receivers(_given: argparse.Namespace) -> int:
    from bot.app import show_receivers

    return _show("receivers", show_receivers)


def _explain(given: argparse.Namespace) -> int:
    from bot.app import explain_stage

    return _show("explain", lambda settings: explain_stage(settings, given.stage))


def _rebuild(given: argparse.Namespace) -> int:
    from bot.rebuild import run_rebuild
    from bot.reports.rescue import render_restored
    from bot.workflow.rebuild import Limits

    def work(settings: Settings) -> int:
        found = run_rebuild(settings, Limits(given.pulls, given.commits), into_existing=given.into_existing)
        print(render_restored(found.added.promotions, found.counts, found.known, found.missing))
        return _PARTLY if found.missing else 0

    return _with_settings("rebuild", work)


def _backup(given: argparse.Namespace) -> int:
    from pathlib import Path

    from bot.backup import KEY_FILES, run_backup

    def work(settings: Settings) -> int:
        for item in run_backup(settings, Path(given.file), with_keys=given.with_keys):
            print(f"{item.name}: {item.size} bytes")
        if not given.with_keys:
            print(f"{' and '.join(KEY_FILES)} of {settings.data} are not in it: keep them elsewhere")
        return 0

    return _with_settings("backup", work)


def _audit(given: argparse.Namespace) -> int:
    from bot.audit import read_audit, verify_audit
    from bot.reports.rescue import render_audit, render_audit_json, render_verdict
    from bot.workflow.auditor import Wanted
    from bot.workflow.rebuild import Limits

    def work(settings: Settings) -> int:
        if given.verify:
            verdict = verify_audit(settings, Limits(pulls=given.pulls))
            print(render_verdict(verdict.entries, verdict.bounds, verdict.anchors, verdict.problems))
            return 1 if verdict.problems else 0
        project, _, stage = given.stage.rpartition("/")
        rows = read_audit(settings, Wanted(given.since, project, stage))
        text = render_audit_json(rows) if given.json else render_audit(rows)
        if text:
            print(text)
        return 0

    return _with_settings("audit", work)


def _show(command: str, ask: Callable[[Settings], Coroutine[object, object, str]]) -> int:
    """Print an answer that needs the bot's settings, or why there is none."""
    import asyncio

    def work(settings: Settings) -> int:
        print(asyncio.run(ask(settings)))
        return 0

    return _with_settings(command, work)


def _with_settings(command: str, work: Callable[[Settings], int]) -> int:
    """Do what needs the bot's settings, or say why it cannot be done."""
    from bot.ports import TerminalError, TransientError
    from bot.settings import Settings, SettingsError

    try:
        settings = Settings.from_env(dict(os.environ))
        reduce_environment()
        return work(settings)
    except SettingsError as error:
        print(f"lockstep {command}: the environment is not complete:\n{error}", file=sys.stderr)
        return 2
    except (TerminalError, TransientError) as error:
        print(f"lockstep {command}: {error}", file=sys.stderr)
        return 1


def _time(text: str) -> datetime:
    """A date or time of the command line; without a zone it is UTC."""
    from datetime import UTC, datetime

    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no date or time such as 2026-05-31T12:00") from error
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _count(text: str) -> int:
    """A number of things to read: 1 to 6000, which is as long as a list of GitHub is read."""
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_READ:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {_MOST_READ}")
    return int(text)


def reduce_environment() -> None:
    """Leave only what child processes may see; GitPython and others copy the environment of this process."""
    for name in list(os.environ):
        if name not in _KEPT:
            del os.environ[name]


_COMMANDS = {
    "audit": _audit,
    "backup": _backup,
    "demo": _demo,
    "doctor": _doctor,
    "explain": _explain,
    "preview": _preview,
    "rebuild": _rebuild,
    "receivers": _receivers,
    "schema": _schema,
    "serve": _serve,
    "setup": _setup,
    "validate": _validate,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lockstep",
        description="Moves Terraform and Kubernetes changes through Stages together, one pull request per Stage.",
    )
    parser.add_argument("--version", action="version", version=f"lockstep {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("serve", help="run the bot")
    setup = commands.add_parser("setup", help="register the GitHub App, by one click in a browser")
    setup.add_argument(
        "--organisation",
        "--organization",
        default="",
        metavar="LOGIN",
        help="who shall own it; default: the person",
    )
    setup.add_argument(
        "--replace", action="store_true", help="register another App although there is one already"
    )
    doctor = commands.add_parser("doctor", help="say what is wrong with the installation, and how to mend it")
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    validate = commands.add_parser(
        "validate", help="check a configuration; every problem with file, line and key"
    )
    validate.add_argument("directory", nargs="?", default="config", metavar="DIR")
    schema = commands.add_parser("schema", help="the JSON Schema of a configuration, for editors")
    schema.add_argument(
        "kind", nargs="?", default="", metavar="KIND", help="such as Stage; default all kinds"
    )
    demo = commands.add_parser("demo", help="the whole road on this machine, without any account")
    demo.add_argument(
        "--auto", action="store_true", help="play publisher and reviewer, end when prod runs it"
    )
    demo.add_argument("--keep", metavar="DIR", help="keep everything in DIR, and go on from there")
    preview = commands.add_parser("preview", help="what a promotion's pull request would hold; no effect")
    preview.add_argument("stage", metavar="[PROJECT/]STAGE")
    preview.add_argument(
        "freight", nargs="?", default="", metavar="FREIGHT", help="alias or name; default newest"
    )
    explain = commands.add_parser("explain", help="why a Stage does what it does, or waits; no effect")
    explain.add_argument("stage", metavar="[PROJECT/]STAGE")
    _add_database_commands(commands)
    commands.add_parser("receivers", help="the address of every webhook receiver of the configuration")
    return parser


def _add_database_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The commands that deal with the database as a whole."""
    rebuild = commands.add_parser("rebuild", help="fill a lost database from what GitHub and Git still say")
    rebuild.add_argument(
        "--into-existing", action="store_true", help="add what is missing to a database that is not empty"
    )
    rebuild.add_argument(
        "--pulls", type=_count, default=1000, metavar="N", help="read the newest N of a repository"
    )
    rebuild.add_argument(
        "--commits", type=_count, default=2000, metavar="N", help="read the newest N of a branch"
    )
    backup = commands.add_parser("backup", help="a consistent copy of the database, also while the bot runs")
    backup.add_argument("file", metavar="FILE", help="a tar archive that is not there yet")
    backup.add_argument("--with-keys", action="store_true", help="with the key files, which open everything")
    audit = commands.add_parser("audit", help="who did what when, and whether the log was changed")
    audit.add_argument("--json", action="store_true", help="print one JSON object a line")
    audit.add_argument("--since", type=_time, metavar="TIME", help="leave out what is older")
    audit.add_argument("--stage", default="", metavar="[PROJECT/]STAGE", help="of this Stage alone")
    audit.add_argument("--verify", action="store_true", help="hold the log against itself and GitHub")
    audit.add_argument(
        "--pulls", type=_count, default=1000, metavar="N", help="verify with the newest N of a repository"
    )


if __name__ == "__main__":
    sys.exit(main())
