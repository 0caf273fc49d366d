"""Freight and Stages as the JSON of Kargo's resources, for what authors write about them.

As in Kargo a field that is empty is not there.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.freight import Freight
from bot.domain.model import FreightRequest, Metadata, Stage
from bot.domain.values import Json


def freight_resource(freight: Freight) -> dict[str, Json]:
    """A piece of Freight, without its status."""
    origin: Json = {"kind": "Warehouse", "name": freight.origin.name}
    commits: Json = [
        _filled(
            repoURL=item.repo_url,
            id=item.id,
            branch=item.branch,
            tag=item.tag,
            message=item.message,
            author=item.author,
            committer=item.committer,
            subscriptionName=item.subscription_name,
        )
        for item in freight.commits
    ]
    images: Json = [
        _filled(
            repoURL=item.repo_url,
            tag=item.tag,
            digest=item.digest,
            annotations=dict(item.annotations),
            subscriptionName=item.subscription_name,
        )
        for item in freight.images
    ]
    charts: Json = [
        _filled(
            repoURL=item.repo_url,
            name=item.name,
            version=item.version,
            subscriptionName=item.subscription_name,
        )
        for item in freight.charts
    ]
    return _filled(
        apiVersion="kargo.akuity.io/v1alpha1",
        kind="Freight",
        metadata=_filled(
            name=freight.name,
            namespace=freight.project,
            creationTimestamp=freight.discovered_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            labels={"kargo.akuity.io/alias": freight.alias} if freight.alias else {},
        ),
        alias=freight.alias,
        origin=origin,
        commits=commits,
        images=images,
        charts=charts,
    )


def stage_resource(stage: Stage) -> dict[str, Json]:
    """A Stage, without its steps and its status."""
    verification: Json = (
        {"analysisTemplates": [{"kind": kind, "name": name} for kind, name in stage.verification.templates]}
        if stage.verification is not None
        else None
    )
    variables: Json = [{"name": item.name, "value": item.value or ""} for item in stage.variables]
    requested: Json = [_request(item) for item in stage.requested_freight]
    return _filled(
        apiVersion="kargo.akuity.io/v1alpha1",
        kind="Stage",
        metadata=_metadata(stage.metadata),
        spec=_filled(
            shard=stage.shard, vars=variables, requestedFreight=requested, verification=verification
        ),
    )


def _request(request: FreightRequest) -> Json:
    sources: Json = _filled(direct=request.sources.direct, stages=list(request.sources.stages))
    origin: Json = {"kind": "Warehouse", "name": request.origin.name}
    return {"origin": origin, "sources": sources}


def _metadata(metadata: Metadata) -> Json:
    return _filled(
        name=metadata.name,
        namespace=metadata.namespace,
        labels=_texts(metadata.labels),
        annotations=_texts(metadata.annotations),
    )


def _texts(values: Mapping[str, str]) -> Json:
    return dict(values)


def _filled(**fields: Json) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {}, False)}
