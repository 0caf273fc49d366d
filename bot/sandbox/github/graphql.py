"""The little of GitHub's GraphQL API that a pull request bot uses, answered from the world."""

import asyncio
import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.sandbox.github import pulls, pushes, queue, rules
from bot.sandbox.github.auth import ANONYMOUS, Actor, authenticate, require_permission
from bot.sandbox.github.errors import Refused
from bot.sandbox.github.git import RefChange
from bot.sandbox.github.graphql_language import Field, GraphQLError, read
from bot.sandbox.github.records import Comment, LoggedRequest, PullRequest, Repository
from bot.sandbox.github.rest import body
from bot.sandbox.github.signing import Draft, person_of, server_commit
from bot.sandbox.github.views.lens import from_node_id, node_id
from bot.sandbox.github.world import World

CLASSIFIERS = ("SPAM", "ABUSE", "OFF_TOPIC", "OUTDATED", "DUPLICATE", "RESOLVED", "LOW_QUALITY")


@dataclass(frozen=True, slots=True)
class _Asked:
    """Who asks, of which world, with which arguments."""

    world: World
    actor: Actor
    arguments: Mapping[str, Any]

    def allowed(self, repo: Repository, needs: str, role: str) -> None:
        """FORBIDDEN without the permission, NOT_FOUND for what the caller may not see."""
        try:
            require_permission(self.world, self.actor, repo, needs, role)
        except Refused as refused:
            raise GraphQLError(
                refused.message, "NOT_FOUND" if refused.status == 404 else "FORBIDDEN"
            ) from None

    def node(self, kind: str, id: Any) -> int:
        """The database id of a GraphQL id of the kind."""
        found = from_node_id(id) if isinstance(id, str) else None
        if found is None or found[0] != kind:
            raise GraphQLError(f"Could not resolve to a node with the global id of '{id}'", "NOT_FOUND")
        return found[1]


class GraphQL:
    """Answers `POST /api/graphql`."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def handle(self, request: Request) -> Response:
        """The Starlette endpoint."""
        raw = await request.body()
        return await asyncio.to_thread(self._answer, request.headers.get("authorization"), raw)

    def _answer(self, authorization: str | None, raw: bytes) -> Response:
        with self._world.store.lock:
            try:
                actor = authenticate(self._world, authorization)
                if actor is ANONYMOUS or actor.kind == "app":
                    raise Refused(401, "This endpoint requires you to be authenticated.")
                asked = body.parse(raw)
                body.check(_REQUEST, asked)
            except Refused as refused:
                return JSONResponse(refused.body(), refused.status)
            answer = self._run(actor, asked)
        return JSONResponse(answer)

    def _run(self, actor: Actor, asked: Mapping[str, Any]) -> dict[str, Any]:
        try:
            kind, fields = read(asked["query"], asked.get("variables") or {})
        except GraphQLError as problem:
            return {"errors": [_shown(problem, None)]}
        if kind == "mutation":
            self._world.store.add(
                LoggedRequest(self._world.now(), actor.name, "POST", "graphql:" + fields[0].name, 200)
            )
        known = _MUTATIONS if kind == "mutation" else _QUERIES
        values: dict[str, Any] = {}
        errors = []
        for one in fields:
            try:
                if one.name not in known:
                    title = "Mutation" if kind == "mutation" else "Query"
                    raise GraphQLError(f"Field '{one.name}' doesn't exist on type '{title}'")
                asks = _Asked(self._world, actor, one.arguments)
                values[one.alias] = _pick(known[one.name](asks), one.selected, one.name)
            except GraphQLError as problem:
                values[one.alias] = None
                errors.append(_shown(problem, one.alias))
            except Refused as refused:
                values[one.alias] = None
                errors.append(_shown(GraphQLError(refused.message, "UNPROCESSABLE"), one.alias))
        return {"data": values, **({"errors": errors} if errors else {})}


def _shown(problem: GraphQLError, path: str | None) -> dict[str, Any]:
    shown: dict[str, Any] = {"message": str(problem)}
    if problem.kind:
        shown["type"] = problem.kind
    return shown if path is None else {**shown, "path": [path]}


def _pick(value: Any, selected: tuple[Field, ...], owner: str) -> Any:
    """The selected fields of an object; fields it does not have are refused."""
    if not isinstance(value, dict):
        return value
    if not selected:
        raise GraphQLError(f"Field must have selections (field '{owner}' has no selections)")
    picked = {}
    for one in selected:
        if one.name not in value:
            raise GraphQLError(f"Field '{one.name}' doesn't exist on type '{owner}'")
        found = value[one.name]
        # A nested object with arguments of its own is given as a function of them.
        picked[one.alias] = _pick(found(one.arguments) if callable(found) else found, one.selected, one.name)
    return picked


# ---- queries


def _repository(asked: _Asked) -> dict[str, Any]:
    owner, name = asked.arguments.get("owner"), asked.arguments.get("name")
    try:
        repo = asked.world.repository(str(owner), str(name))
    except Refused:
        raise GraphQLError(
            f"Could not resolve to a Repository with the name '{owner}/{name}'.", "NOT_FOUND"
        ) from None
    asked.allowed(repo, "metadata:read", "read")

    def pull(arguments: Mapping[str, Any]) -> dict[str, Any]:
        asked.allowed(repo, "pull_requests:read", "read")
        number = arguments.get("number")
        try:
            found = asked.world.pull(repo, int(str(number)))
        except (Refused, ValueError):
            raise GraphQLError(
                f"Could not resolve to a PullRequest with the number of {number}.", "NOT_FOUND"
            ) from None
        return _pull(asked.world, repo, found)

    return {
        "id": node_id("R", repo.id),
        "databaseId": repo.id,
        "name": repo.name,
        "nameWithOwner": asked.world.full_name(repo),
        "isPrivate": repo.private,
        "pullRequest": pull,
    }


def _pull(world: World, repo: Repository, pull: PullRequest) -> dict[str, Any]:
    issue = world.issue(repo, pull.number)
    mergeable = {None: "UNKNOWN", True: "MERGEABLE", False: "CONFLICTING"}[pull.mergeable]
    return {
        "id": node_id("PR", pull.id),
        "number": pull.number,
        "title": issue.title,
        "state": "MERGED" if pull.merged else issue.state.upper(),
        "isDraft": pull.draft,
        "headRefOid": pull.head_sha,
        "headRefName": pull.head_ref,
        "baseRefName": pull.base_ref,
        "mergeable": mergeable,
        "mergeStateStatus": pulls.mergeable_state(world, repo, pull).upper(),
        "reviewDecision": rules.review_decision(world, repo, pull),
    }


# ---- mutations


def _input(asked: _Asked, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    given = asked.arguments.get("input")
    if not isinstance(given, dict):
        raise GraphQLError("Field is missing required arguments: input")
    missing = [name for name in required if given.get(name) is None]
    if missing:
        raise GraphQLError(f"Argument '{missing[0]}' on InputObject is required.")
    unknown = sorted(set(given) - {*required, *optional, "clientMutationId"})
    if unknown:
        raise GraphQLError(f"InputObject doesn't accept argument '{unknown[0]}'")
    return given


def _minimize(asked: _Asked) -> dict[str, Any]:
    given = _input(asked, ("subjectId", "classifier"))
    if given["classifier"] not in CLASSIFIERS:
        raise GraphQLError(f"Argument 'classifier' has an invalid value ({given['classifier']}).")
    comment = asked.world.store.get(Comment, asked.node("IC", given["subjectId"]))
    if comment is None:
        raise GraphQLError(
            f"Could not resolve to a node with the global id of '{given['subjectId']}'", "NOT_FOUND"
        )
    repo = asked.world.store.need(Repository, comment.repo_id)
    asked.allowed(repo, "issues:write|pull_requests:write", "write")
    reason = given["classifier"].lower().replace("_", "-")
    asked.world.store.change(comment, minimized_reason=reason)
    return {
        "clientMutationId": given.get("clientMutationId"),
        "minimizedComment": {"isMinimized": True, "minimizedReason": reason, "viewerCanMinimize": True},
    }


def _enqueue(asked: _Asked) -> dict[str, Any]:
    given = _input(asked, ("pullRequestId",), ("expectedHeadOid", "jump"))
    pull = asked.world.store.get(PullRequest, asked.node("PR", given["pullRequestId"]))
    if pull is None:
        raise GraphQLError("Could not resolve to a node with that global id", "NOT_FOUND")
    repo = asked.world.store.need(Repository, pull.repo_id)
    asked.allowed(repo, "contents:write", "write")
    entry = queue.enqueue(asked.world, asked.actor, repo, pull, given.get("expectedHeadOid"))
    return {
        "clientMutationId": given.get("clientMutationId"),
        "mergeQueueEntry": {"id": node_id("MQE", entry.id), "state": "AWAITING_CHECKS", "position": 1},
    }


def _create_commit(asked: _Asked) -> dict[str, Any]:
    given = _input(asked, ("branch", "message", "expectedHeadOid"), ("fileChanges",))
    branch, message, changes = given["branch"], given["message"], given.get("fileChanges") or {}
    owner, _, name = str(branch.get("repositoryNameWithOwner")).partition("/")
    repo = asked.world.repository(owner, name)
    asked.allowed(repo, "contents:write", "write")
    ref = "refs/heads/" + str(branch.get("branchName")).removeprefix("refs/heads/")
    git = asked.world.git(repo)
    old = git.ref(ref)
    if old is None:
        raise GraphQLError(f"Branch {ref} does not exist", "NOT_FOUND")
    if old != given["expectedHeadOid"]:
        raise GraphQLError(
            f'Expected branch to point to "{given["expectedHeadOid"]}" but it did not. Pull and try again.',
            "STALE_DATA",
        )
    tree = git.tree_with(old, _files(changes))
    text = f"{message.get('headline', '')}\n\n{message.get('body', '')}".strip()
    if not text:
        raise GraphQLError("A commit message is required", "UNPROCESSABLE")
    who = person_of(asked.world, asked.actor.account)
    sha = server_commit(asked.world, repo, Draft(tree, [old], text, who))
    pushes.move_ref(asked.world, asked.actor, repo, RefChange(ref, old, sha))
    return {
        "clientMutationId": given.get("clientMutationId"),
        "commit": {"oid": sha, "url": f"/{asked.world.full_name(repo)}/commit/{sha}"},
        "ref": {"name": ref.removeprefix("refs/heads/"), "id": f"REF_kw{repo.id}:{ref}"},
    }


def _files(changes: Mapping[str, Any]) -> dict[str, bytes | None]:
    files: dict[str, bytes | None] = {}
    for item in changes.get("additions") or []:
        try:
            files[item["path"]] = base64.b64decode(item["contents"], validate=True)
        except (binascii.Error, KeyError):
            raise GraphQLError(
                "fileChanges.additions need a path and Base64 contents", "UNPROCESSABLE"
            ) from None
    for item in changes.get("deletions") or []:
        files[item["path"]] = None
    return files


_REQUEST = {"query!": "string", "variables?": "object", "operationName?": "string"}
_QUERIES: dict[str, Callable[[_Asked], dict[str, Any]]] = {"repository": _repository}
_MUTATIONS: dict[str, Callable[[_Asked], dict[str, Any]]] = {
    "minimizeComment": _minimize,
    "createCommitOnBranch": _create_commit,
    "enqueuePullRequest": _enqueue,
}
