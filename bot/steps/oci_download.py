"""`oci-download`: writes one layer of an OCI artifact to a file; what was fetched for review must be the same later."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.review import FrozenRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Value, is_tainted
from bot.ports import Vault
from bot.ports.artifacts import ArtifactsOfProjects
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.downloads import hold_place, keep, refuse_existing
from bot.steps.options import Options, known_text
from bot.steps.worktree import clean_path

KIND = StepKind("oci-download", StepClass.EDIT)


@dataclass(frozen=True, slots=True)
class Config:
    """The artifact, which may hold marks, the layer's media type (empty for any), and the file to write."""

    reference: Value
    out_path: str
    media_type: str
    overwrite: bool
    insecure: bool


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    return Config(
        reference=options.text("imageRef"),
        out_path=clean_path(options.address("outPath")),
        media_type=options.address("mediaType"),
        overwrite=options.flag("allowOverwrite"),
        insecure=options.flag("insecureSkipTLSVerify"),
    )


@dataclass(frozen=True, slots=True)
class OciDownload:
    """Reads a registry and edits the work tree."""

    artifacts: ArtifactsOfProjects
    vault: Vault

    @property
    def kind(self) -> StepKind:
        """An edit."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Fetch, and remember a fingerprint; with an unknown reference the whole file is unknown."""
        wanted = parse(config)
        if is_tainted(wanted.reference):
            return await hold_place(wanted.out_path, context)
        return await self._fetch(wanted, context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Fetch again; other content than the approved one stops the walk."""
        return await self._fetch(parse(config), context)

    async def _fetch(self, wanted: Config, context: StepContext) -> StepResult:
        refused = None if wanted.overwrite else await refuse_existing(KIND.name, wanted.out_path, context)
        if refused is not None:
            return refused
        reference = known_text(wanted.reference, "oci-download: imageRef")
        artifacts = await self.artifacts.of(context.promotion.project)
        layer = await artifacts.download(reference, media_type=wanted.media_type, insecure=wanted.insecure)
        if layer is None:
            of_type = f" of the type {wanted.media_type}" if wanted.media_type else ""
            return failed(context.alias, f"oci-download: {reference} has no layer{of_type}")
        record = FrozenRecord(f"{reference} {wanted.media_type}".strip(), self.vault.digest(layer.data))
        return await keep(
            layer.data, wanted.out_path, record, context, "holds other content than was approved"
        )
