"""Users, teams, permissions of people, branch rules, and what the server says of itself."""

from bot.sandbox.github import rules
from bot.sandbox.github.accounts import OrganisationMember, Team, TeamMember, User
from bot.sandbox.github.auth import LEVELS, level
from bot.sandbox.github.errors import Refused, forbidden, not_found
from bot.sandbox.github.records import Json, Ruleset
from bot.sandbox.github.rest.call import Answer, Call, Route
from bot.sandbox.github.views.lens import node_id
from bot.sandbox.github.views.people import profile, team, user
from bot.sandbox.github.views.repositories import permissions

RATE_LIMIT = 5000


def get_user(call: Call) -> Answer:
    """An account by its login."""
    return Answer(200, profile(call.lens, call.world.need_user(call.params["username"])))


def get_own_user(call: Call) -> Answer:
    """The caller's own account; Apps have none."""
    if call.actor.kind == "installation":
        raise forbidden()
    return Answer(200, profile(call.lens, call.actor.account))


def collaborator_permission(call: Call) -> Answer:
    """What a person may do on the repository: `permission` knows four levels, `role_name` all."""
    account = call.world.need_user(call.params["username"])
    role = call.world.role(account, call.repo)
    legacy = {"maintain": "write", "triage": "read"}.get(role, role)
    view = {**user(call.lens, account), "permissions": permissions(role), "role_name": role}
    return Answer(200, {"permission": legacy, "role_name": role, "user": view})


# ---- teams


def _may_read_members(call: Call) -> None:
    actor = call.actor
    if actor.kind == "installation":
        account = call.world.user(call.params["org"])
        own = (
            actor.installation is not None
            and account is not None
            and actor.installation.account_id == account.id
        )
        if not own:
            raise not_found()
        if LEVELS.index(level(actor, "members")) < LEVELS.index("read"):
            raise forbidden()
    elif actor.kind != "user":
        raise Refused(401, "Requires authentication")


def _team(call: Call) -> Team:
    _may_read_members(call)
    return call.world.team(call.params["org"], call.params["team_slug"])


def team_membership(call: Call) -> Answer:
    """A person's membership of a team; 404 if there is none."""
    found = _team(call)
    account = call.world.need_user(call.params["username"])
    member = call.world.store.first(TeamMember, team_id=found.id, user_id=account.id)
    if member is None:
        raise not_found()
    url = f"{call.lens.api}/organizations/{found.org_id}/team/{found.id}/memberships/{account.login}"
    return Answer(200, {"url": url, "role": member.role, "state": "active"})


def team_members(call: Call) -> Answer:
    """The members of a team."""
    found = call.world.store.find(TeamMember, team_id=_team(call).id)
    return call.page(found, lambda item: user(call.lens, call.world.store.need(User, item.user_id)))


def list_teams(call: Call) -> Answer:
    """The teams of an organisation."""
    _may_read_members(call)
    org = call.world.need_user(call.params["org"])
    return call.page(call.world.store.find(Team, org_id=org.id), lambda item: team(call.lens, item))


def organisation_membership(call: Call) -> Answer:
    """Whether a person is a member of an organisation: 204, or 404."""
    _may_read_members(call)
    org, account = (call.world.need_user(call.params[name]) for name in ("org", "username"))
    if call.world.store.first(OrganisationMember, org_id=org.id, user_id=account.id) is None:
        raise not_found()
    return Answer(204)


# ---- rules


def branch_rules(call: Call) -> Answer:
    """The rules that hold for a branch, each with the rule set it comes from."""
    found = rules.rulesets_for(call.world, call.repo, call.params["branch"])
    source = {"ruleset_source_type": "Repository", "ruleset_source": call.world.full_name(call.repo)}
    flat = [{**rule, **source, "ruleset_id": item.id} for item in found for rule in item.rules]
    return call.page(flat, lambda rule: rule)


def _ruleset(call: Call, item: Ruleset) -> Json:
    url = f"{call.lens.repo_api(call.repo)}/rulesets/{item.id}"
    return {
        "id": item.id,
        "name": item.name,
        "target": "branch",
        "source_type": "Repository",
        "source": call.world.full_name(call.repo),
        "enforcement": "active",
        "node_id": node_id("RRS", item.id),
        "_links": {
            "self": {"href": url},
            "html": {"href": f"{call.lens.repo_web(call.repo)}/rules/{item.id}"},
        },
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }


def list_rulesets(call: Call) -> Answer:
    """The rule sets of the repository, without their rules."""
    found = call.world.store.find(Ruleset, repo_id=call.repo.id)
    return call.page(found, lambda item: _ruleset(call, item))


def get_ruleset(call: Call) -> Answer:
    """One rule set; who may pass it by is shown only to those who may change it."""
    found = call.world.store.get(Ruleset, call.number("ruleset_id"))
    if found is None or found.repo_id != call.repo.id:
        raise not_found()
    body = {
        **_ruleset(call, found),
        "conditions": {"ref_name": {"include": [f"refs/heads/{found.pattern}"], "exclude": []}},
        "rules": list(found.rules),
        "current_user_can_bypass": _bypass_of(call, found),
    }
    if _is_admin(call):
        body["bypass_actors"] = list(found.bypass)
    return Answer(200, body)


def _bypass_of(call: Call, item: Ruleset) -> str:
    """GitHub's word for when the caller may pass a rule set by."""
    if rules.may_bypass(call.world, item, call.actor, call.repo, merging=False):
        return "always"
    merging = rules.may_bypass(call.world, item, call.actor, call.repo, merging=True)
    return "pull_requests_only" if merging else "never"


def _is_admin(call: Call) -> bool:
    if call.actor.kind == "user":
        return call.world.has_role(call.actor.account, call.repo, "admin")
    return level(call.actor, "administration") == "write"


# ---- the server


def rate_limit(call: Call) -> Answer:
    """The caller's limits; asking costs nothing."""
    remaining = int(call.query["_remaining"])
    core = {
        "limit": RATE_LIMIT,
        "remaining": remaining,
        "reset": int(call.query["_reset"]),
        "used": RATE_LIMIT - remaining,
        "resource": "core",
    }
    other = {**core, "remaining": RATE_LIMIT, "used": 0}
    resources = {
        "core": core,
        "search": {**other, "resource": "search"},
        "graphql": {**other, "resource": "graphql"},
    }
    return Answer(200, {"resources": resources, "rate": core})


def meta(call: Call) -> Answer:
    """Where webhooks come from."""
    del call
    names = ("hooks", "web", "api", "git")
    return Answer(
        200, {"verifiable_password_authentication": False, **{name: ["127.0.0.1/32"] for name in names}}
    )


_REPO = "/repos/{owner}/{repo}"
_TEAM = "/orgs/{org}/teams/{team_slug}"

ROUTES = [
    Route("GET", "/users/{username}", get_user, ""),
    Route("GET", "/user", get_own_user, ""),
    Route("GET", _REPO + "/collaborators/{username}/permission", collaborator_permission, role="write"),
    Route("GET", "/orgs/{org}/teams", list_teams, ""),
    Route("GET", "/orgs/{org}/members/{username}", organisation_membership, ""),
    Route("GET", _TEAM + "/memberships/{username}", team_membership, ""),
    Route("GET", _TEAM + "/members", team_members, ""),
    Route("GET", _REPO + "/rules/branches/{branch}", branch_rules),
    Route("GET", _REPO + "/rulesets", list_rulesets),
    Route("GET", _REPO + "/rulesets/{ruleset_id}", get_ruleset),
    Route("GET", "/rate_limit", rate_limit, ""),
    Route("GET", "/meta", meta, ""),
]
