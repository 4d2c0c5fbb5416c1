"""Schemas that tools and packages make themselves, in the words of JSON Schema.

They come in the forms of pydantic and of the classes of agents' libraries. The worker leaves out
what JSON Schema 2020-12 does not have.
"""

import enum

from .constructs import or_null
from .json_values import NotJson

# Levels of a schema that are read; below them it is left open.
_MAX_DEPTH = 20
# Keywords by the names that classes of `google.genai.types` have for them.
_RENAMED = {
    "any_of": "anyOf",
    "additional_properties": "additionalProperties",
    "max_items": "maxItems",
    "max_length": "maxLength",
    "max_properties": "maxProperties",
    "min_items": "minItems",
    "min_length": "minLength",
    "min_properties": "minProperties",
    "definitions": "$defs",
}
# Titles repeat the names of members, and a model's set may be given with doubles.
_DROPPED_OF_CLASSES = frozenset(("title", "uniqueItems"))
_OF_SCHEMAS = frozenset(("properties", "patternProperties", "$defs", "dependentSchemas"))
_LISTS_OF_SCHEMAS = frozenset(("anyOf", "oneOf", "allOf", "prefixItems"))
_SCHEMAS = frozenset(
    ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
)


def adopted(schema: dict, kind: type, schemas: object) -> dict:
    """The schema of a class, whose own definitions join those of `schemas`."""
    plain = plain_schema(schema, dropped=_DROPPED_OF_CLASSES)
    definitions = plain.pop("$defs", {})
    # A class that refers to itself is one of its own definitions.
    own = plain["$ref"].rpartition("/")[2] if list(plain) == ["$ref"] else None
    names: "dict[str, str]" = {}
    for each in definitions:
        names[each] = schemas.name_of(kind) if each == own else schemas.free_name(each)
        schemas.definitions.setdefault(names[each], {})
    plain = definitions.pop(own, plain)
    for each, free in names.items():
        if each == own:
            continue
        schemas.definitions[free] = _referring(definitions[each], names)
    return _referring(plain, names)


def plain_schema(schema: object, dropped: "frozenset[str]" = frozenset(), depth: int = _MAX_DEPTH) -> dict:
    """A schema in the words of JSON Schema. Keywords that are no JSON or `dropped` are left out."""
    if schema is True or not isinstance(schema, dict) or depth == 0:
        return {}
    plain: dict = {}
    for key, value in schema.items():
        key = _RENAMED.get(key, key)
        if not isinstance(key, str) or key == "nullable" or key in dropped:
            continue
        try:
            plain[key] = _keyword(key, value, dropped, depth)
        except NotJson:
            continue
    return or_null(plain) if schema.get("nullable") is True else plain


def _keyword(key: str, value: object, dropped: "frozenset[str]", depth: int) -> object:
    def nested(schema: object) -> object:
        return schema if isinstance(schema, bool) else plain_schema(schema, dropped, depth - 1)

    if key in _OF_SCHEMAS and isinstance(value, dict):
        return {str(name): nested(each) for name, each in value.items()}
    if (key in _LISTS_OF_SCHEMAS or key == "items") and isinstance(value, list):
        return [nested(each) for each in value]
    if key in _SCHEMAS:
        return nested(value)
    if key == "type":
        kinds = value if isinstance(value, list) else [value]
        words = [str(each.value if isinstance(each, enum.Enum) else each).lower() for each in kinds]
        return words if isinstance(value, list) else words[0]
    return _json(value, depth)


def _json(value: object, depth: int) -> object:
    """A value without a bound of its own: the answer as a whole has one. Raises NotJson."""
    if isinstance(value, enum.Enum):
        value = value.value
    if depth == 0:
        raise NotJson
    if isinstance(value, dict):
        return {str(key): _json(each, depth - 1) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_json(each, depth - 1) for each in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise NotJson


def _referring(schema: object, names: "dict[str, str]") -> object:
    """A schema whose references lead to the new names of definitions."""
    if isinstance(schema, list):
        return [_referring(each, names) for each in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: _referring(value, names) for key, value in schema.items()}
    target = schema.get("$ref")
    if isinstance(target, str):
        name = target.rpartition("/")[2]
        changed["$ref"] = f"#/$defs/{names.get(name, name)}"
    return changed
