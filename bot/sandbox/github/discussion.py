"""Issues, comments, labels and reactions."""

from dataclasses import dataclass

from bot.sandbox.github.auth import Actor
from bot.sandbox.github.errors import Refused, forbidden, invalid
from bot.sandbox.github.events import Notice, emit
from bot.sandbox.github.pulls import BODY_LIMIT, check_texts, next_number
from bot.sandbox.github.records import Comment, Issue, Json, Label, Reaction, Repository
from bot.sandbox.github.views.issues import comment as comment_view
from bot.sandbox.github.views.issues import issue as issue_view
from bot.sandbox.github.views.lens import Lens
from bot.sandbox.github.world import World


@dataclass(frozen=True, slots=True)
class NewIssue:
    """What an issue is opened with."""

    title: str
    body: str | None = None
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()


def open_issue(world: World, actor: Actor, repo: Repository, new: NewIssue) -> Issue:
    """Open an issue."""
    check_texts("Issue", new.title, new.body)
    now = world.now()
    with world.store.transaction():
        ensure_labels(world, repo, new.labels)
        item = world.store.add(
            Issue(
                repo.id,
                next_number(world, repo),
                False,
                new.title,
                new.body,
                actor.account.id,
                actor.app_id,
                labels=new.labels,
                assignees=tuple(world.need_user(login).id for login in new.assignees),
                created_at=now,
                updated_at=now,
            )
        )
        tell_issue(world, actor, repo, item, "opened")
        return item


def tell_issue(world: World, actor: Actor, repo: Repository, item: Issue, action: str) -> None:
    """Send `issues` with the action; pull requests have events of their own."""
    if item.is_pull:
        return
    emit(
        world,
        repo,
        Notice("issues", action, actor),
        lambda lens: {"issue": issue_view(lens, repo, item)},
    )


def edit_issue(world: World, actor: Actor, repo: Repository, item: Issue, changes: Json) -> Issue:
    """Write changed fields of an issue (not of a pull request's state)."""
    check_texts("Issue", changes.get("title"), changes.get("body"))
    with world.store.transaction():
        if "labels" in changes:
            ensure_labels(world, repo, changes["labels"])
        action = "edited"
        if changes.get("state", item.state) != item.state:
            closing = changes["state"] == "closed"
            action = "closed" if closing else "reopened"
            changes = {
                **changes,
                "closed_at": world.now() if closing else None,
                "closed_by": actor.account.id if closing else None,
                "state_reason": changes.get("state_reason") or ("completed" if closing else "reopened"),
            }
        item = world.store.change(item, **changes, updated_at=world.now())
        tell_issue(world, actor, repo, item, action)
        return item


# ---- comments


def check_comment(body: str) -> None:
    """422 for an empty comment or one over GitHub's limit."""
    if not body.strip():
        raise invalid("IssueComment", "body", code="missing_field")
    if len(body) > BODY_LIMIT:
        error = {
            "resource": "IssueComment",
            "code": "unprocessable",
            "field": "data",
            "message": f"Body is too long (maximum is {BODY_LIMIT} characters)",
        }
        raise Refused(422, "Validation Failed", errors=[error])


def add_comment(world: World, actor: Actor, repo: Repository, item: Issue, body: str) -> Comment:
    """Comment on an issue or pull request."""
    check_comment(body)
    now = world.now()
    with world.store.transaction():
        made = world.store.add(Comment(repo.id, item.number, actor.account.id, body, actor.app_id, now, now))
        world.store.change(item, updated_at=now)
        tell_comment(world, actor, made, "created")
        return made


def tell_comment(world: World, actor: Actor, item: Comment, action: str, more: Json | None = None) -> None:
    """Send `issue_comment` with the action to every App that wants it."""
    repo = world.store.need(Repository, item.repo_id)

    def build(lens: Lens) -> Json:
        found = world.issue(repo, item.number)
        return {
            "issue": issue_view(lens, repo, found),
            "comment": comment_view(lens, repo, item),
            **(more or {}),
        }

    emit(world, repo, Notice("issue_comment", action, actor), build)


def _may_change(world: World, actor: Actor, repo: Repository, item: Comment) -> None:
    """Authors change their own comments, people with write permission everybody's."""
    if actor.account.id == item.author_id or actor.kind == "installation":
        return
    if not world.has_role(actor.account, repo, "write"):
        raise forbidden("Must have admin rights to Repository.")


def edit_comment(world: World, actor: Actor, repo: Repository, item: Comment, body: str) -> Comment:
    """Replace the text of a comment."""
    _may_change(world, actor, repo, item)
    check_comment(body)
    with world.store.transaction():
        old = item.body
        item = world.store.change(item, body=body, updated_at=world.now(), edited_by=actor.account.id)
        tell_comment(world, actor, item, "edited", {"changes": {"body": {"from": old}}})
        return item


def delete_comment(world: World, actor: Actor, repo: Repository, item: Comment) -> None:
    """Remove a comment."""
    _may_change(world, actor, repo, item)
    with world.store.transaction():
        tell_comment(world, actor, item, "deleted")
        for reaction in world.store.find(Reaction, subject="comment", subject_id=item.id):
            world.store.remove(reaction)
        world.store.remove(item)


def react(world: World, actor: Actor, subject: tuple[str, int], content: str) -> tuple[Reaction, bool]:
    """The caller's reaction on `("comment" | "issue", id)`, and whether it is new."""
    made = Reaction(*subject, actor.account.id, content, world.now())
    with world.store.transaction():
        found = world.store.first(
            Reaction,
            subject=made.subject,
            subject_id=made.subject_id,
            user_id=made.user_id,
            content=content,
        )
        return (found, False) if found else (world.store.add(made), True)


# ---- labels


def ensure_labels(world: World, repo: Repository, names: tuple[str, ...] | list[str]) -> None:
    """Make the labels that the repository does not have, as GitHub does when one is used first."""
    for name in names:
        if not name.strip() or len(name) > 50:
            raise invalid("Label", "name")
        if world.store.first(Label, repo_id=repo.id, name=name) is None:
            world.store.add(Label(repo.id, name))
