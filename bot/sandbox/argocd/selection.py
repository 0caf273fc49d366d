"""Which Applications a list or a stream is about: the query parameters of Argo CD's API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import QueryParams

from bot.sandbox.argocd.errors import ApiError, Code
from bot.sandbox.argocd.sources import normalise_url
from bot.sandbox.argocd.store import Tracked


@dataclass(frozen=True, slots=True)
class Selection:
    """Empty fields select everything; each requirement is one term of a label selector."""

    name: str
    namespace: str
    projects: tuple[str, ...]
    repository: str
    requirements: tuple[str, ...]

    @classmethod
    def read(cls, query: QueryParams) -> Selection:
        """The selection of a request; INVALID_ARGUMENT for a selector of another form than `a=b,c!=d,e,!f`."""
        requirements = []
        for term in filter(None, (part.strip() for part in query.get("selector", "").split(","))):
            if any(mark in term for mark in " ()<>"):
                raise ApiError(Code.INVALID_ARGUMENT, f"unable to parse requirement: {term}")
            requirements.append(term)
        projects = (*query.getlist("projects"), *query.getlist("project"))
        return cls(
            name=query.get("name", ""),
            namespace=query.get("appNamespace", ""),
            projects=tuple(filter(None, projects)),
            repository=query.get("repo", ""),
            requirements=tuple(requirements),
        )

    def matches(self, tracked: Tracked) -> bool:
        """Whether it selects an Application."""
        return (
            self.name in ("", tracked.name)
            and self.namespace in ("", tracked.namespace)
            and (not self.projects or tracked.project in self.projects)
            and (not self.repository or self._uses_repository(tracked))
            and all(_holds(term, tracked.app["metadata"].get("labels", {})) for term in self.requirements)
        )

    def _uses_repository(self, tracked: Tracked) -> bool:
        wanted = normalise_url(self.repository)
        return any(normalise_url(source["repoURL"]) == wanted for source in tracked.sources())


def _holds(term: str, labels: Mapping[str, str]) -> bool:
    if "!=" in term:
        key, _, value = term.partition("!=")
        return labels.get(key) != value
    if "=" in term:
        key, _, value = term.replace("==", "=").partition("=")
        return labels.get(key) == value
    return term.removeprefix("!") not in labels if term.startswith("!") else term in labels
