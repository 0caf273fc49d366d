"""What is refused before anything is sent, since GitHub would cut or refuse it."""

from __future__ import annotations

import pytest
import respx

from bot.adapters.github import GitHubApp
from bot.domain.files import CommitId
from bot.domain.github import (
    Annotation,
    Button,
    CheckRun,
    Conclusion,
    DeploymentId,
    DeploymentState,
    PullNumber,
)
from tests.adapters.github.conftest import REPOSITORY

MARKER = "lockstep:plan shop/dev"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"title": "x" * 256}, "the title has 256 bytes"),
        ({"summary": "ä" * 40_000}, "the summary has 80000 bytes"),
        ({"text": "x" * 65_536}, "the text has 65536 bytes"),
        ({"summary": ""}, "needs a title and a summary"),
        ({"buttons": (Button("a", "b", "c"),)}, "completed runs only"),
        ({"buttons": (Button("a", "b", "c"),) * 4, "conclusion": Conclusion.FAILURE}, "4 buttons"),
        ({"buttons": (Button("a" * 21, "b", "c"),), "conclusion": Conclusion.FAILURE}, "a button's label"),
        ({"annotations": (Annotation("a", 1, "loud", "m"),)}, "level is 'loud'"),
        ({"annotations": (Annotation("a", 1, "notice", "m" * 65_537),)}, "an annotation's message"),
    ],
)
async def test_nothing_is_cut_silently(
    github: GitHubApp, wire: respx.Router, changes: dict[str, object], message: str
) -> None:
    values: dict[str, object] = {"title": "t", "summary": "s", **changes}
    check = CheckRun("lockstep", CommitId("1" * 40), **values)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message):
        await github.post_check(REPOSITORY, check)
    assert not wire.calls


@pytest.mark.parametrize("marker", ["", "a --> b", "a\nb", "--"])
async def test_a_marker_cannot_break_out(github: GitHubApp, wire: respx.Router, marker: str) -> None:
    with pytest.raises(ValueError, match="cannot be hidden"):
        await github.post_comment(REPOSITORY, PullNumber(1), "x", marker=marker)


async def test_a_comment_beyond_the_limit_is_refused(github: GitHubApp, wire: respx.Router) -> None:
    with pytest.raises(ValueError, match="GitHub takes 65536"):
        await github.post_comment(REPOSITORY, PullNumber(1), "x" * 65_536, marker=MARKER)


async def test_a_description_beyond_the_limit_is_refused(github: GitHubApp) -> None:
    with pytest.raises(ValueError, match="GitHub takes 140"):
        await github.set_deployment_state(
            REPOSITORY, DeploymentId(1), DeploymentState.FAILURE, description="x" * 141, log_url=""
        )


@pytest.mark.parametrize(("title", "body"), [("x" * 257, ""), ("t", "x" * 65_537)])
async def test_a_pull_request_beyond_the_limits_is_refused(github: GitHubApp, title: str, body: str) -> None:
    with pytest.raises(ValueError, match="GitHub takes"):
        await github.open_pull_request(REPOSITORY, head_branch="a", base_branch="b", title=title, body=body)
