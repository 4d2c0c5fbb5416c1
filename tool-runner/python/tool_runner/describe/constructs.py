"""Parts of schemas, and the meaning of annotations that are texts."""


def evaluated(annotation: object, namespace: dict) -> object:
    """What an annotation that is a text means. Raises what its evaluation raises."""
    forward = getattr(annotation, "__forward_arg__", None)
    module = getattr(annotation, "__forward_module__", None)
    if forward is not None:
        annotation = forward
        namespace = getattr(module, "__dict__", namespace)
    return eval(annotation, dict(namespace)) if isinstance(annotation, str) else annotation


def any_of(schemas: "list[dict]") -> dict:
    """The schema of a choice; open where one of the choices is."""
    choices: "list[dict]" = []
    for schema in schemas:
        nested = schema["anyOf"] if list(schema) == ["anyOf"] else [schema]
        choices += [each for each in nested if each not in choices]
    if not choices or {} in choices:
        return {}
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def tuple_of(items: "list[dict]", required: int) -> dict:
    """The schema of an array whose elements have schemas of their own."""
    prefix = {"prefixItems": items} if items else {}
    return {"type": "array", **prefix, "minItems": required, "maxItems": len(items)}
