"""Stands in for the package of this name."""

from .tool_context_facade import ToolContextFacade

__all__ = ["ToolContextFacade"]
