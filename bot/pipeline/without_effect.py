"""What is understood and leaves everything working, but does nothing here: a warning that names it, never silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bot.domain.model import Metadata, Step
from bot.domain.pipeline import Pipeline
from bot.domain.problems import ConfigProblem, Severity

_VERIFYING = ("git-", "gh-", "gha-", "github-")
"""How the kinds begin that always verify the server's certificate."""

_TRIES = "a push is tried again on a branch that moved, as often as is needed within bounds of our own"
_FIELDS: Mapping[str, Mapping[str, str]] = {
    "git-clone": {"blobless": "nothing is cloned: files are read from the bot's mirror"},
    "git-push": {"maxAttempts": _TRIES},
    "github-push": {"maxAttempts": _TRIES},
}
"""Fields of steps that are passed over, each with the reason."""


def find_without_effect(pipeline: Pipeline) -> Iterator[ConfigProblem]:
    """Warnings, each at the resource that asks for something which does not happen."""
    cluster = pipeline.cluster_config
    if cluster is not None and cluster.signing_key:
        message = (
            "commits are not signed with a key: GitHub signs those of github-push, and a signature would give a commit "
            "another id each time it is made"
        )
        yield _warning(cluster.metadata, "spec.gitClient.signingKeySecret", message)
    for stage in pipeline.stages.values():
        for step in stage.template.steps if stage.template is not None else ():
            yield from _of_step(stage.metadata, step, "spec.promotionTemplate.spec.steps")
    for task in (*pipeline.tasks.values(), *pipeline.cluster_tasks.values()):
        for step in task.steps:
            yield from _of_step(task.metadata, step, "spec.steps")


def _of_step(metadata: Metadata, step: Step, key: str) -> Iterator[ConfigProblem]:
    if step.uses.startswith(_VERIFYING) and step.config.get("insecureSkipTLSVerify") not in (None, False):
        message = (
            f"{step.uses}: insecureSkipTLSVerify has no effect, the server's certificate is always verified; install "
            "its certificate authority on the bot's machine"
        )
        yield _warning(metadata, key, message)
    provider = step.config.get("provider")
    if step.uses.startswith("git-") and provider not in (None, "", "github"):
        message = f"{step.uses}: provider has no effect, {provider!r} is not spoken here: pull requests are GitHub's"
        yield _warning(metadata, key, message)
    for name, why in _FIELDS.get(step.uses, {}).items():
        if step.config.get(name) not in (None, False, ""):
            yield _warning(metadata, key, f"{step.uses}: {name} has no effect, {why}")
    author = step.config.get("author")
    if step.uses in ("git-clone", "git-commit") and isinstance(author, dict) and author.get("signingKey"):
        message = f"{step.uses}: author.signingKey has no effect, commits are not signed with a key"
        yield _warning(metadata, key, message)


def _warning(metadata: Metadata, key: str, message: str) -> ConfigProblem:
    return ConfigProblem(metadata.source.path, metadata.source.line, key, message, Severity.WARNING)
