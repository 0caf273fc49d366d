"""Issues, comments, reactions and labels."""

from bot.sandbox.github import discussion, pulls
from bot.sandbox.github.auth import Actor, level
from bot.sandbox.github.errors import Refused, forbidden, invalid, not_found
from bot.sandbox.github.records import Comment, Issue, Json, Label, Reaction
from bot.sandbox.github.rest.call import Answer, Call, Route
from bot.sandbox.github.views.issues import REACTIONS, comment, issue, reaction
from bot.sandbox.github.views.repositories import label

_BOTH = "issues:{0}|pull_requests:{0}"
READ, WRITE = _BOTH.format("read"), _BOTH.format("write")


def _issue(call: Call) -> Issue:
    return _allowed(call, call.world.issue(call.repo, call.number("number")), "read")


def _allowed(call: Call, item: Issue, wanted: str) -> Issue:
    """403 if an App's token is for the other kind: `issues` opens both, `pull_requests` only pull requests."""
    if not item.is_pull and not _has_issues(call.actor, wanted):
        raise forbidden()
    return item


def _has_issues(actor: Actor, wanted: str) -> bool:
    levels = ("write",) if wanted == "write" else ("read", "write")
    return actor.kind != "installation" or level(actor, "issues") in levels


def _writable(call: Call) -> Issue:
    return _allowed(call, call.world.issue(call.repo, call.number("number")), "write")


def list_issues(call: Call) -> Answer:
    """Issues and pull requests, newest first; `state`, `labels`, `creator` and `since` select."""
    query = call.query
    labels = [name for name in query.get("labels", "").split(",") if name]
    state = query.get("state", "open")
    creator = call.world.user(query["creator"]) if "creator" in query else None
    found = [
        item
        for item in reversed(call.world.store.find(Issue, repo_id=call.repo.id))
        if state in ("all", item.state)
        and set(labels) <= set(item.labels)
        and ("creator" not in query or (creator is not None and item.author_id == creator.id))
        and item.updated_at >= query.get("since", "")
        and (item.is_pull or _has_issues(call.actor, "read"))
    ]
    return call.page(found, lambda item: issue(call.lens, call.repo, item))


def create_issue(call: Call) -> Answer:
    """Open an issue."""
    fields = call.fields
    new = discussion.NewIssue(
        str(fields["title"]),
        fields.get("body"),
        tuple(_label_names(fields.get("labels", []))),
        tuple(fields.get("assignees", [])),
    )
    item = discussion.open_issue(call.world, call.actor, call.repo, new)
    return Answer(201, issue(call.lens, call.repo, item))


def _label_names(given: list[str | Json]) -> list[str]:
    return [item if isinstance(item, str) else str(item.get("name", "")) for item in given]


def get_issue(call: Call) -> Answer:
    """One issue or the issue half of a pull request."""
    return Answer(200, issue(call.lens, call.repo, _issue(call)))


def update_issue(call: Call) -> Answer:
    """Change title, body, state, labels or assignees."""
    item = _writable(call)
    account = call.actor.account
    own = item.author_id == account.id
    if call.actor.kind == "user" and not own and not call.world.has_role(account, call.repo, "triage"):
        raise forbidden("Must have admin rights to Repository.")
    changes: Json = {name: call.fields[name] for name in ("title", "body") if name in call.fields}
    if "labels" in call.fields:
        changes["labels"] = tuple(_label_names(call.fields["labels"]))
    if "assignees" in call.fields:
        changes["assignees"] = tuple(call.world.need_user(login).id for login in call.fields["assignees"])
    if "state" in call.fields:
        if item.is_pull:
            pull = call.world.pull(call.repo, item.number)
            pulls.set_state(call.world, call.actor, call.repo, pull, call.fields["state"])
        else:
            changes |= {"state": call.fields["state"], "state_reason": call.fields.get("state_reason")}
    if changes:
        discussion.edit_issue(call.world, call.actor, call.repo, item, changes)
    return Answer(200, issue(call.lens, call.repo, call.world.issue(call.repo, item.number)))


# ---- comments


def list_comments(call: Call) -> Answer:
    """The comments of an issue or pull request, oldest first; `since` is the time of the last change."""
    item, since = _issue(call), call.query.get("since", "")
    found = call.world.store.find(Comment, repo_id=call.repo.id, number=item.number)
    return call.page(
        [one for one in found if one.updated_at >= since], lambda one: comment(call.lens, call.repo, one)
    )


def list_all_comments(call: Call) -> Answer:
    """All comments of the repository; `since` is the time of the last change."""
    since, by_change = call.query.get("since", ""), call.query.get("sort") == "updated"
    found = [
        one
        for one in call.world.store.find(Comment, repo_id=call.repo.id)
        if one.updated_at >= since
        and (call.world.issue(call.repo, one.number).is_pull or _has_issues(call.actor, "read"))
    ]
    found.sort(
        key=lambda one: (one.updated_at if by_change else one.created_at, one.id),
        reverse=call.query.get("direction") == "desc",
    )
    return call.page(found, lambda one: comment(call.lens, call.repo, one))


def create_comment(call: Call) -> Answer:
    """Comment on an issue or pull request."""
    made = discussion.add_comment(call.world, call.actor, call.repo, _writable(call), call.fields["body"])
    return Answer(201, comment(call.lens, call.repo, made))


def _comment(call: Call, wanted: str = "read") -> Comment:
    found = call.world.store.get(Comment, call.number("comment_id"))
    if found is None or found.repo_id != call.repo.id:
        raise not_found()
    _allowed(call, call.world.issue(call.repo, found.number), wanted)
    return found


def get_comment(call: Call) -> Answer:
    """One comment."""
    return Answer(200, comment(call.lens, call.repo, _comment(call)))


def update_comment(call: Call) -> Answer:
    """Replace the text of a comment."""
    found = _comment(call, "write")
    item = discussion.edit_comment(call.world, call.actor, call.repo, found, call.fields["body"])
    return Answer(200, comment(call.lens, call.repo, item))


def delete_comment(call: Call) -> Answer:
    """Remove a comment."""
    discussion.delete_comment(call.world, call.actor, call.repo, _comment(call, "write"))
    return Answer(204)


# ---- reactions


def react_to_comment(call: Call) -> Answer:
    """React to a comment; 200 instead of 201 if the caller already did."""
    return _react(call, ("comment", _comment(call, "write").id))


def react_to_issue(call: Call) -> Answer:
    """React to an issue or pull request; 200 instead of 201 if the caller already did."""
    return _react(call, ("issue", _writable(call).id))


def _react(call: Call, subject: tuple[str, int]) -> Answer:
    made, new = discussion.react(call.world, call.actor, subject, call.fields["content"])
    return Answer(201 if new else 200, reaction(call.lens, made))


def list_comment_reactions(call: Call) -> Answer:
    """The reactions to a comment."""
    return _reactions(call, "comment", _comment(call).id)


def list_issue_reactions(call: Call) -> Answer:
    """The reactions to an issue or pull request."""
    return _reactions(call, "issue", _issue(call).id)


def _reactions(call: Call, subject: str, id: int) -> Answer:
    found = call.world.store.find(Reaction, subject=subject, subject_id=id)
    content = call.query.get("content")
    chosen = [item for item in found if content in (None, item.content)]
    return call.page(chosen, lambda item: reaction(call.lens, item))


def delete_comment_reaction(call: Call) -> Answer:
    """Take a reaction back."""
    found = call.world.store.get(Reaction, call.number("reaction_id"))
    if found is None or (found.subject, found.subject_id) != ("comment", _comment(call).id):
        raise not_found()
    if found.user_id != call.actor.account.id:
        raise forbidden()
    call.world.store.remove(found)
    return Answer(204)


# ---- labels


def _names(call: Call) -> list[str]:
    given = call.fields.get("labels", [])
    return list(dict.fromkeys(_label_names(given)))


def _set_labels(call: Call, item: Issue, names: list[str]) -> Answer:
    with call.world.store.transaction():
        discussion.ensure_labels(call.world, call.repo, names)
        before = set(item.labels)
        item = call.world.store.change(item, labels=tuple(names), updated_at=call.world.now())
        for word, gone in (("labeled", set(names) - before), ("unlabeled", before - set(names))):
            for name in sorted(gone):
                _tell_label(call, item, word, name)
    return call.page(names, lambda name: label(call.lens, call.repo, name))


def _tell_label(call: Call, item: Issue, action: str, name: str) -> None:
    if item.is_pull:
        pull = call.world.pull(call.repo, item.number)
        more = {"label": label(call.lens, call.repo, name)}
        pulls.tell(call.world, call.actor, pull, action, more)
    else:
        discussion.tell_issue(call.world, call.actor, call.repo, item, action)


def list_issue_labels(call: Call) -> Answer:
    """The labels of an issue or pull request."""
    return call.page(_issue(call).labels, lambda name: label(call.lens, call.repo, name))


def add_labels(call: Call) -> Answer:
    """Add labels; those the repository does not have are made."""
    item = _writable(call)
    return _set_labels(call, item, list(dict.fromkeys([*item.labels, *_names(call)])))


def replace_labels(call: Call) -> Answer:
    """Have exactly these labels."""
    return _set_labels(call, _writable(call), _names(call))


def remove_label(call: Call) -> Answer:
    """Take one label away; 404 if it is not there."""
    item, name = _writable(call), call.params["name"]
    if name not in item.labels:
        raise Refused(404, "Label does not exist")
    return _set_labels(call, item, [one for one in item.labels if one != name])


def list_labels(call: Call) -> Answer:
    """The labels of the repository."""
    found = call.world.store.find(Label, repo_id=call.repo.id)
    return call.page(found, lambda item: label(call.lens, call.repo, item.name))


def create_label(call: Call) -> Answer:
    """Make a label; 422 if there is one of the name."""
    name, color = call.fields["name"], call.fields.get("color", "ededed")
    if call.world.store.first(Label, repo_id=call.repo.id, name=name):
        raise invalid("Label", "name", code="already_exists")
    if len(color) != 6 or any(letter not in "0123456789abcdefABCDEF" for letter in color):
        raise invalid("Label", "color")
    if not name.strip() or len(name) > 50:
        raise invalid("Label", "name")
    call.world.store.add(Label(call.repo.id, name, color.lower(), call.fields.get("description")))
    return Answer(201, label(call.lens, call.repo, name))


_REPO = "/repos/{owner}/{repo}"
_ONE = _REPO + "/issues/{number}"
_COMMENT = _REPO + "/issues/comments/{comment_id}"
_LABELS = {"labels": ["string/object"]}
_BODY = {"body!": "string"}
_CONTENT = {"content!": REACTIONS}
_EDIT = {
    "title?": "string/integer",
    "body?": "string",
    "state": ("open", "closed"),
    "state_reason?": ("completed", "not_planned", "duplicate", "reopened"),
    "labels": ["string/object"],
    "assignees": ["string"],
}

ROUTES = [
    Route("GET", _REPO + "/issues", list_issues, READ),
    Route(
        "POST",
        _REPO + "/issues",
        create_issue,
        "issues:write",
        body={
            "title!": "string/integer",
            "body": "string",
            "labels": ["string/object"],
            "assignees": ["string"],
        },
    ),
    Route("GET", _REPO + "/issues/comments", list_all_comments, READ),
    Route("GET", _COMMENT, get_comment, READ),
    Route("PATCH", _COMMENT, update_comment, WRITE, body=_BODY),
    Route("DELETE", _COMMENT, delete_comment, WRITE),
    Route("GET", _COMMENT + "/reactions", list_comment_reactions, READ),
    Route("POST", _COMMENT + "/reactions", react_to_comment, WRITE, body=_CONTENT),
    Route("DELETE", _COMMENT + "/reactions/{reaction_id}", delete_comment_reaction, WRITE),
    Route("GET", _ONE, get_issue, READ),
    Route("PATCH", _ONE, update_issue, WRITE, body=_EDIT),
    Route("GET", _ONE + "/comments", list_comments, READ),
    Route("POST", _ONE + "/comments", create_comment, WRITE, body=_BODY),
    Route("GET", _ONE + "/reactions", list_issue_reactions, READ),
    Route("POST", _ONE + "/reactions", react_to_issue, WRITE, body=_CONTENT),
    Route("GET", _ONE + "/labels", list_issue_labels, READ),
    Route("POST", _ONE + "/labels", add_labels, WRITE, "triage", _LABELS),
    Route("PUT", _ONE + "/labels", replace_labels, WRITE, "triage", _LABELS),
    Route("DELETE", _ONE + "/labels/{name}", remove_label, WRITE, "triage"),
    Route("GET", _REPO + "/labels", list_labels, READ),
    Route(
        "POST",
        _REPO + "/labels",
        create_label,
        WRITE,
        "write",
        {"name!": "string", "color": "string", "description?": "string"},
    ),
]
