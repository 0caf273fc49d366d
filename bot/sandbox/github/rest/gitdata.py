"""The Git database: refs, trees, blobs and commits."""

import base64
import binascii
import posixpath

from bot.sandbox.github.errors import Refused, not_found
from bot.sandbox.github.git import ZERO, Person, RefChange, TreeEntry
from bot.sandbox.github.pushes import move_ref
from bot.sandbox.github.records import Json
from bot.sandbox.github.rest.call import Answer, Call, Route
from bot.sandbox.github.signing import WEB_FLOW, mark_verified, person_of
from bot.sandbox.github.views.repositories import git_commit, reference

LARGEST_BLOB = 100 * 1024 * 1024
MOST_ENTRIES = 100_000
MODES = ("100644", "100755", "040000", "160000", "120000")
TYPES = ("blob", "tree", "commit")


# ---- refs


def get_ref(call: Call) -> Answer:
    """One ref, named without `refs/`."""
    name = f"refs/{call.params['ref']}"
    found = [row for row in call.git.refs(name) if row[0] == name]
    if not found:
        raise not_found()
    return Answer(200, reference(call.lens, call.repo, *found[0]))


def matching_refs(call: Call) -> Answer:
    """All refs that begin with the name."""
    found = call.git.refs(f"refs/{call.params['ref']}")
    return call.page(found, lambda row: reference(call.lens, call.repo, *row))


def _checked_sha(call: Call, sha: str) -> str:
    if len(sha) != 40 or call.git.object_type(sha) is None:
        raise Refused(422, "Object does not exist")
    return sha


def create_ref(call: Call) -> Answer:
    """Make a branch or tag at an existing object."""
    name, sha = call.fields["ref"], call.fields["sha"]
    if not name.startswith("refs/") or name.count("/") < 2 or not call.git.valid_ref(name):
        raise Refused(422, f"{name} is not a valid ref name.")
    _checked_sha(call, sha)
    if call.git.ref(name) is not None:
        raise Refused(422, "Reference already exists")
    if name.startswith("refs/heads/") and call.git.object_type(sha) != "commit":
        raise Refused(422, "Reference update failed")
    move_ref(call.world, call.actor, call.repo, RefChange(name, ZERO, sha))
    return Answer(201, reference(call.lens, call.repo, name, sha))


def update_ref(call: Call) -> Answer:
    """Move a ref; without `force` only forward."""
    name, sha = f"refs/{call.params['ref']}", call.fields["sha"]
    old = call.git.ref(name)
    if old is None:
        raise Refused(422, "Reference does not exist")
    _checked_sha(call, sha)
    if not call.fields.get("force", False) and not call.git.is_ancestor(old, sha):
        raise Refused(422, "Update is not a fast forward")
    if old != sha:
        move_ref(call.world, call.actor, call.repo, RefChange(name, old, sha))
    return Answer(200, reference(call.lens, call.repo, name, sha))


def delete_ref(call: Call) -> Answer:
    """Remove a ref."""
    name = f"refs/{call.params['ref']}"
    old = call.git.ref(name)
    if old is None:
        raise Refused(422, "Reference does not exist")
    move_ref(call.world, call.actor, call.repo, RefChange(name, old, ZERO))
    return Answer(204)


# ---- blobs and trees


def create_blob(call: Call) -> Answer:
    """Store bytes, given as UTF-8 text or base64."""
    text, encoding = call.fields["content"], call.fields.get("encoding", "utf-8")
    if encoding == "base64":
        try:
            raw = base64.b64decode(text, validate=False)
        except binascii.Error:
            raise Refused(422, "content is not valid Base64") from None
    elif encoding == "utf-8":
        raw = text.encode()
    else:
        raise Refused(422, f"{encoding} is not a supported encoding")
    if len(raw) > LARGEST_BLOB:
        raise Refused(422, "Blob is too large")
    sha = call.git.write_blob(raw)
    return Answer(201, {"sha": sha, "url": f"{call.lens.repo_api(call.repo)}/git/blobs/{sha}"})


def get_blob(call: Call) -> Answer:
    """The bytes of a blob in base64."""
    sha = call.params["file_sha"]
    if call.git.object_type(sha) != "blob":
        raise not_found()
    raw = call.git.blob(sha)
    body = {
        "sha": sha,
        "node_id": f"B_kw{sha}",
        "size": len(raw),
        "url": f"{call.lens.repo_api(call.repo)}/git/blobs/{sha}",
        "content": base64.encodebytes(raw).decode(),
        "encoding": "base64",
    }
    return Answer(200, body)


def get_tree(call: Call) -> Answer:
    """A tree by the SHA or name of a tree or commit; with `recursive` all below it."""
    name = call.params["ref"]
    sha = call.git.resolve(name)
    if sha is None and call.git.object_type(name) != "tree":
        raise not_found()
    return Answer(
        200, _tree_view(call, call.git.commit(sha).tree if sha else name, "recursive" in call.query)
    )


def _tree_view(call: Call, sha: str, recursive: bool = False) -> Json:
    url = f"{call.lens.repo_api(call.repo)}/git"
    entries = call.git.tree(sha, recursive=recursive)
    return {
        "sha": sha,
        "url": f"{url}/trees/{sha}",
        "tree": [_entry_view(url, entry) for entry in entries[:MOST_ENTRIES]],
        "truncated": len(entries) > MOST_ENTRIES,
    }


def _entry_view(url: str, entry: TreeEntry) -> Json:
    view: Json = {"path": entry.path, "mode": entry.mode, "type": entry.type, "sha": entry.sha}
    if entry.type != "commit":
        view["url"] = f"{url}/{entry.type}s/{entry.sha}"
    return view if entry.size is None else {**view, "size": entry.size}


def create_tree(call: Call) -> Answer:
    """Write a tree from entries on top of `base_tree`; `sha: null` removes a path."""
    base = call.fields.get("base_tree")
    if base is not None and call.git.object_type(base) not in ("tree", "commit"):
        raise Refused(422, "base_tree is not a valid tree oid")
    if not call.fields["tree"]:
        raise Refused(422, "Invalid tree info")
    edits = [_edit(call, item) for item in call.fields["tree"]]
    return Answer(201, _tree_view(call, call.git.write_tree(base, edits)))


def _edit(call: Call, item: Json) -> TreeEntry:
    path = item["path"]
    if (
        not path
        or path != posixpath.normpath(path)
        or path.startswith(("/", "../"))
        or ".git" in path.split("/")
    ):
        raise Refused(422, "tree.path contains a malformed path component")
    if ("sha" in item) == ("content" in item):
        raise Refused(422, "Must supply either tree.sha or tree.content")
    if "content" in item:
        return TreeEntry(
            path, item.get("mode", "100644"), "blob", call.git.write_blob(item["content"].encode())
        )
    sha = item["sha"]
    if sha is None:
        return TreeEntry(path, "100644", "blob", None)
    kind = item.get("type", "blob")
    if kind != "commit" and call.git.object_type(sha) != kind:
        raise Refused(422, f"tree.sha {sha} is not a valid {kind}")
    return TreeEntry(path, item.get("mode", "100644"), kind, sha)


# ---- commits


def create_commit(call: Call) -> Answer:
    """Write a commit; one without author and committer by an App is signed by the server."""
    fields = call.fields
    if call.git.object_type(fields["tree"]) != "tree":
        raise Refused(422, "Tree SHA does not exist")
    parents = fields.get("parents", [])
    if any(call.git.object_type(sha) != "commit" or len(sha) != 40 for sha in parents):
        raise Refused(422, "Parent SHA does not exist or is not a commit object")
    now = call.world.now()
    mine = person_of(call.world, call.actor.account)
    author = _person(fields.get("author"), mine)
    signed = call.actor.kind == "installation" and not {"author", "committer", "signature"} & set(fields)
    committer = Person(*WEB_FLOW, now) if signed else _person(fields.get("committer"), author)
    sha = call.git.commit_tree(fields["tree"], parents, fields["message"], author=author, committer=committer)
    if signed:
        mark_verified(call.world, call.repo, sha)
    return Answer(201, git_commit(call.lens, call.repo, call.git.commit(sha)))


def _person(given: Json | None, otherwise: Person) -> Person:
    if given is None:
        return otherwise
    return Person(
        given.get("name", otherwise.name),
        given.get("email", otherwise.email),
        given.get("date", otherwise.date),
    )


def get_commit(call: Call) -> Answer:
    """One commit of the Git database."""
    sha = call.params["commit_sha"]
    if call.git.object_type(sha) != "commit":
        raise not_found()
    return Answer(200, git_commit(call.lens, call.repo, call.git.commit(sha)))


_PERSON = {"name!": "string", "email!": "string", "date": "string"}
_ANYONE = {"name": "string", "email": "string", "date": "string"}
_ENTRY = {"path!": "string", "mode": MODES, "type": TYPES, "sha?": "string", "content": "string"}
_ROOT = "/repos/{owner}/{repo}/git"

ROUTES = [
    Route("GET", _ROOT + "/ref/{ref}", get_ref, "contents:read"),
    Route("GET", _ROOT + "/matching-refs/{ref}", matching_refs, "contents:read"),
    Route(
        "POST", _ROOT + "/refs", create_ref, "contents:write", "write", {"ref!": "string", "sha!": "string"}
    ),
    Route(
        "PATCH",
        _ROOT + "/refs/{ref}",
        update_ref,
        "contents:write",
        "write",
        {"sha!": "string", "force": "boolean"},
    ),
    Route("DELETE", _ROOT + "/refs/{ref}", delete_ref, "contents:write", "write"),
    Route(
        "POST",
        _ROOT + "/blobs",
        create_blob,
        "contents:write",
        "write",
        {"content!": "string", "encoding": "string"},
    ),
    Route("GET", _ROOT + "/blobs/{file_sha}", get_blob, "contents:read"),
    Route("GET", _ROOT + "/trees/{ref}", get_tree, "contents:read"),
    Route(
        "POST",
        _ROOT + "/trees",
        create_tree,
        "contents:write",
        "write",
        {"tree!": [_ENTRY], "base_tree": "string"},
    ),
    Route(
        "POST",
        _ROOT + "/commits",
        create_commit,
        "contents:write",
        "write",
        {
            "message!": "string",
            "tree!": "string",
            "parents": ["string"],
            "author": _PERSON,
            "committer": _ANYONE,
            "signature": "string",
        },
    ),
    Route("GET", _ROOT + "/commits/{commit_sha}", get_commit, "contents:read"),
]
