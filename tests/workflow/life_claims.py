"""What must hold of every life of a promotion: invariants of the review gate, judged from outside of the bot.

Everything here is counted anew from what GitHub, git and the cloud show; nothing is asked of the bot's own rules.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from bot.domain.files import CommitId
from bot.domain.github import Permission, PullRequest, ReviewState
from bot.domain.promotion import Promotion, PromotionId, State
from bot.domain.review import Lane, Preview
from bot.domain.terraform import Action, Plan
from bot.ports import HttpRequest, Store, TerraformRun
from tests.steps.fakes import CloudState
from tests.workflow.life_pipeline import TFVARS, VALUES, tag_in, url_in, without_release
from tests.workflow.memory_git import MemoryGit
from tests.workflow.memory_github import MemoryGitHub

SENTINEL = "lockstep-unknown-"
BRANCH = "lockstep/acme/dev"


@dataclass
class Claims:
    """Collects what was broken. `acting` is the Promotion whose segment runs."""

    git: MemoryGit
    github: MemoryGitHub
    acts: bool
    broken: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    acting: Promotion | None = None
    states: dict[str, CloudState] = field(default_factory=dict)
    previews: dict[str, Preview] = field(default_factory=dict)
    accepted: set[str] = field(default_factory=set)
    """Digests that somebody entitled accepted by `/apply`."""
    sanctioned: dict[PromotionId, set[str]] = field(default_factory=dict)
    plans: list[tuple[Plan, str]] = field(default_factory=list)
    used: Counter[int] = field(default_factory=Counter)
    posted: Counter[tuple[str, int]] = field(default_factory=Counter)
    digests: dict[CommitId, str] = field(default_factory=dict)
    applied_inputs: str = ""
    """The inputs of the last apply, if it succeeded and its Promotion too; empty otherwise."""
    last_inputs: str = ""
    known_pulls: set[int] = field(default_factory=set)
    drifted: bool = False
    """Whether somebody else wrote the state since our last apply."""

    # -- approvals -------------------------------------------------------------------------------------------

    async def remember(self, store: Store, promotion: Promotion | None) -> None:
        """Keep the preview in force, and judge the heads that carry its digest (7)."""
        if promotion is None or not promotion.preview:
            return
        preview = await store.get_preview(promotion.id, promotion.preview)
        if preview is not None:
            self.previews[preview.digest] = preview
        for head in promotion.heads:
            if self.digests.setdefault(head, promotion.digest) != promotion.digest:
                self.broken.append(f"7: {head[:7]} stands for two digests")

    def approved(self, promotion: Promotion | None) -> bool:
        """Whether the pull request's head has, now, the approvals that its digest needs."""
        if promotion is None or promotion.pull is None or promotion.digest not in self.previews:
            return False
        pull = self.github.seen(promotion.pull)
        excluded = {name for c, names in self.github.authors(pull.number).items() for name in names}
        excluded |= {promotion.actor}
        latest = {}
        for review in self.github.reviews.get(pull.number, []):
            latest[review.user.login] = review
        good = {
            login
            for login, review in latest.items()
            if self.may_write(login)
            and login not in excluded
            and review.state is ReviewState.APPROVED
            and review.commit is not None
            and self._digest_of(review.commit) == promotion.digest
        }
        against = [
            r
            for name, r in latest.items()
            if r.state is ReviewState.CHANGES_REQUESTED and self.may_write(name)
        ]
        needed = 2 if self.previews[promotion.digest].destroys else 1
        return len(good) >= needed and not against

    def may_write(self, login: str) -> bool:
        """Whether a person has write permission now."""
        return self.github.permissions.get(login, Permission.NONE).rank >= Permission.WRITE.rank

    def _digest_of(self, commit: CommitId) -> str:
        return self.git.commits[commit].trailers.get("Lockstep-Preview", "")

    def beginning(self, promotion: Promotion | None, earlier: bool) -> None:
        """A Promotion may be about to be fulfilled: it may have effects if somebody approved just what was merged.

        `earlier` tells whether the approvals were there when the bot began to look.
        """
        if promotion is None or promotion.running != "fulfil" or promotion.id in self.sanctioned:
            return
        preview = self.previews.get(promotion.digest)
        accepted = self.accepted & set(promotion.accepted)
        if preview is None:
            return
        if promotion.merge_commit is None:
            fine = preview.lane is Lane.NO_OP and not preview.is_red
        else:
            fine = (earlier or self.approved(promotion)) and self._is_merged(preview, promotion.merge_commit)
        if fine or accepted:
            self.sanctioned[promotion.id] = {promotion.digest, *accepted}

    def _is_merged(self, preview: Preview, merge: CommitId) -> bool:
        return all(self.git.text(merge, p) == self.git.text(preview.tree, p) for p in (VALUES, TFVARS))

    def _entitled(self, what: str) -> Promotion | None:
        """The acting Promotion, if it may have effects."""
        acting = self.acting
        if acting is None or acting.running != "fulfil" or acting.id not in self.sanctioned:
            self.broken.append(f"1, 8: {what} although nobody approved what was merged")
            return None
        return acting

    # -- Terraform -------------------------------------------------------------------------------------------

    def planning(self, run: TerraformRun) -> None:
        """A plan is about to be made (4, 12)."""
        found = _inputs(run)
        if SENTINEL in found:
            self.broken.append("4: a stand-in reaches Terraform")
        if self.applied_inputs and found == self.applied_inputs:
            self.broken.append("12: inputs that were applied last are planned again")

    def planned(self, plan: Plan, run: TerraformRun) -> int:
        """The number of a plan that was made."""
        self.plans.append((plan, _inputs(run)))
        return len(self.plans) - 1

    def applied(self, run: TerraformRun, number: int, *, succeeded: bool) -> None:
        """A saved plan was applied (2, 3)."""
        plan, inputs = self.plans[number]
        self.used[number] += 1
        if self.used[number] > 1:
            self.broken.append("3: a saved plan is used twice")
        self.applied_inputs, self.drifted = "", False
        self.last_inputs = inputs if succeeded else ""
        acting = self._entitled("terraform apply")
        if acting is None:
            return
        if inputs != _inputs(run):
            self.broken.append("2: a plan is applied on other inputs than it was made of")
        if not self._is_approved(plan, acting):
            self.broken.append(f"2: a plan is applied that nobody approved: {plan.resources}")

    def _is_approved(self, plan: Plan, acting: Promotion) -> bool:
        if any(plan.digest.startswith(digest) for digest in self.accepted):
            return True
        digests = self.sanctioned[acting.id] | (self.accepted & set(self.previews))
        known = [a.plan for d in digests for a in self.previews[d].applies if a.plan is not None]
        if any(plan.digest == approved.digest for approved in known):
            return True
        # A rest of what was approved, after an apply that failed.
        return acting.attempt > 1 and any(_is_rest(plan, approved) for approved in known)

    # -- git -------------------------------------------------------------------------------------------------

    def pushing(self, branch: str, old: CommitId | None, new: CommitId | None) -> None:
        """The bot is about to move a branch (1, 4, 5, 6)."""
        if new is None:
            return
        fresh = [c.id for c in self.git.between(old, new)]
        if any(SENTINEL in text for text in self.git.texts(fresh)):
            self.broken.append(f"4: a stand-in reaches {branch}")
        if branch != "main":
            return
        acting = self._entitled("a push to main")
        if acting is None:
            return
        for commit in self.git.between(old, new):
            self._judge_release(acting, commit.parents[0], commit.id)

    def _judge_release(self, acting: Promotion, before: CommitId, after: CommitId) -> None:
        paths = [path for path, _, _ in self.git.differences(before, after)]
        was, text = self.git.text(before, VALUES), self.git.text(after, VALUES)
        if paths != [VALUES] or without_release(was) != without_release(text):
            self.broken.append(f"6: the release commit changes something else: {paths}")
        if tag_in(text) != acting.freight.images[0].tag:
            self.broken.append(f"6: the release commit writes the tag {tag_in(text)!r}")
        (state,) = self.states.values() or (CloudState(),)
        outputs = {name: output.value for name, output in state.outputs.items()}
        if not self.drifted and url_in(text) != outputs.get("lambda_url"):
            self.broken.append(f"5, 6: the release commit writes the address {url_in(text)!r} of {outputs}")
        barrier = any(a.kind.is_barrier for d in self.sanctioned[acting.id] for a in self.previews[d].applies)
        if barrier and not self.drifted and acting.attempt == 1 and acting.merge_commit is not None:
            image = state.resources.get("fn", {}).get("image")
            if f'"{image}"' not in self.git.text(acting.merge_commit, TFVARS):
                self.broken.append(f"5: values are released while the cloud runs {image}")

    def opened(self, pull: PullRequest) -> None:
        """The bot opened a pull request (18)."""
        others = [p for p in map(self.github.seen, self.github.pulls) if p.open and p.number != pull.number]
        if others or self.acting is None:
            self.broken.append(f"18: #{pull.number} is open beside {[p.number for p in others]}")

    # -- effects ---------------------------------------------------------------------------------------------

    def syncing(self, revision: str) -> None:
        """Argo CD is asked for a sync (5, 8)."""
        acting = self._entitled("a sync")
        if acting is None or revision not in self.git.commits:
            return
        text = self.git.text(CommitId(revision), VALUES)
        if tag_in(text) != acting.freight.images[0].tag:
            self.broken.append(
                f"5: {acting.freight.alias} is synced at a commit with the tag {tag_in(text)!r}"
            )

    def posting(self, request: HttpRequest) -> None:
        """A request is sent (4, 8, 9)."""
        if SENTINEL in f"{request}":
            self.broken.append("4: a stand-in reaches a request")
        acting = self._entitled("a request")
        if acting is None:
            return
        self.posted[acting.id, acting.attempt] += 1
        if self.posted[acting.id, acting.attempt] > 1:
            self.broken.append("9: a request is sent twice in one attempt")

    # -- after a segment -------------------------------------------------------------------------------------

    async def ended(self, store: Store, promotion: Promotion | None) -> None:
        """A segment ended (5, 13)."""
        await self.remember(store, promotion)
        if promotion is None:
            return
        if promotion.state is State.SUCCEEDED:
            self.applied_inputs = self.last_inputs
        preview = self.previews.get(promotion.digest)
        if promotion.state is not State.REVIEW or promotion.pull is None or preview is None or preview.is_red:
            return
        barrier = any(apply.kind.is_barrier for apply in preview.applies)
        if promotion.pull not in self.known_pulls and preview.lane is Lane.NO_OP:
            self.broken.append("13: a pull request is opened without a change")
        self.known_pulls.add(promotion.pull)
        base, head = promotion.base, next(reversed(promotion.own_commits), None)
        if not barrier or base is None or head is None or self.git.commits[head].parents != (base,):
            return
        if tag_in(self.git.text(head, VALUES)) != tag_in(self.git.text(base, VALUES)):
            self.broken.append("5: values are merged before the apply")


def _inputs(run: TerraformRun) -> str:
    within = {p: f.data.decode() for p, f in sorted(run.files.items()) if p.startswith(run.directory)}
    return f"{within} {run.variables}"


def _is_rest(plan: Plan, approved: Plan) -> bool:
    known = {change.address: change.action for change in approved.changes}
    return all(
        known.get(change.address)
        in (change.action, Action.CREATE if change.action is Action.REPLACE else None)
        for change in plan.changes
    )
