"""What our App is registered with, and the rule set that a governed branch should have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.values import Json

CHECK = "lockstep"
"""The required check."""
HOOK_PATH = "/hooks/github"
CALLBACK_PATH = "/sign-in/callback"
_LONGEST_NAME = 34
"""GitHub's limit for the name of an App."""


@dataclass(frozen=True, slots=True)
class AppManifest:
    """The rights and events of our App: permission to `read` or `write`, and names of events."""

    permissions: Mapping[str, str]
    events: frozenset[str]


def parse_manifest(shipped: Mapping[str, Json]) -> AppManifest:
    """Rights and events as `app.yaml` names them."""
    permissions, events = shipped.get("default_permissions"), shipped.get("default_events")
    return AppManifest(
        {name: str(level) for name, level in permissions.items()} if isinstance(permissions, dict) else {},
        frozenset(map(str, events)) if isinstance(events, list) else frozenset(),
    )


def fill_manifest(
    shipped: Mapping[str, Json], *, url: str, redirect_url: str, organisation: str
) -> Mapping[str, Json]:
    """The manifest to post: `app.yaml` with the bot's address from outside (no slash at its end) in its place.

    Names of Apps are one space for all of GitHub, so an organisation's own is proposed; it can be changed there.
    """
    name = str(shipped["name"])
    return {
        **shipped,
        "name": f"{name} {organisation}"[:_LONGEST_NAME].strip() if organisation else name,
        "url": url,
        "hook_attributes": {"url": f"{url}{HOOK_PATH}", "active": True},
        "redirect_url": redirect_url,
        "callback_urls": [f"{url}{CALLBACK_PATH}"],
    }


def propose_rules(app_id: int, *, pushes: bool = True) -> Mapping[str, Json]:
    """The rule set of a governed branch, in the form that GitHub imports.

    `pushes` tells that a policy has `writeBack: Push`, which the App needs to pass the rules for.
    """
    checks: Json = [{"context": CHECK, "integration_id": app_id}]
    reviews: Json = {
        "required_approving_review_count": 0,
        "dismiss_stale_reviews_on_push": False,
        "require_code_owner_review": False,
        "require_last_push_approval": False,
        "required_review_thread_resolution": False,
    }
    return {
        "name": "Lockstep",
        "target": "branch",
        "enforcement": "active",
        "conditions": {"ref_name": {"include": ["~DEFAULT_BRANCH"], "exclude": []}},
        "rules": [
            {"type": "deletion"},
            {"type": "non_fast_forward"},
            {"type": "pull_request", "parameters": reviews},
            {
                "type": "required_status_checks",
                "parameters": {
                    "strict_required_status_checks_policy": False,
                    "do_not_enforce_on_create": False,
                    "required_status_checks": checks,
                },
            },
        ],
        "bypass_actors": [{"actor_id": app_id, "actor_type": "Integration", "bypass_mode": "always"}]
        if pushes
        else [],
    }
