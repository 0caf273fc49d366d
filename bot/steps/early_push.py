"""A push to the target before the merge (`apply: BeforeMerge`) goes onto the promotion branch, which is then merged."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.files import CommitId
from bot.domain.promotion import StepStatus, Stop
from bot.ports import Git, Moved, Pushed, Refused, TerminalError
from bot.steps.checkout import Checkout
from bot.steps.contract import Onto, StepResult
from bot.steps.github_push import Move, SigningPusher

OTHER_CHECKOUT = (
    "what a checkout of another branch holds cannot go to the target before the pull request is merged; check out the "
    "target itself, or set apply: AfterMerge"
)


@dataclass(frozen=True, slots=True)
class EarlyPush:
    """Moves the promotion branch, and never over commits of people. `signing` has GitHub make the commits."""

    git: Git
    signing: SigningPusher | None

    async def push(self, checkout: Checkout, head: CommitId, onto: Onto) -> CommitId | StepResult:
        """The commit that is on the branch now, or a stop because people moved it.

        Raises TerminalError if the server refuses it.
        """
        url, base = checkout.pin.url, checkout.pin.commit
        await self.git.fetch(url)
        tip = await self.git.resolve(url, f"refs/heads/{onto.branch}")
        there = await self._find(url, head, tip) if tip is not None else None
        if there is not None:
            checkout.head = there
            return there
        known = (*onto.heads, *(commit.id for commit in await self.git.log(url, base, head)))
        if tip is None or tip not in known:
            return _people_pushed(onto, tip)
        if self.signing is not None and base is not None and not await self.git.is_ancestor(url, base, tip):
            # The merge of the target into the branch is ours to push; GitHub signs what is on top of it.
            await self.git.push(url, base, onto.branch, expected=tip)
            tip = base
        if self.signing is None:
            outcome, commit = await self.git.push(url, head, onto.branch, expected=tip), head
        else:
            move = Move(onto.branch, tip, base, force=True)
            outcome, commit = await self.signing.push(url, head, move)
        match outcome:
            case Pushed():
                checkout.head = commit
                return commit
            case Refused(message=message):
                raise TerminalError(f"the push of {onto.branch} to {url} was refused: {message.strip()}")
            case Moved(tip=moved):
                return _people_pushed(onto, moved)

    async def _find(self, url: str, head: CommitId, tip: CommitId) -> CommitId | None:
        """Our commit if the promotion branch has it, or the one that GitHub made of it and signed.

        The approvals of the head below go on counting, so nothing else will do than the same tree under the same
        message: trailers alone, and a diff alone, could be copied on top of what nobody has approved.
        """
        if await self.git.is_ancestor(url, head, tip):
            return head
        if self.signing is None:
            return None
        ours, theirs = await self.git.read_commits(url, [head, tip])
        same = (ours.tree, ours.message.strip()) == (theirs.tree, theirs.message.strip())
        return tip if same else None


def _people_pushed(onto: Onto, tip: CommitId | None) -> StepResult:
    now = f"its head is {tip[:7]}" if tip is not None else "it is gone"
    reason = (
        f"the head moved while it was applied: {onto.branch} was at {onto.heads[0][:7]}, and {now}. Nothing of it was "
        "committed. Set the branch back to go on, or say `/promote STAGE FREIGHT` to have it made anew, and approved, "
        "without that"
    )
    return StepResult(StepStatus.RUNNING, message=reason, stop=Stop(reason, digest=""))
