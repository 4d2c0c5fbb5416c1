"""
Stands in for the module of this name, as far as class tools describe their parameters with it.
"""

import enum


class Type(str, enum.Enum):
    """Types of a Schema."""

    TYPE_UNSPECIFIED = "TYPE_UNSPECIFIED"
    STRING = "STRING"
    NUMBER = "NUMBER"
    INTEGER = "INTEGER"
    BOOLEAN = "BOOLEAN"
    ARRAY = "ARRAY"
    OBJECT = "OBJECT"
    NULL = "NULL"


class _Described:
    """Keeps what it is given. The worker makes nothing of it."""

    def __init__(self, **members: object) -> None:
        self.__dict__.update(members)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return None  # A member that was not given.


class Schema(_Described):
    """Describes a parameter: `type`, `properties`, `required`, `description`, `items`, `enum`, …"""


class FunctionDeclaration(_Described):
    """Describes a tool: `name`, `description`, `parameters`."""
