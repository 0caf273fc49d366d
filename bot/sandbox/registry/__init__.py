"""A small OCI registry in the manner of Distribution, with notifications and a page to publish from."""

from bot.sandbox.registry.notifications import Endpoint
from bot.sandbox.registry.registry import Published, Registry

__all__ = ["Endpoint", "Published", "Registry"]
