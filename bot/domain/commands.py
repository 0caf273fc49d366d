"""What a person asked for on the first line of a comment, as a value; or what is wrong with it, and what was meant.

Only the first line counts (of `/answer` also those right below it), and only if it begins with the slash: quoted text,
fences and HTML comments begin otherwise. Nothing in here ever reaches a shell; every argument is held to the characters
that its kind can have. Who may give a command, and that bots may not, is decided elsewhere.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.domain.answer_command import Answer, parse_answer
from bot.domain.command_arguments import (
    WrongArgumentError,
    parse_freight_name,
    parse_hex,
    parse_reason,
    parse_stage,
    split_arguments,
)
from bot.domain.command_words import SYNONYMS

_LONGEST_LINE = 500


@dataclass(frozen=True, slots=True)
class Promote:
    """Bring Freight into a Stage; an empty project is that of the pull request, empty Freight the newest available."""

    stage: str
    project: str = ""
    freight: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Preview again; `commit` is the head that a maintainer vouches for, empty outside of forks."""

    commit: str = ""


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply the preview with this digest (at least its first 7 digits), or that of the open pull request if empty."""

    digest: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """Try the failed step again."""


@dataclass(frozen=True, slots=True)
class Approve:
    """Approve Freight for a Stage, as Kargo does; it is no review."""

    freight: str
    stage: str
    project: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    """Keep this pull request from being merged."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Resume:
    """End a hold."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """Bring a Stage back; empty Freight means the last one that was verified there."""

    stage: str
    project: str = ""
    freight: str = ""


@dataclass(frozen=True, slots=True)
class Verify:
    """Verify anew what a Stage has, or abort the verification that is under way there."""

    stage: str
    project: str = ""
    abort: bool = False


@dataclass(frozen=True, slots=True)
class MakeFreight:
    """Make Freight of a Warehouse by hand; an empty project is that of the pull request.

    `versions` are pairs of what names a subscription and the version to take of it; one that is not named gives its
    newest.
    """

    warehouse: str
    project: str = ""
    versions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Cancel:
    """End this promotion."""


@dataclass(frozen=True, slots=True)
class Freeze:
    """Stop all promotions."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unfreeze:
    """Let promotions go on."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Look for drift now, or open a pull request that undoes it; without a Stage that of the issue or pull request."""

    fix: bool = False
    stage: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class Explain:
    """Show every gate and why it is open or closed."""


@dataclass(frozen=True, slots=True)
class Status:
    """Show what runs in which Stage."""


@dataclass(frozen=True, slots=True)
class Doctor:
    """Check the installation."""


@dataclass(frozen=True, slots=True)
class Help:
    """List the commands."""


Command = (
    Promote
    | Plan
    | Apply
    | Retry
    | Approve
    | Answer
    | Hold
    | Resume
    | Rollback
    | Verify
    | MakeFreight
    | Cancel
    | Freeze
    | Unfreeze
    | Drift
    | Explain
    | Status
    | Doctor
    | Help
)


@dataclass(frozen=True, slots=True)
class CommandProblem:
    """A line that was meant as a command but is none; `suggestion` is what to type instead, empty if unknown.

    `unknown` tells that the word is none of ours at all: on other people's pull requests it may be for another bot.
    The message never repeats what was typed beyond a plain word, so it can be posted as it is.
    """

    message: str
    suggestion: str = ""
    unknown: bool = False


HELP: Mapping[str, tuple[str, str]] = {
    "promote": ("/promote [PROJECT/]STAGE [FREIGHT]", "promote Freight (the newest available) into a Stage"),
    "plan": ("/plan [COMMIT]", "preview again; for a fork, name the commit that you have read"),
    "apply": ("/apply [DIGEST]", "apply exactly the preview with this digest, or the approved one"),
    "retry": ("/retry", "try the failed step again"),
    "approve": ("/approve FREIGHT [PROJECT/]STAGE", "approve Freight for a Stage (this is no review)"),
    "answer": (
        "/answer [STEP] NAME=VALUE ...",
        "answer what a step asks; more lines of NAME=VALUE may follow",
    ),
    "hold": ("/hold [REASON]", "keep this pull request from being merged"),
    "resume": ("/resume", "end a hold"),
    "rollback": (
        "/rollback [PROJECT/]STAGE [FREIGHT]",
        "bring a Stage back to Freight that was verified there",
    ),
    "verify": ("/verify [PROJECT/]STAGE [abort]", "verify anew what a Stage has, or abort that"),
    "freight": (
        "/freight [PROJECT/]WAREHOUSE [NAME=VERSION ...]",
        "make Freight of these versions, the newest of what is not named",
    ),
    "cancel": ("/cancel", "end this promotion"),
    "freeze": ("/freeze [REASON]", "stop all promotions"),
    "unfreeze": ("/unfreeze", "let promotions go on"),
    "drift": (
        "/drift [fix] [[PROJECT/]STAGE]",
        "look for drift now; with `fix` open a pull request that undoes it",
    ),
    "explain": ("/explain", "show every gate and why it is open or closed"),
    "status": ("/status", "show what runs in which Stage"),
    "doctor": ("/doctor", "check the installation"),
    "help": ("/help", "show this table"),
}
"""Every command: how it is written, and what it does."""

_WORD = re.compile(r"/([A-Za-z][A-Za-z-]{1,29})(?=[ \t]|$)(.*)", re.DOTALL)
_SUBSCRIPTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+-]{0,254}")
_VERSION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+/@-]{0,254}")
_MOST_VERSIONS = 50


def parse_command(body: str) -> Command | CommandProblem | None:
    """The command on the first line of a comment, None if there is none."""
    line = body.split("\n", 1)[0].rstrip(" \t\r")
    match = _WORD.fullmatch(line)
    if match is None:
        return None
    word, rest = match[1].lower(), match[2].strip(" \t")
    parse = _PARSERS.get(word)
    if parse is None:
        return _describe_unknown(word)
    usage = HELP[word][0]
    if len(line) > _LONGEST_LINE:
        return CommandProblem(f"the line has more than {_LONGEST_LINE} characters", usage)
    try:
        return parse_answer(rest, body.split("\n")[1:]) if word == "answer" else parse(rest)
    except WrongArgumentError as error:
        return CommandProblem(str(error), usage)


def _describe_unknown(word: str) -> CommandProblem:
    if word in {"lgtm", "approved", "unapprove"}:
        return CommandProblem(
            "a pull request is approved by a review, so that GitHub records which commit you saw",
            unknown=True,
        )
    near = SYNONYMS.get(word) or difflib.get_close_matches(word, HELP, n=1, cutoff=0.6)
    return CommandProblem(
        f"there is no command /{word}", HELP[near[0]][0] if near else HELP["help"][0], unknown=True
    )


def _parse_promote(rest: str) -> Command:
    parts = split_arguments(rest, 1, 2)
    project, stage = parse_stage(parts[0])
    return Promote(stage, project, parse_freight_name(parts[1]) if len(parts) > 1 else "")


def _parse_rollback(rest: str) -> Command:
    parts = split_arguments(rest, 1, 2)
    project, stage = parse_stage(parts[0])
    return Rollback(stage, project, parse_freight_name(parts[1]) if len(parts) > 1 else "")


def _parse_verify(rest: str) -> Command:
    parts = split_arguments(rest, 1, 2)
    project, stage = parse_stage(parts[0])
    if len(parts) > 1 and parts[1].lower() != "abort":
        raise WrongArgumentError("after the Stage there may only be the word abort")
    return Verify(stage, project, abort=len(parts) > 1)


def _parse_freight(rest: str) -> Command:
    first, *others = split_arguments(rest, 1, 1 + _MOST_VERSIONS)
    project, warehouse = parse_stage(first, "Warehouse")
    versions: dict[str, str] = {}
    for part in others:
        name, _, version = part.partition("=")
        if _SUBSCRIPTION.fullmatch(name) is None or _VERSION.fullmatch(version) is None:
            raise WrongArgumentError(
                "after the Warehouse there are only pairs NAME=VERSION, without spaces in them"
            )
        if name in versions:
            raise WrongArgumentError("one name stands there twice, so it is not clear which version is meant")
        versions[name] = version
    return MakeFreight(warehouse, project, tuple(versions.items()))


def _parse_approve(rest: str) -> Command:
    if not rest:
        raise WrongArgumentError(
            "a pull request is approved by a review; this command approves Freight for a Stage and needs both"
        )
    freight, target = split_arguments(rest, 2, 2)
    project, stage = parse_stage(target)
    return Approve(parse_freight_name(freight), stage, project)


def _parse_plan(rest: str) -> Command:
    parts = split_arguments(rest, 0, 1)
    return Plan(parse_hex(parts[0], "a commit") if parts else "")


def _parse_apply(rest: str) -> Command:
    parts = split_arguments(rest, 0, 1)
    return Apply(parse_hex(parts[0], "the digest of a preview") if parts else "")


def _parse_drift(rest: str) -> Command:
    parts = split_arguments(rest, 0, 2)
    fix = bool(parts) and parts[0].lower() == "fix"
    named = parts[1:] if fix else parts
    if len(named) > 1:
        raise WrongArgumentError("there may be the word fix and then a Stage")
    project, stage = parse_stage(named[0]) if named else ("", "")
    return Drift(fix, stage, project)


def _alone(command: Command) -> Callable[[str], Command]:
    """A parser for a command that takes no arguments."""

    def parse(rest: str) -> Command:
        split_arguments(rest, 0, 0)
        return command

    return parse


_PARSERS: Mapping[str, Callable[[str], Command]] = {
    "promote": _parse_promote,
    "plan": _parse_plan,
    "apply": _parse_apply,
    "retry": _alone(Retry()),
    "approve": _parse_approve,
    "answer": lambda rest: parse_answer(rest, ()),
    "hold": lambda rest: Hold(parse_reason(rest)),
    "resume": _alone(Resume()),
    "rollback": _parse_rollback,
    "verify": _parse_verify,
    "freight": _parse_freight,
    "cancel": _alone(Cancel()),
    "freeze": lambda rest: Freeze(parse_reason(rest)),
    "unfreeze": _alone(Unfreeze()),
    "drift": _parse_drift,
    "explain": _alone(Explain()),
    "status": _alone(Status()),
    "doctor": _alone(Doctor()),
    "help": _alone(Help()),
}
