"""Where the values of Secrets come from, and which credentials a repository gets."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from bot.adapters.secrets import CREDENTIAL_LABEL, SHARED_PROJECT, Credentials, SecretStore
from bot.domain.model import Document, Metadata
from bot.domain.pipeline import Pipeline
from bot.domain.values import Json
from bot.ports import Secrets, TerminalError


def document(
    project: str, name: str, string_data: dict[str, str] | None = None, *, kind: str = "", **body: Json
) -> tuple[tuple[str, str], Document]:
    labels = {CREDENTIAL_LABEL: kind} if kind else {}
    texts: Json = dict(string_data or {})
    metadata = Metadata(name, project, labels)
    return (project, name), Document("v1", "Secret", metadata, {"stringData": texts, **body})


def store(
    *documents: tuple[tuple[str, str], Document],
    directory: Path | None = None,
    environment: dict[str, str] | None = None,
) -> SecretStore:
    pipeline = Pipeline(secrets=dict(documents))
    return SecretStore(lambda: pipeline, directory=directory, environment=environment)


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_it_is_the_port() -> None:
    secrets: Secrets = store()
    assert secrets.secret("shop", "db") is None
    assert secrets.config_map("shop", "db") is None


def test_a_document_has_its_data_overridden_by_its_string_data() -> None:
    data: Json = {"a": encode("from data"), "b": encode("kept\n")}
    secrets = store(document("shop", "db", {"a": "from stringData"}, data=data))
    assert secrets.secret("shop", "db") == {"a": "from stringData", "b": "kept\n"}


def test_an_empty_document_is_a_secret_without_values() -> None:
    assert store(document("shop", "db")).secret("shop", "db") == {}


def test_a_file_wins_over_the_document_and_the_environment_over_both(tmp_path: Path) -> None:
    folder = tmp_path / "shop" / "db"
    folder.mkdir(parents=True)
    (folder / "password").write_text("from file\n")
    (folder / "caCert").write_text("-----BEGIN\nx\n-----END\n\n")
    secrets = store(
        document("shop", "db", {"username": "u", "password": "from document", "repoURL": "x"}),
        directory=tmp_path,
        environment={
            "LOCKSTEP_SECRET_SHOP_DB_USERNAME": "from environment",
            "LOCKSTEP_SECRET_SHOP_DB_REPOURL": "https://git.example/x",
            "LOCKSTEP_SECRET_SHOP_DB_CACERT": "y",
            "LOCKSTEP_SECRET_SHOP_DB_EXTRA": "z",
            "LOCKSTEP_SECRET_SHOP_DB_accessKeyID": "k",
            "PATH": "/bin",
        },
    )
    assert secrets.secret("shop", "db") == {
        "username": "from environment",
        "password": "from file",
        "repoURL": "https://git.example/x",
        "caCert": "y",
        "extra": "z",
        "accessKeyID": "k",
    }


def test_a_directory_or_the_environment_alone_makes_a_secret(tmp_path: Path) -> None:
    (tmp_path / "shop" / "db").mkdir(parents=True)
    (tmp_path / "shop" / "db" / "password").write_text("p")
    assert store(directory=tmp_path).secret("shop", "db") == {"password": "p"}
    environment = {"LOCKSTEP_SECRET_SHOP_MY_DB_PASSWORD": "q"}
    assert store(environment=environment).secret("shop", "my-db") == {"password": "q"}


def test_names_that_begin_alike_do_not_share_variables() -> None:
    environment = {"LOCKSTEP_SECRET_SHOP_DB_MAIN_PASSWORD": "m", "LOCKSTEP_SECRET_SHOP_DB_PASSWORD": "d"}
    secrets = store(document("shop", "db"), document("shop", "db-main"), environment=environment)
    assert secrets.secret("shop", "db") == {"password": "d"}
    assert secrets.secret("shop", "db-main") == {"password": "m"}


def test_files_of_a_kubernetes_mount_are_read_through_its_links(tmp_path: Path) -> None:
    folder = tmp_path / "shop" / "db"
    (folder / "..2026_01").mkdir(parents=True)
    (folder / "..2026_01" / "password").write_text("p")
    (folder / "..data").symlink_to("..2026_01")
    (folder / "password").symlink_to("..data/password")
    assert store(directory=tmp_path).secret("shop", "db") == {"password": "p"}


@pytest.mark.parametrize(
    ("project", "name"), [("..", "etc"), ("shop", "../../etc"), ("/etc", "x"), ("", "x"), ("a..b", "x")]
)
def test_names_cannot_lead_out_of_the_directory(tmp_path: Path, project: str, name: str) -> None:
    inside = tmp_path / "secrets"
    inside.mkdir()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "shadow").write_text("x")
    assert store(directory=inside).secret(project, name) is None


def test_a_file_that_is_no_secret_is_refused_without_its_content(tmp_path: Path) -> None:
    folder = tmp_path / "shop" / "db"
    folder.mkdir(parents=True)
    (folder / "key").write_bytes(b"\xff\xfe")
    with pytest.raises(TerminalError, match="is no UTF-8 text"):
        store(directory=tmp_path).secret("shop", "db")
    (folder / "key").write_bytes(b"a" * (1024 * 1024 + 1))
    with pytest.raises(TerminalError, match="is larger than"):
        store(directory=tmp_path).secret("shop", "db")


@pytest.mark.parametrize("value", ["not base64!", "YQ", encode("x") + "="])
def test_broken_base64_is_named_but_not_shown(value: str) -> None:
    data: Json = {"password": value}
    with pytest.raises(TerminalError, match=r"data\.password of Secret shop/db is no base64") as caught:
        store(document("shop", "db", data=data)).secret("shop", "db")
    assert value not in str(caught.value)


def test_a_config_map_is_its_texts() -> None:
    body: dict[str, Json] = {"data": {"a": "1", "b": 2}, "binaryData": {"c": "AA=="}}
    maps = {("shop", "cm"): Document("v1", "ConfigMap", Metadata("cm", "shop"), body)}
    pipeline = Pipeline(config_maps=maps)
    assert SecretStore(lambda: pipeline).config_map("shop", "cm") == {"a": "1"}


def test_the_pipeline_in_force_is_asked_at_every_call() -> None:
    pipelines = [Pipeline(), Pipeline(secrets=dict([document("shop", "db", {"a": "b"})]))]
    secrets = SecretStore(lambda: pipelines[0])
    assert secrets.secret("shop", "db") is None
    pipelines.pop(0)
    assert secrets.secret("shop", "db") == {"a": "b"}


def credentials(
    project: str, name: str, url: str, kind: str = "git", **more: str
) -> tuple[tuple[str, str], Document]:
    return document(project, name, {"repoURL": url, "username": name, "password": "p", **more}, kind=kind)


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        pytest.param(
            "https://git.example/acme/ops.git", "shop/b-exact", id="another spelling of the same address"
        ),
        pytest.param("https://git.example/acme/infra", "shop/c-pattern", id="by expression"),
        pytest.param("https://git.example/other/x", f"{SHARED_PROJECT}/shared", id="shared by all projects"),
        pytest.param("https://elsewhere.example/acme/ops", "", id="nobody's"),
        pytest.param("http://git.example/acme/ops", "", id="never over plain http"),
    ],
)
def test_which_credentials_a_repository_gets(url: str, secret: str) -> None:
    secrets = store(
        credentials("shop", "c-pattern", r"^https://git\.example/acme/", repoURLIsRegex="true"),
        credentials("shop", "b-exact", "https://git.example/acme/ops"),
        credentials("other", "a-other", "https://git.example/acme/ops"),
        credentials(SHARED_PROJECT, "shared", "^https://git[.]example/", repoURLIsRegex="true"),
        credentials("shop", "a-image", "https://git.example/acme/ops", kind="image"),
        document("shop", "a-plain", {"repoURL": "https://git.example/acme/ops", "password": "x"}),
        document(
            "shop", "a-app", {"repoURL": "https://git.example/acme/ops", "githubAppClientID": "I"}, kind="git"
        ),
    )
    found = secrets.find_credentials("shop", "git", url)
    assert (found.secret if found else "") == secret


def test_the_first_by_name_wins_even_if_it_is_an_expression() -> None:
    secrets = store(
        credentials("shop", "a", "git.example", repoURLIsRegex="true"),
        credentials("shop", "b", "https://git.example/acme/ops"),
    )
    found = secrets.find_credentials("shop", "git", "https://git.example/acme/ops")
    assert found == Credentials("a", "p", "shop/a")


def test_a_broken_expression_names_its_secret() -> None:
    secrets = store(credentials("shop", "a", "(", repoURLIsRegex="true"))
    with pytest.raises(TerminalError, match="repoURL of Secret shop/a is no expression"):
        secrets.find_credentials("shop", "git", "https://git.example/x")


def image_login(secrets: SecretStore, repository: str, project: str = "shop") -> tuple[str, str] | None:
    found = secrets.find_image_login(project, repository, keys=("username", "password"))
    return (found[1]["username"], found[1]["password"]) if found is not None else None


def test_images_are_matched_in_their_normal_spelling_by_the_projects_own_and_the_shared_secrets() -> None:
    secrets = store(
        credentials("shop", "hub", "docker.io/acme/app", kind="image"),
        credentials(SHARED_PROJECT, "any", ".", kind="image", repoURLIsRegex="true"),
    )
    assert image_login(secrets, "registry-1.docker.io/acme/app") == ("hub", "p")
    assert image_login(secrets, "reg.example/x") == ("any", "p")
    assert image_login(secrets, "registry-1.docker.io/acme/app", "other") == ("any", "p")


def test_the_secret_of_another_project_is_never_used() -> None:
    secrets = store(
        credentials("shop", "hub", "docker.io/acme/app", kind="image"),
        credentials("shop", "charts", "oci://reg.example/app", kind="helm"),
    )
    for repository in ("docker.io/acme/app", "reg.example/app"):
        assert image_login(secrets, repository) is not None
        assert image_login(secrets, repository, "other") is None


def test_a_projects_own_login_for_charts_comes_before_a_shared_one_for_images() -> None:
    secrets = store(
        credentials(SHARED_PROJECT, "any", "reg.example/app", kind="image"),
        credentials("shop", "charts", "oci://reg.example/app", kind="helm"),
    )
    assert image_login(secrets, "reg.example/app") == ("charts", "p")


def test_the_password_may_come_from_elsewhere() -> None:
    secrets = store(
        document("shop", "hub", {"repoURL": "reg.example/app", "username": "bot"}, kind="image"),
        environment={"LOCKSTEP_SECRET_SHOP_HUB_PASSWORD": "hidden"},
    )
    assert image_login(secrets, "reg.example/app") == ("bot", "hidden")


def test_a_password_is_not_shown() -> None:
    assert "hunter2" not in repr(Credentials("u", "hunter2", "shop/a"))
