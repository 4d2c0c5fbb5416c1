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
    """Keeps what it is given."""

    def __init__(self, **members: object) -> None:
        self.__dict__.update(members)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return None  # A member that was not given.

    def model_dump(self, *, exclude_none: bool = False, **_options: object) -> "dict[str, object]":
        """What was given, as dicts."""
        given = self.__dict__.items()
        return {name: _dumped(value) for name, value in given if not (exclude_none and value is None)}


def _dumped(value: object) -> object:
    if isinstance(value, _Described):
        return value.model_dump(exclude_none=True)
    if isinstance(value, dict):
        return {key: _dumped(each) for key, each in value.items()}
    return [_dumped(each) for each in value] if isinstance(value, (list, tuple)) else value


class Schema(_Described):
    """Describes a parameter: `type`, `properties`, `required`, `description`, `items`, `enum`, …"""


class FunctionDeclaration(_Described):
    """Describes a tool: `name`, `description`, `parameters`."""
