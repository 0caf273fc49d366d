"""`kustomize-set-image`: sets images in a `kustomization.yaml`, like `kustomize edit set image`, keeping its layout.

Without `images` every image of the Freight is set, by tag where it has one, else by digest. A tag replaces a digest
and the other way round, since Kustomize takes the digest where both stand; `*` keeps what is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bot.domain.freight import Freight
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Json, Value
from bot.editors.errors import EditError
from bot.editors.keys import Update
from bot.editors.yaml import merge_yaml, update_yaml
from bot.editors.yaml.scalars import render_scalar
from bot.ports import TerminalError
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.marks import file_value, join_text
from bot.steps.options import Options, plain_text
from bot.steps.parsing import parse_yaml
from bot.steps.updates import refuse_edit
from bot.steps.worktree import clean_path, join

KIND = StepKind("kustomize-set-image", StepClass.EDIT)

_FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_KEEP = "*"


@dataclass(frozen=True, slots=True)
class TargetImage:
    """One image to set; `name` is its name in the kustomization. `new_name`, tag and digest may hold marks."""

    name: str
    new_name: Value
    tag: Value
    digest: Value


@dataclass(frozen=True, slots=True)
class Config:
    """The directory, and the images; None means those of the Freight."""

    path: str
    images: tuple[TargetImage, ...] | None


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    images = tuple(
        TargetImage(
            name=item.address("name") or item.address("image"),
            new_name=item.value("newName") or "",
            tag=item.value("tag") or "",
            digest=item.value("digest") or "",
        )
        for item in options.each("images")
    )
    return Config(clean_path(options.address("path")), images or None)


def images_of(collection: Iterable[Freight]) -> tuple[TargetImage, ...]:
    """Every image of the Freight; raises TerminalError if two pieces of it disagree on one."""
    found: dict[str, TargetImage] = {}
    for freight in collection:
        for image in freight.images:
            target = TargetImage(image.repo_url, "", image.tag, "" if image.tag else image.digest)
            if found.setdefault(image.repo_url, target) != target:
                raise TerminalError(
                    f"kustomize-set-image: the Freight holds two versions of {image.repo_url}; name the one to set "
                    "under images"
                )
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class KustomizeSetImage:
    """Edits the work tree only."""

    @property
    def kind(self) -> StepKind:
        """An edit."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Set the images; unknown values are written as sentinels."""
        return await self._set(parse(config), context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Set the images."""
        return await self._set(parse(config), context)

    async def _set(self, config: Config, context: StepContext) -> StepResult:
        path = await _find_file(config.path, context)
        if not path:
            return failed(
                context.alias, f"kustomize-set-image: {config.path!r} holds none of {', '.join(_FILES)}"
            )
        images = config.images if config.images is not None else images_of(context.promotion.collection)
        text = await context.tree.read_text(path)
        try:
            for image in images:
                text = _set_image(text, image, context)
        except EditError as error:
            return refuse_edit(KIND.name, path, error, context)
        context.tree.touch(path)
        await context.tree.write(path, text.encode())
        return StepResult(output={"commitMessage": _message(path, images)})


async def _find_file(directory: str, context: StepContext) -> str:
    for name in _FILES:
        path = join(directory, name)
        if await context.tree.find_file(path) is not None:
            return path
    return ""


def _set_image(text: str, image: TargetImage, context: StepContext) -> str:
    document = parse_yaml(text)
    held = document.get("images") if isinstance(document, dict) else None
    entries: list[Json] = held if isinstance(held, list) else []
    index = next(
        (
            number
            for number, entry in enumerate(entries)
            if isinstance(entry, dict) and entry.get("name") == image.name
        ),
        None,
    )
    entry = entries[index] if index is not None else {}
    present: dict[str, Json] = entry if isinstance(entry, dict) else {}
    wanted = _entry(image, present, context)
    if index is None and entries:
        return update_yaml(text, [Update("images.-1", wanted)], create=True)
    if index is None:
        return merge_yaml([text, _block([wanted])])
    if set(present) <= set(wanted):
        changed = [
            Update(f"images.{index}.{key}", value)
            for key, value in wanted.items()
            if present.get(key) != value
        ]
        return update_yaml(text, changed, create=True) if changed else text
    # A key goes away, which only a merge can do; lists are replaced whole by it.
    return merge_yaml([text, _block([wanted if n == index else each for n, each in enumerate(entries)])])


def _block(entries: list[Json]) -> str:
    """The key `images` with these entries, as people write it."""
    lines = ["images:"]
    for entry in entries:
        pairs = (
            [f"{key}: {render_scalar(value)}" for key, value in entry.items()]
            if isinstance(entry, dict)
            else []
        )
        if not pairs:
            raise EditError("images holds an entry that is no mapping with a name")
        lines += [f"- {pairs[0]}", *(f"  {pair}" for pair in pairs[1:])]
    return "\n".join(lines) + "\n"


def _entry(image: TargetImage, present: dict[str, Json], context: StepContext) -> dict[str, Json]:
    """The entry as it shall be: what is not set is kept, but for a digest beside a new tag and the other way round."""
    entry: dict[str, Json] = {**present, "name": image.name}
    for key, value in (("newName", image.new_name), ("newTag", image.tag), ("digest", image.digest)):
        if value not in ("", _KEEP):
            plain = file_value(value, context, f"kustomize-set-image: {key} of {image.name}")
            entry[key] = plain if isinstance(plain, str) else plain_text(str(plain))
    if image.tag not in ("", _KEEP):
        entry.pop("digest", None)
    elif image.digest not in ("", _KEEP):
        entry.pop("newTag", None)
    return entry


def _message(path: str, images: tuple[TargetImage, ...]) -> Value:
    parts: list[Value] = [f"Updated {path} to use new image{'s' if len(images) > 1 else ''}\n"]
    for image in images:
        name = image.new_name if image.new_name not in ("", _KEEP) else image.name
        version: tuple[Value, ...] = (":", image.tag) if image.tag else ("@", image.digest)
        parts += ["\n- ", name, *version]
    return join_text(parts)
