"""CustomPromotionStep: its schema, the rules beyond it, and the definition that it describes.

The command runs on the bot's machine, not in the image, so everything that only a container has is said to be passed
over, and what could turn one program into another is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from bot.domain.custom_steps import (
    LONGEST,
    PREVIEW,
    CustomStep,
    OutputFormat,
    OutputSource,
    is_reserved_variable,
)
from bot.domain.model import Metadata
from bot.domain.problems import Severity
from bot.domain.step_kinds import StepClass
from bot.domain.values import Json
from bot.expressions.errors import ExpressionError
from bot.expressions.evaluator import Expression, compile_expression
from bot.expressions.nodes import Binary, Literal, Member, Name, Node, walk
from bot.expressions.templates import has_expression, parse_template
from bot.pipeline.access import int_at, mapping_at, mappings_at, seconds_at, text_at, texts_at
from bot.pipeline.field_patterns import formed
from bot.pipeline.kinds.tables import DURATION
from bot.pipeline.reader import Path
from bot.pipeline.schema import (
    Finding,
    choice,
    free_mapping,
    integer,
    items,
    listed,
    mapping,
    nearest,
    shown,
    text,
)
from bot.pipeline.step_schemas import STEP_SCHEMAS

CAPABILITIES = ("access-control-plane", "access-argocd")
_CLASSES = {"edit": StepClass.EDIT, "read": StepClass.READ}

CUSTOM_STEP = mapping(
    {
        "image": text("The image in which Kargo runs the command; it is not pulled here.", empty=False),
        "command": items(text(), most=200, description="The program and its arguments; no shell reads them."),
        "env": items(
            mapping(
                {
                    "name": formed("var_name", "The variable's name."),
                    "value": text("Its value; may hold expressions over config."),
                },
                required=("name", "value"),
            ),
            most=200,
            uniqueBy="name",
            description="The command's environment, besides PATH, HOME, TMPDIR, LANG and KARGO_OUTPUT.",
        ),
        "output": mapping(
            {
                "source": mapping(
                    {
                        "type": choice(*OutputSource, description="Where the command leaves its output."),
                        "path": text("The output's file, relative to the work tree."),
                    }
                ),
                "format": choice(*OutputFormat, description="How the output is read."),
                "transform": free_mapping(text(empty=False)),
            }
        ),
        "defaultTimeout": DURATION,
        "defaultErrorThreshold": integer("Errors after which the step fails.", minimum=0),
        "capabilities": items(choice(*CAPABILITIES)),
        "resources": free_mapping(),
        "imagePullSecrets": items(free_mapping()),
    },
    required=("image",),
)


def admit_custom_step(spec: dict[str, Json]) -> Iterator[Finding]:
    """The rules of a CustomPromotionStep."""
    message = (
        "the image is not pulled: the command runs on the bot's machine, isolated as Terraform is, and its program "
        "must be one that the operator allows (LOCKSTEP_CUSTOM_STEPS)"
    )
    yield Finding(("spec", "image"), message, Severity.WARNING)
    for key in ("resources", "imagePullSecrets"):
        if spec.get(key):
            yield Finding(("spec", key), "is for containers, and passed over", Severity.WARNING)
    yield from _command(texts_at(spec, "command"))
    yield from _environment(mappings_at(spec, "env"))
    yield from _output(mapping_at(spec, "output"))
    if seconds_at(spec, "defaultTimeout", 0.0) > LONGEST:
        yield Finding(("spec", "defaultTimeout"), f"a command may take {LONGEST / 60:.0f}m at most")


def _command(command: tuple[str, ...]) -> Iterator[Finding]:
    if command and (not command[0] or has_expression(command[0])):
        message = (
            "the program must be a name or a path, without expressions: the operator allows it by its name"
        )
        yield Finding(("spec", "command", 0), message)
    for index, argument in enumerate(command):
        yield from _template(argument, ("spec", "command", index))


def _environment(env: list[dict[str, Json]]) -> Iterator[Finding]:
    for index, variable in enumerate(env):
        name = text_at(variable, "name")
        if is_reserved_variable(name):
            message = (
                f"{name} cannot be set: it would change which program runs, or how; give it another name"
            )
            yield Finding(("spec", "env", index, "name"), message)
        yield from _template(text_at(variable, "value"), ("spec", "env", index, "value"))


def _output(output: dict[str, Json]) -> Iterator[Finding]:
    source = mapping_at(output, "source")
    kind, path = text_at(source, "type"), text_at(source, "path")
    where: Path = ("spec", "output", "source", "path")
    if kind == OutputSource.FILE and not path:
        yield Finding(where, "'path' is missing: which file holds the output?")
    if path and kind != OutputSource.FILE:
        yield Finding(where, "a path belongs to the type File alone; leave it out", Severity.WARNING)
    if path.startswith("/") or ".." in path.split("/") or "\0" in path:
        yield Finding(where, f"{shown(path)} leaves the work tree; write a path below it")
    for name, expression in mapping_at(output, "transform").items():
        yield from _transform(str(expression), ("spec", "output", "transform", name))


def _transform(source: str, path: Path) -> Iterator[Finding]:
    if has_expression(source):
        yield from _template(source, path, "output")
        return
    try:
        compile_expression(source)
    except ExpressionError as error:
        yield Finding(path, f"the expression cannot be read: {error}")


def _template(source: str, path: Path, known: str = "config") -> Iterator[Finding]:
    if "\0" in source:
        yield Finding(path, "holds a NUL character, which no command can be given")
    try:
        expressions = parse_template(source)
    except ExpressionError as error:
        yield Finding(path, f"the expression cannot be read: {error}")
        return
    for expression in expressions:
        foreign = _roots(expression) & {"ctx", "vars", "outputs", "task", "secrets"}
        if foreign:
            message = (
                f"{listed(sorted(foreign))} is not known here, only {known}; pass what is needed as config of the "
                "step"
            )
            yield Finding(path, message)


def _roots(expression: Expression) -> set[str]:
    return {node.name for node in walk(expression.node) if isinstance(node, Name)}


def admit_definition(name: str, annotations: dict[str, Json]) -> Iterator[Finding]:
    """What is wrong with the name, and with the annotation that declares the class."""
    if name in STEP_SCHEMAS:
        message = f"there is a step {shown(name)} already, which would be run instead; choose another name"
        yield Finding(("metadata", "name"), message)
    declared = annotations.get(PREVIEW)
    if isinstance(declared, str) and declared not in _CLASSES:
        hint = nearest(declared, _CLASSES)
        message = (
            f"{shown(declared)} is none of {listed(_CLASSES)}{hint}; without the annotation the step acts"
        )
        yield Finding(("metadata", "annotations", PREVIEW), message)


def build_custom_step(metadata: Metadata, spec: dict[str, Json]) -> CustomStep:
    """The definition that a checked `spec` describes."""
    output = mapping_at(spec, "output")
    source = mapping_at(output, "source")
    return CustomStep(
        metadata=metadata,
        image=text_at(spec, "image"),
        command=texts_at(spec, "command"),
        env=tuple((text_at(item, "name"), text_at(item, "value")) for item in mappings_at(spec, "env")),
        source=OutputSource(text_at(source, "type", "Pipe") or "Pipe"),
        path=text_at(source, "path"),
        format=OutputFormat(text_at(output, "format", "KeyValue") or "KeyValue"),
        transform={name: str(value) for name, value in mapping_at(output, "transform").items()},
        timeout=seconds_at(spec, "defaultTimeout", 0.0),
        error_threshold=max(int_at(spec, "defaultErrorThreshold", 1), 1),
        capabilities=texts_at(spec, "capabilities"),
        step_class=_CLASSES.get(metadata.annotations.get(PREVIEW, ""), StepClass.ACT),
    )


# -- the config that such a step takes ------------------------------------------------------------------------------


def check_custom_config(step: CustomStep, config: dict[str, Json], path: Path) -> Iterator[Finding]:
    """Keys that the command needs and does not get, and keys that it never reads.

    A definition has no schema; the keys that its expressions read are one. One that is read by `?.` or `??` alone may
    be missing; a definition that uses `config` as a whole takes any.
    """
    needed, optional, is_open = _keys_of(step)
    for key in sorted(needed - config.keys()):
        yield Finding(
            path, f"{shown(key)} is missing: the command of {step.name} needs it{nearest(key, config)}"
        )
    if is_open:
        return
    for key in config:
        if key not in needed | optional:
            message = (
                f"unknown key {shown(key)}: nothing of {step.name} reads it{nearest(key, needed | optional)}"
            )
            yield Finding((*path, key), message)


def _keys_of(step: CustomStep) -> tuple[frozenset[str], frozenset[str], bool]:
    """Keys of `config` that must be there, those that may, and whether any other may be meant as well."""
    needed: set[str] = set()
    optional: set[str] = set()
    is_open = False
    for source in (*step.command, *(value for _, value in step.env)):
        for expression in parse_template(source):
            nodes = walk(expression.node)
            tolerant = any(_tolerates_nil(node) for node in nodes)
            keys = {key for node in nodes if (key := _key_of_config(node))}
            uses = sum(isinstance(node, Name) and node.name == "config" for node in nodes)
            reads = sum(bool(_key_of_config(node)) for node in nodes)
            (optional if tolerant else needed).update(keys)
            is_open = is_open or uses > reads
    return frozenset(needed), frozenset(optional - needed), is_open


def _key_of_config(node: Node) -> str:
    """The key of `config.key` or `config["key"]`, empty for any other expression."""
    if (
        not isinstance(node, Member)
        or not isinstance(node.container, Name)
        or node.container.name != "config"
    ):
        return ""
    key = node.key.value if isinstance(node.key, Literal) else None
    return key if isinstance(key, str) else ""


def _tolerates_nil(node: Node) -> bool:
    return (isinstance(node, Member) and node.optional) or (
        isinstance(node, Binary) and node.operator == "??"
    )
