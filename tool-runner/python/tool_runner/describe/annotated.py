"""What `Annotated` adds to a type: a description, and bounds as pydantic and others write them."""

import re

from .json_values import NotJson, json_of

_BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_LENGTHS = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}


def with_metadata(schema: dict, metadata: "tuple[object, ...]") -> dict:
    """A schema with the description and the bounds of the metadata."""
    added = dict(schema)
    for each in metadata:
        added.update(_bounds_of(each, schema.get("type")))
        for inner in getattr(each, "metadata", None) or ():  # Of a Field of pydantic.
            added.update(_bounds_of(inner, schema.get("type")))
    description = description_in(*metadata)
    return {**added, "description": description} if description else added


def description_in(*metadata: object) -> "str | None":
    """The first text among the metadata: one of its own, of a `Field` or of a `Doc`."""
    for each in metadata:
        members = (each, getattr(each, "description", None), getattr(each, "documentation", None))
        text = next((text for text in members if isinstance(text, str) and text.strip()), None)
        if text:
            return " ".join(text.split())
    return None


def _bounds_of(source: object, kind: object) -> dict:
    if isinstance(source, str):
        return {}
    found = {_BOUNDS[name]: getattr(source, name, None) for name in _BOUNDS} if kind in ("integer", "number") else {}
    if kind in _LENGTHS:
        least, most = _LENGTHS[kind]
        found.update({least: getattr(source, "min_length", None), most: getattr(source, "max_length", None)})
    if kind == "string":
        pattern = getattr(source, "pattern", None)
        found["pattern"] = pattern.pattern if isinstance(pattern, re.Pattern) else pattern
    bounds = {}
    for name, value in found.items():
        try:
            value = json_of(value)
        except NotJson:
            continue
        is_fitting = isinstance(value, str) if name == "pattern" else type(value) in (int, float)
        if is_fitting:
            bounds[name] = value
    return bounds
