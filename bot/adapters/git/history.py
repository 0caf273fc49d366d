"""What discovery reads of a mirror: its tags, and which paths commits changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.adapters.git.objects import parse_moment
from bot.domain.files import CommitId
from bot.domain.selection import GitTag
from bot.ports import Commit

_SUBJECT = ("authorname", "authoremail", "committername", "committeremail", "contents:subject")

_FIELDS = (
    "refname:strip=2",
    "objecttype",
    "objectname",
    "*objecttype",
    "*objectname",
    "creatordate:raw",
    "taggername",
    "taggeremail",
    *_SUBJECT,
    *(f"*{field}" for field in _SUBJECT),
)

LIST_TAGS = (
    "for-each-ref",
    "--sort=-creatordate",
    "--format=" + "%00".join(f"%({field})" for field in _FIELDS),
    "refs/tags",
)
"""Tags by the time at which they (or the commits of lightweight ones) were made, newest first."""

DIFF_COMMITS = ("diff-tree", "--stdin", "-r", "-z", "--root", "--always", "--no-renames", "--name-only")
"""Reads lines of a commit and the parent that it is compared with."""


def parse_tags(output: bytes) -> list[GitTag]:
    """The tags that lead to commits. Of an annotated one subject and people are those of its commit, as in Kargo."""
    found: list[GitTag] = []
    for line in output.decode("utf-8", "replace").splitlines():
        fields = dict(zip(_FIELDS, line.split("\0"), strict=True))
        annotated = fields["objecttype"] == "tag"
        of = "*" if annotated else ""
        if fields[f"{of}objecttype"] != "commit":
            # A tag of a tree, of a file or of another tag is no version of the repository.
            continue
        found.append(
            GitTag(
                tag=fields["refname:strip=2"],
                id=fields[f"{of}objectname"],
                created_at=parse_moment(fields["creatordate:raw"]),
                author=_person(fields[f"{of}authorname"], fields[f"{of}authoremail"]),
                committer=_person(fields[f"{of}committername"], fields[f"{of}committeremail"]),
                subject=fields[f"{of}contents:subject"],
                tagger=_person(fields["taggername"], fields["taggeremail"]),
                annotation=fields["contents:subject"] if annotated else "",
            )
        )
    return found


def _person(name: str, email: str) -> str:
    return f"{name} {email}".strip()


def ask_for_paths(commits: Sequence[Commit]) -> bytes:
    """The input of `DIFF_COMMITS`: each commit with its first parent, so that a merge counts as what it brought."""
    return "".join(f"{' '.join((commit.id, *commit.parents[:1]))}\n" for commit in commits).encode()


def parse_paths(output: bytes, commits: Sequence[Commit]) -> Mapping[CommitId, tuple[str, ...]]:
    """The changed paths of each commit, from the output for exactly these."""
    found: dict[CommitId, list[str]] = {}
    waiting = iter([*(commit.id for commit in commits), ""])
    following = next(waiting)
    for field in output.decode("utf-8", "surrogateescape").split("\0"):
        # Every commit is named, in the order in which they were asked for; what stands between are its paths.
        if field and field == following:
            paths = found[CommitId(field)] = []
            following = next(waiting)
        elif field:
            paths.append(field)
    return {commit: tuple(paths) for commit, paths in found.items()}
