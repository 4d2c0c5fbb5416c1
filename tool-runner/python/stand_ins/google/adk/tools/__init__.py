"""Stands in for the package of this name, as far as annotations and base classes go."""

from .base_tool import BaseTool
from .tool_context import ToolContext

__all__ = ["BaseTool", "ToolContext"]
