"""Who may give a command for several Stages at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from bot.domain.approvals import Standing
from bot.domain.commands import Freeze
from bot.domain.github import Permission, Repository, User
from bot.domain.model import Metadata, PromotionTemplate, Stage, Step
from bot.domain.promotion import Promotion
from bot.domain.review_policy import ReviewPolicy
from bot.workflow.buttons import Asked, Refusal
from bot.workflow.rights import Rights

APPS, DATA = Repository("acme", "apps"), Repository("acme", "data")
FREEZE = Asked(Freeze("audit"), User("olivia", 1), APPS, None)


def stage(name: str, repository: Repository | None) -> Stage:
    """A Stage that clones a repository, or one without steps."""
    steps = (
        ()
        if repository is None
        else (Step("git-clone", config={"repoURL": f"https://git.example/{repository}"}),)
    )
    return Stage(Metadata(name=name, namespace="acme"), (), template=PromotionTemplate(steps=steps))


@dataclass
class Known:
    """What is known of people and Stages: a role by repository, a policy by Stage. Counts what is asked of GitHub."""

    roles: Mapping[Repository, Permission]
    policies: Mapping[str, ReviewPolicy] = field(default_factory=dict)
    asked: list[Repository] = field(default_factory=list)

    @property
    def configuration(self) -> Known:
        return self

    store = github = configuration

    def policy(self, stage: Stage) -> ReviewPolicy:
        return self.policies.get(stage.metadata.name, ReviewPolicy())

    async def list_promotions(self, _project: str, _stage: str) -> Sequence[Promotion]:
        return ()

    def repository_of(self, url: str) -> Repository | None:
        owner, _, name = url.removeprefix("https://git.example/").partition("/")
        return Repository(owner, name) if name else None

    def steps_of(self, stage: Stage) -> Sequence[Step]:
        return stage.template.steps if stage.template is not None else ()

    async def standing(self, repository: Repository, _login: str, _policy: ReviewPolicy) -> Standing:
        self.asked.append(repository)
        return Standing(self.roles[repository])


def rights(known: Known) -> Rights:
    return Rights(cast(Any, known))


async def test_the_right_is_asked_once_for_each_repository() -> None:
    known = Known({APPS: Permission.MAINTAIN, DATA: Permission.MAINTAIN})
    stages = [stage("dev", APPS), stage("prod", APPS), stage("lake", DATA)]
    await rights(known).check(FREEZE, "freeze", stages[0], stages)
    assert known.asked == [APPS, DATA]


async def test_whoever_lacks_it_for_one_stage_is_refused_by_its_name() -> None:
    known = Known({APPS: Permission.MAINTAIN, DATA: Permission.WRITE})
    with pytest.raises(Refusal, match=r"`/freeze` on lake needs perm:maintain in acme/data"):
        await rights(known).check(FREEZE, "freeze", stage("dev", APPS), [stage("lake", DATA)])


async def test_a_stricter_policy_of_one_stage_counts() -> None:
    strict = replace(ReviewPolicy(), commands={"freeze": "user:rafael"})
    known = Known({APPS: Permission.ADMIN}, {"prod": strict})
    with pytest.raises(Refusal, match=r"on prod needs user:rafael"):
        await rights(known).check(FREEZE, "freeze", stage("dev", APPS), [stage("prod", APPS)])


async def test_a_stage_that_promotes_nothing_keeps_nobody_from_it() -> None:
    known = Known({APPS: Permission.MAINTAIN})
    await rights(known).check(FREEZE, "freeze", stage("dev", APPS), [stage("fork", None)])
    assert known.asked == [APPS]


async def test_where_nothing_tells_of_the_stage_itself_nobody_may() -> None:
    known = Known({APPS: Permission.ADMIN})
    with pytest.raises(Refusal, match="nothing tells yet which repository fork belongs to"):
        await rights(known).check(FREEZE, "freeze", stage("fork", None), [stage("dev", APPS)])
