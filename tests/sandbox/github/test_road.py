"""The road of one pull request: open, review, check, merge, with the webhooks it causes."""

from tests.sandbox.github.conftest import Stage


async def test_a_pull_request_is_opened_reviewed_checked_and_merged(github: Stage) -> None:
    pull = await github.pull()
    number, head = pull["number"], pull["head"]["sha"]
    assert pull["mergeable"] is None
    run = await github.bot.ok(
        "POST",
        "/repos/acme/shop/check-runs",
        {"name": "lockstep", "head_sha": head, "status": "completed", "conclusion": "success"},
    )
    assert run["app"]["id"] == github.credentials.app_id
    github.github.actions.approve("rafael", "acme/shop", number)
    await github.github.settled()
    seen = await github.bot.ok("GET", f"/repos/acme/shop/pulls/{number}")
    assert (seen["mergeable"], seen["mergeable_state"]) == (True, "clean")
    merged = await github.bot.ok("PUT", f"/repos/acme/shop/pulls/{number}/merge", {"sha": head})
    after = await github.bot.ok("GET", "/repos/acme/shop/git/ref/heads/main")
    assert after["object"]["sha"] == merged["sha"]
    await github.github.settled()
    names = github.receiver.names()
    for wanted in (
        "installation.created",
        "push",
        "check_suite.requested",
        "pull_request.opened",
        "check_run.created",
        "check_run.completed",
        "pull_request_review.submitted",
        "pull_request.closed",
    ):
        assert wanted in names
