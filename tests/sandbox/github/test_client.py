"""A published client, unchanged: githubkit authenticates as the App and works on the simulated GitHub."""

from githubkit import AppAuthStrategy, GitHub

from tests.sandbox.github.conftest import Stage


async def test_githubkit_works_as_the_app(github: Stage) -> None:
    pull = await github.pull()
    strategy = AppAuthStrategy(str(github.credentials.app_id), github.credentials.private_key_pem)
    async with GitHub(strategy, base_url=f"{github.base}/api/v3/", auto_retry=False, http_cache=False) as app:
        about = (await app.arequest("GET", "/app")).json()
        assert about["slug"] == "lockstep"
        async with app.with_auth(app.auth.as_installation(github.installation)) as bot:
            seen = (await bot.rest.pulls.async_get("acme", "shop", pull["number"])).parsed_data
            assert seen.head.sha == pull["head"]["sha"]
            made = await bot.rest.checks.async_create(
                "acme", "shop", name="lockstep", head_sha=seen.head.sha, status="in_progress"
            )
            assert made.parsed_data.name == "lockstep"
            query = 'query { repository(owner: "acme", name: "shop") { nameWithOwner } }'
            assert (await bot.async_graphql(query))["repository"]["nameWithOwner"] == "acme/shop"
            merged = await bot.rest.pulls.async_merge("acme", "shop", pull["number"], sha=seen.head.sha)
            assert merged.parsed_data.merged
