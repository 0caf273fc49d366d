"""What people read of a Promotion: one value for the body, the comments, the checks and `/explain`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bot.domain.actions import Gate
from bot.domain.approvals import Tally
from bot.domain.freight import Freight
from bot.domain.promotion import Promotion, StepRun
from bot.domain.review import Preview
from bot.domain.review_policy import Approvals


@dataclass(frozen=True, slots=True)
class StageLine:
    """One Stage of the pipeline as the table shows it; `here` marks the Stage of this pull request."""

    name: str
    freight: Freight | None
    since: datetime | None = None
    verified: bool = False
    here: bool = False
    state: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A link of the pipeline's author; `url` begins with https:// and holds no blank, quote or angle bracket."""

    title: str
    url: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How far the walk after the merge is: the journal by alias, and the closing words."""

    runs: Mapping[str, StepRun] = field(default_factory=dict)
    log: str = ""


@dataclass(frozen=True, slots=True)
class PromotionView:
    """Everything that is said about one Promotion, read just now.

    `current` is the Freight that the Stage has; `page` the address of the bot's own page, empty if there is none;
    `approvals` is the rule that the tally was counted by;
    `waiting` says in one sentence what happens next, with a time or a name in it; `follow_up` whether the release
    commit reaches the branch by a follow-up pull request instead of a push.
    """

    promotion: Promotion
    preview: Preview | None
    now: datetime
    gates: tuple[Gate, ...] = ()
    tally: Tally | None = None
    approvals: Approvals | None = None
    current: Freight | None = None
    stages: tuple[StageLine, ...] = ()
    waiting: str = ""
    page: str = ""
    follow_up: bool = False
    outcome: Outcome = Outcome()
    auto_merge: bool = False
    early: bool = False
    """Whether its steps run before the merge, once somebody types `/apply`."""
    people_commits: tuple[str, ...] = ()
    drift: str = ""
    """When the Stage was last looked at for drift, and what came of that; empty if it never was."""
    show_others: bool = False
    """Whether what goes to other repositories is shown line by line (`showOtherRepositories`)."""
    links: tuple[Link, ...] = ()
    """The author's links for the Freight, then for the Stage."""
    differs: str = ""
    """Why the Stage differs from its Freight, empty if it does not."""
    marker: str = ""
    """The signed machine block, an HTML comment, already rendered."""
