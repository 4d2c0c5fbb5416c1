"""Stands in for the package of this name."""

from .artifact_types import Artifact, ArtifactTypeInfo
from .tool_result import DataDisposition, DataObject, ToolResult

__all__ = ["Artifact", "ArtifactTypeInfo", "DataDisposition", "DataObject", "ToolResult"]
