"""Check runs: the newest run of a name on a commit is made to show what is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from bot.adapters.github.connection import Connection, join_path
from bot.adapters.github.errors import NotFound
from bot.adapters.github.tokens import Scope
from bot.domain.files import CommitId
from bot.domain.github import (
    Annotation,
    CheckId,
    CheckRun,
    CheckStatus,
    Conclusion,
    PostedCheck,
    Repository,
)
from bot.payloads.github import read_commit
from bot.payloads.reading import Node

_BATCH = 50
"""GitHub takes so many annotations a request; each further request adds to them."""

_TEXT_LIMIT = 65_535
_TITLE_LIMIT = 255
_MESSAGE_LIMIT = 65_536
_BUTTONS = 3
_LABEL_LIMIT, _DESCRIPTION_LIMIT, _IDENTIFIER_LIMIT = 20, 40, 20
_LEVELS = frozenset({"notice", "warning", "failure"})


@dataclass(frozen=True, slots=True)
class _Seen:
    """A run as GitHub has it, with what is compared before it is written again."""

    check: PostedCheck
    summary: str
    text: str
    annotations: int
    details_url: str

    def shows(self, wanted: CheckRun) -> bool:
        """Whether nothing is left to write."""
        return (
            self.check.conclusion == wanted.conclusion
            and self.check.external_id == wanted.external_id
            and self.check.title == wanted.title
            and self.summary == wanted.summary
            and self.text == wanted.text
            and self.annotations == len(wanted.annotations)
            and wanted.details_url in {"", self.details_url}
        )


class Checks:
    """The part of the port `GitHub` that is about check runs."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list_newest(self, repository: Repository, head: CommitId) -> Sequence[PostedCheck]:
        """Our App's newest run of each name on a commit."""
        newest: dict[str, PostedCheck] = {}
        for seen in await self._list(repository, head):
            known = newest.get(seen.check.name)
            if known is None or seen.check.id > known.id:
                newest[seen.check.name] = seen.check
        return tuple(newest.values())

    async def post(self, repository: Repository, check: CheckRun) -> PostedCheck:
        """Make the newest run of that name on that commit show this.

        A completed run is never opened again: it is followed by a new one, unless it shows the same already.
        Annotations are sent in batches; the conclusion goes with the last, so a crash between leaves the run
        in progress and the next call goes on after what is there.
        Raises ValueError for texts beyond GitHub's limits; nothing is cut here.
        """
        _check_limits(check)
        seen = await self._find(repository, check)
        if seen is not None and seen.shows(check):
            return seen.check
        if seen is not None and seen.check.status is not CheckStatus.COMPLETED:
            # GitHub keeps 1,000 runs of a name; a run that vanished is followed by a new one.
            with suppress(NotFound):
                return await self._continue(repository, check, seen.check.id, sent=seen.annotations)
        created = await self._create(repository, check, after=seen.check.id if seen else CheckId(0))
        if len(check.annotations) <= _BATCH:
            return created
        # GitHub may not know a run everywhere yet that it has just created.
        await self._connection.get_fresh(
            _scope(repository, "read"),
            join_path("repos", repository.owner, repository.name, "check-runs", created.id),
        )
        return await self._continue(repository, check, created.id, sent=_BATCH)

    async def _create(self, repository: Repository, check: CheckRun, *, after: CheckId) -> PostedCheck:
        """Create a run with the first batch; one that appeared since `after` was seen is the one with a lost answer."""

        async def create() -> PostedCheck:
            body = _body(check, sent=0) | {"name": check.name, "head_sha": check.head}
            path = join_path("repos", repository.owner, repository.name, "check-runs")
            node = await self._connection.write(_scope(repository, "write"), "POST", path, body, creates=True)
            return _read(node).check

        async def look() -> PostedCheck | None:
            found = await self._find(repository, check)
            if found is None or found.check.id <= after or found.check.external_id != check.external_id:
                return None
            return found.check

        return await self._connection.write_once(create, look)

    async def _continue(
        self, repository: Repository, check: CheckRun, run: CheckId, *, sent: int
    ) -> PostedCheck:
        """Send the texts and what is left of the annotations to an open run, and with the last batch the conclusion."""
        while True:
            posted = await self._update(repository, check, run, sent=sent)
            sent += _BATCH
            if sent >= len(check.annotations):
                return posted

    async def _update(
        self, repository: Repository, check: CheckRun, run: CheckId, *, sent: int
    ) -> PostedCheck:
        path = join_path("repos", repository.owner, repository.name, "check-runs", run)
        body = _body(check, sent=sent)
        there_then = min(sent + _BATCH, len(check.annotations))

        async def update() -> PostedCheck:
            return _read(await self._connection.write(_scope(repository, "write"), "PATCH", path, body)).check

        async def look() -> PostedCheck | None:
            found = _read(await self._connection.get(_scope(repository, "write"), path))
            is_done = found.annotations >= there_then and found.check.title == check.title
            return found.check if is_done and found.check.status == body["status"] else None

        return await self._connection.write_once(update, look)

    async def _find(self, repository: Repository, check: CheckRun) -> _Seen | None:
        ours = await self._list(repository, check.head, name=check.name)
        return max(ours, key=lambda seen: seen.check.id, default=None)

    async def _list(self, repository: Repository, head: CommitId, name: str = "") -> list[_Seen]:
        path = join_path("repos", repository.owner, repository.name, "commits", head, "check-runs")
        query: dict[str, str | int] = {"filter": "latest", "app_id": self._connection.settings.app_id}
        if name:
            query["check_name"] = name
        listed = await self._connection.list_all(_scope(repository, "read"), path, query, key="check_runs")
        seen = [_read(item) for item in listed]
        app_id = self._connection.settings.app_id
        return [item for item in seen if item.check.app_id == app_id and name in {"", item.check.name}]


def _scope(repository: Repository, level: str) -> Scope:
    return Scope((("checks", level),), repository)


def _body(check: CheckRun, *, sent: int) -> dict[str, object]:
    """One request: the texts, the next batch of annotations, and the conclusion if that batch is the last."""
    batch = check.annotations[sent : sent + _BATCH]
    output: dict[str, object] = {"title": check.title, "summary": check.summary, "text": check.text}
    if batch:
        output["annotations"] = [_annotation(item) for item in batch]
    body: dict[str, object] = {"output": output, "external_id": check.external_id}
    if check.details_url:
        body["details_url"] = check.details_url
    is_last = sent + len(batch) >= len(check.annotations)
    if check.conclusion is not None and is_last:
        body |= {"status": "completed", "conclusion": check.conclusion}
        body["actions"] = [
            {"label": button.label, "description": button.description, "identifier": button.identifier}
            for button in check.buttons
        ]
    else:
        body["status"] = "in_progress"
    return body


def _annotation(annotation: Annotation) -> dict[str, object]:
    line = max(annotation.line, 1)
    body: dict[str, object] = {
        "path": annotation.path,
        "start_line": line,
        "end_line": line,
        "annotation_level": annotation.level,
        "message": annotation.message,
    }
    return body | ({"title": annotation.title} if annotation.title else {})


def _read(node: Node) -> _Seen:
    conclusion = node.text("conclusion", default="")
    check = PostedCheck(
        id=CheckId(node.number("id")),
        name=node.text("name"),
        head=read_commit(node.at("head_sha")),
        app_id=node.number("app", "id", default=0),
        status=_status(node.text("status")),
        # GitHub closes a run that nobody completed for 14 days as "stale"; for us it never had an answer.
        conclusion=Conclusion(conclusion) if conclusion in set(Conclusion) else None,
        external_id=node.text("external_id", default=""),
        title=node.text("output", "title", default=""),
    )
    return _Seen(
        check,
        node.text("output", "summary", default=""),
        node.text("output", "text", default=""),
        node.number("output", "annotations_count", default=0),
        node.text("details_url", default=""),
    )


def _status(text: str) -> CheckStatus:
    if text == "completed":
        return CheckStatus.COMPLETED
    # GitHub also knows requested, waiting and pending, which only its own Actions use.
    return CheckStatus.IN_PROGRESS if text == "in_progress" else CheckStatus.QUEUED


def _check_limits(check: CheckRun) -> None:
    limits = [
        ("the title", check.title, _TITLE_LIMIT),
        ("the summary", check.summary, _TEXT_LIMIT),
        ("the text", check.text, _TEXT_LIMIT),
    ]
    for annotation in check.annotations:
        limits.append((f"an annotation's title on {annotation.path}", annotation.title, _TITLE_LIMIT))
        limits.append((f"an annotation's message on {annotation.path}", annotation.message, _MESSAGE_LIMIT))
        if annotation.level not in _LEVELS:
            raise ValueError(f"an annotation's level is {annotation.level!r}; it is one of {sorted(_LEVELS)}")
    for button in check.buttons:
        limits.append(("a button's label", button.label, _LABEL_LIMIT))
        limits.append(("a button's description", button.description, _DESCRIPTION_LIMIT))
        limits.append(("a button's identifier", button.identifier, _IDENTIFIER_LIMIT))
    for what, text, limit in limits:
        # GitHub counts characters in some places and bytes in others; bytes are never fewer.
        if len(text.encode()) > limit:
            raise ValueError(f"{check.name}: {what} has {len(text.encode())} bytes, GitHub takes {limit}")
    if not check.title or not check.summary:
        raise ValueError(f"{check.name}: a check run needs a title and a summary")
    if len(check.buttons) > _BUTTONS:
        raise ValueError(f"{check.name}: {len(check.buttons)} buttons, GitHub takes {_BUTTONS}")
    if check.buttons and check.conclusion is None:
        raise ValueError(f"{check.name}: GitHub shows buttons on completed runs only")
