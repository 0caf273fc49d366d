"""Who may give a command: permission read live from GitHub, on the repository that the Stage belongs to.

A command can be typed wherever the App is installed, so what somebody may do there says nothing about a Stage that
lives elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.domain.approvals import is_entitled
from bot.domain.github import Repository
from bot.domain.model import Stage, Step
from bot.domain.promotion import Promotion, State
from bot.domain.review_policy import ReviewPolicy, right_to
from bot.domain.tasks import TaskError
from bot.ports import TerminalError
from bot.workflow.buttons import Asked, Refusal
from bot.workflow.snapshots import Gatherer

_VARIABLE = re.compile(r"\$\{\{\s*vars\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_DEEPEST = 8
"""How often a variable may stand for another one."""


@dataclass(frozen=True, slots=True)
class Rights:
    """Answers whether somebody may; raises Refusal if not."""

    gatherer: Gatherer

    async def check(self, asked: Asked, command: str, stage: Stage, others: Sequence[Stage] = ()) -> None:
        """Whether the person may give the command for this Stage, and for others that it acts on as well.

        Another one of which nothing tells where it belongs promotes nothing either: it keeps nobody from it.
        """
        answered: set[tuple[Repository, tuple[str, ...]]] = set()
        for concerned in (stage, *others):
            try:
                repositories = await self._repositories(concerned)
            except Refusal:
                if concerned is stage:
                    raise
                continue
            policy = self.gatherer.configuration.policy(concerned)
            allowed = _entries(right_to(policy, command), policy)
            for repository in repositories:
                if (repository, allowed) not in answered:
                    await self._check(
                        asked, f"`/{command}` on {concerned.metadata.name}", policy, allowed, repository
                    )
                answered.add((repository, allowed))

    async def _check(
        self, asked: Asked, what: str, policy: ReviewPolicy, allowed: tuple[str, ...], repository: Repository
    ) -> None:
        login = asked.author.login
        try:
            standing = await self.gatherer.standing(repository, login, policy)
        except TerminalError as error:
            raise Refusal(f"what @{login} may do in {repository} cannot be read: {error}") from error
        if not is_entitled(login, allowed, standing):
            shown = ", ".join(allowed) or "write permission"
            raise Refusal(f"@{login} may not do this: {what} needs {shown} in {repository}")

    async def check_acceptance(self, asked: Asked, promotion: Promotion, stage: Stage) -> None:
        """Whether the person's `/apply` is enough: it stands for a review, so whose review never counts may not."""
        policy = self.gatherer.configuration.policy(stage)
        pull = await self.gatherer.find_pull(promotion)
        preview = await self.gatherer.store.get_preview(promotion.id, promotion.preview)
        if pull is None or preview is None:
            return
        login = asked.author.login.lower()
        excluded = await self.gatherer.excluded(policy, promotion, pull, [asked.author])
        if login in excluded:
            raise Refusal(f"@{asked.author.login} {excluded[login]}, so somebody else must accept it")
        if promotion.state is not State.HELD:
            return
        tally = await self.gatherer.tally(policy, promotion, preview, pull)
        approvers = {name.lower() for name in tally.approvers} | {login}
        if len(approvers) < tally.needed:
            raise Refusal(
                f"{tally.needed} approvals are needed, and with @{asked.author.login} there are {len(approvers)}; "
                "approve the pull request instead, it goes on when there are enough"
            )
        if tally.destroy_count < tally.destroy_needed:
            raise Refusal(
                f"a plan that deletes or replaces needs {tally.destroy_needed} approvals, not {tally.destroy_count}; "
                "approve the pull request instead, it goes on when there are enough"
            )

    async def _repositories(self, stage: Stage) -> tuple[Repository, ...]:
        """Where the person must have the right: the place of the Stage's pull requests, or else all that it clones."""
        project, name = stage.metadata.namespace, stage.metadata.name
        repository_of = self.gatherer.github.repository_of
        for promotion in await self.gatherer.store.list_promotions(project, name):
            found = repository_of(promotion.target.url) if promotion.target is not None else None
            if found is not None:
                return (found,)
        named = [repository_of(address) for address in self._cloned(stage)]
        repositories = tuple(dict.fromkeys(repository for repository in named if repository is not None))
        if not repositories:
            raise Refusal(
                f"nothing tells yet which repository {name} belongs to, so nobody can be shown to have the right; "
                "write the repoURL of its git-clone as a plain address or as a variable of one"
            )
        return repositories

    def _cloned(self, stage: Stage) -> list[str]:
        try:
            steps = self.gatherer.steps_of(stage)
        except TaskError as error:
            raise Refusal(str(error)) from error
        template = stage.template
        variables = (*stage.variables, *(template.variables if template is not None else ()))
        shared = {variable.name: variable.value or "" for variable in variables}
        return [_address(step, shared) for step in steps if step.uses == "git-clone"]


def _address(step: Step, shared: Mapping[str, str]) -> str:
    """The address that a `git-clone` names, its variables filled in; other expressions stay as they are."""
    known = {**shared, **{variable.name: variable.value or "" for variable in step.variables}}
    text = str(step.config.get("repoURL", ""))
    for _ in range(_DEEPEST):
        filled = _VARIABLE.sub(lambda found: known.get(found[1], ""), text)
        if filled == text:
            break
        text = filled
    return text


def _entries(needed: str, policy: ReviewPolicy) -> tuple[str, ...]:
    """A command's right as entries of an approval rule."""
    if needed == "approvers":
        return policy.approvals.from_
    return (needed if ":" in needed else f"perm:{needed}",)
