"""Events of Amazon ECR, as EventBridge sends them to an API destination, as notices.

Shape: AWS's "Amazon ECR events and EventBridge"; CloudEvents made of them by an input transformer are read too. Charts
and images are pushed alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.domain.receiving import TagsPushed
from bot.domain.values import Json
from bot.payloads.reading import Node, UnsupportedEventError

_ACCOUNT = re.compile(r"[0-9]{12}")
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]+")


def parse_ecr(event: str, root: Node, config: Mapping[str, Json]) -> tuple[TagsPushed, ...]:  # noqa: ARG001
    """The tag that was pushed. Raises UnsupportedEventError for deletions, scans and the like."""
    kind = root.text("type", default="")
    if kind.startswith("com.amazon.ecr."):
        return _of_cloud_event(root, kind)
    kind = root.text("detail-type", default="")
    if root.text("source", default="") != "aws.ecr" or kind not in {
        "ECR Image Action",
        "ECR Replication Action",
    }:
        raise UnsupportedEventError(f"{kind!r} is no push to ECR")
    detail = root.at("detail")
    action = detail.text("action-type", default="")
    if detail.text("result", default="") != "SUCCESS" or (kind == "ECR Image Action" and action != "PUSH"):
        raise UnsupportedEventError(f"the action {action!r} is no successful push")
    host = _host(root, root.text("account"), root.text("region"))
    return _pushed(host, detail.text("repository-name"), detail.text("image-tag", default=""))


def _of_cloud_event(root: Node, kind: str) -> tuple[TagsPushed, ...]:
    if kind != "com.amazon.ecr.image.push":
        raise UnsupportedEventError(f"{kind!r} is no push")
    pushed = root.at("data")
    source = root.text("source").split(":")
    region = source[3] if len(source) > 3 else ""
    host = _host(root, pushed.text("registryId"), region)
    return _pushed(host, pushed.text("repositoryName"), pushed.text("imageTag", default=""))


def _host(root: Node, account: str, region: str) -> str:
    if _ACCOUNT.fullmatch(account) is None or _REGION.fullmatch(region) is None:
        raise root.fail("an account of twelve digits and a region were expected")
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"{account}.dkr.ecr.{region}.{suffix}"


def _pushed(host: str, repository: str, tag: str) -> tuple[TagsPushed, ...]:
    return (TagsPushed(f"{host}/{repository}", (tag,)),) if tag else ()
