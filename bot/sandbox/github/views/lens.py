"""Where the JSON is seen from: the world and the URL that its links begin with."""

import base64
import binascii
from dataclasses import dataclass

from bot.sandbox.github.records import Repository
from bot.sandbox.github.world import World


@dataclass(frozen=True, slots=True)
class Lens:
    """The world seen through links that begin with `base` (no slash at its end)."""

    world: World
    base: str

    @property
    def api(self) -> str:
        """The root of the REST API."""
        return f"{self.base}/api/v3"

    def repo_api(self, repo: Repository) -> str:
        """The REST URL of the repository."""
        return f"{self.api}/repos/{self.world.full_name(repo)}"

    def repo_web(self, repo: Repository) -> str:
        """The web URL of the repository."""
        return f"{self.base}/{self.world.full_name(repo)}"


def node_id(kind: str, id: int) -> str:
    """The GraphQL id of a thing, for example `IC_kwMTIz` of an issue comment."""
    return f"{kind}_kw{base64.urlsafe_b64encode(str(id).encode()).decode().rstrip('=')}"


def from_node_id(node: str) -> tuple[str, int] | None:
    """The kind and database id of a GraphQL id, or None if it is not one of ours."""
    kind, mark, rest = node.partition("_kw")
    if not mark:
        return None
    try:
        return kind, int(base64.urlsafe_b64decode(rest + "=" * (-len(rest) % 4)))
    except (binascii.Error, ValueError):
        return None
