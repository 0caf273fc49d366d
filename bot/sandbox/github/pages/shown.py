"""What each page shows: from the address and the person to a template and its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bot.sandbox.github.accounts import User
from bot.sandbox.github.errors import Refused, not_found
from bot.sandbox.github.git import EMPTY_TREE, Git
from bot.sandbox.github.pages import pullviews
from bot.sandbox.github.pages.acts import reason
from bot.sandbox.github.pages.checkviews import check_of, checks_of, is_under_way
from bot.sandbox.github.pages.diffs import diff_of
from bot.sandbox.github.pages.history import brought
from bot.sandbox.github.pages.markdown import render_comment, render_document
from bot.sandbox.github.pages.people import visible_repository, who
from bot.sandbox.github.pages.timeline import timeline
from bot.sandbox.github.pages.treeviews import list_folder, read_text
from bot.sandbox.github.records import (
    CheckRun,
    Deployment,
    DeploymentStatus,
    PullRequest,
    Repository,
)
from bot.sandbox.github.world import World

_LISTED_COMMITS: Final = 100
_LISTED_DEPLOYMENTS: Final = 100


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the world: by whom, at which address, and after a refused form with its fields and the reason."""

    world: World
    visitor: User | None
    params: Mapping[str, Any]
    query: Mapping[str, str]
    fields: Mapping[str, str] = field(default_factory=dict)
    notice: str = ""

    @property
    def repo(self) -> Repository:
        """The repository in the address; 404 if the person may not see it."""
        name = str(self.params["name"]).removesuffix(".git")
        return visible_repository(self.world, self.visitor, (self.params["owner"], name))


@dataclass(frozen=True, slots=True)
class Page:
    """A template with its values, or where to go instead."""

    template: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    redirect: str = ""


def refused(refusal: Refused) -> Page:
    """The page for what GitHub refuses."""
    title = "Not found" if refusal.status == 404 else "Refused"
    text = "There is nothing here, or nothing that you may see." if refusal.status == 404 else reason(refusal)
    return Page("refused.html", {"title": title, "text": text}, refusal.status)


def _in_repository(look: Look, repo: Repository, tab: str) -> dict[str, Any]:
    """The values that every page of a repository needs."""
    return {
        "home": look.world.full_name(repo),
        "repo": repo,
        "tab": tab,
        "open_pulls": pullviews.count_pulls(look.world, repo)["open"],
    }


# ---- repositories, files, commits


def repositories(look: Look) -> Page:
    """The repositories that the person may see."""
    world = look.world
    found = [
        {"name": world.full_name(repo), "repo": repo, "pulls": pullviews.count_pulls(world, repo)}
        for repo in world.store.find(Repository)
        if look.visitor is None or not repo.private or world.has_role(look.visitor, repo, "read")
    ]
    return Page("repositories.html", {"found": found})


def repository(look: Look) -> Page:
    """The files of the default branch."""
    repo = look.repo
    if str(look.params["name"]).endswith(".git"):
        return Page(redirect=f"/{look.world.full_name(repo)}")
    return _folder(look, repo, repo.default_branch, "")


def folder(look: Look) -> Page:
    """A folder at a branch or commit."""
    repo = look.repo
    ref, path = _split_ref(look.world.git(repo), look.params["rest"])
    return _folder(look, repo, ref, path)


def _folder(look: Look, repo: Repository, ref: str, path: str) -> Page:
    git = look.world.git(repo)
    sha = git.resolve(ref)
    values = {**_in_repository(look, repo, "code"), "ref": ref, "at": path, "crumbs": _crumbs(path)}
    if sha is None:
        return Page("folder.html", {**values, "last": None, "files": (), "readme": None})
    files = list_folder(git, sha, path)
    readme = next((each for each in files if each.name.lower() == "readme.md" and not each.folder), None)
    text = read_text(git, sha, readme.path) if readme else None
    shown = render_document(text, values["home"]) if text is not None else None
    return Page("folder.html", {**values, "last": git.commit(sha), "files": files, "readme": shown})


def file(look: Look) -> Page:
    """A file at a branch or commit."""
    repo = look.repo
    git = look.world.git(repo)
    ref, path = _split_ref(git, look.params["rest"])
    text = read_text(git, git.resolve(ref) or "", path)
    lines = text.removesuffix("\n").split("\n") if text is not None else None
    values = {"ref": ref, "at": path, "crumbs": _crumbs(path), "lines": lines}
    return Page("file.html", {**_in_repository(look, repo, "code"), **values})


def _split_ref(git: Git, rest: str) -> tuple[str, str]:
    """The branch or commit that an address begins with, and the path after it; branches may have slashes."""
    parts = rest.strip("/").split("/")
    for count in range(1, len(parts) + 1):
        ref = "/".join(parts[:count])
        if git.ref(f"refs/heads/{ref}") or (count == 1 and git.resolve(ref)):
            return ref, "/".join(parts[count:])
    raise not_found()


def _crumbs(path: str) -> list[tuple[str, str]]:
    """The folders above a path and itself, each with its name and whole path."""
    parts = path.split("/") if path else []
    return [(part, "/".join(parts[: at + 1])) for at, part in enumerate(parts)]


def commits(look: Look) -> Page:
    """The newest commits of a branch."""
    repo = look.repo
    ref = str(look.params.get("rest", repo.default_branch))
    sha = look.world.git(repo).resolve(ref)
    if sha is None:
        raise not_found()
    found = look.world.git(repo).commits(f"-{_LISTED_COMMITS}", sha)
    return Page("commits.html", {**_in_repository(look, repo, "commits"), "ref": ref, "commits": found})


def commit(look: Look) -> Page:
    """A commit with its message, diff and check runs."""
    repo = look.repo
    git = look.world.git(repo)
    sha = git.resolve(look.params["sha"])
    if sha is None:
        raise not_found()
    found = git.commit(sha)
    checks = checks_of(look.world, repo, sha)
    pulls = [
        pull.number
        for pull in look.world.store.find(PullRequest, repo_id=repo.id)
        if sha in (pull.head_sha, pull.merge_commit_sha)
    ]
    values = {
        "commit": found,
        "message": found.message.partition("\n")[2].strip(),
        "diff": diff_of(git, found.parents[0] if found.parents else EMPTY_TREE, sha),
        "checks": checks,
        "pulls": pulls,
        "busy": is_under_way(checks),
    }
    return Page("commit.html", {**_in_repository(look, repo, "commits"), **values})


def deployments(look: Look) -> Page:
    """What was deployed where, newest first."""
    repo, store = look.repo, look.world.store
    found = []
    for item in store.newest(Deployment, _LISTED_DEPLOYMENTS, repo_id=repo.id):
        statuses = store.find(DeploymentStatus, deployment_id=item.id)
        found.append({"deployment": item, "statuses": statuses, "creator": who(look.world, item.creator_id)})
    return Page("deployments.html", {**_in_repository(look, repo, "deployments"), "found": found})


# ---- pull requests


def pulls(look: Look) -> Page:
    """Open or closed pull requests."""
    repo = look.repo
    state = "closed" if look.query.get("state") == "closed" else "open"
    values = {
        "state": state,
        "counts": pullviews.count_pulls(look.world, repo),
        "pulls": pullviews.list_pulls(look.world, repo, state),
    }
    return Page("pulls.html", {**_in_repository(look, repo, "pulls"), **values})


def _pull(look: Look, tab: str) -> tuple[Repository, PullRequest, dict[str, Any]]:
    """The pull request in the address, and what all its tabs show."""
    repo = look.repo
    pull = look.world.pull(repo, look.params["number"])
    issue = look.world.issue(repo, pull.number)
    values = {
        **_in_repository(look, repo, "pulls"),
        "issue": issue,
        "pull": pull,
        "state": pullviews.state_of(issue, pull),
        "author": who(look.world, issue.author_id),
        "merger": who(look.world, pull.merged_by) if pull.merged_by is not None else None,
        "part": tab,
        "head": pullviews.head_label(look.world, repo, pull),
        "brought": brought(look.world.git(repo), pull),
        "panel": pullviews.panel(look.world, repo, pull, look.visitor),
        "typed": look.fields.get("body", ""),
    }
    return repo, pull, values


def conversation(look: Look) -> Page:
    """The description and all that happened; issues are shown here too, since comments on them are commands."""
    repo = look.repo
    issue = look.world.issue(repo, look.params["number"])
    if not issue.is_pull:
        values = {
            "issue": issue,
            "author": who(look.world, issue.author_id),
            "body": render_comment(issue.body, look.world.full_name(repo)),
            "entries": timeline(look.world, repo, issue, None),
            "typed": look.fields.get("body", ""),
            "state": pullviews.state_of(issue, None),
        }
        return Page("issue.html", {**_in_repository(look, repo, "pulls"), **values})
    repo, pull, values = _pull(look, "conversation")
    values["body"] = render_comment(issue.body, look.world.full_name(repo))
    values["entries"] = timeline(look.world, repo, issue, pull)
    return Page("conversation.html", values)


def files(look: Look) -> Page:
    """The changed files of a pull request."""
    return Page("files.html", _pull(look, "files")[2])


def pull_commits(look: Look) -> Page:
    """The commits of a pull request."""
    return Page("pull_commits.html", _pull(look, "commits")[2])


def pull_checks(look: Look) -> Page:
    """The checks on the head of a pull request, and on its merge commit."""
    repo, pull, values = _pull(look, "checks")
    sha = pull.merge_commit_sha if pull.merged else None
    values["outcome"] = checks_of(look.world, repo, sha) if sha else []
    return Page("pull_checks.html", values)


def run(look: Look) -> Page:
    """One check run by itself."""
    repo = look.repo
    found = look.world.store.get(CheckRun, look.params["id"])
    if found is None or found.repo_id != repo.id:
        raise not_found()
    values = {"check": check_of(look.world, repo, found), "sha": found.head_sha}
    return Page("run.html", {**_in_repository(look, repo, "commits"), **values})
