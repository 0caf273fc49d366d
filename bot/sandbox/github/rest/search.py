"""The search for issues, by the qualifiers that are understood here; others are refused rather than passed over."""

import re

from bot.sandbox.github.accounts import User
from bot.sandbox.github.auth import level
from bot.sandbox.github.errors import Refused, invalid
from bot.sandbox.github.records import Issue, Repository
from bot.sandbox.github.rest.call import Answer, Call, Route
from bot.sandbox.github.views.issues import issue

_TERM = re.compile(r'(-?)(?:(\w+):)?("[^"]*"|\S+)')
_KINDS = {"issue": False, "pr": True, "pull-request": True}


def search_issues(call: Call) -> Answer:
    """Issues and pull requests of the repositories that the query names, newest first."""
    query = call.query.get("q", "")
    terms = [(match[1] == "-", match[2] or "", match[3].strip('"')) for match in _TERM.finditer(query)]
    if not terms:
        raise invalid("Search", "q", code="missing")
    if call.actor.kind == "installation" and not any(
        key == "is" and value in _KINDS for _, key, value in terms
    ):
        # GitHub Apps must say which of the two they look for.
        raise Refused(422, "Query must include 'is:issue' or 'is:pull-request'")
    named = [value for _, key, value in terms if key == "repo"]
    found = [
        (repo, item)
        for repo in _repositories(call, named)
        for item in reversed(call.world.store.find(Issue, repo_id=repo.id))
        if all(_fits(call, item, key, value) != negated for negated, key, value in terms if key != "repo")
    ]
    page = call.page(found, lambda one: {**issue(call.lens, *one), "score": 1.0}, wrap="items")
    return Answer(
        page.status, {**page.body, "incomplete_results": False, "search_type": "lexical"}, page.headers
    )


def _repositories(call: Call, named: list[str]) -> list[Repository]:
    everything = call.world.store.find(Repository)
    wanted = [repo for repo in everything if call.world.full_name(repo) in named]
    seen = [repo for repo in wanted if _may_read(call, repo)]
    if len(seen) < len(set(named)) or not named:
        raise invalid(
            "Search",
            "q",
            message="The listed users and repositories cannot be searched either because the resources do not exist "
            "or you do not have permission to view them.",
        )
    return seen


def _may_read(call: Call, repo: Repository) -> bool:
    actor = call.actor
    if actor.installation is not None:
        granted = level(actor, "issues") in ("read", "write")
        inside = actor.repo_ids is None or repo.id in actor.repo_ids
        return granted and inside and call.world.covers(actor.installation, repo)
    return call.world.has_role(call.actor.account, repo, "read")


def _fits(call: Call, item: Issue, key: str, value: str) -> bool:
    match key:
        case "is" if value in _KINDS:
            return item.is_pull == _KINDS[value]
        case "is" | "state" if value in ("open", "closed"):
            return item.state == value
        case "label":
            return value in item.labels
        case "author":
            account = call.world.store.get(User, item.author_id)
            return account is not None and account.login == value
        case "":
            return value.lower() in f"{item.title} {item.body or ''}".lower()
    raise invalid("Search", "q", message=f"the qualifier {key}:{value} is not understood")


ROUTES = [Route("GET", "/search/issues", search_issues, "")]
