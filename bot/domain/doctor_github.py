"""What is wrong with our App on GitHub and with the rules of branches, and how to mend it."""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.app_manifest import CHECK, HOOK_PATH, AppManifest
from bot.domain.doctor import Finding, fail, good, unknown, warn
from bot.domain.doctor_facts import (
    AppFacts,
    BranchFacts,
    HookFacts,
    HostFacts,
    InstallationFacts,
)

_SKEW_REFUSED = 60.0
"""Seconds by which GitHub lets the time in an App's token differ."""
_SKEW_ODD = 20.0
_LEVELS = ("", "read", "write", "admin")
_UNASKED = frozenset({"metadata"})


def judge_host(facts: HostFacts) -> list[Finding]:
    """GitHub: reachable, and of the same time as we."""
    if facts.problem:
        remedy = "check the network, its proxy and certificates, and LOCKSTEP_GITHUB_URL"
        return [fail("github", facts.url, facts.problem, remedy)]
    if not facts.is_github:
        remedy = "set LOCKSTEP_GITHUB_URL to https://api.github.com or https://HOST/api/v3"
        return [fail("github", facts.url, "does not answer as GitHub's API does", remedy)]
    found = [good("github", facts.url, "answers")]
    if facts.ahead is None:
        return [*found, unknown("clock", "", "GitHub did not say its time")]
    way = "ahead of" if facts.ahead > 0 else "behind"
    said = f"our clock is {abs(facts.ahead):.0f} s {way} GitHub's"
    if abs(facts.ahead) >= _SKEW_REFUSED:
        return [*found, fail("clock", "", f"{said}, which refuses our tokens", "set the clock (NTP)")]
    if abs(facts.ahead) >= _SKEW_ODD:
        return [*found, warn("clock", "", said, "set the clock (NTP)")]
    return [*found, good("clock", "", "agrees with GitHub's")]


def judge_app(facts: AppFacts, manifest: AppManifest) -> list[Finding]:
    """The App: id and key are accepted, rights and events are those of `app.yaml`."""
    if facts.permissions is None:
        remedy = "correct LOCKSTEP_APP_ID and LOCKSTEP_PRIVATE_KEY, or run `lockstep setup`"
        return [fail("app", str(facts.id), facts.problem or "GitHub does not know it", remedy)]
    found = _lacking("app", facts.slug, facts.permissions, facts.events, manifest)
    if not found:
        found = [
            good("app", facts.slug, f"id {facts.id} and its key are accepted; rights and events are complete")
        ]
    extra = _lacks(facts.permissions, manifest.permissions)
    extra = [name for name in extra if name.partition(":")[0] not in _UNASKED]
    if extra:
        remedy = f"take it away under Permissions at {facts.page}, unless something else needs it"
        found.append(warn("app", facts.slug, f"has more rights than it needs: {', '.join(extra)}", remedy))
    return found


def judge_installations(
    app: AppFacts, found: tuple[InstallationFacts, ...], manifest: AppManifest
) -> list[Finding]:
    """Where the App is installed: somewhere, not suspended, with everything granted."""
    if not found:
        remedy = f"install it: {app.page}/installations/new"
        return [fail("installation", app.slug, "the App is installed nowhere", remedy)]
    return [finding for item in found for finding in _judge_installation(item, manifest)]


def _judge_installation(facts: InstallationFacts, manifest: AppManifest) -> list[Finding]:
    if facts.suspended:
        remedy = f"an owner of {facts.account} lifts that at {facts.page}"
        return [fail("installation", facts.account, "is suspended", remedy)]
    lacks = _lacking("installation", facts.account, facts.permissions, facts.events, manifest)
    return lacks or [good("installation", facts.account, "everything is granted")]


def _lacking(
    check: str,
    subject: str,
    permissions: Mapping[str, str],
    events: frozenset[str],
    manifest: AppManifest,
) -> list[Finding]:
    """A finding for rights that are missing, and one for events."""
    where = (
        "grant them under Permissions & events of the App's settings"
        if check == "app"
        else "an owner accepts them on the page of the installation, once the App asks for them"
    )
    found = []
    if rights := _lacks(manifest.permissions, permissions):
        found.append(fail(check, subject, f"rights are missing: {', '.join(rights)}", where))
    if names := sorted(manifest.events - events):
        found.append(fail(check, subject, f"events are missing: {', '.join(names)}", where))
    return found


def _lacks(wanted: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    """What of the wanted permissions is not given, as `name: level`."""
    return [
        f"{name}: {level}"
        for name, level in sorted(wanted.items())
        if _rank(level) > _rank(given.get(name, ""))
    ]


def _rank(level: str) -> int:
    return _LEVELS.index(level) if level in _LEVELS else len(_LEVELS)


def judge_hook(facts: HookFacts, public_url: str) -> list[Finding]:
    """Where webhooks go, and whether they arrive."""
    check, wanted = "webhook", f"{public_url}{HOOK_PATH}"
    remedy = f"set the webhook URL to {wanted} in the App's settings"
    if not facts.url:
        remedy = remedy if public_url else "set LOCKSTEP_URL, and the webhook URL in the App's settings"
        return [fail(check, "", "the App has no webhook URL, so nothing is heard", remedy)]
    found = []
    if not public_url:
        found.append(
            warn(check, facts.url, "LOCKSTEP_URL is not set, so nothing tells if this is right", "set it")
        )
    elif facts.url.rstrip("/") != wanted:
        found.append(fail(check, facts.url, "is not where this bot listens", remedy))
    if facts.content_type != "json":
        found.append(
            fail(check, facts.url, "its content type is not application/json", "set it in the App's settings")
        )
    if not facts.verifies:
        found.append(
            warn(check, facts.url, "GitHub does not verify its certificate", "enable SSL verification")
        )
    return found + _judge_deliveries(facts)


def _judge_deliveries(facts: HookFacts) -> list[Finding]:
    failed = [status for status in facts.statuses if not 200 <= status < 300]
    if not failed:
        said = (
            f"the last {len(facts.statuses)} deliveries arrived" if facts.statuses else "nothing was sent yet"
        )
        return [good("webhook", facts.url, said)]
    said = f"{len(failed)} of the last {len(facts.statuses)} deliveries failed, the newest with {_status(failed[0])}"
    if facts.statuses[0] == failed[0]:
        return [fail("webhook", facts.url, said, _how_to_deliver(failed[0]))]
    return [warn("webhook", facts.url, said, "nothing, if the bot was down then: it has them sent again")]


def _status(status: int) -> str:
    return str(status) if status else "no answer"


def _how_to_deliver(status: int) -> str:
    if status == 401:
        return "set LOCKSTEP_WEBHOOK_SECRET to the secret in the App's settings"
    if status in (404, 405):
        return "correct the webhook URL, or have the proxy pass /hooks/github on to the bot"
    return "start the bot, and make the address reachable for GitHub"


def judge_branch(facts: BranchFacts, app_id: int) -> list[Finding]:
    """The rules of a branch that promotions go to."""
    check, subject = "branch rules", f"{facts.repository} {facts.branch}"
    found = _judge_checks(facts, app_id)
    if facts.reviews:
        said = f"{facts.reviews} approving review(s) are required: rules are per branch, but Stages share it"
        found.append(fail(check, subject, said, f"set required approvals to 0; `{CHECK}` counts them"))
    if facts.strict:
        said = "branches must be up to date before merging, so every merge stops all other promotions"
        found.append(fail(check, subject, said, "switch that off; the bot previews again where it matters"))
    if "merge" not in facts.merge_methods or "required_linear_history" in facts.kinds:
        said = "merge commits are not allowed, and the App makes them"
        found.append(fail(check, subject, said, "allow merge commits, and do not require linear history"))
    if "required_signatures" in facts.kinds and facts.bypass != "always":
        remedy = "do not require signed commits there, or let the App pass the rule set"
        found.append(fail(check, subject, "commits must be signed, and the App's pushes are not", remedy))
    if found := found + _judge_bypass(facts):
        return found
    return [good(check, subject, f"`{CHECK}` is required of this App, and nothing stands in its way")]


def _judge_checks(facts: BranchFacts, app_id: int) -> list[Finding]:
    check, subject = "branch rules", f"{facts.repository} {facts.branch}"
    required = [item for item in facts.checks if item.name == CHECK]
    if not required:
        remedy = "import the rule set that `lockstep setup` left in LOCKSTEP_DATA, or require it by hand"
        return [fail(check, subject, f"`{CHECK}` is not required: anybody may merge past it", remedy)]
    if not any(item.app == app_id for item in required):
        others = sorted({str(item.app) if item.app is not None else "any source" for item in required})
        said = f"`{CHECK}` is required from {', '.join(others)}, not from this App, so others can post it"
        return [fail(check, subject, said, f"choose the App (id {app_id}) as the source of the check")]
    return []


def _judge_bypass(facts: BranchFacts) -> list[Finding]:
    check, subject = "branch rules", f"{facts.repository} {facts.branch}"
    ruled = bool(facts.kinds & {"pull_request", "required_status_checks", "update", "merge_queue"})
    if facts.classic:
        said = "has a classic branch protection, of which an App sees only the required checks"
        remedy = "see that it asks for no reviews and not for up-to-date branches, or use a rule set instead"
        return [unknown(check, subject, said, remedy)]
    if facts.pushes and ruled and not facts.bypass:
        return [unknown(check, subject, "GitHub does not tell whether the App may pass the rules")]
    if facts.pushes and ruled and facts.bypass in ("never", "pull_requests_only"):
        said = "the App cannot push its release commit there, so each goes by a follow-up pull request"
        remedy = "say writeBack: PullRequest in the policies, or add the App to the bypass list (always)"
        return [warn(check, subject, said, remedy)]
    if not facts.pushes and facts.bypass == "always":
        said = "the App may pass the rules, although no policy has it push there"
        return [warn(check, subject, said, "take it off the bypass list")]
    return []
