"""A stand-in for helm, strict about its arguments, for machines that have none.

Templates know `{{ name }}` for the options of the call, `{{ set.KEY }}`, `{{ values.KEY }}` (flat values files), and
three functions: `{{ random }}`, `{{ base64 KEY }}` and `{{ repeat KEY }}` (a line for each `e` of a setting).
`dependency update` locks the declared versions, and refuses a repository that its configuration does not name.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import yaml


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    template = commands.add_parser("template", allow_abbrev=False)
    template.add_argument("release")
    template.add_argument("chart")
    template.add_argument("--namespace", required=True)
    template.add_argument("--values", action="append", default=[])
    template.add_argument("--set", action="append", default=[])
    template.add_argument("--set-literal", action="append", default=[])
    for flag in ("--include-crds", "--no-hooks", "--skip-tests", "--release-name"):
        template.add_argument(flag, action="store_true")
    template.add_argument("--kube-version", default="")
    template.add_argument("--api-versions", action="append", default=[])
    template.add_argument("--output-dir", default="")
    dependency = commands.add_parser("dependency", allow_abbrev=False)
    dependency.add_argument("verb", choices=("update", "build"))
    dependency.add_argument("chart")
    given = parser.parse_args()
    return render(given) if given.command == "template" else depend(given)


def declared(chart: Path) -> dict[str, Any]:
    file = chart / "Chart.yaml"
    if not file.is_file():
        sys.exit(f"Error: Chart.yaml file is missing in {chart}")
    found: dict[str, Any] = yaml.safe_load(file.read_text())
    return found


def render(given: argparse.Namespace) -> int:
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", given.release):
        sys.exit(f"Error: invalid release name {given.release!r}")
    chart = Path(given.chart)
    about = declared(chart)
    for entry in about.get("dependencies", []):
        local = str(entry["repository"]).removeprefix("file://")
        if local != entry["repository"]:
            declared(chart / local)
        elif not list((chart / "charts").glob(f"{entry['name']}-*.tgz")):
            sys.exit(f"Error: found in Chart.yaml, but missing in charts/ directory: {entry['name']}")
    settings = dict(text.split("=", 1) for text in (*given.set, *given.set_literal))
    values: dict[str, Any] = {}
    for path in given.values:
        values |= yaml.safe_load(Path(path).read_text()) or {}
    names = {key: str(value) for key, value in vars(given).items()}
    names |= {f"set.{key}": value for key, value in settings.items()}
    names |= {f"values.{key}": str(value) for key, value in values.items()}
    for file in sorted((chart / "templates").rglob("*.yaml")):
        inner = f"{about['name']}/{file.relative_to(chart).as_posix()}"
        text = f"---\n# Source: {inner}\n{fill(file.read_text(), names)}\n"
        if given.output_dir:
            out = Path(given.output_dir) / (given.release if given.release_name else "") / inner
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(text)
        else:
            print(text, end="")
    return 0


def fill(text: str, names: dict[str, str]) -> str:
    def one(match: re.Match[str]) -> str:
        word, _, key = match[1].strip().partition(" ")
        if word == "random":
            return uuid.uuid4().hex
        if word == "base64":
            return base64.b64encode(names[key].encode()).decode()
        if word == "repeat":
            return "\n".join("# e" for letter in names[key] if letter == "e")
        return names[word]

    return re.sub(r"\{\{(.+?)\}\}", one, text)


def depend(given: argparse.Namespace) -> int:
    chart = Path(given.chart)
    known = yaml.safe_load(Path(os.environ["HELM_REPOSITORY_CONFIG"]).read_text())["repositories"]
    auths = json.loads(Path(os.environ["HELM_REGISTRY_CONFIG"]).read_text())["auths"]
    urls = {entry["url"]: entry for entry in known}
    locked = []
    (chart / "charts").mkdir(exist_ok=True)
    for old in (chart / "charts").glob("*.tgz"):
        old.unlink()
    for entry in declared(chart).get("dependencies", []):
        repository, name, version = entry["repository"], entry["name"], str(entry["version"])
        if repository.startswith("https://") and repository not in urls:
            sys.exit(f"Error: no repository definition for {repository}")
        if "private" in repository and not (urls.get(repository, {}).get("password") or auths):
            sys.exit(f"Error: {repository} answered 401 Unauthorized")
        if version == "9.9.9":
            sys.exit(f"Error: can't get a valid version for {name}: no chart version found for 9.9.9")
        version = version.replace("^1.0.0", "1.4.2")
        (chart / "charts" / f"{name}-{version}.tgz").write_bytes(f"{name} {version}".encode())
        locked.append({"name": name, "repository": repository, "version": version})
    text = yaml.safe_dump({"dependencies": locked, "digest": f"sha256:{len(locked)}"}, sort_keys=True)
    (chart / "Chart.lock").write_text(f'{text}generated: "{time.time_ns()}"\n')
    return 0


if __name__ == "__main__":
    sys.exit(main())
