"""Fields that Kargo has renamed or moved: old configurations are read, with a warning that names the new field.

Works on plain mappings before they are checked, and returns new ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from bot.domain.problems import Severity
from bot.domain.values import Json
from bot.pipeline.access import list_at, mapping_at
from bot.pipeline.reader import Path
from bot.pipeline.schema import Finding


def modernize(kind: str, spec: dict[str, Json]) -> tuple[dict[str, Json], list[Finding]]:
    """The spec with today's field names, and a warning for each field that was converted."""
    convert = _CONVERSIONS.get(kind)
    findings: list[Finding] = []
    return (convert(spec, findings) if convert is not None else spec), findings


def _warn(findings: list[Finding], path: Path, message: str) -> None:
    findings.append(Finding(path, message, Severity.WARNING))


def _warehouse(spec: dict[str, Json], findings: list[Finding]) -> dict[str, Json]:
    subscriptions = list_at(spec, "subscriptions")
    if not subscriptions:
        return spec
    converted: list[Json] = []
    for index, subscription in enumerate(subscriptions):
        if isinstance(subscription, dict):
            path: Path = ("spec", "subscriptions", index)
            subscription = {
                key: _tag_filters(key, value, (*path, key), findings)
                if key in {"image", "git"} and isinstance(value, dict)
                else value
                for key, value in subscription.items()
            }
        converted.append(subscription)
    return {**spec, "subscriptions": converted}


def _tag_filters(kind: str, body: dict[str, Json], path: Path, findings: list[Finding]) -> dict[str, Json]:
    changed = dict(body)
    allow, ignore = changed.pop("allowTags", None), changed.pop("ignoreTags", None)
    if isinstance(allow, str) and allow:
        _warn(findings, (*path, "allowTags"), "allowTags is deprecated; write allowTagsRegexes: [...]")
        changed["allowTagsRegexes"] = [allow, *list_at(changed, "allowTagsRegexes")]
    elif allow:
        changed["allowTags"] = allow
    if isinstance(ignore, list) and all(isinstance(tag, str) for tag in ignore):
        if ignore:
            _warn(findings, (*path, "ignoreTags"), "ignoreTags is deprecated; write ignoreTagsRegexes: [...]")
        quoted: list[Json] = [f"^{_quote(str(tag))}$" for tag in ignore]
        changed["ignoreTagsRegexes"] = [*quoted, *list_at(changed, "ignoreTagsRegexes")]
    elif ignore is not None:
        changed["ignoreTags"] = ignore
    for old, new in (("allowTagsRegex", "allowTagsRegexes"), ("ignoreTagsRegex", "ignoreTagsRegexes")):
        _rename(changed, old, new, path, findings)
    if kind == "image":
        _rename(changed, "semverConstraint", "constraint", path, findings)
    return changed


def _quote(tag: str) -> str:
    """The tag as an expression that matches it alone; only signs that mean something are escaped."""
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", tag)


def _rename(body: dict[str, Json], old: str, new: str, path: Path, findings: list[Finding]) -> None:
    if old not in body:
        return
    value = body.pop(old)
    if new in body:
        _warn(findings, (*path, old), f"{old} is deprecated and passed over, since {new} is given")
    else:
        _warn(findings, (*path, old), f"{old} is deprecated; write {new}")
        body[new] = value


def _stage(spec: dict[str, Json], findings: list[Finding]) -> dict[str, Json]:
    path: Path = ("spec", "promotionTemplate", "spec", "steps")
    steps = list_at(spec, "promotionTemplate", "spec", "steps")
    if not steps:
        return spec
    template = mapping_at(spec, "promotionTemplate")
    body = {**mapping_at(template, "spec"), "steps": _steps(steps, path, findings)}
    return {**spec, "promotionTemplate": {**template, "spec": body}}


def _task(spec: dict[str, Json], findings: list[Finding]) -> dict[str, Json]:
    steps = list_at(spec, "steps")
    return {**spec, "steps": _steps(steps, ("spec", "steps"), findings)} if steps else spec


def _steps(steps: list[Json], path: Path, findings: list[Finding]) -> list[Json]:
    converted: list[Json] = []
    for index, step in enumerate(steps):
        retry = mapping_at(step, "retry")
        if isinstance(step, dict) and "attempts" in retry:
            retry = dict(retry)
            attempts = retry.pop("attempts")
            where: Path = (*path, index, "retry", "attempts")
            _warn(findings, where, "attempts is deprecated; write errorThreshold")
            if isinstance(attempts, int) and attempts > 0:
                retry.setdefault("errorThreshold", attempts)
            step = {**step, "retry": retry}
        converted.append(step)
    return converted


def _project(spec: dict[str, Json], findings: list[Finding]) -> dict[str, Json]:
    if "promotionPolicies" in spec:
        message = "policies have moved: write them into a ProjectConfig of the project's name"
        _warn(findings, ("spec", "promotionPolicies"), message)
    return spec


_CONVERSIONS: Mapping[str, Callable[[dict[str, Json], list[Finding]], dict[str, Json]]] = {
    "Warehouse": _warehouse,
    "Stage": _stage,
    "PromotionTask": _task,
    "ClusterPromotionTask": _task,
    "Project": _project,
}
