"""Values of the tool's code, such as defaults, as JSON."""

import enum
import math

# Values beyond these bounds are not told.
_MAX_DEPTH = 8
_MAX_VALUES = 200
_MAX_CHARACTERS = 2_000


class NotJson(Exception):
    """A value that JSON does not have, or that is too large to be told."""


def json_of(value: object) -> object:
    """A value as JSON has it: tuples as arrays, members of an Enum as their values.

    Raises NotJson.
    """
    return _Bounded().take(value, _MAX_DEPTH)


class _Bounded:
    def __init__(self) -> None:
        self._values = _MAX_VALUES
        self._characters = _MAX_CHARACTERS

    def take(self, value: object, depth: int) -> object:
        self._values -= 1
        if isinstance(value, enum.Enum):
            value = value.value
        kind = type(value)
        if kind is str:
            self._characters -= len(value)
        if depth == 0 or self._values < 0 or self._characters < 0:
            raise NotJson
        if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
            return value
        if kind in (list, tuple):
            return [self.take(each, depth - 1) for each in value]
        if kind is dict:
            return {self._key(key): self.take(each, depth - 1) for key, each in value.items()}
        raise NotJson

    def _key(self, key: object) -> str:
        if type(key) is not str:
            raise NotJson
        self._characters -= len(key)
        return key


def enumerated(values: "list[object]") -> dict:
    """The schema of a choice between values; {} where one of them is no JSON."""
    try:
        given = [json_of(each) for each in values]
    except NotJson:
        return {}
    if not given:
        return {}
    types = {_TYPES.get(type(each)) for each in given}
    kind = types.pop() if len(types) == 1 else None
    return {"type": kind, "enum": given} if kind else {"enum": given}


_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
