"""The life of promotions as nobody would write it down: whatever happens in whatever order, what must hold holds.

The bot's own decisions, walks, steps and tables run over a world in memory. People push, review, merge and give
commands, the base moves, Terraform fails, time passes, and the process dies, between the bot's moves and in the middle
of them. `life_claims.py` judges every effect from outside.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bot.domain.github import Permission, ReviewState
from bot.domain.promotion import Promotion, State
from bot.domain.terraform import Lock
from tests.steps.fakes import CloudState
from tests.workflow.life import Bot, Killed, QuickLoop, World
from tests.workflow.life_claims import BRANCH
from tests.workflow.life_pipeline import TFVARS, VALUES, freight

PEOPLE = st.sampled_from(["ada", "bob", "cyn", "uma"])
WRITERS = st.sampled_from(["ada", "bob", "cyn"])
COMMANDS = (
    *("/freeze audit", "/unfreeze", "/hold", "/resume", "/cancel", "/plan", "/retry", "/retry"),
    *(
        "/rollback dev",
        "/promote dev",
        "/promote dev FREIGHT",
        "/apply DIGEST",
        "/apply DIGEST",
        "/apply 0123456789abcdef",
    ),
)
EDITS: dict[str, tuple[str, Callable[[str], str]]] = {
    "another key": (VALUES, lambda text: text.replace("LEVEL: info", "LEVEL: debug")),
    "another key back": (VALUES, lambda text: text.replace("LEVEL: debug", "LEVEL: info")),
    "another tag": (VALUES, lambda text: _line(text, "  tag:", '"9"')),
    "the memory": (TFVARS, lambda text: _line(text, "fn__memory =", '"256"')),
    "the memory back": (TFVARS, lambda text: _line(text, "fn__memory =", '"128"')),
    "another image": (TFVARS, lambda text: _line(text, "fn__image =", '"by-hand:9"')),
    "what is not valid": (TFVARS, lambda text: _line(text, "fn__memory =", '"!"')),
    "elsewhere": ("README.md", lambda text: text + "more\n"),
}


def _line(text: str, key: str, value: str) -> str:
    """The text with another value in the line of this key."""
    return "".join(
        f"{key} {value}\n" if line.startswith(key) else line for line in text.splitlines(keepends=True)
    )


class Life(RuleBasedStateMachine):
    """One Stage and all that may happen to it."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.loop = QuickLoop()
        self.comments = 0
        self.versions = [0, 0]
        self.cloud_changed = False

    @initialize(acts=st.booleans(), released=st.booleans())
    def begin(self, acts: bool, released: bool) -> None:
        self.world = World(self.loop, self.directory, acts=acts)
        self.bot = Bot(self.world)
        self.run(self.bot.start())
        if released:
            self.new_release("both")
            self.work()
            self.review("bob", ReviewState.APPROVED)
            self.work()
            self.merge("bob", bypass=False, squash=False)
            self.work()
        self.new_release("both")
        self.work()

    def run(self, work: Coroutine[Any, Any, object]) -> None:
        """Let the bot do something; if it dies of it, another process begins."""
        try:
            self.loop.run_until_complete(work)
        except Killed:
            self.bot.die()
            self.bot = Bot(self.world)
            self.loop.run_until_complete(self.bot.start())

    def promotion(self) -> Promotion | None:
        """The newest Promotion, looked up without a touch of the world."""
        armed, self.world.armed = self.world.armed, None
        found = self.loop.run_until_complete(self.bot.promotion())
        self.world.armed = armed
        return found

    def pull(self) -> int | None:
        """The newest pull request."""
        return max(self.world.github.pulls, default=None)

    # -- the bot ---------------------------------------------------------------------------------------------

    @rule()
    def work(self) -> None:
        """Everything that is to be done is done."""
        self.run(self.bot.settle())

    @rule()
    def look(self) -> None:
        self.run(self.bot.look())

    @rule()
    def segment(self) -> None:
        self.run(self.bot.segment())

    @rule(seconds=st.sampled_from([5, 40, 700, 90_000]))
    def time_passes(self, seconds: int) -> None:
        self.run(asyncio.sleep(seconds))

    @rule()
    def another_replica_previews_the_same(self) -> None:
        """Invariant 15: with equal base, head, Freight and answers the digest is the same."""
        self.work()
        found = self.promotion()
        known = self.world.claims.previews.get(found.digest) if found is not None else None
        if found is None or found.state is not State.REVIEW or found.running or known is None or known.is_red:
            return
        pull = self.world.github.seen(found.pull or 0)
        if pull.head != found.head or pull.base_branch != "main" or self.cloud_changed or not pull.open:
            return
        if self.world.terraform.dead or self.world.terraform.locked is not None:
            return
        armed, self.world.armed = self.world.armed, None
        again = self.loop.run_until_complete(self.bot.preview_again(found))
        self.world.armed = armed
        assert again is None or again.digest == found.digest

    # -- what is released ------------------------------------------------------------------------------------

    @rule(what=st.sampled_from(["otel", "function", "both", "both"]))
    def new_release(self, what: str) -> None:
        self.versions[0] += what != "function"
        self.versions[1] += what != "otel"
        made = freight(self.versions[0], self.versions[1], self.world.now())
        self.run(self.bot.store.add_freight(made))

    # -- people ----------------------------------------------------------------------------------------------

    @rule(
        who=PEOPLE,
        state=st.sampled_from([*[ReviewState.APPROVED] * 4, ReviewState.CHANGES_REQUESTED]),
    )
    def review(self, who: str, state: ReviewState) -> None:
        number = self.pull()
        if number is not None:
            self.world.github.review(number, self.world.people[who], state)

    @rule(who=PEOPLE)
    def dismiss(self, who: str) -> None:
        if self.pull():
            self.world.github.dismiss(self.pull() or 0, self.world.people[who])

    @rule(who=PEOPLE, role=st.sampled_from([Permission.READ, Permission.WRITE, Permission.WRITE]))
    def rights(self, who: str, role: Permission) -> None:
        self.world.github.permissions[who] = role

    @rule(who=WRITERS, bypass=st.sampled_from([False, False, True]), squash=st.booleans())
    def merge(self, who: str, bypass: bool, squash: bool) -> None:
        number = self.pull()
        if number is not None and (bypass or self.world.github.is_green(number)):
            self.world.github.merge(number, who, squash=squash)

    @rule(what=st.sampled_from(["close", "retarget", "retarget back"]))
    def change_pull(self, what: str) -> None:
        github, number = self.world.github, self.pull() or 0
        if not number or not github.seen(number).open:
            return
        if what == "close":
            github.close(number)
            return
        self.world.git.move("other", self.world.git.tip())
        github.retarget(number, "other" if what == "retarget" else "main")

    @rule(who=WRITERS, what=st.sampled_from(sorted(EDITS)))
    def push_to_the_pull_request(self, who: str, what: str) -> None:
        self._push(BRANCH, who, what)

    @rule(who=WRITERS, what=st.sampled_from(sorted(EDITS)))
    def push_to_main(self, who: str, what: str) -> None:
        self._push("main", who, what)

    def _push(self, branch: str, who: str, what: str) -> None:
        path, change = EDITS[what]
        git = self.world.git
        if not git.has(branch):
            return
        before = git.text(git.tip(branch), path)
        if change(before) != before:
            git.push_files(branch, {path: change(before)}, what, self.world.signature(who))

    @rule(who=WRITERS)
    def revert(self, who: str) -> None:
        git, number = self.world.git, self.pull()
        merge = self.world.github.seen(number).merge_commit if number else None
        if merge is None:
            return
        parent = git.commits[merge].parents[0]
        changed = [path for path, _, _ in git.differences(parent, merge)]
        git.push_files("main", {p: git.text(parent, p) for p in changed}, "revert", self.world.signature(who))

    @rule(who=PEOPLE, text=st.sampled_from(COMMANDS), older=st.integers(0, 3))
    def command(self, who: str, text: str, older: int) -> None:
        found = self.promotion()
        if not self.pull():
            return
        number = self.pull() if found is None or found.pull is None else int(found.pull)
        wanted = ""
        if found is not None:
            wanted = found.stop.digest if found.stop is not None else found.digest
        if text == "/apply DIGEST" and found is not None and wanted and self._may_accept(who, found):
            self.world.claims.accepted.add(wanted)
        name = freight(max(self.versions[0] - older, 0), self.versions[1], self.world.now()).name
        said = text.replace("DIGEST", wanted or "0").replace("FREIGHT", name)
        self.comments += 1
        self.run(self.bot.say(number or 0, who, said, self.comments))

    def _may_accept(self, who: str, found: Promotion) -> bool:
        claims = self.world.claims
        authors = self.world.github.authors(int(found.pull or 0)) if found.pull else {}
        mine = found.own_commits
        wrote = {name for commit, names in authors.items() if commit not in mine for name in names}
        return claims.may_write(who) and who != found.actor and who not in wrote

    # -- what often follows one another ----------------------------------------------------------------------

    @rule(
        trouble=st.sampled_from(["", "", "move", "drift", "fail", "die in the apply", "surprise", "lock"]),
        meanwhile=st.sampled_from(["", "", "elsewhere", "another key", "the memory"]),
        dies=st.none() | st.integers(0, 120),
        approvers=st.sampled_from([(), ("bob",), ("bob", "cyn"), ("bob", "cyn"), ("uma", "ada")]),
    )
    def release(self, trouble: str, meanwhile: str, dies: int | None, approvers: tuple[str, ...]) -> None:
        """What is open is approved, perhaps, and merged, past the rules if need be, while something else happens."""
        self.work()
        for who in approvers:
            self.review(who, ReviewState.APPROVED)
        self.work()
        if trouble:
            self.cloud(trouble)
        if meanwhile:
            self.push_to_main("ada", meanwhile)
        self.merge("bob", bypass=len(approvers) < 2, squash="uma" in approvers)
        if dies is not None:
            self.die_later(dies)
        self.work()

    @rule(healed=st.booleans(), who=WRITERS)
    def answer(self, healed: bool, who: str) -> None:
        """Somebody does what the bot asks for: retries what failed, or accepts what waits."""
        found = self.promotion()
        if healed:
            self.cloud("heal")
            self.cloud("unlock")
        if found is not None and found.pull is not None:
            self.command(who, "/retry" if found.state.ended else "/apply DIGEST", 0)
        self.work()

    # -- the cloud -------------------------------------------------------------------------------------------

    @rule(
        what=st.sampled_from(
            ["lock", "unlock", "down", "up", "fail", "heal", "move", "drift", "die in the apply", "surprise"]
        )
    )
    def cloud(self, what: str) -> None:
        terraform = self.world.terraform
        (state,) = terraform.states.values() or (CloudState(),)
        match what:
            case "lock":
                terraform.locked = Lock("1", "somebody")
            case "unlock":
                terraform.locked = None
            case "down" | "up":
                terraform.dead = what == "down"
            case "fail" | "heal":
                terraform.fail_after = 1 if what == "fail" else None
            case "die in the apply":
                terraform.interrupt = True
            case "surprise":
                terraform.surprise = {"lambda_url": "https://other.example"}
            case "move":
                state.serial += 1
            case _ if "fn" in state.resources:
                state.serial += 1
                state.resources["fn"]["memory"] = "64"
                self.cloud_changed = self.world.claims.drifted = True

    # -- in the middle ---------------------------------------------------------------------------------------

    @rule(after=st.integers(0, 80))
    def die_later(self, after: int) -> None:
        """The process dies at one of its next touches of the world."""
        self.world.armed = self.world.armed or (after, _die)

    @rule(after=st.integers(0, 60), data=st.data())
    def interfere_later(self, after: int, data: st.DataObject) -> None:
        """People do something while the bot is at work."""
        who, what = data.draw(WRITERS), data.draw(st.sampled_from(sorted(EDITS)))
        happens = data.draw(
            st.sampled_from(
                [
                    lambda: self.merge(who, True, False),
                    lambda: self._push("main", who, what),
                    lambda: self._push(BRANCH, who, what),
                    lambda: self.dismiss(who),
                    lambda: self.review(who, ReviewState.APPROVED),
                    lambda: self.change_pull("close"),
                ]
            )
        )
        self.world.armed = self.world.armed or (after, happens)

    # -- what holds ------------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_broken(self) -> None:
        if hasattr(self, "world"):
            broken = self.world.claims.broken
            if broken:
                note("\n".join([*broken, *self.timeline()]))
            assert broken == []

    def timeline(self) -> list[str]:
        """What the bot told, oldest first."""
        self.world.armed = None
        events = self.loop.run_until_complete(self.bot.store.list_events(limit=60))
        found = self.promotion()
        return [
            *(f"{e.at:%j %T} {e.promotion[-7:]} {e.kind}: {e.message}" for e in reversed(events)),
            f"{found}",
        ]

    def teardown(self) -> None:
        """Whatever happened: once all is well again and time passes, no work is left half done."""
        try:
            if hasattr(self, "world"):
                self._come_to_rest()
                self.bot.die()
        finally:
            self.loop.close()
            shutil.rmtree(self.directory)

    def _come_to_rest(self) -> None:
        terraform = self.world.terraform
        self.world.armed = terraform.locked = terraform.fail_after = None
        terraform.dead = terraform.interrupt = False
        for _ in range(3):
            self.work()
            self.time_passes(700)
        self.work()
        found = self.promotion()
        self.nothing_is_broken()
        frozen = (found is not None and "on hold" in found.reason) or (
            found is not None and "frozen" in found.reason
        )
        assert found is None or frozen or (not found.running and found.state is not State.FULFILLING), (
            found.reason
        )


def _die() -> None:
    raise Killed


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=70,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    print_blob=True,
    report_multiple_bugs=False,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
