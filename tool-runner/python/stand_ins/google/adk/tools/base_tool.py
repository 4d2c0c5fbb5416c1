"""Stands in for the module of this name."""


class BaseTool:
    """For subclasses."""

    def __init__(self, *, name: str, description: str, **_options: object) -> None:
        self.name = name
        self.description = description
