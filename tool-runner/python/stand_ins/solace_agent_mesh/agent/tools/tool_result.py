"""Stands in for the module of this name."""

from secure_tool_runtime.results import DataDisposition, DataObject, ToolResult

__all__ = ["DataDisposition", "DataObject", "ToolResult"]
