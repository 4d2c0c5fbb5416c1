"""Stands in for the module of this name."""


class ToolContext:
    """For annotations. Nobody makes one here: there is no agent in this process."""
