"""Check runs, check suites and commit statuses."""

from dataclasses import replace

from bot.sandbox.github import checks
from bot.sandbox.github.auth import Actor
from bot.sandbox.github.errors import Refused, invalid, not_found
from bot.sandbox.github.events import Notice, emit
from bot.sandbox.github.git import ZERO, RefChange
from bot.sandbox.github.pushes import open_suite, tell_suite
from bot.sandbox.github.records import CheckRun, CheckSuite, CommitStatus, Json, Repository
from bot.sandbox.github.rest.call import Answer, Call, Route
from bot.sandbox.github.rules import is_protected
from bot.sandbox.github.views.checks import annotation, check_run, check_suite, simple_status, status
from bot.sandbox.github.views.lens import Lens
from bot.sandbox.github.views.repositories import commit, repository

STATUSES = ("queued", "in_progress", "completed")
LATE_STATUSES = (*STATUSES, "waiting", "requested", "pending")
CONCLUSIONS = (
    "action_required",
    "cancelled",
    "failure",
    "neutral",
    "success",
    "skipped",
    "stale",
    "timed_out",
)
STATUS_DESCRIPTION_LIMIT = 140
CONTEXT_LIMIT = 255


def create_run(call: Call) -> Answer:
    """Create a check run on a commit."""
    run = checks.create_run(call.world, call.actor, call.repo, call.fields)
    return Answer(201, check_run(call.lens, call.repo, run))


def _run(call: Call) -> CheckRun:
    found = call.world.store.get(CheckRun, call.number("check_run_id"))
    if found is None or found.repo_id != call.repo.id:
        raise not_found()
    return found


def update_run(call: Call) -> Answer:
    """Update the App's own check run; annotations are added to those it has."""
    run = checks.update_run(call.world, call.actor, call.repo, _run(call), call.fields)
    return Answer(200, check_run(call.lens, call.repo, run))


def get_run(call: Call) -> Answer:
    """One check run."""
    return Answer(200, check_run(call.lens, call.repo, _run(call)))


def list_annotations(call: Call) -> Answer:
    """The annotations of a check run."""
    run = _run(call)
    return call.page(run.annotations, lambda item: annotation(call.lens, call.repo, run, item))


def rerequest_run(call: Call) -> Answer:
    """Ask the App to run the check again."""
    checks.rerequest_run(call.world, call.actor, _run(call))
    return Answer(201, {})


def _commit(call: Call) -> str:
    sha = call.git.resolve(call.params["ref"])
    if sha is None:
        raise Refused(422, f"No commit found for SHA: {call.params['ref']}")
    return sha


def runs_of_commit(call: Call) -> Answer:
    """The check runs of a commit; `filter` is `latest` (default, one per App and name) or `all`."""
    found = call.world.store.find(CheckRun, repo_id=call.repo.id, head_sha=_commit(call))
    return _runs(call, found)


def _runs(call: Call, found: list[CheckRun]) -> Answer:
    query = call.query
    if query.get("filter", "latest") != "all":
        found = list({(run.app_id, run.name): run for run in found}.values())
    chosen = [
        run
        for run in found
        if query.get("check_name", run.name) == run.name
        and query.get("status", run.status) == run.status
        and query.get("app_id", str(run.app_id)) == str(run.app_id)
    ]
    return call.page(reversed(chosen), lambda run: check_run(call.lens, call.repo, run), "check_runs")


# ---- suites


def suites_of_commit(call: Call) -> Answer:
    """The check suites of a commit."""
    found = [
        suite
        for suite in call.world.store.find(CheckSuite, repo_id=call.repo.id, head_sha=_commit(call))
        if call.query.get("app_id", str(suite.app_id)) == str(suite.app_id)
    ]
    return call.page(found, lambda suite: check_suite(call.lens, call.repo, suite), "check_suites")


def _suite(call: Call) -> CheckSuite:
    found = call.world.store.get(CheckSuite, call.number("check_suite_id"))
    if found is None or found.repo_id != call.repo.id:
        raise not_found()
    return found


def get_suite(call: Call) -> Answer:
    """One check suite."""
    return Answer(200, check_suite(call.lens, call.repo, _suite(call)))


def runs_of_suite(call: Call) -> Answer:
    """The check runs of a suite."""
    return _runs(call, call.world.store.find(CheckRun, suite_id=_suite(call).id))


def _app_id(actor: Actor) -> int:
    if actor.app_id is None:
        raise Refused(403, "You must authenticate via a GitHub App.")
    return actor.app_id


def create_suite(call: Call) -> Answer:
    """Open the App's suite on a commit; 200 if it is there already."""
    sha, app_id = call.fields["head_sha"], _app_id(call.actor)
    if call.git.object_type(sha) != "commit":
        raise invalid("CheckSuite", "head_sha")
    found = call.world.store.first(CheckSuite, repo_id=call.repo.id, app_id=app_id, head_sha=sha)
    if found:
        return Answer(200, check_suite(call.lens, call.repo, found))
    with call.world.store.transaction():
        made = open_suite(call.world, call.repo, app_id, RefChange("refs/none", ZERO, sha))
        if made is None:
            raise not_found()
        tell_suite(call.world, call.actor, call.repo, made, "requested")
    return Answer(201, check_suite(call.lens, call.repo, made))


def rerequest_suite(call: Call) -> Answer:
    """Ask the App to run all its checks again."""
    checks.rerequest_suite(call.world, call.actor, call.repo, _suite(call))
    return Answer(201, {})


def suite_preferences(call: Call) -> Answer:
    """Switch automatic suites on or off for Apps."""
    off = set(call.repo.auto_trigger_off)
    chosen = call.fields.get("auto_trigger_checks", [])
    for item in chosen:
        (off.discard if item["setting"] else off.add)(item["app_id"])
    changed = call.world.store.change(call.repo, auto_trigger_off=tuple(sorted(off)))
    body = {
        "preferences": {"auto_trigger_checks": chosen},
        "repository": repository(call.lens, changed),
    }
    return Answer(200, body)


# ---- statuses of the older kind


def create_status(call: Call) -> Answer:
    """Set a commit status of a context."""
    fields, sha = call.fields, call.params["sha"]
    if len(sha) != 40 or call.git.object_type(sha) != "commit":
        raise Refused(422, f"No commit found for SHA: {sha}")
    if len(fields.get("description") or "") > STATUS_DESCRIPTION_LIMIT:
        raise invalid("Status", "description", message="description is too long (maximum is 140 characters)")
    context = fields.get("context", "default")
    if len(context) > CONTEXT_LIMIT:
        raise invalid("Status", "context", message="context is too long (maximum is 255 characters)")
    item = CommitStatus(
        call.repo.id,
        sha,
        fields["state"],
        context,
        call.actor.account.id,
        fields.get("description"),
        fields.get("target_url"),
        call.world.now(),
        call.actor.app_id,
    )
    with call.world.store.transaction():
        made = call.world.store.add(item)
        emit(
            call.world,
            call.repo,
            Notice("status", None, call.actor),
            lambda lens: _status_event(lens, call.repo, made),
        )
    call.world.wake()
    return Answer(201, status(call.lens, call.repo, made))


def _status_event(lens: Lens, repo: Repository, item: CommitStatus) -> Json:
    git = lens.world.git(repo)
    branches = [
        {
            "name": name.removeprefix("refs/heads/"),
            "commit": {"sha": sha, "url": f"{lens.repo_api(repo)}/commits/{sha}"},
            "protected": is_protected(lens.world, repo, name.removeprefix("refs/heads/")),
        }
        for name, sha, _ in git.refs("refs/heads/")
        if sha == item.sha
    ]
    return {
        **status(lens, repo, item),
        "sha": item.sha,
        "name": lens.world.full_name(repo),
        "commit": commit(lens, repo, git.commit(item.sha)),
        "branches": branches,
    }


def _latest(call: Call, sha: str) -> list[CommitStatus]:
    found = call.world.store.find(CommitStatus, repo_id=call.repo.id, sha=sha)
    return list({item.context: item for item in found}.values())


def combined_status(call: Call) -> Answer:
    """The newest status of each context and their sum; check runs are not part of it."""
    sha = _commit(call)
    found = _latest(call, sha)
    states = {item.state for item in found}
    if states & {"failure", "error"}:
        state = "failure"
    else:
        state = "success" if states == {"success"} else "pending"
    answer = call.page(found, lambda item: simple_status(call.lens, call.repo, item), "statuses")
    url = f"{call.lens.repo_api(call.repo)}/commits/{sha}"
    body: Json = {
        **answer.body,
        "state": state,
        "sha": sha,
        "repository": repository(call.lens, call.repo),
        "commit_url": url,
        "url": url + "/status",
    }
    return replace(answer, body=body)


_ANNOTATION = {
    "path!": "string",
    "start_line!": "integer",
    "end_line!": "integer",
    "start_column": "integer",
    "end_column": "integer",
    "annotation_level!": ("notice", "warning", "failure"),
    "message!": "string",
    "title": "string",
    "raw_details": "string",
}
_IMAGE = {"alt!": "string", "image_url!": "string", "caption": "string"}
_ACTION = {"label!": "string", "description!": "string", "identifier!": "string"}


def _described(*, new: bool) -> Json:
    """The body of a check run; a new one has to have a name, a commit and a title in its output."""
    title = "title!" if new else "title"
    output = {title: "string", "summary!": "string", "text": "string"}
    fields: Json = {
        "details_url": "string",
        "external_id": "string",
        "status": STATUSES if new else LATE_STATUSES,
        "started_at": "string",
        "conclusion": CONCLUSIONS,
        "completed_at": "string",
        "output": {**output, "annotations": [_ANNOTATION], "images": [_IMAGE]},
        "actions": [_ACTION],
    }
    return fields | ({"name!": "string", "head_sha!": "string"} if new else {"name": "string"})


_REPO = "/repos/{owner}/{repo}"
_RUN = _REPO + "/check-runs/{check_run_id}"
_SUITE = _REPO + "/check-suites/{check_suite_id}"
_READ, _WRITE = "checks:read", "checks:write"

ROUTES = [
    Route("POST", _REPO + "/check-runs", create_run, _WRITE, body=_described(new=True)),
    Route("GET", _RUN, get_run, _READ),
    Route("PATCH", _RUN, update_run, _WRITE, body=_described(new=False)),
    Route("GET", _RUN + "/annotations", list_annotations, _READ),
    Route("POST", _RUN + "/rerequest", rerequest_run, _WRITE, "write"),
    Route("GET", _REPO + "/commits/{ref}/check-runs", runs_of_commit, _READ),
    Route("GET", _REPO + "/commits/{ref}/check-suites", suites_of_commit, _READ),
    Route("POST", _REPO + "/check-suites", create_suite, _WRITE, body={"head_sha!": "string"}),
    Route(
        "PATCH",
        _REPO + "/check-suites/preferences",
        suite_preferences,
        _WRITE,
        "admin",
        {"auto_trigger_checks": [{"app_id!": "integer", "setting!": "boolean"}]},
    ),
    Route("GET", _SUITE, get_suite, _READ),
    Route("GET", _SUITE + "/check-runs", runs_of_suite, _READ),
    Route("POST", _SUITE + "/rerequest", rerequest_suite, _WRITE, "write"),
    Route("GET", _REPO + "/commits/{ref}/status", combined_status, "statuses:read"),
    Route(
        "POST",
        _REPO + "/statuses/{sha}",
        create_status,
        "statuses:write",
        "write",
        {
            "state!": ("error", "failure", "pending", "success"),
            "target_url?": "string",
            "description?": "string",
            "context": "string",
        },
    ),
]
