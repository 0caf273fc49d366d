"""Whether the cluster could pull an image, asked of the registry as a node's runtime would."""

from __future__ import annotations

import re
from typing import Final

import httpx

_ACCEPT: Final = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_LOCAL: Final = re.compile(r"(127\.0\.0\.1|localhost)(:\d+)?")
_TIMEOUT: Final = 5.0


class ImagePuller:
    """Looks images up on registries of this machine; every other image counts as pullable, without asking anybody."""

    async def find_problem(self, image: str) -> str:
        """Why an image cannot be pulled, in the words of a node, or nothing."""
        host, _, rest = image.partition("/")
        if not _LOCAL.fullmatch(host):
            return ""
        name, separator, reference = rest.partition("@")
        if not separator:
            name, _, reference = rest.rpartition(":")
        url = f"http://{host}/v2/{name}/manifests/{reference}"
        try:
            async with httpx.AsyncClient(timeout=_TIMEOUT, trust_env=False) as client:
                answer = await client.head(url, headers={"Accept": _ACCEPT})
                if answer.status_code == 401:
                    token = await _fetch_token(client, answer.headers.get("www-authenticate", ""))
                    headers = {"Accept": _ACCEPT, "Authorization": f"Bearer {token}"}
                    answer = await client.head(url, headers=headers)
        except httpx.HTTPError as error:
            return f'Back-off pulling image "{image}": the registry does not answer: {error}'
        if answer.status_code == 200:
            return ""
        reason = "not found" if answer.status_code == 404 else f"registry answered {answer.status_code}"
        return f'Back-off pulling image "{image}": {reason}'


async def _fetch_token(client: httpx.AsyncClient, challenge: str) -> str:
    fields = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    if not _LOCAL.fullmatch(httpx.URL(fields.get("realm", "")).netloc.decode()):
        return ""
    realm = fields.pop("realm")
    answer = await client.get(realm, params=fields)
    return str(answer.json().get("token", "")) if answer.status_code == 200 else ""
