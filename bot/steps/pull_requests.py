"""What the pull-request steps have in common: repository, number and Kargo's shape of a pull request."""

from __future__ import annotations

from bot.domain.github import PullNumber, PullRequest, Repository
from bot.domain.values import Value
from bot.ports import GitHub, TerminalError
from bot.steps.options import Options


def find_repository(github: GitHub, step: str, url: str) -> Repository:
    """The repository of a git address; raises TerminalError if it lies elsewhere than on our GitHub."""
    repository = github.repository_of(url)
    if repository is None:
        raise TerminalError(
            f"{step}: {url} is no repository of the GitHub that the App is installed on; pull requests elsewhere are "
            "not supported"
        )
    return repository


def pull_number(options: Options) -> PullNumber:
    """The option `prNumber`."""
    return PullNumber(int(options.number("prNumber", 0)))


def describe(pull: PullRequest) -> Value:
    """A pull request as Kargo's steps put it out."""
    return {"id": pull.number, "url": pull.url, "open": pull.open, "merged": pull.merged}
