"""JFrog Artifactory's webhooks (domain `docker`, event `pushed`) as notices.

Shape: JFrog's "Webhook Event Types"; the fields stand under `data`, in some versions at the top. The pull host is that
of `jpd_origin`, which is empty until a Custom Base URL is set; a virtual repository's name comes from the receiver.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from bot.domain.receiving import TagsPushed
from bot.domain.values import Json
from bot.payloads.reading import Node, UnsupportedEventError

_IMAGE_TYPES = ("docker", "oci")


def parse_artifactory(event: str, root: Node, config: Mapping[str, Json]) -> tuple[TagsPushed, ...]:  # noqa: ARG001
    """The tag that was pushed. Raises UnsupportedEventError for other events and for other kinds of artifacts."""
    domain, kind = root.text("domain", default=""), root.text("event_type", default="")
    if (domain, kind) != ("docker", "pushed"):
        raise UnsupportedEventError(f"{domain!r} {kind!r} is no push to a docker repository")
    nested = root.find("data")
    pushed = nested or root
    # The flat form comes without the type, and only for Docker.
    image_type = pushed.text("image_type", default="docker" if nested is None else "")
    if image_type not in _IMAGE_TYPES:
        raise UnsupportedEventError(f"the image type {image_type!r} is none of {', '.join(_IMAGE_TYPES)}")
    host = _host(root)
    *folders, _tag, _file = _path(pushed)
    virtual = config.get("virtualRepoName")
    repository = virtual if isinstance(virtual, str) and virtual else pushed.text("repo_key", default="")
    return (TagsPushed("/".join((host, repository, *folders)), (pushed.text("tag", default=""),)),)


def _host(root: Node) -> str:
    origin = root.text("jpd_origin", default="")
    try:
        parts = urlsplit(origin)
    except ValueError as error:
        raise root.fail(f"{origin[:100]!r} is no address", "jpd_origin") from error
    if not parts.scheme or not parts.netloc:
        raise root.fail(
            "an address was expected; set Artifactory's Custom Base URL to that of the registry", "jpd_origin"
        )
    return parts.netloc.rpartition("@")[2]


def _path(pushed: Node) -> list[str]:
    path = pushed.text("path", default="").split("/")
    if len(path) < 2:
        raise pushed.fail("image/tag/file was expected", "path")
    return path
