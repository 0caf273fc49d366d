"""The environment is read once, whole, and every problem is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.settings import Settings, SettingsError

GOOD = {
    "LOCKSTEP_CONFIG": "config",
    "LOCKSTEP_APP_ID": "7",
    "LOCKSTEP_PRIVATE_KEY": "-----BEGIN\\nKEY",
    "LOCKSTEP_WEBHOOK_SECRET": "hush",
}


def test_the_least_that_is_needed() -> None:
    settings = Settings.from_env(GOOD)
    assert (settings.app_id, settings.port, settings.terraform) == (7, 8080, "terraform")
    assert settings.private_key == "-----BEGIN\nKEY"
    assert settings.webhook_secrets == ("hush",)
    assert settings.database.startswith("sqlite:////")


def test_the_names_of_other_apps_are_understood(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("PEM\n")
    settings = Settings.from_env(
        {
            "LOCKSTEP_CONFIG": "c",
            "APP_ID": "8",
            "PRIVATE_KEY_PATH": str(key),
            "WEBHOOK_SECRET": "w",
            "PORT": "81",
        }
    )
    assert (settings.app_id, settings.private_key, settings.port) == (8, "PEM", 81)


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({"LOCKSTEP_PORT": "many", "LOCKSTEP_ISOLATION": "some", "LOCKSTEP_APP_ID": "x"})
    text = str(caught.value)
    for name in ("CONFIG", "PRIVATE_KEY", "WEBHOOK_SECRET", "PORT", "ISOLATION", "APP_ID"):
        assert f"LOCKSTEP_{name}" in text


@pytest.mark.parametrize(
    ("name", "value", "least"), [("DAYS", "3", "4"), ("PROMOTIONS", "20", "50"), ("FREIGHT", "0", "1")]
)
def test_no_less_is_kept_than_decisions_need(name: str, value: str, least: str) -> None:
    with pytest.raises(SettingsError, match=f"LOCKSTEP_KEEP_{name} must be {least} or more, not {value}"):
        Settings.from_env(GOOD | {f"LOCKSTEP_KEEP_{name}": value})


def test_a_secret_file_that_is_missing_is_named_and_no_secret_is_shown() -> None:
    with pytest.raises(SettingsError, match="LOCKSTEP_PRIVATE_KEY_FILE names /nowhere"):
        Settings.from_env(GOOD | {"LOCKSTEP_PRIVATE_KEY": "", "LOCKSTEP_PRIVATE_KEY_FILE": "/nowhere"})
    assert "hush" not in repr(Settings.from_env(GOOD))


def test_servers_and_logins_come_by_name() -> None:
    settings = Settings.from_env(
        GOOD
        | {
            "LOCKSTEP_ARGOCD_DEFAULT_URL": "https://argo.example/",
            "LOCKSTEP_ARGOCD_DEFAULT_TOKEN": "t",
            "LOCKSTEP_REGISTRY_GHCR_HOST": "ghcr.io",
            "LOCKSTEP_REGISTRY_GHCR_USERNAME": "u",
            "LOCKSTEP_REGISTRY_GHCR_PASSWORD": "p",
            "LOCKSTEP_SECRET_ACME_DB_PASSWORD": "s",
            "UNRELATED": "x",
        }
    )
    assert settings.argocd["default"].url == "https://argo.example"
    assert settings.registries[0].host == "ghcr.io"
    assert dict(settings.environment) == {"LOCKSTEP_SECRET_ACME_DB_PASSWORD": "s"}


SIGN_IN = {
    "LOCKSTEP_CLIENT_ID": "Iv1.abc",
    "LOCKSTEP_CLIENT_SECRET": "hush-hush",
    "LOCKSTEP_URL": "https://bot.example/",
}


@pytest.mark.parametrize("missing", sorted(SIGN_IN))
def test_signing_in_needs_id_secret_and_address_together(missing: str) -> None:
    settings = Settings.from_env(GOOD | SIGN_IN)
    assert (settings.client_id, settings.public_url) == ("Iv1.abc", "https://bot.example")
    assert "hush-hush" not in repr(settings)
    with pytest.raises(SettingsError, match=f"{missing}.* is missing"):
        Settings.from_env({name: value for name, value in (GOOD | SIGN_IN).items() if name != missing})


def test_custom_steps_are_programs_and_directories_of_them(tmp_path: Path) -> None:
    (tmp_path / "steps").mkdir()
    (tmp_path / "tool").touch()
    text = f"{tmp_path}/steps:{tmp_path}/tool"
    assert Settings.from_env(GOOD).custom_steps == ()
    assert Settings.from_env(GOOD | {"LOCKSTEP_CUSTOM_STEPS": text}).custom_steps == (
        tmp_path / "steps",
        tmp_path / "tool",
    )


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        pytest.param("steps", "takes absolute paths", id="a relative path"),
        pytest.param("ROOT/steps/../steps", "takes absolute paths", id="a path that goes up"),
        pytest.param("ROOT/nothing", "does not exist", id="what is not there"),
        pytest.param("/usr/bin", "holds shells and interpreters", id="the system's programs"),
        pytest.param("ROOT/link", "holds shells and interpreters", id="a link to them"),
        pytest.param("/", "holds shells and interpreters", id="everything"),
        pytest.param("ROOT", "which holds", id="a directory that holds the bot's data"),
        pytest.param("ROOT/data/steps", "lies in it", id="a directory among the bot's data"),
        pytest.param("ROOT/keys", "which holds", id="a directory that holds the App's key"),
        pytest.param("ROOT/secrets", "which holds", id="the pipeline's secrets"),
        pytest.param("ROOT/pipeline/bin", "lies in it", id="a directory of the pipeline's"),
    ],
)
def test_custom_steps_never_reach_what_is_the_bots_or_the_systems(
    tmp_path: Path, entry: str, said: str
) -> None:
    for name in ("steps", "data/steps", "keys", "secrets", "pipeline/bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "keys" / "app.pem").write_text("PEM")
    (tmp_path / "link").symlink_to("/usr/bin")
    given = GOOD | {
        "LOCKSTEP_DATA": str(tmp_path / "data"),
        "LOCKSTEP_PRIVATE_KEY": "",
        "LOCKSTEP_PRIVATE_KEY_FILE": str(tmp_path / "keys" / "app.pem"),
        "LOCKSTEP_SECRETS": str(tmp_path / "secrets"),
        "LOCKSTEP_CONFIG": str(tmp_path / "pipeline"),
    }
    Settings.from_env(given | {"LOCKSTEP_CUSTOM_STEPS": str(tmp_path / "steps")})
    with pytest.raises(SettingsError, match=f"LOCKSTEP_CUSTOM_STEPS .*{said}"):
        Settings.from_env(given | {"LOCKSTEP_CUSTOM_STEPS": entry.replace("ROOT", str(tmp_path))})
