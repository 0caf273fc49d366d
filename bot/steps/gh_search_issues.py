"""`gh-search-issues`: one issue by number, or what GitHub's search finds in a repository (30 at most)."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.digest import canonical
from bot.domain.github import Issue, IssueNumber
from bot.domain.review import FrozenRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Unknown, Value, is_tainted, show
from bot.ports import GitHub, Issues, Vault
from bot.steps.anticipation import is_behind_cut
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.github_issues import describe_issue, read_id
from bot.steps.options import Options, known_text
from bot.steps.pull_requests import find_repository

KIND = StepKind("gh-search-issues", StepClass.READ)


@dataclass(frozen=True, slots=True)
class Config:
    """Where, and a number or a query, both of which may hold marks; one of them is None."""

    url: str
    number: Value
    query: Value


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown repository."""
    options = Options(KIND.name, given)
    return Config(options.address("repoURL"), options.value("issueNumber"), options.value("query"))


@dataclass(frozen=True, slots=True)
class GhSearchIssues:
    """Reads."""

    github: GitHub
    issues: Issues
    vault: Vault

    @property
    def kind(self) -> StepKind:
        """A read."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Ask, unless something that may change the answer comes first."""
        wanted = parse(config)
        find_repository(self.github, KIND.name, wanted.url)
        if is_behind_cut(context) or is_tainted(wanted.number) or is_tainted(wanted.query):
            return StepResult(None, {"issues": Unknown(f"known after step: {context.alias}.issues")})
        return await self._ask(wanted, context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Ask."""
        return await self._ask(parse(config), context)

    async def _ask(self, wanted: Config, context: StepContext) -> StepResult:
        repository = find_repository(self.github, KIND.name, wanted.url)
        if wanted.number is not None:
            number = IssueNumber(read_id(wanted.number, "gh-search-issues: issueNumber"))
            issue = await self.issues.get_issue(repository, number)
            if issue is None:
                return failed(context.alias, f"gh-search-issues: {repository} has no issue #{number}")
            found: tuple[Issue, ...] = (issue,)
            question = f"{repository}#{number}"
        else:
            query = known_text(wanted.query, "gh-search-issues: query")
            found = tuple(await self.issues.search_issues(repository, query))
            question = f"issues of {repository}: {query}"
        shown: Value = [describe_issue(issue) for issue in found]
        fingerprint = self.vault.digest(canonical(show(shown)))
        return StepResult(output={"issues": shown}, record=FrozenRecord(question, fingerprint))
