"""`http`: one request. GET and HEAD read or, with criteria, wait; every other method is an act, sent once.

Differs from Kargo where neither criterion is given and the status is not 2xx: Kargo asks again for ever, this fails. An
act that is not answered is never repeated by itself; it carries an `Idempotency-Key` unless the config sets one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.domain.digest import canonical
from bot.domain.promotion import StepStatus
from bot.domain.review import EffectRecord, FrozenRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Value, show
from bot.ports import Http, HttpResponse, TransientError, Vault
from bot.steps.anticipation import is_behind_cut
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.gates import ask_later, show_look
from bot.steps.marks import show_scalar
from bot.steps.options import Options
from bot.steps.queries import evaluate, holds, read_outputs, unknown_outputs
from bot.steps.requests import Request, describe_response, parse_request, read_response

KIND = StepKind("http", StepClass.ACT)

_READING = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class Config:
    """The request, and what its answer means; expressions are kept as written."""

    request: Request
    options: Options
    content_type: str
    success: str
    failure: str
    error: str
    poll_interval: float

    @property
    def step_class(self) -> StepClass:
        """What the request does to the world, as far as its method tells."""
        if self.request.method not in _READING:
            return StepClass.ACT
        return StepClass.WAIT if self.success or self.failure else StepClass.READ


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    return Config(
        request=parse_request(options, timeout=10.0),
        options=options,
        content_type=options.address("responseContentType"),
        success=options.address("successExpression"),
        failure=options.address("failureExpression"),
        error=options.address("errorExpression"),
        poll_interval=options.duration("pollInterval", 30.0),
    )


@dataclass(frozen=True, slots=True)
class HttpStep:
    """Sends requests."""

    http: Http
    vault: Vault

    @property
    def kind(self) -> StepKind:
        """An act, unless the method says that it only reads."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Ask what may be asked already; show the rest."""
        wanted = await self._with_file(parse(config), context)
        return replace(await self._preview(wanted, context), step_class=wanted.step_class)

    async def _preview(self, wanted: Config, context: StepContext) -> StepResult:
        request = wanted.request
        later = unknown_outputs(wanted.options, context.alias)
        if wanted.step_class is StepClass.ACT:
            record = EffectRecord(request.title, show_scalar(request.url), request.describe())
            return StepResult(None, later, record=record)
        if is_behind_cut(context) or not request.is_known:
            is_wait = wanted.step_class is StepClass.WAIT
            return ask_later(request.title, later) if is_wait else StepResult(None, later)
        answer = await self._send(wanted, context)
        if wanted.step_class is StepClass.WAIT and answer.status is not StepStatus.FAILED:
            return show_look(request.title, answer, later)
        shown: Value = dict(answer.output)
        fingerprint = self.vault.digest(canonical(show(shown)))
        return replace(answer, record=FrozenRecord(request.title, fingerprint))

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Send the request; one of an act whose outcome is unknown is a person's to repeat."""
        wanted = await self._with_file(parse(config), context)
        if wanted.step_class is not StepClass.ACT:
            return replace(await self._send(wanted, context), step_class=wanted.step_class)
        if context.outcome_unknown:
            return _unknown(f"{wanted.request.title} was begun and its answer was not seen")
        try:
            answer = await self._send(wanted, context)
        except TransientError as error:
            return _unknown(f"{wanted.request.title} may have arrived although its answer was lost ({error})")
        if answer.status is StepStatus.RUNNING:
            return failed(
                context.alias, f"{answer.message}; a request that changes something is not sent twice"
            )
        return answer

    async def _with_file(self, wanted: Config, context: StepContext) -> Config:
        """The config with the body that `bodyFromFile` names."""
        path = wanted.options.address("bodyFromFile")
        if not path:
            return wanted
        text = context.tree.sentinels.read(await context.tree.read_text(path))
        return replace(wanted, request=replace(wanted.request, body=text))

    async def _send(self, wanted: Config, context: StepContext) -> StepResult:
        key = f"{context.promotion.id}/{context.alias}"
        extra = (("Idempotency-Key", key),) if wanted.step_class is StepClass.ACT else ()
        response = await self.http.send(wanted.request.build(extra))
        return self._judge(wanted, response, context)

    def _judge(self, wanted: Config, response: HttpResponse, context: StepContext) -> StepResult:
        names = read_response(response, wanted.content_type, KIND.name)
        said = describe_response(response, wanted.request)
        where = f"http: {wanted.request.title}"
        if wanted.failure and holds(wanted.failure, names, "http: failureExpression"):
            return failed(context.alias, f"{where} failed: {self._reason(wanted, names) or said}")
        criteria = bool(wanted.success or wanted.failure)
        met = holds(wanted.success, names, "http: successExpression") if wanted.success else False
        if not criteria and not 200 <= response.status < 300:
            return failed(context.alias, f"{where} answered {self._reason(wanted, names) or said}")
        if criteria and not met:
            return StepResult(
                StepStatus.RUNNING,
                message=f"{where} does not answer as wanted yet ({said})",
                retry_after=wanted.poll_interval,
            )
        return StepResult(output=read_outputs(wanted.options, names))

    def _reason(self, wanted: Config, names: dict[str, object]) -> str:
        if not wanted.error:
            return ""
        return show_scalar(evaluate(wanted.error, names, "http: errorExpression"))


def _unknown(what: str) -> StepResult:
    message = f"outcome unknown: {what}. Find out whether it was done, then say /retry to send it again"
    return StepResult(StepStatus.ERRORED, message=message)
