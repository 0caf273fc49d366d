"""What the pull-request steps have in common: repository, number and Kargo's shape of a pull request."""

from __future__ import annotations

from bot.domain.files import CommitId
from bot.domain.github import PullRequest, Repository
from bot.domain.promotion import Promotion
from bot.domain.review import RequestRecord
from bot.domain.urls import normalize_git_url
from bot.domain.values import Unknown, Value
from bot.ports import Git, GitHub, TerminalError
from bot.steps.contract import StepContext
from bot.steps.messages import PREFIX
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


def opened_by(alias: str, what: str) -> Unknown:
    """What a `git-open-pr` step gives once its pull request is there."""
    return Unknown(f"known after step: {alias}.{what}")


def check_is_ours(step: str, options: Options, context: StepContext) -> None:
    """That a step of a preview means the pull request that the task opened before it; raises TerminalError if not."""
    opened = next((r for r in context.earlier if isinstance(r.record, RequestRecord)), None)
    number = options.value("prNumber")
    known = () if opened is None else (opened_by(opened.alias, "pr.id"), opened_by(opened.alias, "prNumber"))
    url = opened.record.url if opened is not None and isinstance(opened.record, RequestRecord) else ""
    same = normalize_git_url(options.address("repoURL")) == normalize_git_url(url) if url else False
    if number not in known or not same:
        raise TerminalError(
            f"{step}: only the pull request that git-open-pr of the same task opens is supported; give its repoURL, "
            "and its output pr.id as prNumber"
        )


async def find_own(step: str, github: GitHub, options: Options, context: StepContext) -> PullRequest:
    """The promotion's pull request, which is the one that a step of a fulfilled walk means."""
    repository = find_repository(github, step, options.address("repoURL"))
    number = context.promotion.pull
    if number is None or (options.has("prNumber") and options.number("prNumber", 0) != number):
        raise TerminalError(
            f"{step}: the promotion's pull request is {number or 'not there'}, no other is supported"
        )
    return await github.get_pull_request(repository, number)


async def is_free(git: Git, url: str, branch: str, base: CommitId | None, promotion: Promotion) -> bool:
    """Whether a branch of the mirror that a task names is not there, or holds nothing that would be lost if rebuilt.

    That is what the base holds too, and what an earlier Promotion of the same Stage left there.
    """
    tip = await git.resolve(url, f"refs/heads/{branch}")
    if tip is None or branch == promotion.generated_branch:
        return True
    if base is not None and await git.is_ancestor(url, tip, base):
        return True
    # Whoever writes our trailer into a commit of theirs has only that commit to lose.
    made_for = (await git.read_commit(url, tip)).trailers.get(f"{PREFIX}Stage")
    return made_for == f"{promotion.project}/{promotion.stage}"


def is_for_review(context: StepContext) -> bool:
    """Whether the task opens its pull request behind this step, so that what is pushed now is what it will hold."""
    return any(step.uses == "git-open-pr" for step in context.promotion.steps[len(context.earlier) :])


def describe(pull: PullRequest) -> Value:
    """A pull request as Kargo's steps put it out."""
    return {"id": pull.number, "url": pull.url, "open": pull.open, "merged": pull.merged}
