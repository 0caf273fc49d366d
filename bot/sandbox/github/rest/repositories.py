"""Repositories, branches, commits, comparisons and file contents."""

import base64

from bot.sandbox.github import rules
from bot.sandbox.github.auth import may_see
from bot.sandbox.github.errors import Refused, not_found
from bot.sandbox.github.git import EMPTY_TREE, Commit, TreeEntry
from bot.sandbox.github.records import Json, PullRequest, Repository
from bot.sandbox.github.rest.call import Answer, Call, Route
from bot.sandbox.github.views.pulls import simple_pull
from bot.sandbox.github.views.repositories import commit, file_change, full_repository

MOST_FILES = 300
MOST_COMPARED = 250
# The contents API gives no content for larger files.
LARGEST_CONTENT = 1024 * 1024


def role_of(call: Call) -> str:
    """The caller's role on the repository, an App's by its `contents` permission."""
    if call.actor.kind == "user":
        return call.world.role(call.actor.account, call.repo)
    if call.actor.kind == "installation":
        return "write" if call.actor.permissions.get("contents") == "write" else "read"
    return "read" if not call.repo.private else "none"


def get_repository(call: Call) -> Answer:
    """The repository."""
    return Answer(200, full_repository(call.lens, call.repo, role_of(call)))


def edit_repository(call: Call) -> Answer:
    """Change a repository's settings."""
    changed = call.world.store.change(call.repo, **call.fields, updated_at=call.world.now())
    return Answer(200, full_repository(call.lens, changed, role_of(call)))


def list_user_repositories(call: Call) -> Answer:
    """The repositories of an account that the caller may see."""
    account = call.world.need_user(call.params["username"])
    owned = call.world.store.find(Repository, owner_id=account.id)
    seen = [repo for repo in owned if may_see(call.world, call.actor, repo)]
    return call.page(seen, lambda repo: full_repository(call.lens, repo, "read"))


# ---- branches


def list_branches(call: Call) -> Answer:
    """All branches."""
    found = call.git.refs("refs/heads/")
    return call.page(found, lambda row: _short_branch(call, row[0].removeprefix("refs/heads/"), row[1]))


def _short_branch(call: Call, name: str, sha: str) -> Json:
    return {
        "name": name,
        "commit": {"sha": sha, "url": f"{call.lens.repo_api(call.repo)}/commits/{sha}"},
        "protected": rules.is_protected(call.world, call.repo, name),
    }


def get_branch(call: Call) -> Answer:
    """One branch with its commit."""
    name = call.params["branch"]
    sha = call.git.ref(f"refs/heads/{name}")
    if sha is None:
        raise Refused(404, "Branch not found")
    url = f"{call.lens.repo_api(call.repo)}/branches/{name}"
    found = rules.rulesets_for(call.world, call.repo, name)
    checks = [
        item
        for part in rules.rules_of(found, "required_status_checks")
        for item in part["required_status_checks"]
    ]
    body = {
        **_short_branch(call, name, sha),
        "commit": commit(call.lens, call.repo, call.git.commit(sha)),
        "_links": {"self": url, "html": f"{call.lens.repo_web(call.repo)}/tree/{name}"},
        "protection": {
            "enabled": bool(found),
            "required_status_checks": {
                "enforcement_level": "everyone" if checks else "off",
                "contexts": [item["context"] for item in checks],
                "checks": [
                    {"context": item["context"], "app_id": item.get("integration_id")} for item in checks
                ],
            },
        },
        "protection_url": url + "/protection",
    }
    return Answer(200, body)


# ---- commits


def _resolve(call: Call, name: str) -> str:
    sha = call.git.resolve(name)
    if sha is None:
        raise Refused(422, f"No commit found for SHA: {name}")
    return sha


def list_commits(call: Call) -> Answer:
    """The commits that lead to `sha` (default: the default branch), newest first, maybe of one `path`."""
    start = _resolve(call, call.query.get("sha") or call.repo.default_branch)
    selection = [start]
    if call.query.get("since"):
        selection.append(f"--since={call.query['since']}")
    if call.query.get("until"):
        selection.append(f"--until={call.query['until']}")
    # The path stands behind `--`, so that no path is ever read as an option.
    items = call.git.commits(*selection, path=call.query.get("path") or None)
    return call.page(items, lambda item: commit(call.lens, call.repo, item))


def get_commit(call: Call) -> Answer:
    """One commit with its files."""
    item = call.git.commit(_resolve(call, call.params["ref"]))
    files = call.git.diff(item.parents[0] if item.parents else EMPTY_TREE, item.sha)
    added, deleted = sum(one.additions for one in files), sum(one.deletions for one in files)
    body = {
        **commit(call.lens, call.repo, item),
        "stats": {"additions": added, "deletions": deleted, "total": added + deleted},
        "files": [file_change(call.lens, call.repo, one, item.sha) for one in files[:MOST_FILES]],
    }
    return Answer(200, body)


def pulls_of_commit(call: Call) -> Answer:
    """The pull requests that a commit is part of."""
    sha = _resolve(call, call.params["commit_sha"])
    found = [
        pull for pull in call.world.store.find(PullRequest, repo_id=call.repo.id) if _has(call, pull, sha)
    ]
    return call.page(found, lambda pull: simple_pull(call.lens, call.repo, pull))


def _has(call: Call, pull: PullRequest, sha: str) -> bool:
    if sha in (pull.head_sha, pull.merge_commit_sha if pull.merged else pull.head_sha):
        return True
    return call.git.is_ancestor(sha, pull.head_sha) and not call.git.is_ancestor(sha, pull.base_sha)


def compare(call: Call) -> Answer:
    """Two commits compared from their merge base: `BASE...HEAD`."""
    base_name, dots, head_name = call.params["basehead"].partition("...")
    own = call.world.owner(call.repo).login + ":"
    base, head = (call.git.resolve(name.removeprefix(own)) for name in (base_name, head_name))
    if not dots or base is None or head is None:
        raise not_found()
    common = call.git.merge_base(base, head)
    if common is None:
        raise Refused(404, f"No common ancestor between {base_name} and {head_name}.")
    ahead, behind = call.git.count(f"{base}..{head}"), call.git.count(f"{head}..{base}")
    status = ("diverged" if behind else "ahead") if ahead else ("behind" if behind else "identical")
    commits = call.git.commits("--reverse", f"{base}..{head}")
    files = call.git.diff(common, head)
    return Answer(
        200,
        {
            **_compare_links(call, base_name, head_name),
            **_compared(call, commits),
            "base_commit": commit(call.lens, call.repo, call.git.commit(base)),
            "merge_base_commit": commit(call.lens, call.repo, call.git.commit(common)),
            "status": status,
            "ahead_by": ahead,
            "behind_by": behind,
            "total_commits": len(commits),
            "files": [file_change(call.lens, call.repo, one, head) for one in files[:MOST_FILES]],
        },
    )


def _compared(call: Call, commits: list[Commit]) -> Json:
    page = (
        call.page(commits, lambda item: commit(call.lens, call.repo, item)) if "page" in call.query else None
    )
    shown = page.body if page else [commit(call.lens, call.repo, item) for item in commits[-MOST_COMPARED:]]
    return {"commits": shown}


def _compare_links(call: Call, base: str, head: str) -> Json:
    url, web = call.lens.repo_api(call.repo), call.lens.repo_web(call.repo)
    spec = f"compare/{base}...{head}"
    return {
        "url": f"{url}/{spec}",
        "html_url": f"{web}/{spec}",
        "permalink_url": f"{web}/{spec}",
        "diff_url": f"{web}/{spec}.diff",
        "patch_url": f"{web}/{spec}.patch",
    }


# ---- contents


def get_contents(call: Call) -> Answer:
    """A file with its content, or the entries of a folder, at `ref` (default: the default branch)."""
    name = call.query.get("ref") or call.repo.default_branch
    sha = call.git.resolve(name)
    if sha is None:
        raise Refused(404, f"No commit found for the ref {name}")
    path = call.params.get("path", "").strip("/")
    if not path:
        return Answer(200, [_entry(call, item, item.path, name) for item in call.git.tree(sha)])
    found = call.git.tree(sha, path=path)
    if not found or ".." in path.split("/"):
        raise not_found()
    if found[0].type == "tree":
        inside = call.git.tree(f"{sha}:{path}")
        return Answer(200, [_entry(call, item, f"{path}/{item.path}", name) for item in inside])
    entry = found[0]
    raw = call.git.blob(entry.sha or "")
    small = len(raw) <= LARGEST_CONTENT
    body = {
        **_entry(call, entry, path, name),
        "encoding": "base64" if small else "none",
        "content": base64.encodebytes(raw).decode() if small else "",
    }
    return Answer(200, body)


def _entry(call: Call, entry: TreeEntry, path: str, ref: str) -> Json:
    url, web = call.lens.repo_api(call.repo), call.lens.repo_web(call.repo)
    kinds = {"tree": "dir", "commit": "submodule"}
    self_url = f"{url}/contents/{path}?ref={ref}"
    part = "trees" if entry.type == "tree" else "blobs"
    links = {
        "self": self_url,
        "git": f"{url}/git/{part}/{entry.sha}",
        "html": f"{web}/{part[:-1]}/{ref}/{path}",
    }
    return {
        "name": path.rpartition("/")[2],
        "path": path,
        "sha": entry.sha,
        "size": entry.size or 0,
        "url": self_url,
        "html_url": links["html"],
        "git_url": links["git"],
        "download_url": f"{web}/raw/{ref}/{path}" if entry.type == "blob" else None,
        "type": kinds.get(entry.type, "symlink" if entry.mode == "120000" else "file"),
        "_links": links,
    }


_SETTINGS = {
    "default_branch": "string",
    "description": "string",
    "private": "boolean",
    "delete_branch_on_merge": "boolean",
    "allow_merge_commit": "boolean",
    "allow_squash_merge": "boolean",
    "allow_rebase_merge": "boolean",
}

ROUTES = [
    Route("GET", "/repos/{owner}/{repo}", get_repository),
    Route("PATCH", "/repos/{owner}/{repo}", edit_repository, "administration:write", "admin", _SETTINGS),
    Route("GET", "/users/{username}/repos", list_user_repositories, ""),
    Route("GET", "/orgs/{username}/repos", list_user_repositories, ""),
    Route("GET", "/repos/{owner}/{repo}/branches", list_branches, "contents:read"),
    Route("GET", "/repos/{owner}/{repo}/branches/{branch}", get_branch, "contents:read"),
    Route("GET", "/repos/{owner}/{repo}/commits", list_commits, "contents:read"),
    Route(
        "GET",
        "/repos/{owner}/{repo}/commits/{commit_sha}/pulls",
        pulls_of_commit,
        "pull_requests:read|contents:read",
    ),
    Route("GET", "/repos/{owner}/{repo}/commits/{ref}", get_commit, "contents:read"),
    Route("GET", "/repos/{owner}/{repo}/compare/{basehead}", compare, "contents:read"),
    Route("GET", "/repos/{owner}/{repo}/contents", get_contents, "contents:read"),
    Route("GET", "/repos/{owner}/{repo}/contents/", get_contents, "contents:read"),
    Route("GET", "/repos/{owner}/{repo}/contents/{path}", get_contents, "contents:read"),
]
