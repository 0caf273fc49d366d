"""A measurement by a command: it is good if the command ends with 0, as a Job is in Argo Rollouts."""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.analysis import JobQuery, Phase
from bot.pipeline.analysis import fill
from bot.ports import Commands, TerminalError
from bot.ports.commands import CommandRun

_LOG = 2000
"""Characters of what the command said last that a measurement keeps."""


async def run_job(commands: Commands, query: JobQuery, secrets: Mapping[str, str]) -> tuple[Phase, str]:
    """How it ended, and why; secrets reach the environment alone. Raises TransientError and TerminalError."""
    arguments = tuple(fill(text, secrets) for text in query.arguments)
    if arguments != query.arguments or fill(query.program, secrets) != query.program:
        raise TerminalError(
            "a secret argument stands in the command, where every program of the machine could read it; give it by env"
        )
    filled = {name: fill(value, secrets) for name, value in query.environment}
    hidden = {name: filled[name] for name, value in query.environment if filled[name] != value}
    run = CommandRun(
        program=query.program,
        arguments=query.arguments,
        files={},
        timeout=query.timeout,
        environment={name: value for name, value in filled.items() if name not in hidden},
        secrets=hidden,
    )
    ended = await commands.run(run)
    said = ended.log.strip()[-_LOG:]
    if ended.stopped:
        return Phase.FAILED, f"{query.program} was stopped: {ended.stopped}"
    if ended.code != 0:
        return Phase.FAILED, f"{query.program} ended with code {ended.code}: {said or 'it said nothing'}"
    return Phase.SUCCESSFUL, said
