"""Git over smart HTTP with the real client: tokens, protected branches, pull refs, events."""

import asyncio
import base64
import os
from pathlib import Path

from bot.sandbox.github.rules import BranchRules
from tests.sandbox.github.conftest import Stage


async def git(stage: Stage, folder: Path, token: str, *args: str) -> tuple[int, str]:
    """Run git with the token; its status and all it wrote."""
    basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": "3" if token else "2",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "Test",
        "GIT_CONFIG_KEY_1": "user.email",
        "GIT_CONFIG_VALUE_1": "test@example.com",
        "GIT_CONFIG_KEY_2": "http.extraHeader",
        "GIT_CONFIG_VALUE_2": f"Authorization: Basic {basic}",
    }
    child = await asyncio.create_subprocess_exec(
        "git",
        *args,
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await child.communicate()
    return child.returncode or 0, out.decode()


async def clone(stage: Stage, folder: Path, token: str, *options: str) -> Path:
    """A clone of the repository."""
    status, said = await git(
        stage, folder, token, "clone", "-q", *options, f"{stage.base}/acme/shop.git", "work"
    )
    assert status == 0, said
    return folder / "work"


async def commit(stage: Stage, work: Path, name: str, text: str) -> str:
    """Commit a file and return the commit."""
    path = work / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert (await git(stage, work, "", "add", "."))[0] == 0
    assert (await git(stage, work, "", "commit", "-q", "-m", f"change {name}"))[0] == 0
    return (await git(stage, work, "", "rev-parse", "HEAD"))[1].strip()


async def test_a_push_moves_the_pull_request_and_tells_the_app(github: Stage, tmp_path: Path) -> None:
    pull = await github.pull()
    work = await clone(github, tmp_path, github.bot.token, "-b", "promote")
    sha = await commit(github, work, "new.txt", "x" * 3_000_000)
    status, said = await git(github, work, github.bot.token, "push", "-q", "origin", "promote")
    assert status == 0, said
    seen = await github.bot.ok("GET", f"/repos/acme/shop/pulls/{pull['number']}")
    assert seen["head"]["sha"] == sha
    await github.github.settled()
    event = github.receiver.events("pull_request")[-1]
    assert (event["action"], event["before"], event["after"]) == ("synchronize", pull["head"]["sha"], sha)
    push = github.receiver.events("push")[-1]
    assert (push["ref"], push["after"]) == ("refs/heads/promote", sha)
    assert push["commits"][0]["added"] == ["new.txt"]
    assert push["sender"]["login"] == "lockstep[bot]"
    assert push["installation"]["id"] == github.installation
    suites = github.receiver.events("check_suite")
    assert suites[-1]["check_suite"]["head_sha"] == sha
    status, listed = await git(github, work, github.bot.token, "ls-remote", "origin", "refs/pull/*")
    assert f"{sha}\trefs/pull/{pull['number']}/head" in listed
    assert f"refs/pull/{pull['number']}/merge" in listed


async def test_tokens_are_asked_for(github: Stage, tmp_path: Path) -> None:
    url = f"{github.base}/acme/shop.git"
    status, said = await git(github, tmp_path, "", "ls-remote", url)
    assert status == 128
    assert "terminal prompts disabled" in said
    status, said = await git(github, tmp_path, "ghs_wrong", "ls-remote", url)
    assert status == 128
    status, said = await git(github, tmp_path, github.bot.token, "ls-remote", f"{github.base}/acme/none.git")
    assert status == 128
    assert "not found" in said
    reader = github.github.create_token("uma")
    assert (await git(github, tmp_path, reader, "ls-remote", url))[0] == 0


async def test_readers_cannot_push(github: Stage, tmp_path: Path) -> None:
    work = await clone(github, tmp_path, github.bot.token)
    await commit(github, work, "new.txt", "x")
    narrow = await github.token(permissions={"contents": "read"})
    tokens = (
        narrow.token,
        github.github.create_token("uma"),
        github.github.create_token("dana", read_only=True),
    )
    for token in tokens:
        status, said = await git(github, work, token, "push", "origin", "HEAD:refs/heads/x")
        assert status != 0
        assert "403" in said
        assert "Write access to repository not granted" in said
    none = await github.token(permissions={"checks": "read"})
    assert (await git(github, work, none.token, "fetch"))[0] != 0


async def test_protected_branches_refuse_pushes(github: Stage, tmp_path: Path) -> None:
    github.github.set_rules(
        "acme/shop", "main", BranchRules(required_checks=(("lockstep", None),), required_reviews=0)
    )
    work = await clone(github, tmp_path, github.bot.token)
    before = github.git().ref("refs/heads/main")
    await commit(github, work, "new.txt", "x")
    status, said = await git(github, work, github.bot.token, "push", "origin", "HEAD:main")
    assert status != 0
    assert "GH013: Repository rule violations found for refs/heads/main" in said
    assert "Changes must be made through a pull request" in said
    assert 'Required status check "lockstep" is expected' in said
    assert github.git().ref("refs/heads/main") == before


async def test_force_pushes_and_deletions_of_a_protected_branch_are_refused(
    github: Stage, tmp_path: Path
) -> None:
    await github.branch("release")
    github.github.set_rules("acme/shop", "release", BranchRules())
    work = await clone(github, tmp_path, github.bot.token)
    await commit(github, work, "new.txt", "x")
    status, said = await git(github, work, github.bot.token, "push", "-f", "origin", "HEAD:release")
    assert status != 0
    assert "Cannot force-push to this branch" in said
    status, said = await git(github, work, github.bot.token, "push", "origin", ":release")
    assert status != 0
    assert "Cannot delete this branch" in said
    status, said = await git(github, work, github.bot.token, "push", "origin", ":main")
    assert status != 0
    assert "refusing to delete the current branch" in said


async def test_pull_refs_are_read_only(github: Stage, tmp_path: Path) -> None:
    pull = await github.pull()
    work = await clone(github, tmp_path, github.bot.token)
    sha = await commit(github, work, "new.txt", "x")
    ref = f"refs/pull/{pull['number']}/head"
    status, said = await git(github, work, github.bot.token, "push", "-f", "origin", f"HEAD:{ref}")
    assert status != 0
    assert "deny updating a hidden ref" in said
    answer = await github.bot(
        "POST", "/repos/acme/shop/git/refs", {"ref": "refs/pull/77/head", "sha": pull["base"]["sha"]}
    )
    assert answer.status_code == 422
    assert (await git(github, work, github.bot.token, "fetch", "-q", "origin", ref))[0] == 0
    assert github.git().ref(ref) == pull["head"]["sha"] != sha


async def test_an_app_needs_the_workflows_permission_for_workflow_files(
    github: Stage, tmp_path: Path
) -> None:
    work = await clone(github, tmp_path, github.bot.token)
    await commit(github, work, ".github/workflows/ci.yml", "on: push\n")
    status, said = await git(github, work, github.bot.token, "push", "origin", "HEAD:refs/heads/x")
    assert status != 0
    assert "without `workflows` permission" in said
    person = github.github.create_token("rafael")
    assert (await git(github, work, person, "push", "-q", "origin", "HEAD:refs/heads/x"))[0] == 0


async def test_partial_clones_work(github: Stage, tmp_path: Path) -> None:
    work = await clone(
        github, tmp_path, github.bot.token, "--filter=blob:none", "--depth", "1", "--no-checkout"
    )
    status, said = await git(github, work, github.bot.token, "show", "HEAD:env/dev/values.yaml")
    assert (status, said) == (0, "image:\n  tag: 1.0.0\n")


async def test_a_lease_that_is_stale_is_refused(github: Stage, tmp_path: Path) -> None:
    await github.branch("promote")
    work = await clone(github, tmp_path, github.bot.token)
    await commit(github, work, "new.txt", "x")
    lease = f"--force-with-lease=refs/heads/promote:{'1' * 40}"
    status, said = await git(github, work, github.bot.token, "push", lease, "origin", "HEAD:promote")
    assert status != 0
    assert "stale info" in said


async def test_a_push_that_is_already_in_the_base_marks_the_pull_request_merged(
    github: Stage, tmp_path: Path
) -> None:
    pull = await github.pull()
    work = await clone(github, tmp_path, github.bot.token)
    status, said = await git(github, work, github.bot.token, "push", "-q", "origin", "origin/promote:main")
    assert status == 0, said
    seen = await github.bot.ok("GET", f"/repos/acme/shop/pulls/{pull['number']}")
    assert (seen["merged"], seen["state"]) == (True, "closed")


async def test_pushes_are_logged(github: Stage, tmp_path: Path) -> None:
    work = await clone(github, tmp_path, github.bot.token)
    await commit(github, work, "new.txt", "x")
    await git(github, work, github.bot.token, "push", "-q", "origin", "HEAD:refs/heads/x")
    github.github.set_rules("acme/shop", "x", BranchRules(required_reviews=0))
    await commit(github, work, "newer.txt", "x")
    await git(github, work, github.bot.token, "push", "-q", "origin", "HEAD:refs/heads/x")
    found = github.github.requests()[-2:]
    path = "/acme/shop.git/git-receive-pack"
    assert [(item.actor, item.path, item.status) for item in found] == [
        ("lockstep[bot]", path, 200),
        ("lockstep[bot]", path, 422),
    ]
