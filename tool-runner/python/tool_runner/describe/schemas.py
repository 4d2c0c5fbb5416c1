"""JSON Schemas (2020-12) of annotations.

What is not known is left open: `{}` accepts anything. The runner converts no argument, so a schema
says what JSON a tool expects.
"""

import collections
import collections.abc as abc
import datetime
import decimal
import enum
import pathlib
import re
import types
import typing
import uuid

from .annotated import with_metadata
from .constructs import any_of, evaluated, tuple_of
from .json_values import enumerated
from .records import record_of

# Levels of an annotation that are read; below them it is left open.
_MAX_DEPTH = 20
_OPEN: dict = {}
_NONE = type(None)
_UNIONS = (typing.Union, getattr(types, "UnionType", typing.Union))
# Of `typing` and `typing_extensions`; what they say of a member is read where members are.
_WRAPPERS = frozenset(("Required", "NotRequired", "ReadOnly", "Final", "ClassVar", "InitVar"))
_LISTS = (list, collections.deque, abc.Sequence, abc.Collection, abc.Iterable)
_SETS = (set, frozenset, abc.Set)
_MAPS = (dict, abc.Mapping)
# The first that a class derives from counts. A bool is an int, a datetime a date.
_SCALARS = (
    (bool, {"type": "boolean"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (str, {"type": "string"}),
    (datetime.datetime, {"type": "string", "format": "date-time"}),
    (datetime.date, {"type": "string", "format": "date"}),
    (datetime.time, {"type": "string", "format": "time"}),
    (uuid.UUID, {"type": "string", "format": "uuid"}),
    (pathlib.PurePath, {"type": "string"}),
    ((bytes, bytearray), {"type": "string"}),
    (decimal.Decimal, {"anyOf": [{"type": "number"}, {"type": "string"}]}),
)
# What the runner writes as text into a result, by `str`.
_TEXT_IN_RESULTS = (
    *(datetime.date, datetime.time, uuid.UUID, pathlib.PurePath, bytes, bytearray, decimal.Decimal),
    *(set, frozenset),
)
_ARTIFACT = "Artifact"


class Schemas:
    """Makes schemas, and collects the definitions that they refer to in `definitions`.

    For results it says what the runner makes of values: NaN becomes null, a set is text.
    """

    def __init__(self, is_result: bool = False) -> None:
        self.is_result = is_result
        self.definitions: "dict[str, dict]" = {}
        self._depth = 0
        self._references: "dict[int, tuple[dict, object]]" = {}

    def of(self, annotation: object, namespace: dict) -> dict:
        """The schema of an annotation, whose texts mean what `namespace` has."""
        if self._depth == _MAX_DEPTH:
            return {}
        self._depth += 1
        try:
            return self._of(evaluated(annotation, namespace), namespace)
        except Exception:
            # No type of this Python, or a class with tricks of its own.
            return {}
        finally:
            self._depth -= 1

    def define(self, of: object, name: str, make: "typing.Callable[[], dict]") -> dict:
        """A reference to the schema of a class. One definition serves all that name the class."""
        known = self._references.get(id(of))
        if known:
            return known[0]
        free = self.free_name(name)
        self._references[id(of)] = reference, _ = {"$ref": f"#/$defs/{free}"}, of
        self.definitions[free] = {}
        # Definitions are not nested, wherever they are first referred to.
        depth, self._depth = self._depth, 0
        try:
            self.definitions[free] = make()
        except Exception:
            pass  # A class with tricks of its own is left open.
        finally:
            self._depth = depth
        return reference

    def name_of(self, defined: object) -> str:
        """The name of a definition, which may still be made."""
        return self._references[id(defined)][0]["$ref"].rpartition("/")[2]

    def free_name(self, name: str) -> str:
        """A name for a definition that no other has."""
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"
        names = (plain, *(f"{plain}_{number}" for number in range(2, len(self.definitions) + 3)))
        return next(each for each in names if each not in self.definitions)

    def rooted(self, schema: dict) -> dict:
        """A schema with its definitions. A reference at its root gives way to what it means."""
        root, definitions = schema, dict(self.definitions)
        name = schema.get("$ref", "").rpartition("/")[2]
        if list(schema) == ["$ref"] and name in definitions:
            root = definitions[name]
            others = [each for each in definitions.values() if _refers(each, schema["$ref"])]
            if not others:
                del definitions[name]
        return {**root, "$defs": definitions} if definitions else root

    def _of(self, annotation: object, namespace: dict) -> dict:
        if annotation is None or annotation is _NONE:
            return {"type": "null"}
        metadata = getattr(annotation, "__metadata__", None)
        if metadata:
            return with_metadata(self.of(annotation.__origin__, namespace), metadata)
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        name = getattr(origin, "_name", None) or getattr(origin, "__name__", None)
        if origin in _UNIONS:
            return any_of([self.of(each, namespace) for each in arguments])
        if name == "Literal":
            return _OPEN if self._hides_values(arguments) else enumerated(list(arguments))
        if name in _WRAPPERS:
            return self.of(arguments[0], namespace)
        if hasattr(annotation, "__supertype__"):
            return self.of(annotation.__supertype__, namespace)
        if isinstance(annotation, typing.TypeVar):
            return self._of_variable(annotation, namespace)
        if hasattr(annotation, "__value__"):  # `type Name = …` of Python 3.12.
            value = annotation.__value__
            return self.define(annotation, annotation.__name__, lambda: self.of(value, namespace))
        kind = origin or annotation
        return self._of_class(kind, arguments, namespace) if isinstance(kind, type) else _OPEN

    def _of_variable(self, variable: object, namespace: dict) -> dict:
        if variable.__constraints__:
            return any_of([self.of(each, namespace) for each in variable.__constraints__])
        return _OPEN if variable.__bound__ is None else self.of(variable.__bound__, namespace)

    def _of_class(self, kind: type, arguments: tuple, namespace: dict) -> dict:
        if self.is_result and issubclass(kind, _TEXT_IN_RESULTS):
            return {"type": "string"}
        if issubclass(kind, enum.Enum):
            members = list(kind)
            return _OPEN if self._hides_values(members) else enumerated(members)
        if kind.__name__ == _ARTIFACT and not self.is_result:
            return {"type": "string"}
        record = record_of(kind, self)
        if record is not None:
            return record
        for base, schema in _SCALARS:
            if issubclass(kind, base):
                is_float = self.is_result and base is float
                return any_of([schema, {"type": "null"}]) if is_float else dict(schema)
        if issubclass(kind, tuple):
            return self._of_tuple(arguments, namespace)
        if issubclass(kind, _MAPS) or kind is abc.MutableMapping:
            value = self.of(arguments[1], namespace) if len(arguments) == 2 else {}
            return {"type": "object", **({"additionalProperties": value} if value else {})}
        # A set may be given with doubles: the runner passes the list on.
        is_list = issubclass(kind, (list, collections.deque, *_SETS))
        if is_list or kind in _LISTS or kind is abc.MutableSequence:
            items = self.of(arguments[0], namespace) if arguments else {}
            return {"type": "array", **({"items": items} if items else {})}
        return _OPEN

    def _of_tuple(self, arguments: tuple, namespace: dict) -> dict:
        if arguments in ((), ((),)):
            return {"type": "array"}
        if len(arguments) == 2 and arguments[1] is ...:
            items = self.of(arguments[0], namespace)
            return {"type": "array", **({"items": items} if items else {})}
        items = [self.of(each, namespace) for each in arguments]
        return tuple_of(items, len(items))

    def _hides_values(self, members: "typing.Iterable[object]") -> bool:
        """Whether a result has other values: the text of a member that is no str and no int."""
        plain = (str, int, float)
        return self.is_result and any(
            isinstance(each, enum.Enum) and not isinstance(each, plain) for each in members
        )


def _refers(schema: object, reference: str) -> bool:
    if isinstance(schema, dict):
        return schema.get("$ref") == reference or any(_refers(each, reference) for each in schema.values())
    return isinstance(schema, list) and any(_refers(each, reference) for each in schema)
