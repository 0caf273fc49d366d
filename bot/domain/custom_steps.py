"""CustomPromotionStep: a step kind that a pipeline's author defines as a command, and what it may not say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from bot.domain.model import Metadata
from bot.domain.step_kinds import StepClass
from bot.domain.values import Json

PREVIEW = "lockstep.dev/preview"
"""The annotation that declares what the command does: `edit` or `read`; without it the step is an act."""

LONGEST = 3000.0
"""Seconds that a command may take at most; what is left of a longer run could not be told from an abandoned one."""

DEFAULT_TIMEOUT = 600.0
"""Seconds that a command may take where neither the step nor its definition says."""

OUTPUT_LIMIT = 256 * 1024
"""Bytes of output that are read (Kargo)."""

_RESERVED = re.compile(
    r"KARGO_.*|LOCKSTEP_.*|PATH|HOME|TMPDIR|PWD|SHELL|IFS|ENV|BASH.*|SHELLOPTS|PS4|LD_.*|DYLD_.*|GCONV_PATH"
    r"|LOCPATH|NLSPATH|GLIBC_.*|MALLOC_.*|PYTHON.*|PERL.*|RUBY.*|NODE_.*|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS"
    r"|JDK_JAVA_OPTIONS|GIT_.*|SSH_.*|EDITOR|VISUAL|PAGER|BROWSER"
)


class OutputSource(StrEnum):
    """Where a command leaves its output; for a pipe its name is in `KARGO_OUTPUT`."""

    PIPE = "Pipe"
    STDOUT = "Stdout"
    STDERR = "Stderr"
    FILE = "File"


class OutputFormat(StrEnum):
    """How the output is read."""

    JSON = "JSON"
    YAML = "YAML"
    KEY_VALUE = "KeyValue"
    TEXT = "Text"


@dataclass(frozen=True, slots=True)
class CustomStep:
    """One definition. Texts of `command` and `env` may hold expressions over `config`, the config of the step.

    `path` is the output's file, relative to the work tree; `transform` maps names of outputs to expressions over
    `output`. `timeout` is in seconds, 0 for the default. `image` is never pulled.
    """

    metadata: Metadata
    image: str = ""
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    source: OutputSource = OutputSource.PIPE
    path: str = ""
    format: OutputFormat = OutputFormat.KEY_VALUE
    transform: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 0.0
    error_threshold: int = 1
    capabilities: tuple[str, ...] = ()
    step_class: StepClass = StepClass.ACT

    @property
    def name(self) -> str:
        """What a step names under `uses`."""
        return self.metadata.name

    @property
    def program(self) -> str:
        """The program that it runs, empty if that is left to the image."""
        return self.command[0] if self.command else ""

    @property
    def definition(self) -> Json:
        """All that decides what it does: equal for equal behaviour."""
        return {
            "command": list(self.command),
            "env": [[name, value] for name, value in self.env],
            "output": [self.source.value, self.path, self.format.value, dict(self.transform)],
            "class": self.step_class.value,
        }


def is_reserved_variable(name: str) -> bool:
    """Whether a variable of this name would change which program runs, or make it run another one's code."""
    return _RESERVED.fullmatch(name) is not None
