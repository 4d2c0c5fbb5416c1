"""Stands in for the module of this name."""

from secure_tool_runtime.facade import ToolContextFacade

__all__ = ["ToolContextFacade"]
