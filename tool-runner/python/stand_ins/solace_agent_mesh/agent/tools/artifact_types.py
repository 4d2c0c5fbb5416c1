"""Stands in for the module of this name."""

from secure_tool_runtime.artifacts import Artifact, ArtifactTypeInfo

__all__ = ["Artifact", "ArtifactTypeInfo"]
