"""Commits that git subscriptions offer, read from a real git server over smart HTTP."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.domain.freight import Freight, FreightName, FreightOrigin, GitCommit
from bot.domain.marker import Marker, render_marker
from bot.domain.model import CommitSelectionStrategy, GitSubscription
from bot.ports import TerminalError
from bot.workflow.discovery import Finders
from bot.workflow.taken import Taken
from tests.adapters.git_server import ENVIRONMENT, GitServer, commit_files, git, serve_git
from tests.workflow.finding import OUR_EMAIL, Merged, finders, keyed, watched_below

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MARKER = Marker(
    "dev.01.abc",
    "acme",
    "dev",
    Freight(FreightName("a" * 40), "acme", "x", FreightOrigin("w"), NOON),
    "d",
    "s",
    NOON,
)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[GitServer]:
    async with serve_git(tmp_path / "server") as running:
        yield running


@pytest.fixture
def finder(tmp_path: Path) -> Finders:
    return finders(watched=watched_below(tmp_path))


def signed(subject: str) -> str:
    """A message as a promotion's commits have it."""
    trailer = render_marker(MARKER, keyed).removeprefix("<!-- ").removesuffix(" -->")
    return f"{subject}\n\nLockstep-Stage: acme/dev\nLockstep-Marker: {trailer}\n"


def commit_by(repository: Path, email: str, message: str, *parents: str) -> str:
    """Put a commit by somebody onto main; the parents are main's tip unless they are given."""
    tips = parents or (git(repository, "rev-parse", "refs/heads/main"),)
    tree = git(repository, "rev-parse", f"{tips[0]}^{{tree}}")
    arguments = ["git", "commit-tree", tree, *(part for tip in tips for part in ("-p", tip))]
    environment = {**ENVIRONMENT, "GIT_AUTHOR_EMAIL": email}
    made = subprocess.run(
        arguments, cwd=repository, env=environment, input=message.encode(), capture_output=True, check=True
    )
    commit = made.stdout.decode().strip()
    git(repository, "update-ref", "refs/heads/main", commit)
    return commit


def versions(taken: Taken) -> list[str]:
    return [find.exact if len(find.version) == 12 else find.version for find in taken.finds.finds]


def tagged(repository: Path, *tags: str, path: str = "a") -> None:
    """A commit on main for each tag, one after the other."""
    for number, tag in enumerate(tags):
        made = commit_files(repository, "main", {path: f"{number} {tag}"}, f"release {tag}")
        git(repository, "tag", tag, made)


async def test_the_newest_commit_of_the_default_branch_is_offered(server: GitServer, finder: Finders) -> None:
    repository = server.repository()
    first = commit_files(repository, "main", {"a": "1"}, "first\nline two\n\nbody")
    second = commit_files(repository, "main", {"a": "2"}, "x" * 200)
    subscription = GitSubscription(server.address(), name="code")
    taken = await finder.find("acme", subscription)
    assert versions(taken) == [second, first]
    assert taken.artifact == GitCommit(
        repo_url=server.address(),
        id=second,
        branch="main",
        message="x" * 80,
        author="Ada <ada@example.com>",
        committer="Ada <ada@example.com>",
        subscription_name="code",
    )
    assert taken.finds.finds[1].note == "first line two"
    assert versions(await finder.find("acme", replace(subscription, discovery_limit=1))) == [second]


async def test_what_is_pushed_later_is_found_by_the_next_look(server: GitServer, finder: Finders) -> None:
    repository = server.repository()
    first = commit_files(repository, "main", {"a": "1"})
    subscription = GitSubscription(server.address(), branch="main")
    assert versions(await finder.find("acme", subscription)) == [first]
    assert versions(await finder.find("acme", subscription)) == [first]
    second = commit_files(repository, "main", {"a": "2"})
    assert versions(await finder.find("acme", subscription)) == [second, first]


async def test_a_branch_that_does_not_exist_offers_nothing_and_says_so(
    server: GitServer, finder: Finders
) -> None:
    commit_files(server.repository(), "main", {"a": "1"})
    taken = await finder.find("acme", GitSubscription(server.address(), branch="release/1"))
    assert (taken.artifact, taken.finds.note) == (None, "there is no branch release/1")


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        pytest.param(("app",), (), [1], id="a base directory"),
        pytest.param((), ("docs",), [1], id="all but a directory"),
        pytest.param(("glob:**/*.md",), (), [2], id="a glob"),
        pytest.param(
            ("regex:^app/|^docs/",), ("glob:docs/*.md",), [1], id="included but for what is excluded"
        ),
        pytest.param(("nowhere",), (), [], id="nothing"),
    ],
)
async def test_a_commit_counts_by_the_paths_that_it_changed(
    server: GitServer,
    finder: Finders,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    expected: list[int],
) -> None:
    repository = server.repository()
    commits = [commit_files(repository, "main", {"docs/readme.md": "0"})]
    commits.append(commit_files(repository, "main", {"app/main.py": "1"}))
    commits.append(commit_files(repository, "main", {"docs/guide.md": "2"}))
    subscription = GitSubscription(
        server.address(), include_paths=include, exclude_paths=exclude, discovery_limit=1
    )
    taken = await finder.find("acme", subscription)
    assert versions(taken) == [commits[number] for number in expected]
    if not expected:
        assert taken.finds.note == "no commit of main passes the subscription's filters"


async def test_a_merge_counts_by_what_it_brought(server: GitServer, finder: Finders) -> None:
    repository = server.repository()
    base = commit_files(repository, "main", {"a": "1"})
    git(repository, "update-ref", "refs/heads/topic", base)
    topic = commit_files(repository, "topic", {"app/x": "1"})
    tree = git(repository, "rev-parse", f"{topic}^{{tree}}")
    merged = git(repository, "commit-tree", tree, "-p", base, "-p", topic, stdin="merge")
    git(repository, "update-ref", "refs/heads/main", merged)
    taken = await finder.find("acme", GitSubscription(server.address(), include_paths=("app",)))
    assert versions(taken) == [merged]


async def test_an_expression_and_a_date_filter_commits(server: GitServer, finder: Finders) -> None:
    repository = server.repository()
    feature = commit_files(repository, "main", {"a": "1"}, "feat: this")
    commit_files(repository, "main", {"a": "2"}, "chore: that")
    subscription = GitSubscription(server.address(), expression_filter="subject startsWith 'feat'")
    assert versions(await finder.find("acme", subscription)) == [feature]
    late = replace(subscription, since=datetime(2030, 1, 1, tzinfo=UTC))
    assert (await finder.find("acme", late)).artifact is None


async def test_an_expression_that_cannot_be_evaluated_says_where(server: GitServer, finder: Finders) -> None:
    commit_files(server.repository(), "main", {"a": "1"})
    with pytest.raises(TerminalError, match=r"acme/app\.git cannot be carried out"):
        await finder.find("acme", GitSubscription(server.address(), expression_filter="subject.nothing.at"))


async def test_a_long_history_is_read_until_enough_is_found(server: GitServer, finder: Finders) -> None:
    repository = server.repository()
    wanted = commit_files(repository, "main", {"app/x": "1"})
    stream = "".join(
        f"commit refs/heads/main\ncommitter Ada <ada@example.com> {1700000001 + n} +0000\ndata 1\nx\n"
        + (f"from {wanted}\n" if n == 0 else "")
        + f"M 100644 inline docs/x\ndata {len(str(n))}\n{n}\n\n"
        for n in range(600)
    )
    git(repository, "fast-import", "--quiet", stdin=stream)
    taken = await finder.find("acme", GitSubscription(server.address(), include_paths=("app",)))
    assert versions(taken) == [wanted]


@pytest.mark.parametrize(
    ("subscription", "expected"),
    [
        pytest.param(
            {"strategy": CommitSelectionStrategy.SEMVER},
            ["v10.0.0", "v9.0.0", "v1.0.0"],
            id="by version, strictly",
        ),
        pytest.param(
            {"strategy": CommitSelectionStrategy.SEMVER, "semver_constraint": "<10", "strict_semvers": False},
            ["v9.0.0", "v2", "v1.0.0"],
            id="by version with a constraint, leniently",
        ),
        pytest.param(
            {"strategy": CommitSelectionStrategy.LEXICAL, "discovery_limit": 2},
            ["v9.0.0", "v2"],
            id="by name, two of them",
        ),
        pytest.param(
            {"strategy": CommitSelectionStrategy.LEXICAL, "allow_tags_regexes": ("^v1",)},
            ["v10.0.0", "v1.0.0"],
            id="those that are allowed",
        ),
        pytest.param(
            {"strategy": CommitSelectionStrategy.LEXICAL, "ignore_tags_regexes": (r"^v\d",)},
            ["nightly"],
            id="but for those that are ignored",
        ),
        pytest.param(
            {"strategy": CommitSelectionStrategy.LEXICAL, "expression_filter": "subject contains 'v2'"},
            ["v2"],
            id="those that the expression takes",
        ),
        pytest.param(
            {"strategy": CommitSelectionStrategy.SEMVER, "include_paths": ("b",)},
            [],
            id="those whose commits changed the paths",
        ),
    ],
)
async def test_tags_are_offered_as_the_strategy_says(
    server: GitServer, finder: Finders, subscription: dict[str, object], expected: list[str]
) -> None:
    tagged(server.repository(), "v1.0.0", "v10.0.0", "v9.0.0", "v2", "nightly")
    wanted = replace(GitSubscription(server.address()), **subscription)  # type: ignore[arg-type]
    taken = await finder.find("acme", wanted)
    assert versions(taken) == expected


async def test_the_newest_tag_is_the_one_that_was_made_last(server: GitServer, finder: Finders) -> None:
    repository = server.repository()
    first = commit_files(repository, "main", {"a": "1"})
    second = commit_files(repository, "main", {"a": "2"})
    git(repository, "tag", "zulu", second)
    later = {**ENVIRONMENT, "GIT_COMMITTER_DATE": "@1800000000 +0000"}
    subprocess.run(["git", "tag", "-a", "alpha", "-m", "late", first], cwd=repository, env=later, check=True)
    wanted = GitSubscription(server.address(), strategy=CommitSelectionStrategy.NEWEST_TAG)
    taken = await finder.find("acme", wanted)
    assert versions(taken) == ["alpha", "zulu"]
    assert isinstance(taken.artifact, GitCommit)
    assert (taken.artifact.tag, taken.artifact.id, taken.artifact.branch) == ("alpha", first, "")


# -- our own commits -------------------------------------------------------------------------------------------------


async def test_a_release_commit_of_ours_makes_no_freight(server: GitServer, finder: Finders) -> None:
    repository = server.repository()
    person = commit_files(repository, "main", {"a": "1"})
    commit_by(repository, OUR_EMAIL, signed("Promote dev"))
    taken = await finder.find("acme", GitSubscription(server.address()))
    assert versions(taken) == [person]
    assert taken.finds.note == "one commit that Lockstep made itself was passed over"
    git(repository, "tag", "v1.0.0", "main")
    wanted = GitSubscription(server.address(), strategy=CommitSelectionStrategy.SEMVER)
    assert (await finder.find("acme", wanted)).artifact is None


async def test_the_merge_of_a_promotion_makes_no_freight(server: GitServer, finder: Finders) -> None:
    repository = server.repository()
    person = commit_files(repository, "main", {"a": "1"})
    prepared = commit_by(repository, OUR_EMAIL, signed("prepare dev"))
    commit_by(
        repository, "octo@example.com", "Merge pull request #7 from acme/lockstep/acme/dev", person, prepared
    )
    assert versions(await finder.find("acme", GitSubscription(server.address()))) == [person]


async def test_a_squash_of_a_promotion_makes_no_freight(server: GitServer, finder: Finders) -> None:
    repository = server.repository()
    person = commit_files(repository, "main", {"a": "1"})
    squash = f"Promote (#7)\n\n* first\n\n* {signed('last')}\nCo-authored-by: Ada <ada@example.com>\n"
    commit_by(repository, "octo@example.com", squash)
    assert versions(await finder.find("acme", GitSubscription(server.address()))) == [person]


@pytest.mark.parametrize(
    ("recorded", "on_github", "ours"),
    [
        pytest.param(True, False, True, id="the store knows"),
        pytest.param(False, True, True, id="GitHub knows before the store does"),
        pytest.param(False, False, False, id="became another commit"),
    ],
)
async def test_a_squash_without_our_message_is_told_by_its_pull_request(
    server: GitServer, tmp_path: Path, recorded: bool, on_github: bool, ours: bool
) -> None:
    repository = server.repository()
    person = commit_files(repository, "main", {"a": "1"}, "fix (#6)")
    squash = commit_by(repository, "octo@example.com", "Promote dev (#7)")
    merged = Merged({7: squash if recorded else ""}, {7: squash} if on_github else {})
    found = await finders(watched=watched_below(tmp_path), merged=merged).find(
        "acme", GitSubscription(server.address())
    )
    assert versions(found) == ([person] if ours else [squash, person])


async def test_a_rebased_promotion_of_several_commits_makes_no_freight(
    server: GitServer, finder: Finders
) -> None:
    repository = server.repository()
    person = commit_files(repository, "main", {"a": "1"})
    for message in ("one", "two", signed("three")):
        commit_by(repository, OUR_EMAIL, message)
    assert versions(await finder.find("acme", GitSubscription(server.address()))) == [person]


@pytest.mark.parametrize(
    ("email", "message"),
    [
        pytest.param(OUR_EMAIL, "no trailer", id="our address without a trailer"),
        pytest.param(
            OUR_EMAIL,
            signed("forged").replace('"acme"', '"evil"'),
            id="a trailer that was changed",
        ),
        pytest.param(
            "ada@example.com",
            f"text\n\nLockstep-Marker: lockstep-marker {{}} {'0' * 64}",
            id="a trailer that nobody signed",
        ),
    ],
)
async def test_what_only_looks_like_ours_is_offered(
    server: GitServer, finder: Finders, email: str, message: str
) -> None:
    repository = server.repository()
    commit_files(repository, "main", {"a": "1"})
    made = commit_by(repository, email, message)
    taken = await finder.find("acme", GitSubscription(server.address()))
    assert versions(taken)[0] == made
    assert taken.finds.note == ""


async def test_a_commit_of_a_person_before_ours_is_offered(server: GitServer, finder: Finders) -> None:
    repository = server.repository()
    commit_files(repository, "main", {"a": "1"})
    person = commit_by(repository, "octo@example.com", "fix")
    commit_by(repository, OUR_EMAIL, signed("Promote dev"))
    assert versions(await finder.find("acme", GitSubscription(server.address())))[0] == person
