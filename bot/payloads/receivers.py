"""What receivers are told, one reader per kind, listed in `RECEIVERS`.

A reader gets the event's name (a header, where the sender has one), the body and the receiver's own configuration. It
gives notices, raises PayloadProblem for a body that its sender would not send, and UnsupportedEventError for an event
that tells nothing about versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bot.domain.receiving import Notice, TagsPushed
from bot.domain.values import Json
from bot.payloads.artifactory import parse_artifactory
from bot.payloads.azure import parse_azure
from bot.payloads.bitbucket import parse_bitbucket
from bot.payloads.ci import parse_ci
from bot.payloads.distribution import read_notifications
from bot.payloads.dockerhub import parse_dockerhub
from bot.payloads.ecr import parse_ecr
from bot.payloads.gar import parse_gar
from bot.payloads.generic import parse_generic
from bot.payloads.gitea import parse_gitea
from bot.payloads.github_hook import parse_github_hook
from bot.payloads.gitlab import parse_gitlab
from bot.payloads.harbor import parse_harbor
from bot.payloads.nexus import parse_nexus
from bot.payloads.quay import parse_quay
from bot.payloads.reading import Node, read_json

Reader = Callable[[str, Node, Mapping[str, Json]], "tuple[Notice, ...]"]


def _parse_distribution(event: str, root: Node, config: Mapping[str, Json]) -> tuple[Notice, ...]:  # noqa: ARG001
    """A registry behind a load balancer names itself as the balancer does; `registry` is then its name for clients."""
    host = config.get("registry")
    found: list[Notice] = []
    for pushed in read_notifications(root):
        seen, _, path = pushed.repository.partition("/")
        name = host if isinstance(host, str) and host else seen
        found.append(TagsPushed(f"{name}/{path}", (pushed.tag,)))
    return tuple(found)


RECEIVERS: Mapping[str, Reader] = {
    "artifactory": parse_artifactory,
    "azure": parse_azure,
    "bitbucket": parse_bitbucket,
    "dockerhub": parse_dockerhub,
    "generic": parse_generic,
    "gitea": parse_gitea,
    "github": parse_github_hook,
    "gitlab": parse_gitlab,
    "harbor": parse_harbor,
    "quay": parse_quay,
    "ci": parse_ci,
    "distribution": _parse_distribution,
    "ecr": parse_ecr,
    "gar": parse_gar,
    "nexus": parse_nexus,
}
"""Every kind of receiver by its name in ProjectConfig; the first ten are Kargo's."""


def read_notices(vendor: str, event: str, body: bytes, config: Mapping[str, Json]) -> tuple[Notice, ...]:
    """What one delivery tells; raises PayloadProblem."""
    return RECEIVERS[vendor](event, read_json(body), config)
