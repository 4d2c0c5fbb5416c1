"""Stands in for the module of this name."""

from secure_tool_runtime.results import (
    TOOL_RESULT_SCHEMA_VERSION,
    DataDisposition,
    DataObject,
    ToolResult,
)

__all__ = ["TOOL_RESULT_SCHEMA_VERSION", "DataDisposition", "DataObject", "ToolResult"]
