"""The bot's own pages: who gets in, who sees what, and that hostile texts do nothing there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from bot.domain.analysis import AnalysisRun, Measurement, Metric, Phase, PrometheusQuery, begin, record
from bot.domain.discovery import Discovery, Find, SubscriptionFinds, encode_discovery
from bot.domain.files import CommitId
from bot.domain.promotion import PromotionId, State, StepStatus
from bot.domain.review import Problem
from bot.ports import Event, StageRecord
from tests.reports import views
from tests.web.site import OPERATIONS, Site, make_site_app, open_site

PAGE = "/promotions/staging.01jx.1101101"
HOSTILE = "<script>alert(1)</script> \x1b[31mred\x1b[0m \u202egnp.exe `</code><img src=x>`"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


@pytest.fixture
async def browser(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    async with site.browser() as opened:
        yield opened


# -- signing in --------------------------------------------------------------------------------------------------


async def test_somebody_who_signs_in_comes_back_to_the_page_that_was_asked_for(
    site: Site, browser: httpx.AsyncClient
) -> None:
    await site.put(views.promotion(), views.preview())
    asked = await browser.get(PAGE)
    assert (asked.status_code, asked.headers["location"]) == (302, f"/sign-in?to={PAGE.replace('/', '%2F')}")
    begun = await browser.get(asked.headers["location"])
    sent = parse_qs(urlsplit(begun.headers["location"]).query)
    assert begun.headers["location"].startswith(f"{site.github_url}/login/oauth/authorize?")
    assert sent["code_challenge_method"] == ["S256"]
    back = await browser.get(await site.agree(begun.headers["location"], "uma"))
    assert (back.status_code, back.headers["location"]) == (302, PAGE)
    page = await browser.get(PAGE)
    assert page.status_code == 200
    assert "solar-marmot waits to go to staging" in page.text
    assert "uma" in page.text


async def test_cookies_are_out_of_reach_of_scripts_and_other_sites(
    site: Site, browser: httpx.AsyncClient
) -> None:
    begun = await browser.get("/sign-in")
    back = await browser.get(await site.agree(begun.headers["location"], "uma"))
    for answer in (begun, back):
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert "path=/" in cookie
    assert "ghu_" not in str(back.headers)


async def test_behind_https_cookies_travel_encrypted_only(tmp_path: Path) -> None:
    async with open_site(tmp_path, "https://bot.example") as site, site.browser() as browser:
        begun = await browser.get("/sign-in")
        assert begun.headers["set-cookie"].startswith("__Host-lockstep_sign_in=")
        assert "Secure" in begun.headers["set-cookie"]


@pytest.mark.parametrize("change", ["another state", "no state", "no cookie", "too late", "used before"])
async def test_a_sign_in_that_was_not_begun_in_this_browser_is_refused(
    site: Site, browser: httpx.AsyncClient, change: str
) -> None:
    begun = await browser.get("/sign-in")
    back = await site.agree(begun.headers["location"], "uma")
    state = parse_qs(urlsplit(back).query)["state"][0]
    match change:
        case "another state":
            back = back.replace(state, "x" * len(state))
        case "no state":
            back = back.replace(f"&state={state}", "")
        case "no cookie":
            browser.cookies.clear()
        case "too late":
            site.clock.turn(minutes=11)
        case _:
            assert (await browser.get(back)).status_code == 302
            browser.cookies.delete("lockstep_session")
    answer = await browser.get(back)
    assert answer.status_code == 400
    assert "lockstep_session=" not in answer.headers.get("set-cookie", "")
    assert (await browser.get("/")).status_code == 302


async def test_a_code_that_github_refuses_signs_nobody_in(site: Site, browser: httpx.AsyncClient) -> None:
    begun = await browser.get("/sign-in")
    state = parse_qs(urlsplit(begun.headers["location"]).query)["state"][0]
    answer = await browser.get(f"/sign-in/callback?code=guessed&state={state}")
    assert answer.status_code == 502
    assert "incorrect or expired" in answer.text
    assert site.credentials.client_secret not in answer.text


async def test_who_refuses_at_github_is_told_so(site: Site, browser: httpx.AsyncClient) -> None:
    begun = await browser.get("/sign-in")
    state = parse_qs(urlsplit(begun.headers["location"]).query)["state"][0]
    answer = await browser.get(f"/sign-in/callback?error=access_denied&state={state}")
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "/promotions/../../x",
        "/sign-out",
        "javascript:1",
    ],
)
async def test_a_sign_in_leads_to_our_own_pages_only(
    site: Site, browser: httpx.AsyncClient, path: str
) -> None:
    begun = await browser.get("/sign-in", params={"to": path})
    back = await browser.get(await site.agree(begun.headers["location"], "uma"))
    assert (back.status_code, back.headers["location"]) == (302, "/")


async def test_a_session_ends_after_eight_hours(site: Site, browser: httpx.AsyncClient) -> None:
    assert (await site.sign_in(browser, "uma")).status_code == 200
    site.clock.turn(hours=7, minutes=59)
    assert (await browser.get("/")).status_code == 200
    site.clock.turn(minutes=1)
    assert (await browser.get("/")).headers["location"] == "/sign-in?to=%2F"
    assert (await browser.get(f"{PAGE}?live=1")).status_code == 401


async def test_a_cookie_that_was_touched_or_made_for_something_else_is_none(
    site: Site, browser: httpx.AsyncClient
) -> None:
    begun = await browser.get("/sign-in")
    pending = begun.cookies["lockstep_sign_in"]
    await site.sign_in(browser, "uma")
    good = browser.cookies["lockstep_session"]
    body, _, mark = good.partition(".")
    for wrong in (f"{body[:-1]}x.{mark}", f"{body}.{'0' * 64}", body, "", "é", pending):
        async with site.browser() as other:
            answer = await other.get("/", headers=[(b"Cookie", f"lockstep_session={wrong}".encode())])
        assert answer.status_code == 302


async def test_signing_out_forgets_the_person(site: Site, browser: httpx.AsyncClient) -> None:
    await site.sign_in(browser, "uma")
    assert "Signed out" in (await browser.post("/sign-out")).text
    assert (await browser.get("/")).status_code == 302
    assert (await browser.get("/sign-out")).status_code == 405


async def test_without_a_client_there_are_no_pages(site: Site) -> None:
    transport = httpx.ASGITransport(make_site_app(site.store, None))
    async with httpx.AsyncClient(transport=transport, base_url=site.url) as browser:
        for path in ("/", PAGE, "/sign-in", "/sign-in/callback", "/static/dashboard.js"):
            assert (await browser.get(path)).status_code == 404


# -- who sees what -------------------------------------------------------------------------------------------------


async def test_who_may_not_read_the_repository_sees_nothing_of_it(
    site: Site, browser: httpx.AsyncClient
) -> None:
    await site.put(views.promotion(), views.preview())
    site.github.set_role(OPERATIONS, "uma", "none")
    hidden = await site.sign_in(browser, "uma", PAGE)
    unknown = await browser.get("/promotions/staging.01jx.7777777")
    assert (hidden.status_code, unknown.status_code) == (404, 404)
    assert hidden.text == unknown.text
    overview = await browser.get("/")
    assert "Nothing to show" in overview.text
    assert "staging" not in overview.text


async def test_a_permission_that_was_taken_away_holds_for_a_minute_at_most(
    site: Site, browser: httpx.AsyncClient
) -> None:
    await site.put(views.promotion(), views.preview())
    assert (await site.sign_in(browser, "uma", PAGE)).status_code == 200
    site.github.set_role(OPERATIONS, "uma", "none")
    site.clock.turn(seconds=61)
    assert (await browser.get(PAGE)).status_code == 404


async def test_a_promotion_of_a_repository_that_the_app_is_not_on_is_hidden(
    site: Site, browser: httpx.AsyncClient
) -> None:
    site.github.create_repository("acme", "secret", {"README.md": b"x"})
    site.github.set_role("acme/secret", "uma", "admin")
    made = replace(views.promotion(), id=PromotionId("staging.02jx.1101101"))
    kept = await site.put(made, views.preview())
    elsewhere = replace(site.target, url=f"{site.github_url}/acme/secret.git")
    assert await site.store.save_promotion(replace(kept, target=elsewhere), expected=kept)
    assert (await site.sign_in(browser, "uma", f"/promotions/{made.id}")).status_code == 404


async def test_while_github_does_not_answer_nothing_is_shown(site: Site, browser: httpx.AsyncClient) -> None:
    await site.put(views.promotion(), views.preview())
    await site.sign_in(browser, "uma", PAGE)
    site.clock.turn(seconds=61)
    site.github.faults.add([{"kind": "5xx-before", "method": "GET", "path": "/permission", "count": 0}])
    answer = await browser.get(PAGE)
    assert answer.status_code == 503
    assert "solar-marmot" not in answer.text


# -- what is shown -------------------------------------------------------------------------------------------------


async def test_the_first_page_tells_what_runs_where_and_why_things_wait(
    site: Site, browser: httpx.AsyncClient
) -> None:
    kept = await site.put(views.promotion(reason="0 of 1 approvals"), views.preview())
    await site.store.add_event(
        Event(site.clock.now(), "acme", "staging", kept.id, "waits", "0 of 1 approvals")
    )
    await site.store.save_stage(StageRecord("acme", "prod", frozen="olivia: incident 7"))
    page = await site.sign_in(browser, "uma")
    for text in ("dev", "staging", "prod", "0 of 1 approvals", "frozen: olivia: incident 7", "1.1.0"):
        assert text in page.text
    assert f'href="{site.github_url}/{OPERATIONS}/pull/7"' in page.text
    assert f'href="{PAGE}"' in page.text


async def test_the_first_page_tells_what_warehouses_found(site: Site, browser: httpx.AsyncClient) -> None:
    await site.put(views.promotion(), views.preview())
    found = Find("v1.2.0", "a" * 40, views.NOW)
    finds = SubscriptionFinds("git", "https://git.example/x", "code", (found,), "left out")
    seen = encode_discovery(Discovery((finds,), "freightCreationCriteria is not met"))
    await site.store.add_discovery("acme", "otel", seen, site.clock.now())
    page = await site.sign_in(browser, "uma")
    for text in (
        "https://git.example/x",
        f'<span title="{"a" * 40} {views.NOW:%Y-%m-%d %H:%M} UTC"><b>v1.2.0</b></span>',
        "left out",
        "freightCreationCriteria is not met",
    ):
        assert text in page.text


async def test_a_promotion_that_failed_shows_the_step_its_log_and_the_commits(
    site: Site, browser: httpx.AsyncClient
) -> None:
    made = views.promotion(
        state=State.FAILED, reason="promote::apply-network failed", merge_commit=views.MERGE, blocked=True
    )
    await site.put(replace(made, release_commit=CommitId("9" * 40)), views.preview())
    failed = views.run(
        "promote::apply-network", StepStatus.FAILED, "quota exceeded", detail={"log": "Error: no room"}
    )
    await site.store.finish_step(made.id, failed)
    page = await site.sign_in(browser, "uma", PAGE)
    for text in (
        "quota exceeded",
        "Error: no room",
        "42 s",
        "did not reach staging",
        "aws_lambda_function.app",
    ):
        assert text in page.text
    for commit in ("d" * 40, "9" * 40):
        assert f"{site.github_url}/{OPERATIONS}/commit/{commit}" in page.text
    assert "&lt;known after apply: lambda_url&gt;" in page.text
    assert views.SENTINEL not in page.text


async def test_an_open_page_asks_again_only_while_something_can_happen(
    site: Site, browser: httpx.AsyncClient
) -> None:
    made = await site.put(views.promotion(running="preview", state=State.QUEUED), views.preview())
    page = await site.sign_in(browser, "uma", PAGE)
    assert 'data-every="2"' in page.text
    assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in page.text
    live = await browser.get(f"{PAGE}?live=1")
    assert "The whole plan" in page.text
    assert "The whole plan" not in live.text
    await site.store.save_promotion(replace(made, state=State.ABORTED, running=""), expected=made)
    assert 'data-every="0"' in (await browser.get(PAGE)).text


async def test_gates_that_cannot_be_read_say_why(site: Site, browser: httpx.AsyncClient) -> None:
    await site.put(views.promotion(), views.preview())
    page = await site.sign_in(browser, "uma", PAGE)
    assert "They cannot be read now" in page.text


async def test_hostile_texts_do_nothing(site: Site, browser: httpx.AsyncClient) -> None:
    problem = Problem("promote::apply-network", HOSTILE, log=HOSTILE)
    record = views.apply(text=HOSTILE, directory=f"./src/{HOSTILE}")
    made = await site.put(
        views.promotion(reason=HOSTILE, actor=HOSTILE), views.preview(record, problems=(problem,))
    )
    await site.store.add_event(Event(site.clock.now(), "acme", "staging", made.id, HOSTILE, HOSTILE))
    await site.store.save_stage(StageRecord("acme", "staging", frozen=HOSTILE, differs=HOSTILE))
    finds = SubscriptionFinds("git", HOSTILE, HOSTILE, (Find(HOSTILE, HOSTILE, None, HOSTILE),), HOSTILE)
    await site.store.add_discovery(
        "acme", "otel", encode_discovery(Discovery((finds,), HOSTILE)), site.clock.now()
    )
    for path in (PAGE, "/"):
        page = await site.sign_in(browser, "uma", path) if path == PAGE else await browser.get(path)
        assert page.status_code == 200
        assert "&lt;script&gt;alert(1)" in page.text
        assert "\\u{202e}" in page.text
        assert "<code>&lt;/code&gt;&lt;img src=x&gt;</code>" in page.text
        for raw in ("<script>", "<img", "\x1b", "\u202e"):
            assert raw not in page.text


async def test_every_answer_has_the_strict_headers(site: Site, browser: httpx.AsyncClient) -> None:
    await site.put(views.promotion(), views.preview())
    found = [
        await site.sign_in(browser, "uma", PAGE),
        await browser.get("/"),
        await browser.get("/promotions/no"),
    ]
    found += [await browser.get("/sign-in/callback"), await browser.post("/sign-out")]
    for answer in found:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "<script>" not in answer.text
        assert " style=" not in answer.text
        assert " onclick" not in answer.text


async def test_style_and_script_are_ours_and_nothing_else_is_served(browser: httpx.AsyncClient) -> None:
    script = await browser.get("/static/dashboard.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert script.headers["x-content-type-options"] == "nosniff"
    for path in ("/static/../dashboard.py", "/static/%2e%2e%2fdashboard.py", "/static/base.html"):
        assert (await browser.get(path)).status_code == 404


async def test_a_verification_is_shown_with_its_measurements_and_its_texts_do_nothing(
    site: Site, browser: httpx.AsyncClient
) -> None:
    made = await site.put(views.promotion(state=State.SUCCEEDED, finished_at=views.NOW), views.preview())
    metric = Metric(
        "error <b>rate</b>", PrometheusQuery("https://p.example", "sum(errors)"), success="result[0] < 1"
    )
    run = AnalysisRun(
        "staging.1", "acme", "staging", "", (made.freight.name,), made.id, views.NOW, metrics=(metric,)
    )
    taken = Measurement(Phase.FAILED, views.NOW, views.NOW, "[7]", "<script>alert(1)</script>")
    await site.store.add_run(record(begin(run, views.NOW), [(metric, taken)]))
    await site.sign_in(browser, "uma", PAGE)
    text = (await browser.get(PAGE)).text
    assert 'aria-label="Verification"' in text
    assert "verification failed" in text
    assert "sum(errors)" in text
    assert "<code>[7]</code>" in text
    assert "error &lt;b&gt;rate&lt;/b&gt;" in text
    assert "<script>alert" not in text
