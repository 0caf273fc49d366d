"""Branch rules: what stands in the way of a merge, and who may pass."""

from typing import Any

import pytest

from bot.sandbox.github.errors import Refused
from bot.sandbox.github.provisioning import NewApp
from bot.sandbox.github.rules import BranchRules, Bypass
from tests.sandbox.github.conftest import Stage

REPO = "/repos/acme/shop"
NAME = "acme/shop"


async def check(github: Stage, sha: str, conclusion: str | None, name: str = "lockstep") -> int:
    """A check run of the App on the commit."""
    body: dict[str, Any] = {"name": name, "head_sha": sha}
    body |= {"conclusion": conclusion} if conclusion else {"status": "in_progress"}
    made = await github.bot.ok("POST", f"{REPO}/check-runs", body)
    return int(made["id"])


async def refusal(github: Stage, number: int, **body: Any) -> str:
    """Why the merge is refused."""
    answer = await github.bot("PUT", f"{REPO}/pulls/{number}/merge", body)
    assert answer.status_code == 405, answer.text
    return str(answer.json()["message"])


@pytest.mark.parametrize(
    ("conclusion", "words"),
    [
        pytest.param(None, "in progress", id="a check in progress does not satisfy"),
        pytest.param("failure", "failing", id="a failed check does not"),
        pytest.param("action_required", "failing", id="one that requires action does not"),
        pytest.param("cancelled", "failing", id="a cancelled one does not"),
        pytest.param("success", "", id="success does"),
        pytest.param("neutral", "", id="neutral does"),
        pytest.param("skipped", "", id="skipped does"),
    ],
)
async def test_a_required_check_has_to_pass(github: Stage, conclusion: str | None, words: str) -> None:
    rules = BranchRules(required_checks=(("lockstep", github.credentials.app_id),))
    github.github.set_rules(NAME, "main", rules)
    pull = await github.pull()
    assert 'Required status check "lockstep" is expected' in await refusal(github, pull["number"])
    await check(github, pull["head"]["sha"], conclusion)
    if words:
        assert words in await refusal(github, pull["number"])
    else:
        await github.bot.ok("PUT", f"{REPO}/pulls/{pull['number']}/merge", {})


async def test_a_check_of_another_app_or_a_status_does_not_satisfy_a_pinned_one(github: Stage) -> None:
    rules = BranchRules(required_checks=(("lockstep", github.credentials.app_id),))
    github.github.set_rules(NAME, "main", rules)
    other = github.github.register_app(NewApp("Imposter", "acme", {"checks": "write"}, (), "", ""))
    installation = github.github.install_app(other.app_id, "acme", ["shop"])
    pull = await github.pull()
    imposter = await github.as_app(other, installation)
    body = {"name": "lockstep", "head_sha": pull["head"]["sha"], "conclusion": "success"}
    await imposter.ok("POST", f"{REPO}/check-runs", body)
    person = github.as_user("rafael")
    await person.ok(
        "POST", f"{REPO}/statuses/{pull['head']['sha']}", {"state": "success", "context": "lockstep"}
    )
    assert "is expected" in await refusal(github, pull["number"])
    github.github.set_rules(NAME, "main", BranchRules(required_checks=(("lockstep", None),)))
    await github.bot.ok("PUT", f"{REPO}/pulls/{pull['number']}/merge", {})


async def test_a_new_run_of_the_same_name_counts_instead_of_the_old_one(github: Stage) -> None:
    github.github.set_rules(NAME, "main", BranchRules(required_checks=(("lockstep", None),)))
    pull = await github.pull()
    await check(github, pull["head"]["sha"], "success")
    await check(github, pull["head"]["sha"], None)
    assert "in progress" in await refusal(github, pull["number"])


async def test_only_writers_approvals_count_and_the_author_cannot_approve(github: Stage) -> None:
    github.github.set_rules(NAME, "main", BranchRules(required_reviews=1))
    await github.branch("promote")
    olivia = github.as_user("olivia")
    pull = await olivia.ok("POST", f"{REPO}/pulls", {"title": "t", "head": "promote", "base": "main"})
    number = pull["number"]
    answer = await olivia("POST", f"{REPO}/pulls/{number}/reviews", {"event": "APPROVE"})
    assert (answer.status_code, answer.json()["errors"]) == (422, ["Can not approve your own pull request"])
    await github.as_user("uma").ok("POST", f"{REPO}/pulls/{number}/reviews", {"event": "APPROVE"})
    assert "At least 1 approving review is required" in await refusal(github, number)
    github.github.actions.request_changes("rafael", NAME, number, "no")
    assert "Changes were requested" in await refusal(github, number)
    github.github.actions.approve("rafael", NAME, number)
    await github.bot.ok("PUT", f"{REPO}/pulls/{number}/merge", {})


async def test_a_comment_does_not_take_an_approval_back_but_a_dismissal_does(github: Stage) -> None:
    github.github.set_rules(NAME, "main", BranchRules(required_reviews=1))
    number = (await github.pull())["number"]
    review = github.github.actions.approve("rafael", NAME, number)
    github.github.actions.review_comment("rafael", NAME, number, "nice")
    seen = await github.bot.ok("GET", f"{REPO}/pulls/{number}")
    await github.github.settled()
    github.github.actions.dismiss_review("olivia", NAME, review.id, "changed my mind")
    assert "approving review" in await refusal(github, number)
    assert seen["number"] == number


async def test_a_push_that_changes_the_diff_dismisses_reviews_where_asked(github: Stage) -> None:
    github.github.set_rules(NAME, "main", BranchRules(required_reviews=1, dismiss_stale_reviews=True))
    pull = await github.pull()
    number = pull["number"]
    github.github.actions.approve("rafael", NAME, number)
    await github.branch("main-2")
    # A commit that changes nothing leaves the diff as it was, and so the approval.
    git = github.git()
    head = git.commit(pull["head"]["sha"])
    empty = git.commit_tree(head.tree, [head.sha], "nothing\n", author=head.author, committer=head.committer)
    await github.bot.ok("PATCH", f"{REPO}/git/refs/heads/promote", {"sha": empty})
    reviews = await github.bot.ok("GET", f"{REPO}/pulls/{number}/reviews")
    assert [(item["state"], item["commit_id"]) for item in reviews] == [("APPROVED", pull["head"]["sha"])]
    await github.branch("promote", {"more.txt": b"x"})
    reviews = await github.bot.ok("GET", f"{REPO}/pulls/{number}/reviews")
    assert [item["state"] for item in reviews] == ["DISMISSED"]
    await github.github.settled()
    assert github.receiver.events("pull_request_review")[-1]["action"] == "dismissed"
    assert "approving review" in await refusal(github, number)


async def test_the_last_pusher_cannot_be_the_only_approver(github: Stage) -> None:
    github.github.set_rules(NAME, "main", BranchRules(required_reviews=1, last_push_approval=True))
    number = (await github.pull())["number"]
    await github.branch("promote", {"more.txt": b"x"}, user="rafael")
    github.github.actions.approve("rafael", NAME, number)
    assert "someone other than the last pusher" in await refusal(github, number)
    github.github.actions.approve("olivia", NAME, number)
    await github.bot.ok("PUT", f"{REPO}/pulls/{number}/merge", {})


async def test_strict_rules_want_the_branch_up_to_date(github: Stage) -> None:
    rules = BranchRules(required_checks=(("lockstep", None),), strict=True)
    github.github.set_rules(NAME, "main", rules)
    pull = await github.pull()
    await check(github, pull["head"]["sha"], "success")
    github.github.set_rules(NAME, "main", BranchRules())
    await github.branch("main", {"other.txt": b"x"})
    github.github.set_rules(NAME, "main", rules)
    assert "not up to date" in await refusal(github, pull["number"])
    await github.github.settled()
    seen = await github.bot.ok("GET", f"{REPO}/pulls/{pull['number']}")
    assert seen["mergeable_state"] == "behind"


@pytest.mark.parametrize(
    ("bypass", "passes"),
    [
        pytest.param(lambda it: Bypass("Integration", it.credentials.app_id), True, id="the App itself"),
        pytest.param(lambda it: Bypass("Integration", 1), False, id="another App"),
        pytest.param(lambda it: Bypass("RepositoryRole", 5), False, id="admins"),
    ],
)
async def test_an_app_passes_rules_only_as_a_bypass_actor(github: Stage, bypass: Any, passes: bool) -> None:
    rules = BranchRules(required_reviews=0, required_checks=(("lockstep", None),), bypass=(bypass(github),))
    github.github.set_rules(NAME, "main", rules)
    await github.branch("ahead")
    sha = github.git().ref("refs/heads/ahead")
    answer = await github.bot("PATCH", f"{REPO}/git/refs/heads/main", {"sha": sha})
    assert answer.status_code == (200 if passes else 422), answer.text
    if not passes:
        assert "Repository rule violations found" in answer.json()["message"]


@pytest.mark.parametrize(
    ("mode", "told"), [("always", "always"), ("pull_request", "pull_requests_only"), ("", "never")]
)
async def test_an_app_is_told_whether_it_may_pass_a_rule_set(github: Stage, mode: str, told: str) -> None:
    bypass = (Bypass("Integration", github.credentials.app_id, mode),) if mode else ()
    github.github.set_rules(NAME, "main", BranchRules(required_reviews=0, bypass=bypass))
    (listed,) = await github.bot.ok("GET", f"{REPO}/rulesets")
    seen = await github.bot.ok("GET", f"{REPO}/rulesets/{listed['id']}")
    assert seen["current_user_can_bypass"] == told
    assert "bypass_actors" not in seen


async def test_a_bypass_for_pull_requests_does_not_open_the_branch_for_pushes(github: Stage) -> None:
    bypass = (Bypass("Integration", github.credentials.app_id, "pull_request"),)
    github.github.set_rules(NAME, "main", BranchRules(required_reviews=2, bypass=bypass))
    pull = await github.pull()
    answer = await github.bot("PATCH", f"{REPO}/git/refs/heads/main", {"sha": pull["head"]["sha"]})
    assert answer.status_code == 422
    await github.bot.ok("PUT", f"{REPO}/pulls/{pull['number']}/merge", {})


async def test_an_admin_merges_past_the_rules_only_with_the_box_ticked(github: Stage) -> None:
    rules = BranchRules(required_reviews=1, bypass=(Bypass("RepositoryRole", 5, "pull_request"),))
    github.github.set_rules(NAME, "main", rules)
    number = (await github.pull())["number"]
    with pytest.raises(Refused, match="approving review"):
        github.github.actions.merge("dana", NAME, number)
    with pytest.raises(Refused, match="approving review"):
        github.github.actions.merge("rafael", NAME, number, bypass=True)
    github.github.actions.merge("dana", NAME, number, bypass=True)
    assert (await github.bot.ok("GET", f"{REPO}/pulls/{number}"))["merged_by"]["login"] == "dana"


async def test_merge_methods_and_linear_history_of_the_branch_hold(github: Stage) -> None:
    github.github.set_rules(NAME, "main", BranchRules(required_reviews=0, merge_methods=("squash",)))
    number = (await github.pull())["number"]
    assert "Merge method rebase is not allowed" in await refusal(github, number, merge_method="rebase")
    github.github.set_rules(NAME, "main", BranchRules(linear_history=True))
    assert "must not contain merge commits" in await refusal(github, number, merge_method="merge")
    await github.bot.ok("PUT", f"{REPO}/pulls/{number}/merge", {"merge_method": "squash"})


async def test_unsigned_commits_are_pushed_nowhere_that_asks_for_signed_ones(github: Stage) -> None:
    github.github.set_rules(NAME, "main", BranchRules(signatures=True))
    base, tree = github.git().ref("refs/heads/main"), github.git().text("rev-parse", "refs/heads/main^{tree}")
    made = {"message": "Signed or not", "tree": tree, "parents": [base]}
    author = {"name": "Lockstep", "email": "bot@example.com"}
    unsigned = await github.bot.ok("POST", f"{REPO}/git/commits", {**made, "author": author})
    answer = await github.bot("PATCH", f"{REPO}/git/refs/heads/main", {"sha": unsigned["sha"]})
    assert answer.status_code == 422
    assert "Commits must have verified signatures" in answer.json()["message"]
    signed = await github.bot.ok("POST", f"{REPO}/git/commits", made)
    await github.bot.ok("PATCH", f"{REPO}/git/refs/heads/main", {"sha": signed["sha"]})


async def test_a_pull_request_with_unsigned_commits_is_only_squashed_and_by_its_author(github: Stage) -> None:
    github.github.set_rules(NAME, "main", BranchRules(signatures=True))
    base, tree = github.git().ref("refs/heads/main"), github.git().text("rev-parse", "refs/heads/main^{tree}")
    author = {"name": "Lockstep", "email": "bot@example.com"}
    body = {"message": "Unsigned", "tree": tree, "parents": [base], "author": author}
    commit = await github.bot.ok("POST", f"{REPO}/git/commits", body)
    await github.bot.ok("POST", f"{REPO}/git/refs", {"ref": "refs/heads/ours", "sha": commit["sha"]})
    opened = await github.bot.ok("POST", f"{REPO}/pulls", {"title": "t", "head": "ours", "base": "main"})
    for method in ("merge", "rebase"):
        assert "verified signatures" in await refusal(github, opened["number"], merge_method=method)
    with pytest.raises(Refused, match="verified signatures"):
        github.github.actions.merge("rafael", NAME, opened["number"], "squash")
    await github.bot.ok("PUT", f"{REPO}/pulls/{opened['number']}/merge", {"merge_method": "squash"})


async def test_the_merge_queue_asks_for_checks_on_the_group_and_then_merges(github: Stage) -> None:
    rules = BranchRules(required_checks=(("lockstep", None),), required_reviews=0, merge_queue=True)
    github.github.set_rules(NAME, "main", rules)
    pull = await github.pull()
    await check(github, pull["head"]["sha"], "success")
    assert "merge queue" in await refusal(github, pull["number"])
    made = await github.graphql(
        "mutation($i: EnqueuePullRequestInput!) { enqueuePullRequest(input: $i) { mergeQueueEntry { id state } } }",
        i={"pullRequestId": pull["node_id"], "expectedHeadOid": pull["head"]["sha"]},
    )
    assert made["data"]["enqueuePullRequest"]["mergeQueueEntry"]["state"] == "AWAITING_CHECKS"
    await github.github.settled()
    group = github.receiver.events("merge_group")[0]
    assert group["action"] == "checks_requested"
    sha = group["merge_group"]["head_sha"]
    await check(github, sha, "success")
    await github.until(lambda: github.git().ref("refs/heads/main") == sha)
    assert (await github.bot.ok("GET", f"{REPO}/pulls/{pull['number']}"))["merged"]
    await github.github.settled()
    assert github.receiver.events("merge_group")[-1]["reason"] == "merged"


async def test_the_queue_throws_out_a_group_whose_check_fails(github: Stage) -> None:
    rules = BranchRules(required_checks=(("lockstep", None),), merge_queue=True)
    github.github.set_rules(NAME, "main", rules)
    pull = await github.pull()
    await check(github, pull["head"]["sha"], "success")
    github.github.actions.enqueue("rafael", NAME, pull["number"])
    await github.github.settled()
    await check(github, github.receiver.events("merge_group")[0]["merge_group"]["head_sha"], "failure")
    await github.until(lambda: len(github.receiver.events("merge_group")) == 2)
    assert github.receiver.events("merge_group")[-1]["reason"] == "invalidated"
    assert not (await github.bot.ok("GET", f"{REPO}/pulls/{pull['number']}"))["merged"]
