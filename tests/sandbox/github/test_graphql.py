"""GraphQL: the few operations, and GitHub's way of refusing."""

import base64

import pytest

from bot.sandbox.github.rules import BranchRules
from tests.sandbox.github.conftest import Stage

REPO = "/repos/acme/shop"
PULL = """
query($number: Int!) {
  repository(owner: "acme", name: "shop") {
    pullRequest(number: $number) { reviewDecision merge: mergeable headRefOid }
  }
}
"""
COMMIT = "mutation($i: CreateCommitOnBranchInput!) { createCommitOnBranch(input: $i) { commit { oid } } }"
MINIMIZE = """
mutation($i: MinimizeCommentInput!) { minimizeComment(input: $i) { minimizedComment { isMinimized minimizedReason } } }
"""


async def test_a_pull_request_tells_its_decision_and_mergeability(github: Stage) -> None:
    github.github.set_rules("acme/shop", "main", BranchRules(required_reviews=1))
    pull = await github.pull()
    decisions = []
    for _ in range(2):
        await github.github.settled()
        found = (await github.graphql(PULL, number=pull["number"]))["data"]["repository"]["pullRequest"]
        decisions.append((found["reviewDecision"], found["merge"]))
        github.github.actions.approve("rafael", "acme/shop", pull["number"])
    assert decisions == [("REVIEW_REQUIRED", "MERGEABLE"), ("APPROVED", "MERGEABLE")]


async def test_a_commit_is_made_only_on_the_expected_head(github: Stage) -> None:
    head = await github.branch("promote")
    files = {
        "additions": [{"path": "a.txt", "contents": base64.b64encode(b"1").decode()}],
        "deletions": [{"path": "README.md"}],
    }
    asked = {
        "branch": {"repositoryNameWithOwner": "acme/shop", "branchName": "promote"},
        "message": {"headline": "h", "body": "b"},
        "expectedHeadOid": head,
        "fileChanges": files,
    }
    made = (await github.graphql(COMMIT, i=asked))["data"]["createCommitOnBranch"]["commit"]["oid"]
    git = github.git()
    assert git.ref("refs/heads/promote") == made
    assert {entry.path for entry in git.tree(made)} == {"a.txt", "env"}
    seen = await github.bot.ok("GET", f"{REPO}/git/commits/{made}")
    assert (seen["message"], seen["verification"]["verified"]) == ("h\n\nb", True)
    again = await github.graphql(COMMIT, i=asked)
    assert again["errors"][0]["type"] == "STALE_DATA"
    github.github.set_rules("acme/shop", "promote", BranchRules(required_reviews=0))
    refused = await github.graphql(COMMIT, i={**asked, "expectedHeadOid": made})
    assert "Repository rule violations found" in refused["errors"][0]["message"]


async def test_a_comment_is_minimised(github: Stage) -> None:
    pull = await github.pull()
    made = await github.bot.ok("POST", f"{REPO}/issues/{pull['number']}/comments", {"body": "plan"})
    asked = {"subjectId": made["node_id"], "classifier": "OUTDATED"}
    found = (await github.graphql(MINIMIZE, i=asked))["data"]["minimizeComment"]["minimizedComment"]
    assert found == {"isMinimized": True, "minimizedReason": "outdated"}
    wrong = await github.graphql(MINIMIZE, i={**asked, "classifier": "BORING"})
    assert "invalid value" in wrong["errors"][0]["message"]
    nowhere = await github.graphql(MINIMIZE, i={**asked, "subjectId": "IC_kwMA"})
    assert nowhere["errors"][0]["type"] == "NOT_FOUND"
    github.bot = await github.token(permissions={"contents": "write"})
    refused = await github.graphql(MINIMIZE, i=asked)
    assert refused["errors"][0]["type"] == "FORBIDDEN"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        pytest.param(
            "{ viewer { login } }", "Field 'viewer' doesn't exist on type 'Query'", id="unknown at the top"
        ),
        pytest.param(
            '{ repository(owner: "acme", name: "shop") { stars } }',
            "Field 'stars' doesn't exist",
            id="unknown below",
        ),
        pytest.param(
            '{ repository(owner: "acme", name: "shop") }', "must have selections", id="no selection"
        ),
        pytest.param(
            '{ repository(owner: "acme", name: "none") { id } }', "Could not resolve", id="not there"
        ),
        pytest.param(
            "mutation { mergeBranch { id } }", "doesn't exist on type 'Mutation'", id="unknown mutation"
        ),
        pytest.param("mutation { minimizeComment { id } }", "required arguments: input", id="no input"),
        pytest.param("{ repository(owner: $o) { id } }", "not declared", id="an undeclared variable"),
        pytest.param("{ repository(", "Unexpected end", id="cut off"),
        pytest.param("{ ? }", "Parse error", id="not the language"),
        pytest.param(PULL, "required type", id="a missing variable"),
    ],
)
async def test_wrong_queries_are_refused(github: Stage, query: str, words: str) -> None:
    answer = await github.graphql(query)
    assert words in answer["errors"][0]["message"]
