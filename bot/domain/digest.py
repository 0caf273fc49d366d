"""The preview digest: one value that binds everything an approval is given for (section 7 of the review gate)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from bot.domain.files import Change, Entry
from bot.domain.promotion import Promotion
from bot.domain.review import (
    ApplyRecord,
    EffectRecord,
    FrozenRecord,
    GateRecord,
    Patch,
    Presence,
    Preview,
    StepReport,
)
from bot.domain.values import Json, Value, show

DIGEST_LENGTH = 16
"""Hex digits of a digest that people see and type; 64 bits of a keyed hash."""


def preview_digest(preview: Preview, promotion: Promotion, keyed: Callable[[bytes], str]) -> str:
    """The digest of a preview: equal for equal base, branch, Freight and answers, on any replica.

    `keyed` is an HMAC, since a plain hash would give short secrets away. Sentinels are replaced by what they stand for,
    so that neither their order nor their nonce enters.
    """
    bound: Json = {
        "schema": 1,
        "freight": promotion.freight.name,
        "task": _task(promotion),
        "target": [preview.target.url, preview.target.branch],
        "differences": [[path, *_entry(entry)] for path, entry in sorted(preview.differences.items())],
        "applies": [_apply(apply) for apply in preview.applies],
        "deferred": _patch(preview.split.deferred, preview.origins),
        "others": [_patch(patch, preview.origins) for patch in preview.split.others],
        "effects": [_effect(step) for step in preview.steps if isinstance(step.record, EffectRecord)],
        "presence": [[step.alias, step.presence.value] for step in preview.steps],
        "answers": _answers(preview),
    }
    return keyed(canonical(bound))[:DIGEST_LENGTH]


def canonical(value: Json) -> bytes:
    """JSON bytes that are equal for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _answers(preview: Preview) -> list[Json]:
    """What the world answered, then what people did."""
    frozen: list[Json] = []
    given: list[Json] = []
    for step in preview.steps:
        match step.record:
            case FrozenRecord(question=question, fingerprint=fingerprint):
                frozen.append([step.alias, question, fingerprint])
            case GateRecord(subject=subject, fingerprint=fingerprint) if fingerprint:
                given.append([step.alias, subject, fingerprint])
    return [*frozen, *given]


def _task(promotion: Promotion) -> Json:
    steps: list[Json] = [
        [s.uses, s.alias, s.condition, s.continue_on_error, _variables(s.variables), dict(s.config)]
        for s in promotion.steps
    ]
    return [steps, _variables(promotion.variables)]


def _variables(variables: object) -> Json:
    return [[v.name, v.value] for v in variables] if isinstance(variables, tuple) else []


def _entry(entry: Entry | None) -> list[Json]:
    return [None, None] if entry is None else [entry.mode.value, entry.blob]


def _apply(apply: ApplyRecord) -> Json:
    return [apply.state, apply.inputs, apply.kind.value, apply.plan.digest if apply.plan is not None else ""]


def _patch(patch: Patch, origins: Mapping[str, str]) -> Json:
    return [patch.target.url, patch.target.branch, [_change(change, origins) for change in patch.changes]]


def _change(change: Change, origins: Mapping[str, str]) -> Json:
    if change.after is None:
        return [change.path, None, None]
    text = change.after.data.decode("utf-8", "surrogateescape")
    for sentinel, origin in origins.items():
        text = text.replace(sentinel, f"<{origin}>")
    return [change.path, change.after.mode.value, text.encode("utf-8", "surrogateescape").hex()]


def _effect(step: StepReport) -> Json:
    if not isinstance(step.record, EffectRecord) or step.presence is Presence.SKIPPED:
        return [step.alias, None]
    details: Value = [[name, value] for name, value in step.record.details]
    return [step.alias, step.record.title, step.record.address, show(details)]
