"""Stands in for the module of this name."""

from secure_tool_runtime.artifacts import (
    Artifact,
    ArtifactTypeInfo,
    get_artifact_info,
    is_artifact_type,
)

__all__ = ["Artifact", "ArtifactTypeInfo", "get_artifact_info", "is_artifact_type"]
