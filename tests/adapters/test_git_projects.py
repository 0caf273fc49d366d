"""Tasks of projects where the App is not installed: with Secrets, over TLS, against a real git server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.adapters.clock import SystemClock
from bot.adapters.git import GitMirror, RepositoriesOfProjects
from bot.adapters.logins import Logins
from bot.adapters.oci.wire import Wire
from bot.adapters.secrets import CREDENTIAL_LABEL, SHARED_PROJECT, SecretStore
from bot.domain.model import Document, Metadata
from bot.domain.pipeline import Pipeline
from bot.domain.promotion import StepStatus
from bot.domain.values import Json
from bot.ports import TerminalError
from bot.steps.contract import Config
from bot.steps.file_write import FileWrite
from bot.steps.git_clone import GitClone
from bot.steps.git_commit import GitCommit
from bot.steps.git_push import GitPush
from tests.adapters.certificates import make_certificate
from tests.adapters.git_server import GitServer, behind_tls, commit_files, git, serve_git
from tests.steps.bench import Bench

PASSWORD = "pw-of-a-robot"
LOGIN = {"username": "robot", "password": PASSWORD}


@dataclass
class Place:
    """A repository that wants a login, the Secrets of the pipeline, and the mirrors of its projects."""

    server: GitServer
    url: str
    secrets: dict[tuple[str, str], Document]
    repositories: RepositoriesOfProjects
    directory: Path

    def secret(self, owner: str, name: str, values: Mapping[str, str]) -> None:
        """Put a Secret for git into the pipeline."""
        texts: Json = dict(values)
        labels = {CREDENTIAL_LABEL: "git"}
        document = Document("v1", "Secret", Metadata(name, owner, labels), {"stringData": texts})
        self.secrets[owner, name] = document


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("GIT_SSL_CAINFO", str(certificate[0]))

    async def not_installed(url: str) -> None:
        """The App is installed nowhere."""

    secrets: dict[tuple[str, str], Document] = {}
    async with serve_git(tmp_path / "server") as server, Wire(concurrent=1, timeout=5) as wire:
        commit_files(server.repository(), "main", {"a.txt": "1\n"})
        server.user, server.token = "robot", PASSWORD
        logins = Logins(SecretStore(lambda: Pipeline(secrets=secrets)), wire, SystemClock())
        shared = GitMirror(tmp_path / "mirrors", not_installed, network_timeout=20)
        repositories = RepositoriesOfProjects(
            shared, tmp_path / "watched", not_installed, logins.of_git, logins.advise_git
        )
        async with behind_tls(server, certificate) as address:
            # The certificate is for that name alone.
            url = address.replace("127.0.0.1", "localhost")
            yield Place(server, url, secrets, repositories, tmp_path)


async def release(place: Place, project: str) -> Bench:
    """Clone, edit, commit and push as a task of this project."""
    repositories = place.repositories.of(project)
    bench = Bench(repositories)
    config: Config = {"repoURL": place.url, "checkout": [{"path": "src"}]}
    await bench.fulfil(GitClone(repositories), config)
    await bench.fulfil(FileWrite(), {"path": "src/b.txt", "contents": "2\n"})
    await bench.fulfil(GitCommit(repositories), {"path": "src", "message": "add b"})
    pushed = await bench.fulfil(GitPush(repositories), {"path": "src"})
    assert pushed.status is StepStatus.SUCCEEDED, pushed.message
    return bench


@pytest.mark.parametrize(
    ("owner", "values"),
    [
        pytest.param("acme", {}, id="of the project's own by address"),
        pytest.param(SHARED_PROJECT, {}, id="of those that all projects share"),
        pytest.param(
            "acme",
            {"repoURL": r"^https://localhost:\d+/acme/", "repoURLIsRegex": "true"},
            id="of the project's own by a pattern",
        ),
    ],
)
async def test_a_task_clones_and_pushes_with_a_secret(
    place: Place, owner: str, values: dict[str, str]
) -> None:
    place.secret(owner, "gitlab", {"repoURL": place.url, **LOGIN, **values})
    await release(place, "acme")
    assert git(place.server.root / "acme/app.git", "show", "main:b.txt") == "2"
    kept = [path for path in (place.directory / "watched").rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if PASSWORD.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        pytest.param(
            None,
            "install the App there, or give the project acme a Secret with the label kargo.akuity.io/cred-type: git, "
            "`repoURL: {url}`",
            id="where there is none it says which to make",
        ),
        pytest.param(
            {},
            "the Secret acme/gitlab for it holds neither `username` and `password`",
            id="where it holds no login it says what is missing",
        ),
        pytest.param(
            {"username": "robot", "password": "wrong-one"},
            "the Secret acme/gitlab was shown; see that it is right",
            id="where it is refused it names the one that was shown",
        ),
    ],
)
async def test_a_refused_clone_names_the_secret(
    place: Place, values: dict[str, str] | None, wanted: str
) -> None:
    place.secret("other", "gitlab", {"repoURL": place.url, **LOGIN})
    if values is not None:
        place.secret("acme", "gitlab", {"repoURL": place.url, **values})
    with pytest.raises(TerminalError) as refused:
        await release(place, "acme")
    assert wanted.format(url=place.url) in str(refused.value)
    assert "wrong-one" not in str(refused.value)


async def test_a_project_does_not_see_what_another_has_fetched(place: Place) -> None:
    place.secret("other", "gitlab", {"repoURL": place.url, **LOGIN})
    await release(place, "other")
    with pytest.raises(TerminalError, match="give the project acme a Secret"):
        await place.repositories.of("acme").resolve(place.url, "main")


async def test_a_walk_stays_in_the_mirror_that_it_began_in(tmp_path: Path) -> None:
    installed = False

    async def token(url: str) -> str | None:
        return "token" if installed else None

    async def login(project: str, url: str, *, write: bool) -> None:
        """There is no Secret."""

    async with serve_git(tmp_path / "server") as server:
        commit_files(server.repository(), "main", {"a.txt": "1\n"})
        shared = GitMirror(tmp_path / "mirrors", token)
        repositories = RepositoriesOfProjects(
            shared, tmp_path / "watched", token, login, lambda project, url: ""
        )
        walk = repositories.of("acme")
        tip = await walk.resolve(server.address(), "main")
        assert tip is not None
        installed = True
        # A commit that is in no branch is where it was made, although the App was installed meanwhile.
        made = await walk.read_commit(server.address(), tip)
        local = await walk.commit(server.address(), made.tree, [tip], "local", made.author)
        assert (await walk.read_commit(server.address(), local)).message.strip() == "local"
        assert not (tmp_path / "mirrors").exists()
