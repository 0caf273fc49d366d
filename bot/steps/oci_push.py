"""`oci-push`: copies or retags an OCI artifact, exactly the one that was reviewed.

A source that is named by tag is resolved in the preview, and the copy is made from that digest. Its own digest is
known before anything is pushed, annotations included, so that later steps can use it in the reviewed change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.review import EffectRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Unknown, Value, is_tainted
from bot.ports import TerminalError
from bot.ports.artifacts import ArtifactsOfProjects, Copy
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.marks import message_text, show_scalar
from bot.steps.options import Options, known_text

KIND = StepKind("oci-push", StepClass.ACT)

_SOURCE = "source digest"
_PINNED = re.compile(r".+@sha(256|512):[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Config:
    """From where to where; the source and the annotations may hold marks."""

    source: Value
    destination: str
    annotations: Mapping[str, Value]
    insecure: bool

    @property
    def is_known(self) -> bool:
        """Whether the copy can be described in full."""
        return not is_tainted(self.source) and not any(map(is_tainted, self.annotations.values()))

    @property
    def tag(self) -> str:
        """The tag of the destination."""
        return self.destination.rpartition(":")[2]


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    return Config(
        source=options.text("srcRef"),
        destination=options.address("destRef"),
        annotations=options.part("annotations").values,
        insecure=options.flag("insecureSkipTLSVerify"),
    )


@dataclass(frozen=True, slots=True)
class OciPush:
    """Pushes to a registry."""

    artifacts: ArtifactsOfProjects

    @property
    def kind(self) -> StepKind:
        """An act."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Show what will be pushed where, by digest."""
        wanted = parse(config)
        digest: Value = Unknown(f"known after step: {context.alias}.digest")
        pinned: Value = Unknown(f"known after step: {context.alias}.source")
        if not is_tainted(wanted.source):
            pinned = await self._resolve(wanted, context)
        if wanted.is_known and isinstance(pinned, str):
            artifacts = await self.artifacts.of(context.promotion.project)
            digest = await artifacts.foresee(_copy(wanted, pinned))
        details: list[tuple[str, Value]] = [("source", wanted.source), (_SOURCE, pinned)]
        details += [(f"annotation {key}", value) for key, value in sorted(wanted.annotations.items())]
        record = EffectRecord(f"push {wanted.destination}", wanted.destination, tuple(details))
        return StepResult(None, _output(wanted, digest), record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Push; a destination that has it already counts as done."""
        wanted = parse(config)
        pinned = _approved(context) or await self._resolve(wanted, context)
        artifacts = await self.artifacts.of(context.promotion.project)
        digest = await artifacts.copy(_copy(wanted, pinned))
        return StepResult(output=_output(wanted, digest))

    async def _resolve(self, wanted: Config, context: StepContext) -> str:
        reference = known_text(wanted.source, "oci-push: srcRef")
        if _PINNED.fullmatch(reference):
            return reference.rpartition("@")[2]
        artifacts = await self.artifacts.of(context.promotion.project)
        digest = await artifacts.resolve(reference, insecure=wanted.insecure)
        if digest is None:
            raise TerminalError(f"oci-push: {reference} does not exist, or may not be read")
        return digest


def _approved(context: StepContext) -> str:
    """The source's digest that was approved, empty if it was not known then."""
    record = context.approved.record if context.approved is not None else None
    details = dict(record.details) if isinstance(record, EffectRecord) else {}
    found = details.get(_SOURCE)
    return found if isinstance(found, str) else ""


def _copy(wanted: Config, digest: str) -> Copy:
    source = known_text(wanted.source, "oci-push: srcRef").removeprefix("oci://").partition("@")[0]
    head, colon, tag = source.rpartition(":")
    repository = head if colon and "/" not in tag else source
    annotations = {
        key: message_text(value, f"oci-push: annotation {key}") for key, value in wanted.annotations.items()
    }
    return Copy(f"{repository}@{digest}", wanted.destination, annotations, wanted.insecure)


def _output(wanted: Config, digest: Value) -> dict[str, Value]:
    image = wanted.destination.removeprefix("oci://")
    return {"image": show_scalar(image), "digest": digest, "tag": wanted.tag}
