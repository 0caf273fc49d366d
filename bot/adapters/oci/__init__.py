"""OCI registries: tags, digests and image metadata."""

from __future__ import annotations

from bot.adapters.oci.client import OciRegistries

__all__ = ["OciRegistries"]
