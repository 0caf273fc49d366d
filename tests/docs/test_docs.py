"""The documentation names what the program has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from bot.domain.commands import HELP

ROOT = Path(__file__).parents[2]
OPERATING = (ROOT / "docs" / "operating.md").read_text()


def dependencies(section: list[str]) -> list[str]:
    return [re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0] for requirement in section]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAMED: list[str] = dependencies(PROJECT["dependencies"]) + dependencies(
    PROJECT["optional-dependencies"]["dev"]
)


@pytest.mark.parametrize("name", sorted(HELP))
def test_every_command_is_described(name: str) -> None:
    assert f"`/{name}" in OPERATING


@pytest.mark.parametrize(
    "name", re.findall(r'add_parser\(\s*"([a-z]+)"', (ROOT / "bot" / "__main__.py").read_text())
)
def test_every_command_of_the_command_line_is_described(name: str) -> None:
    assert f"\n| `lockstep {name}" in OPERATING


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r'"(LOCKSTEP_[A-Z_]+)"', (ROOT / "bot" / "settings.py").read_text())))
)
def test_every_setting_is_described(name: str) -> None:
    # Prefixes end in an underscore: the table shows them with what follows.
    assert f"`{name}" in OPERATING


@pytest.mark.parametrize("name", sorted(NAMED))
def test_every_dependency_has_a_reason(name: str) -> None:
    assert name.lower() in (ROOT / "docs" / "dependencies.md").read_text().lower()


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text()))
def test_every_link_of_the_readme_leads_somewhere(link: str) -> None:
    assert link.startswith("https://") or (ROOT / link).exists()


def test_the_readmes_first_screen_has_the_two_commands() -> None:
    first = "\n".join((ROOT / "README.md").read_text().splitlines()[:25])
    assert ".venv/bin/lockstep demo" in first
    assert ".ci/test" in first


def test_the_manifest_asks_for_what_the_sandboxs_app_has() -> None:
    from bot.sandbox.seed.demo import EVENTS, PERMISSIONS

    manifest = yaml.safe_load((ROOT / "app.yaml").read_text())
    assert set(EVENTS) <= set(manifest["default_events"])
    for name, level in manifest["default_permissions"].items():
        assert PERMISSIONS[name] == level


def test_every_metric_is_described() -> None:
    page = (ROOT / "bot" / "web" / "metrics.py").read_text()
    names = re.findall(r'_(?:one|family)\(\s*"([a-z_]+)"', page)
    assert len(names) > 10
    assert [name for name in names if f"`lockstep_{name}" not in OPERATING] == []


def test_every_check_of_the_doctor_is_described() -> None:
    sources = [ROOT / "bot" / "domain" / name for name in ("doctor.py", "doctor_github.py")]
    texts = [path.read_text() for path in (*sources, ROOT / "bot" / "workflow" / "doctor.py")]
    checks = {name for text in texts for name in re.findall(r'(?:fail|good|warn)\("([a-z ]+)"', text)}
    assert {"settings", "webhook", "argocd"} <= checks
    described = OPERATING.partition("| Check | What it asks |")[2].partition("\n\n")[0]
    assert [name for name in checks if name not in described] == []
