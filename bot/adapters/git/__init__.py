"""Git repositories as bare mirrors, by git's plumbing commands."""

from __future__ import annotations

from bot.adapters.git.mirror import GitMirror as GitMirror
from bot.adapters.git.projects import RepositoriesOfProjects as RepositoriesOfProjects
