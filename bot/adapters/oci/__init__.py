"""OCI registries: tags, digests, image metadata, and what is copied."""

from __future__ import annotations

from bot.adapters.oci.artifacts import OciArtifacts
from bot.adapters.oci.client import OciRegistries
from bot.adapters.oci.projects import ProjectArtifacts, ProjectRegistries

__all__ = ["OciArtifacts", "OciRegistries", "ProjectArtifacts", "ProjectRegistries"]
