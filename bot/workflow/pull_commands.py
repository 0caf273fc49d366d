"""What commands mean on people's own pull requests, where no promotion waits for its merge."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.domain.answer_command import Answer
from bot.domain.commands import Apply, Command, Retry
from bot.domain.files import CommitId
from bot.domain.github import PullRequest
from bot.domain.peoples_pulls import PeoplesPull
from bot.domain.promotion import Promotion, State
from bot.ports import Look, TerminalError
from bot.workflow.buttons import Asked, Refusal
from bot.workflow.peoples_pulls import PeoplesPulls
from bot.workflow.rights import Rights

_RECENT = 10


@dataclass(frozen=True, slots=True)
class PullCommands:
    """`/plan` on people's pull requests, and which of several re-promotions a command means."""

    people: PeoplesPulls
    rights: Rights

    async def plan(self, asked: Asked, commit: str) -> str:
        """Have it planned (again). What is not planned by itself is planned for the one head that is named in full.

        Raises Refusal if the person may not, or named another head than the present one.
        """
        pull = await self._pull(asked)
        sites = await self.people.find_sites(pull, await self.people.bystanders.look_at(pull))
        if not sites:
            raise Refusal("it changes nothing that the Terraform of a Stage with Freight reads")
        for site in sites:
            await self.rights.check(asked, "plan", site.stage)
        blank = PeoplesPull(
            self.people.gatherer.github.clone_url(pull.repository), pull.number, pull.base_branch
        )
        closed = await self.people.why_not_allowed(pull, blank)
        if (closed or commit) and commit != pull.head:
            raise Refusal(
                f"name the commit that you have read, with all of its digits: the head is {pull.head} now"
            )
        vouched, by = (CommitId(commit), asked.author.login) if closed else (None, "")
        await self.people.gatherer.store.change_peoples_pull(
            blank,
            lambda row: replace(
                row,
                vouched=vouched or row.vouched,
                vouched_by=by or row.vouched_by,
                wanted="asked for by `/plan`",
            ),
        )
        look = Look("pull", f"{pull.repository}#{pull.number}", "somebody asked for a plan")
        await self.people.gatherer.store.request_looks([look])
        return ""

    async def _pull(self, asked: Asked) -> PullRequest:
        if asked.number is None:
            raise Refusal("this is no pull request")
        try:
            pull = await self.people.gatherer.github.get_pull_request(asked.repository, asked.number)
        except TerminalError as error:
            raise Refusal("this is no pull request that can be read") from error
        if not pull.open:
            raise Refusal("this pull request is not open any more")
        return pull

    async def find_meant(self, newest: Promotion | None, command: Command) -> Promotion | None:
        """The Promotion that a command means: of several that follow one merge the one that waits for such a word."""
        if newest is None or newest.follows is None or _may_mean(newest, command):
            return newest
        configuration, store = self.people.gatherer.configuration, self.people.gatherer.store
        for stage in configuration.stages_in_order(newest.project):
            for old in await store.list_promotions(newest.project, stage.metadata.name, limit=_RECENT):
                same = (old.pull, old.target) == (newest.pull, newest.target)
                if old.follows is not None and same and _may_mean(old, command):
                    return old
        return newest


def _may_mean(promotion: Promotion, command: Command) -> bool:
    """Whether a command may be for this re-promotion: `/retry` for one that failed, an answer for one that runs."""
    match command:
        case Retry():
            return promotion.blocked
        case Answer():
            return promotion.state is State.FULFILLING
        case Apply(digest=""):
            return promotion.state is State.FULFILLING
        case _:
            return True
