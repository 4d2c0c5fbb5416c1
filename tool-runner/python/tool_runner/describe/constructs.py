"""Parts of schemas, and the meaning of annotations that are texts."""

import builtins
import sys
import typing

def evaluated(annotation: object, namespace: dict) -> object:
    """What an annotation means that is a text. Raises what its evaluation raises."""
    forward = getattr(annotation, "__forward_arg__", None)
    if forward is not None:
        module = getattr(annotation, "__forward_module__", None)
        namespace = getattr(sys.modules.get(module, module), "__dict__", namespace)
        annotation = forward
    return eval(annotation, {}, _Names(namespace)) if isinstance(annotation, str) else annotation


class _Names(dict):
    """What names mean; anything for those that are there for type checkers only."""

    def __missing__(self, name: str) -> object:
        return getattr(builtins, name, typing.Any)


def any_of(schemas: "list[dict]") -> dict:
    """The schema of a choice; open where one of the choices is."""
    choices: "list[dict]" = []
    for schema in schemas:
        nested = schema["anyOf"] if list(schema) == ["anyOf"] else [schema]
        choices += [each for each in nested if each not in choices]
    if not choices or {} in choices:
        return {}
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def or_null(schema: dict) -> dict:
    """The schema that also accepts null. What it says in words stays outside of the choice."""
    words = {name: schema[name] for name in ("title", "description", "default") if name in schema}
    bare = {name: value for name, value in schema.items() if name not in words}
    return {**any_of([bare, {"type": "null"}]), **words}


def tuple_of(items: "list[dict]", required: int) -> dict:
    """The schema of an array whose elements have schemas of their own."""
    return {"type": "array", "prefixItems": items, "minItems": required, "maxItems": len(items)}
