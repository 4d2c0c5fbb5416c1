"""Classes with members as schemas: dataclasses, TypedDict, NamedTuple, models of pydantic."""

import dataclasses
import sys
import typing

from .annotated import description_in
from .constructs import evaluated, or_null, tuple_of
from .docstrings import Docstring
from .foreign import adopted
from .json_values import NotJson, json_of

# What pydantic lets a class change about its dump.
_DUMP_DECORATORS = ("field_serializers", "model_serializers", "computed_fields")


def record_of(kind: type, schemas: object) -> "dict | None":
    """A reference to the schema of a class with members; None for other classes."""
    make = _maker_of(kind, schemas.is_result)
    if make is None:
        return None
    return schemas.define(kind, kind.__name__, lambda: make(kind, schemas))


def _maker_of(kind: type, is_result: bool) -> "typing.Callable[[type, object], dict] | None":
    if callable(getattr(kind, "model_json_schema", None)):
        return _of_dumped_model if is_result else _of_model
    if isinstance(getattr(kind, "__fields__", None), dict) and callable(getattr(kind, "schema", None)):
        # Of the first pydantic. The runner writes the text of one into a result.
        return (lambda _kind, _schemas: {"type": "string"}) if is_result else _of_first_model
    if issubclass(kind, dict) and hasattr(kind, "__required_keys__"):
        return _of_typed_dict
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _of_named_tuple
    return _of_dataclass if dataclasses.is_dataclass(kind) else None


def _of_typed_dict(kind: type, schemas: object) -> dict:
    texts = _Texts(kind)
    members = _annotations_of(kind)
    properties = {
        name: texts.add(name, schemas.of(annotation, namespace))
        for name, (annotation, namespace) in members.items()
    }
    # Under `from __future__ import annotations` Python does not see these in an annotation.
    required = set(kind.__required_keys__)
    for name, (annotation, _) in members.items():
        text = getattr(annotation, "__forward_arg__", annotation)
        word = text.partition("[")[0].rpartition(".")[2] if isinstance(text, str) else None
        required -= {name} if word == "NotRequired" else set()
        required |= {name} if word == "Required" else set()
    return texts.object_of(properties, [name for name in properties if name in required])


def _of_dataclass(kind: type, schemas: object) -> dict:
    texts, annotations = _Texts(kind), _annotations_of(kind)
    properties, required = {}, []
    for field in dataclasses.fields(kind):
        if not field.init and not schemas.is_result:
            continue
        annotation, namespace = annotations.get(field.name, (field.type, {}))
        schema = texts.add(field.name, schemas.of(annotation, namespace))
        has_default = field.default is not dataclasses.MISSING
        if schemas.is_result or not (has_default or field.default_factory is not dataclasses.MISSING):
            required.append(field.name)
        elif has_default:
            schema = with_default(schema, field.default)
        properties[field.name] = schema
    return texts.object_of(properties, required)


def _of_named_tuple(kind: type, schemas: object) -> dict:
    annotations = _annotations_of(kind)
    texts = _Texts(kind)
    items = [
        {"title": name, **texts.add(name, schemas.of(*annotations.get(name, (typing.Any, {}))))}
        for name in kind._fields
    ]
    required = len(items) if schemas.is_result else len(items) - len(kind._field_defaults)
    return texts.described(tuple_of(items, required))


def _of_model(kind: type, schemas: object) -> dict:
    return adopted(kind.model_json_schema(ref_template="#/$defs/{model}"), kind, schemas)


def _of_first_model(kind: type, schemas: object) -> dict:
    return adopted(kind.schema(ref_template="#/$defs/{model}"), kind, schemas)


def _of_dumped_model(kind: type, schemas: object) -> dict:
    """By its fields: pydantic's own schema is of a dump in another mode than the runner's."""
    decorators = getattr(kind, "__pydantic_decorators__", None)
    if decorators is None or any(getattr(decorators, name, None) for name in _DUMP_DECORATORS):
        return {"type": "object"}
    namespace = _namespace_of(kind)
    texts = _Texts(kind)
    properties = {}
    for name, field in kind.model_fields.items():
        if field.exclude:
            continue
        schema = schemas.of(field.annotation, namespace)
        description = description_in(field)
        properties[name] = texts.add(name, {**schema, "description": description} if description else schema)
    return texts.object_of(properties, list(properties))


class _Texts:
    """What the docstring of a class says of it and of its members."""

    def __init__(self, kind: type) -> None:
        text = vars(kind).get("__doc__")
        # Dataclasses and named tuples without a docstring get their signature as one.
        is_own = isinstance(text, str) and not text.startswith(f"{kind.__name__}(")
        self._docstring = Docstring(text if is_own else None)

    def add(self, name: str, schema: dict) -> dict:
        """The schema of a member, with the docstring's text where it has none."""
        text = self._docstring.parameters.get(name)
        return {**schema, "description": text} if text and "description" not in schema else schema

    def described(self, schema: dict) -> dict:
        description = self._docstring.description
        return {**schema, "description": description} if description else schema

    def object_of(self, properties: dict, required: "list[str]") -> dict:
        schema = {"type": "object", "properties": properties}
        return self.described({**schema, "required": required} if required else schema)


def with_default(schema: dict, default: object) -> dict:
    """A schema with a default, if that is JSON. A default of None is accepted as a value, too."""
    try:
        value = json_of(default)
    except NotJson:
        return schema
    if value is None and schema and not _accepts_null(schema):
        schema = or_null(schema)
    return {**schema, "default": value}


def _accepts_null(schema: dict) -> bool:
    choices = schema.get("anyOf", [schema])
    return any(each.get("type") == "null" or None in each.get("enum", ()) for each in choices)


def _annotations_of(kind: type) -> "dict[str, tuple[object, dict]]":
    """The annotations of a class and of its bases, each with what its texts mean."""
    found: dict = {}
    for base in reversed(kind.__mro__):
        try:
            own = base.__dict__.get("__annotations__") or getattr(base, "__annotations__", {})
        except NameError:
            own = {}  # Python 3.14 evaluates them here.
        namespace = _namespace_of(base)
        found.update((name, (annotation, namespace)) for name, annotation in own.items())
    return found


def _namespace_of(kind: type) -> dict:
    module = sys.modules.get(kind.__module__)
    return {**(vars(module) if module else {}), kind.__name__: kind}


def members_of_unpacked(annotation: object, namespace: dict) -> "type | None":
    """The TypedDict of `**kwargs: Unpack[Options]`."""
    meant = evaluated(annotation, namespace)
    origin = typing.get_origin(meant)
    name = getattr(origin, "_name", None) or getattr(origin, "__name__", None)
    return typing.get_args(meant)[0] if name == "Unpack" else None
