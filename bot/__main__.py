"""The command line: reads arguments, calls, prints."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from bot import __version__

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the answer is the exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.command is None:
        parser.print_help()
        return 2
    return _COMMANDS[given.command](given)


def _serve(_given: argparse.Namespace) -> int:
    from bot.app import serve
    from bot.settings import Settings, SettingsError

    environ = dict(os.environ)
    try:
        settings = Settings.from_env(environ)
    except SettingsError as error:
        print(f"lockstep serve: the environment is not complete:\n{error}", file=sys.stderr)
        return 2
    reduce_environment()
    return serve(settings)


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


def _demo(given: argparse.Namespace) -> int:
    from pathlib import Path

    from bot.sandbox.demo import run_demo

    return run_demo(Path(given.keep) if given.keep else None, auto=given.auto)


def _preview(given: argparse.Namespace) -> int:
    import asyncio

    from bot.app import preview_stage
    from bot.ports import TerminalError, TransientError
    from bot.settings import Settings, SettingsError

    environ = dict(os.environ)
    try:
        settings = Settings.from_env(environ)
        reduce_environment()
        print(asyncio.run(preview_stage(settings, given.stage, given.freight)))
    except SettingsError as error:
        print(f"lockstep preview: the environment is not complete:\n{error}", file=sys.stderr)
        return 2
    except (TerminalError, TransientError) as error:
        print(f"lockstep preview: {error}", file=sys.stderr)
        return 1
    return 0


def _receivers(_given: argparse.Namespace) -> int:
    import asyncio

    from bot.app import show_receivers
    from bot.ports import TerminalError, TransientError
    from bot.settings import Settings, SettingsError

    environ = dict(os.environ)
    try:
        settings = Settings.from_env(environ)
        reduce_environment()
        print(asyncio.run(show_receivers(settings)))
    except SettingsError as error:
        print(f"lockstep receivers: the environment is not complete:\n{error}", file=sys.stderr)
        return 2
    except (TerminalError, TransientError) as error:
        print(f"lockstep receivers: {error}", file=sys.stderr)
        return 1
    return 0


def reduce_environment() -> None:
    """Leave only what child processes may see; GitPython and others copy the environment of this process."""
    for name in list(os.environ):
        if name not in _KEPT:
            del os.environ[name]


_COMMANDS = {
    "demo": _demo,
    "preview": _preview,
    "receivers": _receivers,
    "serve": _serve,
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
    validate = commands.add_parser(
        "validate", help="check a configuration; every problem with file, line and key"
    )
    validate.add_argument("directory", nargs="?", default="config", metavar="DIR")
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
    commands.add_parser("receivers", help="the address of every webhook receiver of the configuration")
    return parser


if __name__ == "__main__":
    sys.exit(main())
