"""`http-download`: fetches a file into the work tree; what was fetched for review must be the same after the merge."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.review import FrozenRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.ports import Http, Vault
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.downloads import hold_place, keep, refuse_existing
from bot.steps.marks import show_scalar
from bot.steps.options import Options
from bot.steps.queries import evaluate
from bot.steps.requests import Request, describe_response, parse_request, read_response
from bot.steps.worktree import clean_path

KIND = StepKind("http-download", StepClass.EDIT)


@dataclass(frozen=True, slots=True)
class Config:
    """The request and the file to write."""

    request: Request
    out_path: str
    overwrite: bool
    error: str


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    return Config(
        request=parse_request(options, timeout=300.0),
        out_path=clean_path(options.address("outPath")),
        overwrite=options.flag("allowOverwrite"),
        error=options.address("errorExpression"),
    )


@dataclass(frozen=True, slots=True)
class HttpDownload:
    """Reads the world and edits the work tree."""

    http: Http
    vault: Vault

    @property
    def kind(self) -> StepKind:
        """An edit."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Fetch, and remember a fingerprint; with an unknown address the whole file is unknown."""
        wanted = parse(config)
        if not wanted.request.is_known:
            return await hold_place(wanted.out_path, context)
        return await self._fetch(wanted, context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Fetch again; other content than the approved one stops the walk."""
        return await self._fetch(parse(config), context)

    async def _fetch(self, wanted: Config, context: StepContext) -> StepResult:
        refused = None if wanted.overwrite else await refuse_existing(KIND.name, wanted.out_path, context)
        if refused is not None:
            return refused
        response = await self.http.send(wanted.request.build())
        if not 200 <= response.status < 300:
            said = describe_response(response, wanted.request)
            if wanted.error:
                names = read_response(response, "", KIND.name)
                said = show_scalar(evaluate(wanted.error, names, "http-download: errorExpression"))
            return failed(context.alias, f"http-download: {wanted.request.title} answered {said}")
        record = FrozenRecord(wanted.request.title, self.vault.digest(response.body))
        return await keep(
            response.body, wanted.out_path, record, context, "gives other content than was approved"
        )
