"""What GitHub shall show of a Promotion: one view, rendered, and wished for in the outbox.

Nothing here talks to GitHub; a wish that says what is shown already is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.domain.actions import Snapshot
from bot.domain.analysis import AnalysisRun, Phase, describe_run
from bot.domain.before_merge import applies_before
from bot.domain.drift import describe as describe_drift
from bot.domain.files import CommitId
from bot.domain.follow_up import needs_follow_up
from bot.domain.freight import Freight, FreightStatus
from bot.domain.github import CheckRun, DeploymentState, PullNumber, Repository
from bot.domain.model import Stage
from bot.domain.planning import merge_method
from bot.domain.promotion import Promotion, State
from bot.domain.review import Preview
from bot.domain.review_policy import ReviewPolicy
from bot.domain.values import Json
from bot.domain.view import Outcome, PromotionView, StageLine
from bot.ports import Clock, GitHub, Post, StageRecord, Store, Vault
from bot.reports.body import render_body, render_title
from bot.reports.checks import render_gate_check, render_outcome_check, render_plan_check
from bot.reports.comments import render_outcome_comment, render_plan_comment
from bot.steps.posts import check_post
from bot.workflow.author_links import find_links
from bot.workflow.configuration import Configuration
from bot.workflow.marking import Marking
from bot.workflow.proofs import present_runs

_PULL, _COMMENTS = 1, 2

_DEPLOYED = {
    State.HELD: DeploymentState.QUEUED,
    State.SUCCEEDED: DeploymentState.SUCCESS,
    State.FAILED: DeploymentState.FAILURE,
    State.ERRORED: DeploymentState.ERROR,
    State.STOPPED: DeploymentState.FAILURE,
    State.ABORTED: DeploymentState.INACTIVE,
}
"""How a promotion's state shows on its deployment; every other one is in progress."""


@dataclass(frozen=True, slots=True)
class Reporter:
    """Renders promotions and queues what is to be shown. `page` is the bot's own address, empty if it has none."""

    store: Store
    github: GitHub
    vault: Vault
    clock: Clock
    configuration: Configuration
    page: str

    async def view(
        self, promotion: Promotion, preview: Preview | None, waiting: str, seen: Snapshot
    ) -> PromotionView:
        """Everything that is said about a Promotion."""
        record = await self.store.get_stage(promotion.project, promotion.stage)
        journal = await self.store.list_steps(promotion.id) if promotion.is_begun else {}
        runs = {alias: run for alias, run in journal.items() if run.attempt >= promotion.first_attempt}
        return PromotionView(
            promotion=promotion,
            preview=preview,
            now=self.clock.now(),
            gates=seen.gates,
            tally=seen.tally,
            approvals=seen.policy.approvals,
            current=await self._former(record, promotion),
            stages=await self._stages(promotion),
            waiting=waiting,
            page=self.page_of(promotion),
            follow_up=needs_follow_up(seen.policy, preview),
            outcome=Outcome(runs=runs),
            auto_merge=promotion.is_ahead or bool(merge_method(seen.policy, preview)),
            early=preview is not None
            and (promotion.early is not None or applies_before(seen.policy, preview)),
            people_commits=seen.people_commits,
            drift=describe_drift(await self.store.get_drift(promotion.project, promotion.stage)),
            differs=record.differs,
            marker=await self.marking.body(promotion, preview, record),
            show_others=seen.policy.show_other_repositories,
            links=find_links(self.configuration, promotion, seen.stage),
        )

    def page_of(self, promotion: Promotion) -> str:
        """Where the dashboard shows a Promotion, empty if it has no address."""
        return f"{self.page}/promotions/{promotion.id}" if self.page else ""

    @property
    def marking(self) -> Marking:
        """What signs the machine blocks."""
        return Marking(self.store, self.github, self.vault)

    async def report(self, seen: Snapshot, waiting: str) -> None:
        """Wish for everything that GitHub shall show of the Stage's Promotion, or of the last one, now."""
        promotion = seen.promotion or seen.last
        if promotion is None or promotion.pull is None or promotion.target is None:
            return
        repository = self.github.repository_of(promotion.target.url)
        if repository is None:
            return
        preview = seen.preview or await self.store.get_preview(promotion.id, promotion.preview)
        said = waiting if seen.promotion is not None else promotion.reason
        view = await self.view(promotion, preview, said, seen)
        if promotion.merge_commit is None and promotion.head is not None and preview is not None:
            await self.post_check(repository, render_gate_check(_on_what_stands(view, seen)))
            await self.post_check(repository, render_plan_check(view))
            await self.post_comment(
                repository, promotion.pull, _marker("plan", promotion), render_plan_comment(view)
            )
        rebuilt = promotion.state.ended and promotion.preview == 0
        if rebuilt and not promotion.blocked:
            # Of what was read back from GitHub less is known than is shown there.
            return
        if promotion.merge_commit is not None:
            await self.post_check(repository, render_outcome_check(view))
        if promotion.merge_commit is not None or promotion.has_begun_ahead:
            await self.post_comment(
                repository, promotion.pull, _marker("outcome", promotion), render_outcome_comment(view)
            )
        if rebuilt:
            return
        if promotion.merge_commit is not None:
            await self._queue_deployment(repository, promotion, promotion.merge_commit, view)
        if promotion.follows is None:
            # Title and body of a person's own pull request are theirs.
            await self._queue_pull(repository, promotion.pull, view)

    async def reply(self, repository: Repository, number: PullNumber, key: str, body: str) -> None:
        """Answer a command; the same key answers once."""
        await self.store.queue_post(_comment(f"reply/{key}", repository, number, key, body))

    async def post_comment(self, repository: Repository, number: PullNumber, marker: str, body: str) -> None:
        """Wish for a sticky comment, told from others by its marker."""
        key = f"comment/{repository}/{number}/{marker}"
        await self.store.queue_post(_comment(key, repository, number, marker, body))

    async def react(self, repository: Repository, comment: int, content: str) -> None:
        """React to a person's comment."""
        payload: dict[str, Json] = {"repository": str(repository), "comment": comment, "content": content}
        key = f"reaction/{repository}/{comment}/{content}"
        await self.store.queue_post(Post(key, "reaction", str(repository), _COMMENTS, payload))

    async def post_check(self, repository: Repository, check: CheckRun) -> None:
        """Wish for a check run on a commit."""
        await self.store.queue_post(check_post(repository, check))

    async def _queue_deployment(
        self, repository: Repository, promotion: Promotion, merge: CommitId, view: PromotionView
    ) -> None:
        """The Stage as an environment of the repository; what nothing takes Freight from is production."""
        stages = self.configuration.stages_in_order(promotion.project)
        upstream = {
            name for stage in stages for request in stage.requested_freight for name in request.sources.stages
        }
        payload: dict[str, Json] = {
            "repository": str(repository),
            "ref": merge,
            "environment": promotion.stage,
            "production": promotion.stage not in upstream,
            "payload": {
                "promotion": promotion.id,
                "freight": promotion.freight.name,
                "stage": promotion.stage,
                "marker": self.marking.payload(promotion, promotion.stage),
            },
            "state": _DEPLOYED.get(promotion.state, DeploymentState.IN_PROGRESS).value,
            "description": " ".join((promotion.reason or view.waiting).split())[:140],
            "log_url": view.page,
        }
        key = f"deployment/{promotion.id}"
        await self.store.queue_post(Post(key, "deployment", str(repository), _COMMENTS, payload))

    async def _queue_pull(self, repository: Repository, number: PullNumber, view: PromotionView) -> None:
        payload: dict[str, Json] = {
            "repository": str(repository),
            "number": number,
            "title": render_title(view),
            "body": render_body(view),
        }
        await self.store.queue_post(
            Post(f"pull/{repository}/{number}", "pull", str(repository), _PULL, payload)
        )

    async def _stages(self, promotion: Promotion) -> tuple[StageLine, ...]:
        """The project's Stages, in the order in which Freight passes them."""
        lines = []
        newest = await self.store.list_newest_runs(promotion.project)
        runs = present_runs(newest, await self.store.list_stages(promotion.project))
        for stage in self.configuration.stages_in_order(promotion.project):
            name = stage.metadata.name
            record = await self.store.get_stage(promotion.project, name)
            known = await self._present(record, promotion)
            lines.append(
                StageLine(
                    name=name,
                    freight=known[0] if known is not None else None,
                    since=record.since,
                    verified=known is not None and name in known[1].verified_in,
                    here=name == promotion.stage,
                    state=_unproven(runs.get(name), here=name == promotion.stage),
                )
            )
        return tuple(lines)

    async def _former(self, record: StageRecord, promotion: Promotion) -> Freight | None:
        """The Freight that the Stage has, or had before this Promotion brought its own."""
        history = record.history
        since = record.since
        if promotion.state is State.SUCCEEDED and since is not None and since >= promotion.created_at:
            history = history[1:]
        name = history[0].items.get(promotion.freight.origin) if history else None
        found = await self.store.get_freight(record.project, name) if name is not None else None
        return found[0] if found is not None else None

    async def _present(
        self, record: StageRecord, promotion: Promotion
    ) -> tuple[Freight, FreightStatus] | None:
        """The Freight of the Promotion's origin that a Stage has now."""
        name = record.items.get(promotion.freight.origin)
        return await self.store.get_freight(record.project, name) if name is not None else None


def _marker(name: str, promotion: Promotion) -> str:
    """What tells a Stage's sticky comments apart."""
    return f"lockstep:{name}:{promotion.project}:{promotion.stage}"


def _comment(key: str, repository: Repository, number: PullNumber, marker: str, body: str) -> Post:
    payload: dict[str, Json] = {
        "repository": str(repository),
        "number": number,
        "body": body,
        "marker": marker,
    }
    return Post(key, "comment", str(repository), _COMMENTS, payload)


def _on_what_stands(view: PromotionView, seen: Snapshot) -> PromotionView:
    """The view for the gate's check: one that stopped because people pushed is red on what they pushed."""
    promotion, pull = view.promotion, seen.pull
    if pull is None or not pull.open or not promotion.is_ahead or promotion.state is not State.STOPPED:
        return view
    return replace(view, promotion=replace(promotion, head=pull.head))


def _unproven(run: AnalysisRun | None, *, here: bool) -> str:
    """What a verification says of what a Stage has now, unless that it was successful."""
    if run is None or run.phase is Phase.SUCCESSFUL:
        return ""
    return describe_run(run, elsewhere=not here)


def blank_snapshot(promotion: Promotion, policy: ReviewPolicy, preview: Preview, clock: Clock) -> Snapshot:
    """A snapshot for the first body, before anything of the pull request can be read."""
    stage = Stage(metadata=policy.metadata, requested_freight=())
    return Snapshot(
        now=clock.now(),
        project=promotion.project,
        stage=stage,
        policy=policy,
        promotion=promotion,
        preview=preview,
    )
