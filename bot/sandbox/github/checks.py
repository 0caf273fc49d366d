"""Check runs: creating and updating them, re-runs and buttons, with GitHub's limits."""

from bot.sandbox.github.auth import Actor
from bot.sandbox.github.errors import Refused, forbidden, invalid
from bot.sandbox.github.events import Notice, emit
from bot.sandbox.github.git import ZERO, RefChange
from bot.sandbox.github.pushes import open_suite, tell_suite
from bot.sandbox.github.records import CheckRun, CheckSuite, Json, Repository
from bot.sandbox.github.views.checks import check_run, check_suite, suite_state
from bot.sandbox.github.views.lens import Lens
from bot.sandbox.github.world import World

TEXT_LIMIT = 65535
TITLE_LIMIT = 255
MESSAGE_LIMIT = 64 * 1024
MOST_ANNOTATIONS = 50
MOST_ACTIONS = 3
ACTION_LIMITS = (("label", 20), ("description", 40), ("identifier", 20))


def check_output(output: Json) -> None:
    """422 for an output over GitHub's limits; texts are measured in UTF-8 bytes."""
    for name in ("summary", "text"):
        if len((output.get(name) or "").encode()) > TEXT_LIMIT:
            raise Refused(
                422, f"Invalid request.\n\nOnly {TEXT_LIMIT} characters are allowed; {name} is longer."
            )
    if len(output.get("title") or "") > TITLE_LIMIT:
        raise invalid("CheckRun", "title", message=f"title is too long (maximum is {TITLE_LIMIT} characters)")
    annotations = output.get("annotations") or []
    if len(annotations) > MOST_ANNOTATIONS:
        raise Refused(
            422,
            f"Invalid request.\n\nNo more than {MOST_ANNOTATIONS} items are allowed; {len(annotations)} were supplied.",
        )
    for item in annotations:
        if item["end_line"] < item["start_line"]:
            raise invalid("CheckAnnotation", "end_line")
        if "start_column" in item and item["start_line"] != item["end_line"]:
            raise invalid("CheckAnnotation", "start_column")
        for name in ("message", "raw_details"):
            if len((item.get(name) or "").encode()) > MESSAGE_LIMIT:
                raise invalid("CheckAnnotation", name, message=f"{name} is too long (maximum is 64 KB)")


def check_actions(actions: list[Json]) -> None:
    """422 for more or longer buttons than GitHub shows."""
    if len(actions) > MOST_ACTIONS:
        raise Refused(
            422,
            f"Invalid request.\n\nNo more than {MOST_ACTIONS} items are allowed; {len(actions)} were supplied.",
        )
    for item in actions:
        for name, limit in ACTION_LIMITS:
            if len(item[name]) > limit:
                raise Refused(
                    422,
                    f"Invalid request.\n\nOnly {limit} characters are allowed; {len(item[name])} were supplied.",
                )


def create_run(world: World, actor: Actor, repo: Repository, fields: Json) -> CheckRun:
    """Create a check run from the body of the request; only Apps can."""
    if actor.app_id is None:
        raise forbidden("You must authenticate via a GitHub App.")
    sha = fields["head_sha"]
    if world.git(repo).object_type(sha) != "commit" or len(sha) != 40:
        raise Refused(422, f"No commit found for SHA: {sha}")
    with world.store.transaction():
        suite = open_suite(world, repo, actor.app_id, RefChange(_branch_of(world, repo, sha), ZERO, sha))
        if suite is None:
            keys = {"repo_id": repo.id, "app_id": actor.app_id, "head_sha": sha}
            suite = world.store.first(CheckSuite, **keys)
        if suite is None:
            raise Refused(422, f"No commit found for SHA: {sha}")
        values = _values(world, fields, CheckRun(repo.id, suite.id, actor.app_id, sha, fields["name"]))
        run = world.store.add(
            CheckRun(repo.id, suite.id, actor.app_id, sha, **{"name": fields["name"], **values})
        )
        tell_run(world, actor, run, "created")
        if run.status == "completed":
            _completed(world, actor, repo, run)
        return run


def _branch_of(world: World, repo: Repository, sha: str) -> str:
    """The first branch that is at the commit, or no branch."""
    found = [name for name, known, _ in world.git(repo).refs("refs/heads/") if known == sha]
    return found[0] if found else "refs/none"


def _values(world: World, fields: Json, run: CheckRun) -> Json:
    """The columns that a create or update writes."""
    output, actions = fields.get("output") or {}, fields.get("actions")
    check_output(output)
    if actions is not None:
        check_actions(actions)
    names = ("name", "details_url", "external_id", "started_at", "completed_at", "status", "conclusion")
    values: Json = {name: fields[name] for name in names if name in fields}
    for name in ("title", "summary", "text"):
        if name in output:
            values[name] = output[name]
    if output.get("annotations"):
        values["annotations"] = (*run.annotations, *output["annotations"])
    if actions is not None:
        values["actions"] = tuple(actions)
    if values.get("conclusion") is not None:
        values["status"] = "completed"
    if values.get("status") == "completed":
        if values.get("conclusion", run.conclusion) is None:
            raise Refused(422, 'Invalid request.\n\n"conclusion" wasn\'t supplied.')
        values.setdefault("completed_at", world.now())
    if values.get("status", run.status) != "queued" and run.started_at is None:
        values.setdefault("started_at", world.now())
    return values


def update_run(world: World, actor: Actor, repo: Repository, run: CheckRun, fields: Json) -> CheckRun:
    """Update the App's own run.

    A completed run stays completed: an update that names another status is taken, but its status is not, as on
    GitHub, where a new run has to be created instead.
    """
    if actor.app_id != run.app_id:
        raise forbidden(
            "Invalid app_id `%s` - check run can only be modified by the GitHub App that created it."
            % (actor.app_id or "none")
        )
    was_completed = run.status == "completed"
    if was_completed and fields.get("status", "completed") != "completed":
        fields = {name: value for name, value in fields.items() if name not in ("status", "started_at")}
    with world.store.transaction():
        run = world.store.change(run, **_values(world, fields, run))
        if run.status == "completed" and (not was_completed or "conclusion" in fields):
            _completed(world, actor, repo, run)
        return run


def _completed(world: World, actor: Actor, repo: Repository, run: CheckRun) -> None:
    tell_run(world, actor, run, "completed")
    suite = world.store.need(CheckSuite, run.suite_id)
    world.store.change(suite, updated_at=world.now(), rerequested=False)
    if suite_state(Lens(world, ""), suite)[0] == "completed":
        emit(
            world,
            repo,
            Notice("check_suite", "completed", actor),
            lambda lens: {"check_suite": check_suite(lens, repo, suite)},
        )
    world.wake()


def tell_run(world: World, actor: Actor, run: CheckRun, action: str, more: Json | None = None) -> None:
    """Send `check_run`; re-runs and buttons reach only the App that made the run."""
    repo = world.store.need(Repository, run.repo_id)
    only = run.app_id if action in ("rerequested", "requested_action") else None

    def build(lens: Lens) -> Json:
        suite = world.store.need(CheckSuite, run.suite_id)
        view = {**check_run(lens, repo, run), "check_suite": check_suite(lens, repo, suite)}
        return {"check_run": view, **(more or {})}

    emit(world, repo, Notice("check_run", action, actor, only_app=only), build)


def rerequest_run(world: World, actor: Actor, run: CheckRun) -> None:
    """Ask the App to run one check again; the run itself stays as it is until the App acts."""
    if run.status != "completed":
        raise Refused(422, "This check run is not rerequestable")
    with world.store.transaction():
        world.store.change(world.store.need(CheckSuite, run.suite_id), rerequested=True)
        tell_run(world, actor, run, "rerequested")


def rerequest_suite(world: World, actor: Actor, repo: Repository, suite: CheckSuite) -> None:
    """Ask the App to run all its checks on the commit again."""
    with world.store.transaction():
        suite = world.store.change(suite, rerequested=True, updated_at=world.now())
        tell_suite(world, actor, repo, suite, "rerequested")


def press(world: World, actor: Actor, run: CheckRun, identifier: str) -> None:
    """Press a button of a completed run, as anybody with write permission can."""
    if run.status != "completed" or all(item["identifier"] != identifier for item in run.actions):
        raise Refused(422, f"Check run {run.name} has no button {identifier}.")
    more = {"requested_action": {"identifier": identifier}}
    with world.store.transaction():
        tell_run(world, actor, run, "requested_action", more)
