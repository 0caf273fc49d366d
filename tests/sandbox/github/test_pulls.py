"""Pull requests: what GitHub refuses, what a merge leaves behind, and how they follow their branches."""

import asyncio
from typing import Any

import pytest

from bot.sandbox.github.errors import Refused
from tests.sandbox.github.conftest import Stage

REPO = "/repos/acme/shop"
NAME = "acme/shop"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param({"head": "main"}, "No commits between", id="nothing to merge"),
        pytest.param({"head": "nowhere"}, "head", id="no such head"),
        pytest.param({"base": "nowhere"}, "base", id="no such base"),
        pytest.param({"head": "other:promote"}, "head", id="a fork that does not exist"),
        pytest.param({"title": ""}, "title", id="no title"),
        pytest.param({"title": "t" * 257}, "too long", id="a title that is too long"),
        pytest.param({"body": "b" * 65537}, "maximum is 65536", id="a body that is too long"),
        pytest.param({"draft": "yes"}, "is not a boolean", id="a wrong type"),
        pytest.param({"reviewers": ["rafael"]}, "not a permitted key", id="an unknown field"),
        pytest.param({"head": None}, "is not a string", id="a null"),
    ],
)
async def test_bad_pull_requests_are_refused(github: Stage, body: dict[str, Any], words: str) -> None:
    await github.branch("promote")
    answer = await github.bot(
        "POST", f"{REPO}/pulls", {"title": "t", "head": "promote", "base": "main", **body}
    )
    assert answer.status_code == 422
    assert words in answer.text


async def test_a_twin_is_refused_while_the_first_is_open(github: Stage) -> None:
    first = await github.pull()
    body = {"title": "t", "head": "promote", "base": "main"}
    answer = await github.bot("POST", f"{REPO}/pulls", body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["message"] == "A pull request already exists for acme:promote."
    await github.bot.ok("PATCH", f"{REPO}/pulls/{first['number']}", {"state": "closed"})
    second = await github.bot.ok("POST", f"{REPO}/pulls", {**body, "head": "acme:promote"})
    assert second["number"] == first["number"] + 1
    reopened = await github.bot("PATCH", f"{REPO}/pulls/{first['number']}", {"state": "open"})
    assert reopened.status_code == 422


async def test_the_head_branch_cannot_be_changed_but_the_base_can(github: Stage) -> None:
    number = (await github.pull())["number"]
    answer = await github.bot("PATCH", f"{REPO}/pulls/{number}", {"head": "main"})
    assert answer.status_code == 422
    await github.branch("release", {"r.txt": b"r"})
    changed = await github.bot.ok("PATCH", f"{REPO}/pulls/{number}", {"base": "release"})
    assert changed["base"]["ref"] == "release"
    await github.github.settled()
    event = github.receiver.events("pull_request")[-1]
    assert (event["action"], event["changes"]["base"]["ref"]["from"]) == ("edited", "main")


@pytest.mark.parametrize(
    ("sha", "status", "words"),
    [
        pytest.param("1" * 40, 409, "Head branch was modified", id="a head that is not it"),
        pytest.param(7, 422, "is not a string", id="no SHA at all"),
    ],
)
async def test_a_merge_with_another_head_is_refused(github: Stage, sha: Any, status: int, words: str) -> None:
    number = (await github.pull())["number"]
    answer = await github.bot("PUT", f"{REPO}/pulls/{number}/merge", {"sha": sha})
    assert answer.status_code == status
    assert words in answer.json()["message"]


async def test_a_merge_after_a_push_is_refused_with_the_old_head(github: Stage) -> None:
    pull = await github.pull()
    await github.branch("promote", {"more.txt": b"x"})
    answer = await github.bot("PUT", f"{REPO}/pulls/{pull['number']}/merge", {"sha": pull["head"]["sha"]})
    assert answer.status_code == 409


async def test_drafts_conflicts_and_closed_ones_do_not_merge(github: Stage) -> None:
    await github.branch("draft", {"d.txt": b"d"})
    body = {"title": "t", "head": "draft", "base": "main", "draft": True}
    draft = await github.bot.ok("POST", f"{REPO}/pulls", body)
    answer = await github.bot("PUT", f"{REPO}/pulls/{draft['number']}/merge", {})
    assert (answer.status_code, answer.json()["message"]) == (405, "Pull Request is still a draft")
    pull = await github.pull()
    await github.branch("main", {"env/dev/values.yaml": b"image:\n  tag: 9\n"})
    for method in ("merge", "squash", "rebase"):
        answer = await github.bot("PUT", f"{REPO}/pulls/{pull['number']}/merge", {"merge_method": method})
        assert (answer.status_code, answer.json()["message"]) == (405, "Pull Request is not mergeable")
    await github.github.settled()
    seen = await github.bot.ok("GET", f"{REPO}/pulls/{pull['number']}")
    assert (seen["mergeable"], seen["mergeable_state"]) == (False, "dirty")
    await github.bot.ok("PATCH", f"{REPO}/pulls/{pull['number']}", {"state": "closed"})
    assert (await github.bot("PUT", f"{REPO}/pulls/{pull['number']}/merge", {})).status_code == 405


async def test_methods_that_the_repository_forbids_are_refused(github: Stage) -> None:
    number = (await github.pull())["number"]
    await github.as_user("dana").ok("PATCH", REPO, {"allow_squash_merge": False})
    answer = await github.bot("PUT", f"{REPO}/pulls/{number}/merge", {"merge_method": "squash"})
    assert answer.status_code == 405
    assert "Squash merges are not allowed" in answer.json()["message"]
    answer = await github.bot("PUT", f"{REPO}/pulls/{number}/merge", {"merge_method": "octopus"})
    assert answer.status_code == 422


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_each_method_makes_the_right_commits(github: Stage, method: str) -> None:
    await github.branch("promote", {"one.txt": b"1"})
    await github.branch("promote", {"two.txt": b"2"})
    await github.branch("main", {"other.txt": b"o"})
    body = {"title": "promote", "head": "promote", "base": "main"}
    pull = await github.bot.ok("POST", f"{REPO}/pulls", body)
    git = github.git()
    base = git.ref("refs/heads/main")
    merged = await github.bot.ok(
        "PUT", f"{REPO}/pulls/{pull['number']}/merge", {"merge_method": method, "sha": pull["head"]["sha"]}
    )
    tip = git.commit(merged["sha"])
    assert git.ref("refs/heads/main") == tip.sha
    assert {entry.path for entry in git.tree(tip.sha)} == {
        "README.md",
        "env",
        "one.txt",
        "two.txt",
        "other.txt",
    }
    if method == "merge":
        assert tip.parents == (base, pull["head"]["sha"])
        assert tip.message == f"Merge pull request #{pull['number']} from acme/promote\n\npromote"
    elif method == "squash":
        assert tip.parents == (base,)
        assert tip.message.splitlines()[0] == f"promote (#{pull['number']})"
    else:
        messages = [item.message for item in git.commits(f"{base}..{tip.sha}")]
        assert messages == ["change promote", "change promote"]
    seen = await github.bot.ok("GET", f"{REPO}/pulls/{pull['number']}")
    assert (seen["merged"], seen["merge_commit_sha"]) == (True, tip.sha)
    await github.github.settled()
    closed = github.receiver.events("pull_request")[-1]
    assert (closed["action"], closed["pull_request"]["merged"]) == ("closed", True)
    assert github.receiver.events("push")[-1]["after"] == tip.sha


@pytest.mark.parametrize(("method", "status"), [("merge", 200), ("squash", 200), ("rebase", 405)])
async def test_an_empty_commit_merges_and_squashes_but_does_not_rebase(
    github: Stage, method: str, status: int
) -> None:
    git = github.git()
    base = git.commit(git.ref("refs/heads/main") or "")
    body = {"message": "nothing to prepare", "tree": base.tree, "parents": [base.sha]}
    empty = await github.bot.ok("POST", f"{REPO}/git/commits", body)
    await github.bot.ok("POST", f"{REPO}/git/refs", {"ref": "refs/heads/empty", "sha": empty["sha"]})
    pull = await github.bot.ok("POST", f"{REPO}/pulls", {"title": "t", "head": "empty", "base": "main"})
    assert pull["changed_files"] == 0
    answer = await github.bot("PUT", f"{REPO}/pulls/{pull['number']}/merge", {"merge_method": method})
    assert answer.status_code == status
    if status == 200:
        assert git.commit(answer.json()["sha"]).tree == base.tree


async def test_two_merges_at_once_both_hold_or_one_is_refused(github: Stage) -> None:
    first, second = await github.pull("one"), None
    await github.branch("two", {"two.txt": b"2"})
    second = await github.bot.ok("POST", f"{REPO}/pulls", {"title": "t", "head": "two", "base": "main"})
    answers = await asyncio.gather(
        *(github.bot("PUT", f"{REPO}/pulls/{pull['number']}/merge", {}) for pull in (first, second, first))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 200, 405]
    git = github.git()
    tip = git.ref("refs/heads/main") or ""
    assert all(git.is_ancestor(pull["head"]["sha"], tip) for pull in (first, second))


async def test_mergeability_comes_late_and_anew_after_the_base_moved(github: Stage) -> None:
    pull = await github.pull()
    assert (pull["mergeable"], pull["mergeable_state"]) == (None, "unknown")
    await github.github.settled()
    assert (await github.bot.ok("GET", f"{REPO}/pulls/{pull['number']}"))["mergeable"] is True
    await github.branch("main", {"other.txt": b"o"})
    await github.github.settled()
    seen = await github.bot.ok("GET", f"{REPO}/pulls/{pull['number']}")
    assert seen["mergeable"] is True
    test_merge = github.git().commit(seen["merge_commit_sha"])
    assert test_merge.parents == (github.git().ref("refs/heads/main"), pull["head"]["sha"])


async def test_the_branch_goes_after_the_merge_where_the_repository_says_so(github: Stage) -> None:
    await github.as_user("dana").ok("PATCH", REPO, {"delete_branch_on_merge": True})
    pull = await github.pull()
    await github.bot.ok("PUT", f"{REPO}/pulls/{pull['number']}/merge", {})
    assert (await github.bot("GET", f"{REPO}/git/ref/heads/promote")).status_code == 404
    await github.github.settled()
    assert github.receiver.events("push")[-1]["deleted"]


async def test_deleting_the_branch_closes_and_keeps_the_pull_request_closed(github: Stage) -> None:
    pull = await github.pull()
    await github.bot.ok("DELETE", f"{REPO}/git/refs/heads/promote")
    seen = await github.bot.ok("GET", f"{REPO}/pulls/{pull['number']}")
    assert (seen["state"], seen["merged"]) == ("closed", False)
    answer = await github.bot("PATCH", f"{REPO}/pulls/{pull['number']}", {"state": "open"})
    assert answer.status_code == 422
    await github.branch("promote", {"fresh.txt": b"f"})
    answer = await github.bot("PATCH", f"{REPO}/pulls/{pull['number']}", {"state": "open"})
    assert "force-pushed or recreated" in answer.text


async def test_a_closed_pull_request_is_reopened_with_what_was_pushed_meanwhile(github: Stage) -> None:
    pull = await github.pull()
    github.github.actions.close("rafael", NAME, pull["number"])
    sha = await github.branch("promote", {"more.txt": b"x"})
    seen = await github.bot.ok("GET", f"{REPO}/pulls/{pull['number']}")
    assert seen["head"]["sha"] == pull["head"]["sha"]
    github.github.actions.reopen("rafael", NAME, pull["number"])
    assert (await github.bot.ok("GET", f"{REPO}/pulls/{pull['number']}"))["head"]["sha"] == sha


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_revert_opens_a_pull_request_that_undoes_only_the_merge(github: Stage, method: str) -> None:
    pull = await github.pull()
    with pytest.raises(Refused, match="Only a merged"):
        github.github.actions.revert("rafael", NAME, pull["number"])
    await github.bot.ok("PUT", f"{REPO}/pulls/{pull['number']}/merge", {"merge_method": method})
    await github.branch("main", {"later.txt": b"l"})
    made = github.github.actions.revert("rafael", NAME, pull["number"])
    files = await github.bot.ok("GET", f"{REPO}/pulls/{made.number}/files")
    assert [item["filename"] for item in files] == ["env/dev/values.yaml"]
    assert "+  tag: 1.0.0" in files[0]["patch"]
    seen = await github.bot.ok("GET", f"{REPO}/pulls/{made.number}")
    assert (seen["title"], seen["user"]["login"]) == ('Revert "promote dev"', "rafael")


async def test_update_branch_refuses_a_moved_head_and_nothing_to_do(github: Stage) -> None:
    pull = await github.pull()
    path = f"{REPO}/pulls/{pull['number']}/update-branch"
    assert (await github.bot("PUT", path, {})).status_code == 422
    await github.branch("main", {"other.txt": b"o"})
    assert (await github.bot("PUT", path, {"expected_head_sha": "1" * 40})).status_code == 422
    assert (await github.bot("PUT", path, {"expected_head_sha": pull["head"]["sha"]})).status_code == 202


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        pytest.param("git/refs/heads/main", {"sha": "$orphan"}, 422, "not a fast forward", id="not forward"),
        pytest.param(
            "git/refs/heads/main", {"sha": "1" * 40}, 422, "Object does not exist", id="no such object"
        ),
        pytest.param(
            "git/refs/heads/none", {"sha": "$main"}, 422, "Reference does not exist", id="no such ref"
        ),
    ],
)
async def test_refs_move_only_forward(
    github: Stage, path: str, body: dict[str, str], status: int, words: str
) -> None:
    git = github.git()
    main = git.commit(git.ref("refs/heads/main") or "")
    orphan = git.commit_tree(main.tree, [], "orphan\n", author=main.author, committer=main.committer)
    sent = {"sha": {"$orphan": orphan, "$main": main.sha}.get(body["sha"], body["sha"])}
    answer = await github.bot("PATCH", f"{REPO}/{path}", sent)
    assert (answer.status_code, words in answer.json()["message"]) == (status, True)
    if "forward" in words:
        await github.bot.ok("PATCH", f"{REPO}/{path}", {**sent, "force": True})


@pytest.mark.parametrize(
    ("ref", "words"),
    [
        pytest.param("heads/x", "not a valid ref name", id="without refs"),
        pytest.param("refs/heads/a..b", "not a valid ref name", id="a name that Git refuses"),
        pytest.param("refs/heads/main", "Reference already exists", id="one that exists"),
    ],
)
async def test_bad_refs_are_not_created(github: Stage, ref: str, words: str) -> None:
    sha = github.git().ref("refs/heads/main")
    answer = await github.bot("POST", f"{REPO}/git/refs", {"ref": ref, "sha": sha})
    assert (answer.status_code, words in answer.json()["message"]) == (422, True)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        pytest.param({"path": "../x", "content": "x"}, "malformed path", id="a path that leaves the tree"),
        pytest.param({"path": "/x", "content": "x"}, "malformed path", id="an absolute path"),
        pytest.param({"path": "x"}, "either tree.sha or tree.content", id="no content"),
        pytest.param({"path": "x", "sha": "1" * 40}, "not a valid blob", id="an unknown blob"),
        pytest.param({"path": "x", "content": "x", "mode": "777"}, "not a member", id="an unknown mode"),
    ],
)
async def test_bad_trees_are_refused(github: Stage, entry: dict[str, str], words: str) -> None:
    answer = await github.bot("POST", f"{REPO}/git/trees", {"tree": [entry]})
    assert (answer.status_code, words in answer.json()["message"]) == (422, True)
