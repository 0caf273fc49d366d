"""`git-tag`: tags the last commit of a checkout on the server.

Kargo tags locally and leaves the push to `git-push`; here the tag is pushed at once, and that later push finds it.
The tag is a plain one: its message stands on the pull request and in the commit.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.review import EffectRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Unknown, Value
from bot.ports import Git, Moved, Pushed, Refused
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.options import Options
from bot.steps.worktree import clean_path

KIND = StepKind("git-tag", StepClass.ACT)


@dataclass(frozen=True, slots=True)
class Config:
    """The checkout, the tag and its message; with `force` an existing tag is moved."""

    path: str
    tag: str
    message: Value
    force: bool


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    return Config(
        clean_path(options.address("path")),
        options.address("tag"),
        options.text("message"),
        options.flag("force"),
    )


@dataclass(frozen=True, slots=True)
class GitTag:
    """Pushes a tag."""

    git: Git

    @property
    def kind(self) -> StepKind:
        """An act."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Show the tag."""
        wanted = parse(config)
        checkout = context.tree.checkout_at(wanted.path)
        commit: Value = Unknown("known after merge: commit") if checkout.commits else checkout.head or ""
        record = EffectRecord(
            title=f"tag {wanted.tag}",
            address=checkout.pin.url,
            details=(
                ("commit", commit),
                ("message", wanted.message),
                ("moves an existing tag", wanted.force),
            ),
        )
        return StepResult(output={"commit": commit}, record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Push the tag; one that is there on this commit counts as done."""
        wanted = parse(config)
        checkout = context.tree.checkout_at(wanted.path)
        head, url = checkout.head, checkout.pin.url
        if head is None:
            return failed(context.alias, f"git-tag: {wanted.path!r} holds no commit to tag")
        await self.git.fetch(url)
        if await self.git.resolve(url, f"refs/tags/{wanted.tag}") == head:
            return StepResult(output={"commit": head}, message="the tag is there already")
        outcome = await self.git.push_tag(url, head, wanted.tag, force=wanted.force)
        match outcome:
            case Pushed():
                return StepResult(output={"commit": head})
            case Moved(tip=tip):
                return failed(
                    context.alias,
                    f"git-tag: the tag {wanted.tag!r} exists in {url} at {(tip or '')[:12]}; choose another name, or "
                    "set force: true to move it",
                )
            case Refused(message=message):
                return failed(
                    context.alias, f"git-tag: {url} refuses the tag {wanted.tag!r}: {message.strip()}"
                )
