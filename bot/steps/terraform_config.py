"""What the Terraform steps have in common in their config: directory, variables and environment."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.values import Value, find_sensitive, is_tainted
from bot.ports import TerminalError
from bot.steps.checkout import Checkout
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext
from bot.steps.options import Options, open_value, plain_text
from bot.steps.worktree import clean_path, inside_path

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class TerraformConfig:
    """`directory` and `variable_files` are paths of the work tree; values may hold marks."""

    directory: str
    variables: tuple[tuple[str, Value], ...] = ()
    variable_files: tuple[str, ...] = ()
    environment: tuple[tuple[str, Value], ...] = ()

    @property
    def workspace(self) -> str:
        """The workspace that the environment selects."""
        selected = dict(self.environment).get("TF_WORKSPACE", "default")
        if is_tainted(selected) or find_sensitive(selected):
            raise TerminalError(
                "env TF_WORKSPACE: which state is used must be known to a reviewer; give a plain value"
            )
        return plain_text(selected) or "default"


@dataclass(frozen=True, slots=True)
class Site:
    """Where a directory lies: the checkout's place and the checkout, and the directory inside it."""

    place: str
    checkout: Checkout
    directory: str

    def inside(self, path: str) -> str | None:
        """A path of the work tree as a path of the checkout, None if it lies outside."""
        return inside_path(self.place, path)


def parse_terraform(step: str, given: Given) -> TerraformConfig:
    """The shared part of the config; raises TerminalError for an unknown address or a wrong name."""
    options = Options(step, given)
    directory = clean_path(options.address("dir"))
    variables: list[tuple[str, Value]] = []
    files: list[str] = []
    for item in options.each("vars"):
        if item.has("file"):
            files.append(clean_path(posixpath.join(directory, item.address("file"))))
        else:
            variables.append((item.address("name"), item.value("value")))
    environment: list[tuple[str, Value]] = []
    for item in options.each("env"):
        name = item.address("name")
        if not _NAME.fullmatch(name):
            raise TerminalError(f"{step}: env {name!r} is no name of an environment variable")
        value = item.value("value")
        if value is None:
            raise TerminalError(
                f"{step}: env {name} has no value; the secret, or the key of it, that its expression names is not there"
            )
        environment.append((name, value))
    return TerraformConfig(directory, tuple(variables), tuple(files), tuple(environment))


def find_site(step: str, config: TerraformConfig, context: StepContext) -> Site:
    """The checkout that holds the directory; raises TerminalError if none does."""
    found = context.tree.find_checkout(config.directory)
    if found is None:
        known = ", ".join(sorted(context.tree.checkouts)) or "none"
        raise TerminalError(
            f"{step}: dir {config.directory!r} does not lie in a checkout (checkouts: {known}); clone the repository "
            "that holds it first"
        )
    place, checkout, inner = found
    return Site(place, checkout, inner)


def argument(value: Value) -> str:
    """A variable's value as Terraform reads it on its command line: lists and objects as JSON."""
    plain = open_value(value)
    return json.dumps(plain) if isinstance(plain, list | dict) or plain is None else plain_text(plain)


def split_environment(environment: Mapping[str, Value]) -> tuple[dict[str, str], dict[str, str]]:
    """Plain variables, and those whose values are secret and must be masked."""
    plain: dict[str, str] = {}
    secret: dict[str, str] = {}
    for name, value in environment.items():
        (secret if find_sensitive(value) else plain)[name] = plain_text(value)
    return plain, secret
