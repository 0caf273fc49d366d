"""A push between preview and publishing: the digest must never land on commits that the preview does not speak of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from bot.domain.files import CommitId, TreeId
from bot.domain.github import PullNumber
from bot.ports import Git, GitHub, Signature, TransientError
from bot.ports.git import Commit
from bot.workflow.publish import Branch, Publisher
from tests.domain import reviews as b

SEEN, PUSHED = CommitId("1" * 40), CommitId("2" * 40)


@dataclass
class MovedGit:
    """A mirror whose promotion branch was pushed to; nothing may be written to it."""

    fetched: list[str] = field(default_factory=list)

    async def fetch(self, url: str, *refs: str) -> None:
        self.fetched.append(url)

    async def resolve(self, url: str, revision: str) -> CommitId | None:
        return PUSHED

    async def is_ancestor(self, url: str, ancestor: CommitId, descendant: CommitId) -> bool:
        return False

    async def read_commit(self, url: str, commit: CommitId) -> Commit:
        signature = Signature("uma", "uma@example.com", b.NOW)
        return Commit(
            commit, TreeId("3" * 40), (), "Mine", signature, signature, {"Lockstep-Stage": "shop/prod"}
        )


@pytest.mark.parametrize("people", [True, False], ids=["on top of people's commits", "over our own"])
@pytest.mark.parametrize("digest", ["d1", "d0"], ids=["the digest stays", "the digest changes"])
async def test_a_branch_that_was_pushed_to_meanwhile_gets_no_digest(people: bool, digest: str) -> None:
    publisher = Publisher(cast(Git, MovedGit()), cast(GitHub, None), ("lockstep", "lockstep@localhost"))
    promotion = replace(b.in_review(), pull=PullNumber(7), head=SEEN, heads=(SEEN,), digest=digest)
    with pytest.raises(TransientError, match="pushed to while its preview was made"):
        await publisher.publish_branch(promotion, b.preview(), Branch(SEEN, people=people), "")


async def test_a_branch_that_a_task_names_is_not_taken_from_whoever_was_quicker() -> None:
    publisher = Publisher(cast(Git, MovedGit()), cast(GitHub, None), ("lockstep", "lockstep@localhost"))
    promotion = replace(b.promotion(), target=b.MAIN, source="release/dev")
    with pytest.raises(TransientError, match="release/dev was written meanwhile"):
        await publisher.publish_branch(promotion, b.preview(source="release/dev"), Branch(None), "")
