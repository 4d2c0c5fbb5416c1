"""Stands in for the module of this name."""

from secure_tool_runtime.class_tools import DynamicTool, DynamicToolProvider

__all__ = ["DynamicTool", "DynamicToolProvider"]
