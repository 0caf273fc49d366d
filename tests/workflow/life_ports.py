"""Ports of the machine of lives that hold nothing: no secrets, no rules, one project, one configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.github import Repository
from bot.ports import Git


@dataclass(frozen=True)
class OneProject:
    """The git of the only project."""

    git: Git

    def of(self, project: str) -> Git:
        return self.git


class NoRules:
    """No branch is protected."""

    async def why_no_push(self, repository: Repository, branch: str) -> str:
        return ""

    async def merge_methods(self, repository: Repository, branch: str) -> frozenset[str]:
        return frozenset({"merge", "squash", "rebase"})


class NoSecrets:
    """There are none."""

    def secret(self, project: str, name: str) -> Mapping[str, str] | None:
        return None

    def config_map(self, project: str, name: str) -> Mapping[str, str] | None:
        return None


@dataclass(frozen=True)
class FixedSource:
    """The configuration's files."""

    files: Mapping[str, str]

    async def read(self) -> tuple[str, Mapping[str, str]]:
        return "c" * 40, self.files
