"""What people ask for in comments: done once per comment, as far as their permission, read live, allows."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

from bot.domain.actions import Snapshot
from bot.domain.answer_command import Answer
from bot.domain.auto_promotion import Hold as OriginHold
from bot.domain.auto_promotion import select_candidates
from bot.domain.availability import (
    approve_for_stage,
)
from bot.domain.commands import (
    HELP,
    Apply,
    Approve,
    Cancel,
    CommandProblem,
    Doctor,
    Drift,
    Explain,
    Freeze,
    Help,
    Hold,
    MakeFreight,
    Plan,
    Promote,
    Resume,
    Retry,
    Rollback,
    Status,
    Unfreeze,
    Verify,
    parse_command,
)
from bot.domain.doctor import Finding
from bot.domain.events import AppIdentity, ButtonPressed, Commented, Event
from bot.domain.freight import Freight
from bot.domain.model import Stage
from bot.domain.promotion import Promotion, State
from bot.domain.rollbacks import ways_back
from bot.payloads import SENDERS
from bot.payloads import Delivery as Payload
from bot.ports import Delivery, GitHub, Look, Store
from bot.reports.answers import render_explain, render_help, render_status
from bot.reports.doctor import render_doctor
from bot.reports.markdown import plain
from bot.workflow.answering import Answering
from bot.workflow.applying import Applying
from bot.workflow.auditing import audited
from bot.workflow.buttons import Asked, Buttons, Refusal
from bot.workflow.by_hand import FreightByHand
from bot.workflow.choosing import Choice
from bot.workflow.drift_commands import DriftCommands
from bot.workflow.dropping import can_begin_anew, promote_again
from bot.workflow.pull_commands import PullCommands
from bot.workflow.reporting import Reporter
from bot.workflow.reverification import Reverification
from bot.workflow.rights import Rights
from bot.workflow.stages import Asking, StageLooker, held
from bot.workflow.verification import Verifier

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Commands:
    """Runs commands."""

    store: Store
    github: GitHub
    looker: StageLooker
    reporter: Reporter
    verifier: Verifier
    by_hand: FreightByHand
    drift: DriftCommands
    pulls: PullCommands
    app: Callable[[], AppIdentity]
    diagnose: Callable[[], Awaitable[list[Finding]]]
    """Examines the whole installation; takes some seconds."""

    @property
    def choice(self) -> Choice:
        """How the Freight that people name is found."""
        return Choice(self.store, self.looker.gatherer.clock)

    async def run(self, delivery: Delivery) -> None:
        """Run what a delivery asks for. A second run of the same comment or press does nothing."""
        for event in SENDERS[delivery.source](Payload(delivery.event, delivery.body, self.app())):
            if isinstance(event, ButtonPressed):
                buttons = Buttons(self.store, self.github.repository_of, self._obey, self.reporter.reply)
                await buttons.press(event, delivery.id)
            else:
                await self.obey(event)

    async def obey(self, event: Event) -> None:
        """Do what a comment asks for, once."""
        if not isinstance(event, Commented) or event.author.bot or event.by_app:
            return
        command = parse_command(event.body)
        if command is None:
            return
        url = self.github.clone_url(event.repository)
        promotion = await self.store.find_promotion_by_pull(url, event.number)
        promotion = promotion or await self._followed_up(event)
        if await self.store.is_command_done(str(event.repository), event.comment):
            return
        if isinstance(command, CommandProblem):
            if promotion is None and command.unknown:
                return
            await self._refuse(event, f"{command.message}. Did you mean `{command.suggestion or '/help'}`?")
            await self.store.finish_command(str(event.repository), event.comment)
            return
        await self.reporter.react(event.repository, event.comment, "eyes")
        promotion = await self.pulls.find_meant(promotion, command)
        try:
            asked = Asked(command, event.author, event.repository, promotion, event.number, event.comment)
            reply = await self._obey(asked)
        except Refusal as refusal:
            await self._refuse(event, str(refusal))
        else:
            await self.reporter.react(event.repository, event.comment, "rocket")
            if reply:
                # What people wrote, such as the reason of a freeze, mentions nobody in our name.
                rendered = isinstance(command, Explain | Status | Doctor | Help)
                await self._reply(event, reply if rendered else plain(reply))
        await self.store.finish_command(str(event.repository), event.comment)

    async def _followed_up(self, event: Commented) -> Promotion | None:
        """The Promotion whose follow-up pull request was commented on, None if it is no such one."""
        if not event.on_pull_request:
            return None
        pull = await self.github.get_pull_request(event.repository, event.number)
        return await self.looker.follow_ups.find_promotion(pull)

    async def _refuse(self, event: Commented, message: str) -> None:
        await self.reporter.react(event.repository, event.comment, "-1")
        await self._reply(event, plain(message))

    async def _reply(self, event: Commented, body: str) -> None:
        await self.reporter.reply(event.repository, event.number, f"lockstep:reply:{event.comment}", body)

    # -- what each command does ------------------------------------------------------------------------------------

    async def _obey(self, asked: Asked) -> str:
        return await audited(asked, self._carry_out, self.store, self.looker.gatherer.clock)

    async def _carry_out(self, asked: Asked) -> str:
        match asked.command:
            case Promote():
                return await self._promote(asked, asked.command)
            case Plan(commit=commit):
                return await self._plan(asked, commit)
            case Apply(digest=digest):
                return await self._apply(asked, digest)
            case Answer():
                promotion = self._promotion(asked)
                stage = self._stage(asked, promotion.project, promotion.stage)
                return await Answering(self.looker.gatherer).answer(asked, promotion, stage, asked.command)
            case Retry():
                return await self._retry(asked)
            case Cancel():
                # A walk that waits looks at once, to find that it is to end.
                return await self._change(
                    asked,
                    "cancel",
                    lambda p: replace(p, cancel_requested=True, woken=p.woken + 1, wake_at=None),
                )
            case Rollback():
                return await self._rollback(asked, asked.command)
            case Verify(stage=name, project=project, abort=abort):
                stage = self._stage(asked, project, name)
                await self._allow(asked, "verify", stage)
                return await Reverification(self.store, self.verifier).ask(
                    stage, asked.author.login, abort=abort
                )
            case MakeFreight():
                return await self.by_hand.make(asked, asked.command)
            case Approve():
                return await self._approve(asked, asked.command)
            case Hold() | Resume():
                return await self._hold(asked, asked.command)
            case Freeze() | Unfreeze():
                return await self._freeze(asked, asked.command)
            case Explain():
                return await self._explain(asked)
            case Status():
                return await self._status(asked)
            case Help():
                return render_help(HELP)
            case Doctor():
                return await self._doctor(asked)
            case Drift():
                return await self.drift.obey(asked, asked.command)
            case _:
                assert_never(asked.command)

    async def _plan(self, asked: Asked, commit: str) -> str:
        if asked.promotion is None or asked.promotion.follows is not None:
            return await self.pulls.plan(asked, commit)
        return await self._change(asked, "plan", lambda p: replace(p, preview_wanted="asked for by `/plan`"))

    async def _promote(self, asked: Asked, command: Promote) -> str:
        stage = self._stage(asked, command.project, command.stage)
        await self._allow(asked, "promote", stage)
        project, name = stage.metadata.namespace, stage.metadata.name
        freight = await self.choice.choose(stage, command.freight)
        candidate = select_candidates(stage, await self.choice.available(stage)).get(freight.origin)
        # Whatever people's commits left there: the person has answered.
        agree = partial(self.store.change_stage, project, name, lambda record: replace(record, differs=""))
        current = await self.store.find_current_promotion(project, name)
        if current is not None and current.freight.name == freight.name and can_begin_anew(current):
            said = await promote_again(self.store, self.looker.gatherer, current)
            await agree()
            await self._look(stage)
            return said
        await self._make_room(current, freight)
        started = await self.looker.start(stage, freight, actor=asked.author.login, actor_id=asked.author.id)
        if isinstance(started, str):
            raise Refusal(started)
        await agree()
        await self.looker.unblock(project, name)
        await self.looker.hold_after(started, candidate)
        await self._look(stage)
        return f"{freight.alias} goes to {name}"

    async def _make_room(self, current: Promotion | None, freight: Freight) -> None:
        """End the Stage's unfinished Promotion in favour of what a person asked for."""
        if current is None:
            return
        if current.running or not can_begin_anew(current):
            raise Refusal(f"{current.stage} is busy with {current.freight.alias}: {current.reason}")
        ended = replace(
            current,
            state=State.ABORTED,
            reason=f"superseded by {freight.alias}",
            superseded_by=freight.name,
            finished_at=self.looker.gatherer.clock.now(),
        )
        if not await self.store.save_promotion(ended, expected=current):
            raise Refusal(f"{current.stage} changed just now; try again")
        # Nobody will apply its saved plans any more, and they hold secrets.
        await self.store.drop_bundles(current.id)

    async def _rollback(self, asked: Asked, command: Rollback) -> str:
        stage = self._stage(asked, command.project, command.stage)
        await self._allow(asked, "rollback", stage)
        project, name = stage.metadata.namespace, stage.metadata.name
        freight = await self._verified_before(stage, command.freight)
        await self._make_room(await self.store.find_current_promotion(project, name), freight)
        started = await self.looker.go_back(stage, freight, Asking(asked.author.login, asked.author.id))
        if isinstance(started, str):
            raise Refusal(started)
        await self._look(stage)
        return f"{name} goes back to {freight.alias}"

    async def _verified_before(self, stage: Stage, named: str) -> Freight:
        project, name = stage.metadata.namespace, stage.metadata.name
        if named:
            wanted = await self.choice.known(project, named)
            known = await self.store.get_freight(project, wanted.name)
            if known is None or name not in known[1].verified_in:
                raise Refusal(
                    f"{wanted.alias} was never verified in {name}, so there is no way back to it; use `/promote`"
                )
            return wanted
        record = await self.store.get_stage(project, name)
        broken = [p.freight.name for p in await self.store.list_promotions(project, name) if p.blocked]
        for freight in ways_back(record.history, broken[0] if broken else None):
            found = await self.store.get_freight(project, freight)
            if found is not None and name in found[1].verified_in:
                return found[0]
        raise Refusal(f"no other Freight was verified in {name} before; name one: `/rollback {name} FREIGHT`")

    async def _apply(self, asked: Asked, digest: str) -> str:
        promotion = self._promotion(asked)
        stage = self._stage(asked, promotion.project, promotion.stage)
        if await Answering(self.looker.gatherer).approve(asked, promotion, stage, digest):
            return ""
        await self._allow(asked, "apply", stage)
        await Applying(self.looker.gatherer).ask(asked, promotion, stage, digest)
        await self._look(stage)
        return ""

    async def _retry(self, asked: Asked) -> str:
        promotion = self._promotion(asked)
        stage = self._stage(asked, promotion.project, promotion.stage)
        await self._allow(asked, "retry", stage)
        await Applying(self.looker.gatherer).retry(asked, promotion)
        await self._look(stage)
        return ""

    async def _change(self, asked: Asked, right: str, change: Callable[[Promotion], Promotion]) -> str:
        promotion = self._promotion(asked)
        stage = self._stage(asked, promotion.project, promotion.stage)
        await self._allow(asked, right, stage)
        if promotion.state.ended:
            raise Refusal(f"this promotion has ended: {promotion.reason}")
        for _ in range(5):
            if await self.store.save_promotion(change(promotion), expected=promotion):
                await self._look(stage)
                return ""
            promotion = await self.store.get_promotion(promotion.id) or promotion
        raise Refusal("the promotion changes too fast; try again")

    async def _approve(self, asked: Asked, command: Approve) -> str:
        stage = self._stage(asked, command.project, command.stage)
        await self._allow(asked, "approve", stage)
        project, name = stage.metadata.namespace, stage.metadata.name
        freight = await self.choice.known(project, command.freight)
        approve = partial(approve_for_stage, stage=name, at=self.looker.gatherer.clock.now())
        await self.store.change_freight_status(project, freight.name, approve)
        await self._look(stage)
        return f"{freight.alias} is approved for {name}"

    async def _hold(self, asked: Asked, command: Hold | Resume) -> str:
        promotion = self._promotion(asked)
        stage = self._stage(asked, promotion.project, promotion.stage)
        await self._allow(asked, "hold" if isinstance(command, Hold) else "resume", stage)
        origin, hold = promotion.freight.origin, None
        if isinstance(command, Hold):
            why = command.reason or f"{asked.author.login} holds it"
            hold = OriginHold(origin, promotion.freight.name, promotion.id, None, why)
        changed = partial(held, origin=origin, hold=hold)
        await self.store.change_stage(promotion.project, promotion.stage, changed)
        await self.looker.turn(stage)
        return ""

    async def _freeze(self, asked: Asked, command: Freeze | Unfreeze) -> str:
        promotion = self._promotion(asked)
        stages = self.looker.gatherer.configuration.stages_in_order(promotion.project)
        right = "freeze" if isinstance(command, Freeze) else "unfreeze"
        # It stops the whole project, so it takes the right over every Stage of it.
        await self._allow(asked, right, self._stage(asked, promotion.project, promotion.stage), stages)
        why = ""
        if isinstance(command, Freeze):
            why = f"{command.reason or 'no reason given'} ({asked.author.login})"
        for stage in stages:
            name = stage.metadata.name
            await self.store.change_stage(promotion.project, name, lambda record: replace(record, frozen=why))
        for stage in stages:
            await self.looker.turn(stage)
        return f"frozen: {why}" if why else "no longer frozen"

    async def _explain(self, asked: Asked) -> str:
        promotion = self._promotion(asked)
        stage = self._stage(asked, promotion.project, promotion.stage)
        await self._let_read(asked, "explain", stage)
        seen = await self.looker.gatherer.gather(stage)
        if seen.promotion is None or seen.promotion.id != promotion.id:
            seen = Snapshot(seen.now, seen.project, stage, seen.policy, promotion=promotion)
        view = await self.reporter.view(promotion, seen.preview, promotion.reason, seen)
        return render_explain(view)

    async def _status(self, asked: Asked) -> str:
        promotion = self._promotion(asked)
        stage = self._stage(asked, promotion.project, promotion.stage)
        await self._let_read(asked, "status", stage)
        seen = await self.looker.gatherer.gather(stage)
        return render_status(await self.reporter.view(promotion, None, promotion.reason, seen))

    async def _doctor(self, asked: Asked) -> str:
        promotion = self._promotion(asked)
        await self._allow(asked, "doctor", self._stage(asked, promotion.project, promotion.stage))
        return render_doctor(await self.diagnose())

    # -- who and what ----------------------------------------------------------------------------------------------

    async def _allow(self, asked: Asked, command: str, stage: Stage, others: Sequence[Stage] = ()) -> None:
        """Raise Refusal unless the person may; the permission is read from GitHub now."""
        await Rights(self.looker.gatherer).check(asked, command, stage, others)

    async def _let_read(self, asked: Asked, command: str, stage: Stage) -> None:
        """What only tells is answered to every reader, unless the policy names who may ask."""
        if command in self.looker.gatherer.configuration.policy(stage).commands:
            await self._allow(asked, command, stage)

    def _stage(self, asked: Asked, project: str, name: str) -> Stage:
        configuration = self.looker.gatherer.configuration
        owner = project or (asked.promotion.project if asked.promotion is not None else "")
        found = [s for (p, n), s in configuration.pipeline.stages.items() if n == name and owner in ("", p)]
        if len(found) == 1:
            return found[0]
        names = ", ".join(sorted(f"{p}/{n}" for p, n in configuration.pipeline.stages)) or "none"
        why = f"there is no Stage {name}" if not found else f"several projects have a Stage {name}"
        raise Refusal(f"{why}; the Stages are: {names}")

    def _promotion(self, asked: Asked) -> Promotion:
        if asked.promotion is None:
            raise Refusal("this is no pull request of a promotion")
        return asked.promotion

    async def _look(self, stage: Stage) -> None:
        key = f"{stage.metadata.namespace}/{stage.metadata.name}"
        await self.store.request_looks([Look("stage", key, "a command")])
