"""The schema of a tool's result, where its annotation says what the runner will make of it."""

import typing

from .constructs import any_of, evaluated
from .records import record_of
from .schemas import Schemas

_TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "data_objects": {"type": "array"}},
    "required": ["text", "data_objects"],
}
_NOTHING = {**_TEXT, "properties": {**_TEXT["properties"], "text": {"type": "null"}}}
_TEXTS = (str, int, float, bool, list, tuple, set, frozenset, bytes)


def result_schema(function: object, namespace: dict) -> "dict | None":
    """The schema of what a caller gets; None where the annotation does not say it."""
    import inspect

    try:
        annotation = inspect.signature(function).return_annotation
        if annotation is inspect.Signature.empty:
            return None
        schemas = Schemas(is_result=True)
        schema = _outcome(annotation, namespace, schemas)
    except Exception:
        # As in `Schemas.of`: the annotation leads nowhere.
        return None
    return None if schema is None else schemas.rooted(schema)


def _outcome(annotation: object, namespace: dict, schemas: Schemas) -> "dict | None":
    meant = evaluated(annotation, namespace)
    if getattr(meant, "__metadata__", None):
        return _outcome(meant.__origin__, namespace, schemas)
    if meant is None or meant is type(None):
        return dict(_NOTHING)
    arguments, kind = typing.get_args(meant), typing.get_origin(meant) or meant
    if not isinstance(kind, type) or type(None) in arguments:
        outcomes = [_outcome(each, namespace, schemas) for each in arguments]
        is_union = getattr(kind, "_name", getattr(kind, "__name__", "")) in ("Union", "UnionType", "Optional")
        return any_of(outcomes) if is_union and outcomes and None not in outcomes else None
    if hasattr(kind, "data_objects") or "data_objects" in getattr(kind, "__annotations__", {}):
        return None  # A ToolResult, whose members the runner chooses.
    if issubclass(kind, dict) or kind in (typing.Mapping, typing.get_origin(typing.Mapping)):
        return schemas.of(meant, namespace)
    if issubclass(kind, _TEXTS):
        return dict(_TEXT)
    record = record_of(kind, schemas)
    # Only an object is the result as it is; anything else is its text.
    is_object = record and schemas.rooted(record).get("type") == "object"
    return record if is_object else None
