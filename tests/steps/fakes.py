"""Small honest fakes of the ports that steps use; each holds state and refuses what the real one would refuse."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.domain.argocd import Application, ApplicationSource, Operation
from bot.domain.promotion import PromotionId
from bot.domain.terraform import (
    Action,
    Applied,
    ApplyOutcome,
    AttributeChange,
    Diagnostic,
    Failed,
    Lock,
    Output,
    OutputChange,
    OutputOutcome,
    Outputs,
    Plan,
    Planned,
    PlanOutcome,
    ResourceChange,
    StalePlan,
    StateLocked,
)
from bot.domain.values import Json, Sensitive, Unknown, Value
from bot.ports import (
    AppliedState,
    HttpRequest,
    HttpResponse,
    SyncRefused,
    SyncStarted,
    TerraformRun,
    TransientError,
)


class FakeVault:
    """A keyed hash with a fixed key; nothing is sealed in these tests."""

    def seal(self, data: bytes, purpose: str) -> bytes:
        return purpose.encode() + b"\0" + data[::-1]

    def open(self, sealed: bytes, purpose: str) -> bytes:
        head, _, data = sealed.partition(b"\0")
        assert head == purpose.encode()
        return data[::-1]

    def digest(self, data: bytes) -> str:
        return hmac.digest(b"key of the tests", data, "sha256").hex()


class FakePlans:
    """The plan store in memory."""

    def __init__(self) -> None:
        self.bundles: dict[tuple[str, str], bytes] = {}
        self.applied: dict[str, AppliedState] = {}

    async def keep_bundle(self, promotion: PromotionId, name: str, sealed: bytes) -> None:
        self.bundles[promotion, name] = sealed

    async def get_bundle(self, promotion: PromotionId, name: str) -> bytes | None:
        return self.bundles.get((promotion, name))

    async def drop_bundles(self, promotion: PromotionId) -> None:
        self.bundles = {key: value for key, value in self.bundles.items() if key[0] != promotion}

    async def find_applied(self, state: str) -> AppliedState | None:
        return self.applied.get(state)

    async def record_applied(self, applied: AppliedState) -> None:
        self.applied[applied.state] = applied

    async def record_outputs(self, state: str, outputs: Mapping[str, Output]) -> None:
        if state in self.applied:
            self.applied[state] = replace(self.applied[state], outputs=outputs)


@dataclass
class CloudState:
    """What one Terraform state holds: resources by address, outputs, and a serial that grows."""

    serial: int = 0
    resources: dict[str, dict[str, Json]] = field(default_factory=dict)
    tainted: set[str] = field(default_factory=set)
    outputs: dict[str, Output] = field(default_factory=dict)


class FakeTerraform:
    """Terraform over a toy language in `main.auto.tfvars`: `resource.key = value` and `output.name = expression`.

    An expression is a literal, `id(resource)`, which is known only once the resource exists, or `secret:literal`.
    Every value may hold `$name`, a variable of the run. Values that begin with `!` are not valid.
    """

    def __init__(self) -> None:
        self.states: dict[str, CloudState] = {}
        self.ran: list[tuple[str, str]] = []
        self.runs: list[TerraformRun] = []
        self.locked: Lock | None = None
        self.fail_after: int | None = None
        """An apply fails after this many resources; the last one is left tainted."""
        self.interrupt = False
        self.dead = False
        """The backend cannot be reached: every command raises."""
        self.refuse_without = ""
        """A variable of the environment without which the cloud lets nobody plan."""
        self.tool = "terraform 1.11.4"
        self.surprise: dict[str, Json] = {}
        """Outputs that turn out otherwise than planned."""

    async def version(self) -> str:
        return self.tool

    async def plan(self, run: TerraformRun) -> PlanOutcome:
        self._note("plan", run)
        if self.locked is not None and run.lock:
            return StateLocked(self.locked)
        if self.refuse_without and self.refuse_without not in {*run.environment, *run.secrets}:
            return Failed((Diagnostic("error", "No valid credential sources found"),), "log")
        wanted = self._read(run)
        if isinstance(wanted, Failed):
            return wanted
        state = self.states.get(run.key, CloudState())
        plan = _plan(state, wanted, self.tool)
        bundle = json.dumps({"serial": state.serial, "key": run.key, "wanted": wanted}).encode()
        return Planned(plan, f"text of {plan.result}", bundle)

    async def apply(self, run: TerraformRun, bundle: bytes) -> ApplyOutcome:
        self._note("apply", run)
        saved = json.loads(bundle)
        assert saved["key"] == run.key
        if self.locked is not None:
            return StateLocked(self.locked)
        state = self.states.setdefault(run.key, CloudState())
        if saved["serial"] != state.serial:
            return StalePlan("Saved plan is stale")
        return self._carry_out(state, saved["wanted"])

    async def output(self, run: TerraformRun) -> OutputOutcome:
        self._note("output", run)
        return Outputs(dict(self.states.get(run.key, CloudState()).outputs))

    def _note(self, what: str, run: TerraformRun) -> None:
        self.ran.append((what, run.directory))
        self.runs.append(run)
        if self.dead:
            raise TransientError("the state backend does not answer")

    def _read(self, run: TerraformRun) -> dict[str, dict[str, str]] | Failed:
        path = f"{run.directory}/main.auto.tfvars".removeprefix("./")
        resources: dict[str, dict[str, str]] = {}
        outputs: dict[str, str] = {}
        for number, line in enumerate(run.files[path].data.decode().splitlines(), 1):
            if " = " not in line:
                continue
            key, value = (part.strip().strip('"') for part in line.split(" = "))
            for name, given in run.variables:
                value = value.replace(f"${name}", given)
            if value.startswith("!"):
                return Failed(
                    (Diagnostic("error", "Invalid value", path="main.auto.tfvars", line=number),), "log"
                )
            kind, _, rest = key.partition("_")
            if kind == "output":
                outputs[rest] = value
            else:
                address, _, attribute = key.partition("__")
                resources.setdefault(address, {})[attribute] = value
        return {"outputs": outputs, **{f"r:{address}": values for address, values in resources.items()}}

    def _carry_out(self, state: CloudState, wanted: dict[str, dict[str, str]]) -> ApplyOutcome:
        done = 0
        for address, values in _resources(wanted).items():
            present = state.resources.get(address)
            if present is not None and _own(present) == values and address not in state.tainted:
                continue
            state.serial += 1
            fresh = present is None or address in state.tainted
            name = f"id-{address}-{state.serial}" if fresh else (present or {})["id"]
            state.resources[address] = {**values, "id": name}
            state.tainted.discard(address)
            done += 1
            if self.interrupt:
                raise KeyboardInterrupt
            if self.fail_after is not None and done >= self.fail_after:
                state.tainted |= {address} if fresh else set()
                error = Diagnostic("error", "the cloud said no", path="main.tf", line=7)
                return Failed((error,), "log of the apply", partial=True)
        for address in [a for a in state.resources if a not in _resources(wanted)]:
            state.serial += 1
            del state.resources[address]
        outputs = {name: _output(state, text) for name, text in wanted["outputs"].items()}
        outputs |= {name: Output(value) for name, value in self.surprise.items()}
        if outputs != state.outputs:
            state.serial += 1
            state.outputs = outputs
        return Applied(f"Apply complete! Resources: {done} changed.", "log of the apply")


def _resources(wanted: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    return {key[2:]: values for key, values in wanted.items() if key.startswith("r:")}


def _own(present: dict[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in present.items() if key != "id"}


def _output(state: CloudState, text: str) -> Output:
    if text.startswith("id("):
        return Output(state.resources[text[3:-1]]["id"], type="string")
    if text.startswith("secret:"):
        return Output(text.removeprefix("secret:"), sensitive=True, type="string")
    return Output(text, type="string")


def _plan(state: CloudState, wanted: dict[str, dict[str, str]], tool: str) -> Plan:
    resources: list[ResourceChange] = []
    fresh: set[str] = set()
    for address, values in _resources(wanted).items():
        present = state.resources.get(address)
        if present is None:
            fresh.add(address)
            attributes = [AttributeChange(key, None, value) for key, value in values.items()]
            attributes.append(AttributeChange("id", None, Unknown("known after apply: id")))
            resources.append(ResourceChange(address, _type(address), Action.CREATE, tuple(attributes)))
        elif address in state.tainted:
            fresh.add(address)
            changed = AttributeChange("id", _value(present["id"]), Unknown("known after apply: id"))
            resources.append(
                ResourceChange(
                    address, _type(address), Action.REPLACE, (changed,), reason="replace_because_tainted"
                )
            )
        elif _own(present) != values:
            attributes = [
                AttributeChange(key, _value(present.get(key)), value)
                for key, value in values.items()
                if present.get(key) != value
            ]
            resources.append(ResourceChange(address, _type(address), Action.UPDATE, tuple(attributes)))
    for address in state.resources:
        if address not in _resources(wanted):
            resources.append(ResourceChange(address, _type(address), Action.DELETE))
    outputs, unchanged = _planned_outputs(state, wanted, fresh)
    facts = [repr(resources), repr(outputs), tool]
    count = len(resources)
    result = f"Plan: {count} to change." if count or outputs else "No changes. Your infrastructure matches."
    lines = {change.address: ("main.tf", 3) for change in resources}
    digest = hashlib.sha256("".join(facts).encode()).hexdigest()
    return Plan(tuple(resources), (), tuple(outputs), unchanged, digest, tool, result, lines)


def _planned_outputs(
    state: CloudState, wanted: dict[str, dict[str, str]], fresh: set[str]
) -> tuple[list[OutputChange], dict[str, Value]]:
    outputs: list[OutputChange] = []
    unchanged: dict[str, Value] = {}
    for name, text in wanted["outputs"].items():
        before = state.outputs.get(name)
        if text.startswith("id(") and text[3:-1] in fresh:
            after: Value = Unknown("known after apply")
        else:
            held = _output(state, text)
            after = Sensitive(f"output.{name}", held.value) if held.sensitive else _value(held.value)
            if before == held:
                unchanged[name] = after
                continue
        action = Action.CREATE if before is None else Action.UPDATE
        outputs.append(OutputChange(name, action, _value(before.value) if before else None, after))
    for name, held in state.outputs.items():
        if name not in wanted["outputs"]:
            outputs.append(OutputChange(name, Action.DELETE, _value(held.value), None, absent=True))
    return outputs, unchanged


def _value(plain: Json) -> Value:
    assert not isinstance(plain, list | dict)
    return plain


def _type(address: str) -> str:
    return "kubernetes_deployment" if address.startswith("kube") else "toy_thing"


class FakeArgoCD:
    """Applications that sync when asked; `advance` lets their controllers work."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.apps: dict[str, Application] = {}
        self.syncs: list[tuple[str, str, Mapping[str, str]]] = []
        self.patched: list[tuple[str, list[Json]]] = []
        self.refuse: SyncRefused | None = None
        self.head = ""
        """What the tracked branch points at: an operation ends on it."""
        self.sick = False

    def add(
        self, name: str, url: str, annotations: Mapping[str, str], raw: Mapping[str, Json] | None = None
    ) -> None:
        source: Json = {"repoURL": url, "path": "helm", "targetRevision": "main", **(raw or {})}
        self.apps[name] = Application(
            name=name,
            namespace="argocd",
            project="default",
            annotations=annotations,
            sources=(ApplicationSource(url, "helm", target_revision="main"),),
            sync_status="OutOfSync",
            health="Healthy",
            reconciled_at=self.now - timedelta(hours=1),
            raw_sources=(source,),
        )

    async def get_application(
        self, server: str, name: str, *, namespace: str = "", project: str = "", refresh: str = ""
    ) -> Application | None:
        if name in self.apps and refresh:
            self.apps[name] = replace(self.apps[name], reconciled_at=self.now)
        return self.apps.get(name)

    async def list_applications(
        self, server: str, selector: str, *, namespace: str = "", project: str = ""
    ) -> Sequence[Application]:
        return [app for app in self.apps.values() if selector in (f"app={app.name}", "all=yes")]

    async def sync(
        self, server: str, application: Application, *, revision: str, infos: Mapping[str, str]
    ) -> SyncStarted | SyncRefused:
        if self.refuse is not None:
            return self.refuse
        self.syncs.append((application.name, revision, infos))
        running = Operation("Running", started_at=self.now, infos=dict(infos))
        self.apps[application.name] = replace(self.apps[application.name], operation=running)
        return SyncStarted()

    async def patch_sources(self, server: str, application: Application, sources: Sequence[Json]) -> None:
        self.patched.append((application.name, list(sources)))
        self.apps[application.name] = replace(self.apps[application.name], raw_sources=tuple(sources))

    def advance(self, seconds: float) -> None:
        """Time passes: operations end on the branch's head, and everything is compared again."""
        self.now += timedelta(seconds=seconds)
        for name, app in self.apps.items():
            operation = app.operation
            if operation is not None and operation.phase == "Running":
                operation = replace(
                    operation, phase="Succeeded", finished_at=self.now, revisions=(self.head,)
                )
            source = replace(app.sources[0], revision=self.head)
            self.apps[name] = replace(
                app,
                operation=operation,
                sources=(source,),
                sync_status="Synced",
                health="Degraded" if self.sick else "Healthy",
                reconciled_at=self.now,
            )


class FakeHttp:
    """Answers by method and address; remembers what was sent."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], HttpResponse] = {}
        self.sent: list[HttpRequest] = []
        self.lost = False
        """The request arrives, its answer does not."""

    def answer(
        self, method: str, url: str, status: int, body: str = "", kind: str = "application/json"
    ) -> None:
        self.answers[method, url] = HttpResponse(status, (("content-type", kind),), body.encode())

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.sent.append(request)
        if self.lost:
            raise TransientError("connection reset")
        return self.answers.get((request.method, request.url), HttpResponse(404, (), b"not found"))


class FakeDns:
    """Names that resolve."""

    def __init__(self) -> None:
        self.names: dict[str, tuple[str, ...]] = {}

    async def resolve(self, name: str) -> tuple[str, ...]:
        return self.names.get(name, ())
