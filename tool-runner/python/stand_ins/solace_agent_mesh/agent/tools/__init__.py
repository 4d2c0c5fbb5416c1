"""Stands in for the package of this name."""

from .artifact_types import Artifact, ArtifactTypeInfo, get_artifact_info
from .tool_result import DataDisposition, DataObject, ToolResult

__all__ = [
    "Artifact",
    "ArtifactTypeInfo",
    "DataDisposition",
    "DataObject",
    "ToolResult",
    "get_artifact_info",
]
