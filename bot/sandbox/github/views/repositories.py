"""Repositories and what Git keeps in them as JSON."""

from bot.sandbox.github.accounts import User
from bot.sandbox.github.git import Commit, FileChange
from bot.sandbox.github.records import Issue, Json, Label, Repository, VerifiedCommit
from bot.sandbox.github.views.lens import Lens, node_id
from bot.sandbox.github.views.people import user
from bot.sandbox.github.world import ROLES

_LINKS = (
    ("archive_url", "/{archive_format}{/ref}"),
    ("assignees_url", "/assignees{/user}"),
    ("blobs_url", "/git/blobs{/sha}"),
    ("branches_url", "/branches{/branch}"),
    ("collaborators_url", "/collaborators{/collaborator}"),
    ("comments_url", "/comments{/number}"),
    ("commits_url", "/commits{/sha}"),
    ("compare_url", "/compare/{base}...{head}"),
    ("contents_url", "/contents/{+path}"),
    ("contributors_url", "/contributors"),
    ("deployments_url", "/deployments"),
    ("downloads_url", "/downloads"),
    ("events_url", "/events"),
    ("forks_url", "/forks"),
    ("git_commits_url", "/git/commits{/sha}"),
    ("git_refs_url", "/git/refs{/sha}"),
    ("git_tags_url", "/git/tags{/sha}"),
    ("hooks_url", "/hooks"),
    ("issue_comment_url", "/issues/comments{/number}"),
    ("issue_events_url", "/issues/events{/number}"),
    ("issues_url", "/issues{/number}"),
    ("keys_url", "/keys{/key_id}"),
    ("labels_url", "/labels{/name}"),
    ("languages_url", "/languages"),
    ("merges_url", "/merges"),
    ("milestones_url", "/milestones{/number}"),
    ("notifications_url", "/notifications{?since,all,participating}"),
    ("pulls_url", "/pulls{/number}"),
    ("releases_url", "/releases{/id}"),
    ("stargazers_url", "/stargazers"),
    ("statuses_url", "/statuses/{sha}"),
    ("subscribers_url", "/subscribers"),
    ("subscription_url", "/subscription"),
    ("tags_url", "/tags"),
    ("teams_url", "/teams"),
    ("trees_url", "/git/trees{/sha}"),
)
_COUNTS = ("forks", "forks_count", "stargazers_count", "watchers", "watchers_count", "size")


def repository(lens: Lens, repo: Repository) -> Json:
    """A repository as it stands inside other things."""
    url, web = lens.repo_api(repo), lens.repo_web(repo)
    open_issues = lens.world.store.count(Issue, repo_id=repo.id, state="open")
    host = lens.base.split("://", 1)[1].rsplit(":", 1)[0]
    name = lens.world.full_name(repo)
    return {
        "id": repo.id,
        "node_id": node_id("R", repo.id),
        "name": repo.name,
        "full_name": name,
        "private": repo.private,
        "owner": user(lens, lens.world.owner(repo)),
        "html_url": web,
        "description": repo.description,
        "fork": repo.fork_of is not None,
        "url": url,
        **{link: url + path for link, path in _LINKS},
        "clone_url": web + ".git",
        "git_url": f"git://{host}/{name}.git",
        "ssh_url": f"git@{host}:{name}.git",
        "svn_url": web,
        "mirror_url": None,
        "homepage": None,
        "language": None,
        "license": None,
        "default_branch": repo.default_branch,
        "visibility": "private" if repo.private else "public",
        **dict.fromkeys(_COUNTS, 0),
        "open_issues": open_issues,
        "open_issues_count": open_issues,
        "has_issues": True,
        "has_projects": False,
        "has_wiki": False,
        "has_pages": False,
        "has_downloads": False,
        "has_discussions": False,
        "archived": False,
        "disabled": False,
        "is_template": False,
        "topics": [],
        "allow_forking": False,
        "web_commit_signoff_required": False,
        "created_at": repo.created_at,
        "updated_at": repo.updated_at,
        "pushed_at": repo.pushed_at,
    }


def full_repository(lens: Lens, repo: Repository, role: str) -> Json:
    """A repository as its own page of the API, with what the caller may do there."""
    owner = lens.world.owner(repo)
    return {
        **repository(lens, repo),
        "permissions": permissions(role),
        "allow_merge_commit": repo.allow_merge_commit,
        "allow_squash_merge": repo.allow_squash_merge,
        "allow_rebase_merge": repo.allow_rebase_merge,
        "allow_auto_merge": False,
        "allow_update_branch": False,
        "delete_branch_on_merge": repo.delete_branch_on_merge,
        "network_count": 0,
        "subscribers_count": 0,
        **({"organization": user(lens, owner)} if owner.type == "Organization" else {}),
    }


def permissions(role: str) -> dict[str, bool]:
    """A role as GitHub's five flags."""
    rank = ROLES.index(role)
    names = (
        ("pull", "read"),
        ("triage", "triage"),
        ("push", "write"),
        ("maintain", "maintain"),
        ("admin", "admin"),
    )
    return {flag: rank >= ROLES.index(least) for flag, least in names}


def label(lens: Lens, repo: Repository, name: str) -> Json:
    """A label by its name."""
    found = lens.world.store.first(Label, repo_id=repo.id, name=name) or Label(repo.id, name)
    return {
        "id": found.id,
        "node_id": node_id("LA", found.id),
        "url": f"{lens.repo_api(repo)}/labels/{name}",
        "name": name,
        "color": found.color,
        "default": False,
        "description": found.description,
    }


def verification(lens: Lens, repo: Repository, commit: Commit) -> Json:
    """Whether the commit is signed: those are that the server made itself."""
    signed = lens.world.store.first(VerifiedCommit, repo_id=repo.id, sha=commit.sha) is not None
    return {
        "verified": signed,
        "reason": "valid" if signed else "unsigned",
        "signature": "-----BEGIN PGP SIGNATURE-----" if signed else None,
        "payload": f"tree {commit.tree}" if signed else None,
        "verified_at": commit.committer.date if signed else None,
    }


def git_commit(lens: Lens, repo: Repository, commit: Commit) -> Json:
    """A commit as the Git database API shows it."""
    url, web = lens.repo_api(repo), lens.repo_web(repo)
    return {
        "sha": commit.sha,
        "node_id": f"C_kw{commit.sha}",
        "url": f"{url}/git/commits/{commit.sha}",
        "html_url": f"{web}/commit/{commit.sha}",
        "author": _person(commit, "author"),
        "committer": _person(commit, "committer"),
        "tree": {"sha": commit.tree, "url": f"{url}/git/trees/{commit.tree}"},
        "message": commit.message,
        "parents": [_parent(lens, repo, sha, "/git/commits/") for sha in commit.parents],
        "verification": verification(lens, repo, commit),
    }


def _person(commit: Commit, which: str) -> Json:
    who = commit.author if which == "author" else commit.committer
    return {"name": who.name, "email": who.email, "date": who.date}


def _parent(lens: Lens, repo: Repository, sha: str, path: str) -> Json:
    return {
        "sha": sha,
        "url": f"{lens.repo_api(repo)}{path}{sha}",
        "html_url": f"{lens.repo_web(repo)}/commit/{sha}",
    }


def account_of(lens: Lens, email: str) -> Json | None:
    """The account that a commit's e-mail address belongs to, or None."""
    found = lens.world.store.first(User, email=email)
    return user(lens, found) if found else None


def commit(lens: Lens, repo: Repository, item: Commit) -> Json:
    """A commit as lists of commits show it."""
    url = lens.repo_api(repo)
    return {
        "sha": item.sha,
        "node_id": f"C_kw{item.sha}",
        "url": f"{url}/commits/{item.sha}",
        "html_url": f"{lens.repo_web(repo)}/commit/{item.sha}",
        "comments_url": f"{url}/commits/{item.sha}/comments",
        "commit": {
            "url": f"{url}/git/commits/{item.sha}",
            "author": _person(item, "author"),
            "committer": _person(item, "committer"),
            "message": item.message,
            "tree": {"sha": item.tree, "url": f"{url}/git/trees/{item.tree}"},
            "comment_count": 0,
            "verification": verification(lens, repo, item),
        },
        "author": account_of(lens, item.author.email),
        "committer": account_of(lens, item.committer.email),
        "parents": [_parent(lens, repo, sha, "/commits/") for sha in item.parents],
    }


def file_change(lens: Lens, repo: Repository, item: FileChange, sha: str) -> Json:
    """One file of a diff whose newer side is the commit `sha`."""
    web = lens.repo_web(repo)
    return {
        "sha": item.sha,
        "filename": item.filename,
        "status": item.status,
        "additions": item.additions,
        "deletions": item.deletions,
        "changes": item.additions + item.deletions,
        "blob_url": f"{web}/blob/{sha}/{item.filename}",
        "raw_url": f"{web}/raw/{sha}/{item.filename}",
        "contents_url": f"{lens.repo_api(repo)}/contents/{item.filename}?ref={sha}",
        **({"patch": item.patch} if item.patch is not None else {}),
        **({"previous_filename": item.previous} if item.previous else {}),
    }


def reference(lens: Lens, repo: Repository, name: str, sha: str, kind: str = "commit") -> Json:
    """A ref and the object it points to."""
    url = lens.repo_api(repo)
    return {
        "ref": name,
        "node_id": f"REF_kw{repo.id}:{name}",
        "url": f"{url}/git/{name}",
        "object": {"type": kind, "sha": sha, "url": f"{url}/git/{kind}s/{sha}"},
    }
